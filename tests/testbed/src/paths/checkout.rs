//! Finds the checkout that a command works on: the current one, not the one that built it.
//!
//! A clone that was copied or moved brings its programs with it, so a program must not store where
//! it was built. Cargo passes each program that it runs the folder of its package; a program
//! started by hand has its working directory. If both are in a checkout, it must be the same one.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml_edit::DocumentMut;

/// Names the checkout, whatever else is said: for tests that work on a copy.
const VARIABLE: &str = "TIGON_ROOT";

/// Why it is not clear which checkout is meant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckoutError {
    /// The variable names something else.
    #[error("{VARIABLE}: {} is no checkout of tigon-rs", .0.display())]
    Named(PathBuf),
    /// Cargo and the working directory name different ones.
    #[error(
        "which checkout? Cargo runs this in {}, the working directory is in {}: \
         change to the one that is meant, or name it with {VARIABLE}",
        cargo.display(), here.display()
    )]
    Two {
        /// The one that Cargo has said.
        cargo: PathBuf,
        /// The one of the working directory.
        here: PathBuf,
    },
    /// There is none.
    #[error(
        "{} is in no checkout of tigon-rs: change to one, or name it with {VARIABLE}", .0.display()
    )]
    Outside(PathBuf),
}

/// What a process knows of where it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Signs {
    /// The checkout that the user has named.
    pub named: Option<PathBuf>,
    /// The folder of the package that Cargo runs.
    pub cargo: Option<PathBuf>,
    /// The working directory.
    pub here: PathBuf,
}

impl Signs {
    /// Those of this process.
    pub fn of_this_process() -> Signs {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        Signs {
            named: variable(VARIABLE),
            cargo: variable("CARGO_MANIFEST_DIR"),
            here: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// The checkout that they tell of.
    pub fn checkout(self) -> Result<PathBuf, CheckoutError> {
        if let Some(named) = self.named {
            return if is_checkout(&named) {
                Ok(named)
            } else {
                Err(CheckoutError::Named(named))
            };
        }
        let cargo = self.cargo.as_deref().and_then(around);
        let here = around(&self.here);
        match (cargo, here) {
            (Some(cargo), Some(here)) if is_same(cargo, here) => Ok(cargo.to_owned()),
            (Some(cargo), Some(here)) => Err(CheckoutError::Two {
                cargo: cargo.to_owned(),
                here: here.to_owned(),
            }),
            (Some(only), None) | (None, Some(only)) => Ok(only.to_owned()),
            (None, None) => Err(CheckoutError::Outside(self.here)),
        }
    }
}

/// The nearest checkout around a folder, or the folder itself.
fn around(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| is_checkout(folder))
}

/// Whether a folder is the root of this workspace: it has the firmware among its members.
fn is_checkout(folder: &Path) -> bool {
    let read = |path: &str| -> Option<DocumentMut> {
        read_to_string(folder.join(path)).ok()?.parse().ok()
    };
    let has_members = |root: DocumentMut| {
        let members = root.get("workspace")?.get("members")?.as_array()?;
        let has = |name| members.iter().any(|member| member.as_str() == Some(name));
        Some(has("firmware") && has("xtask"))
    };
    let is_ours = |firmware: DocumentMut| {
        let name = firmware.get("package")?.get("name")?.as_str()?;
        Some(name == "tigon-firmware")
    };
    read("Cargo.toml").and_then(has_members) == Some(true)
        && read("firmware/Cargo.toml").and_then(is_ours) == Some(true)
}

/// Whether two paths lead to the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a checkout, with folders in it.
    fn checkout(at: &Path) -> PathBuf {
        for (path, text) in [
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"firmware\", \"xtask\"]\n",
            ),
            (
                "firmware/Cargo.toml",
                "[package]\nname = \"tigon-firmware\"\n",
            ),
            ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n"),
        ] {
            let path = at.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("room");
            std::fs::write(path, text).expect("room");
        }
        at.to_owned()
    }

    fn found(
        named: Option<&Path>,
        cargo: Option<&Path>,
        here: &Path,
    ) -> Result<PathBuf, CheckoutError> {
        let signs = Signs {
            named: named.map(Path::to_owned),
            cargo: cargo.map(Path::to_owned),
            here: here.to_owned(),
        };
        signs.checkout()
    }

    #[test]
    fn cargo_or_the_working_directory_tell_which_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = checkout(&folder.path().join("one"));
        let two = checkout(&folder.path().join("two"));
        let outside = folder.path();
        let in_xtask = one.join("xtask");
        assert_eq!(found(None, Some(&in_xtask), &one), Ok(one.clone()));
        assert_eq!(found(None, Some(&in_xtask), outside), Ok(one.clone()));
        assert_eq!(found(None, None, &one.join("firmware")), Ok(one.clone()));
        // Another project's Cargo says nothing of ours.
        assert_eq!(found(None, Some(outside), &two), Ok(two.clone()));
        // The same one by two ways.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&one, &link).expect("room");
        assert_eq!(found(None, Some(&link.join("xtask")), &one), Ok(link));
        // A copy within a checkout is a checkout of its own.
        let inner = checkout(&one.join("target/copy"));
        assert_eq!(found(None, None, &inner.join("xtask")), Ok(inner));
    }

    #[test]
    fn two_checkouts_or_none_are_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = checkout(&folder.path().join("one"));
        let two = checkout(&folder.path().join("two"));
        let expected = CheckoutError::Two {
            cargo: one.clone(),
            here: two.clone(),
        };
        assert_eq!(
            found(None, Some(&one.join("xtask")), &two),
            Err(expected.clone())
        );
        let said = expected.to_string();
        assert!(said.contains("/one, ") && said.contains("/two: "), "{said}");
        assert_eq!(found(Some(&two), Some(&one), &one), Ok(two));
        let outside = folder.path().to_owned();
        let expected = CheckoutError::Outside(outside.clone());
        assert_eq!(found(None, None, &outside), Err(expected));
        let expected = CheckoutError::Named(outside.clone());
        assert_eq!(found(Some(&outside), Some(&one), &one), Err(expected));
    }
}
