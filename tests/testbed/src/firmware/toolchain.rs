//! Finds a compiler that has the standard library's source, and a linker.
//!
//! `core` is built for the chip's target, so its source must be present and must match the
//! compiler. Rustup's toolchain has it as the component `rust-src`; where that is not available,
//! Debian's `rustc-web` and `rust-web-src` are such a pair.

use crate::process;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler and what it needs for the chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub compiler: PathBuf,
    /// The linker, unless it is `ld.lld` from the path.
    pub linker: Option<PathBuf>,
}

/// Where Debian's compiler is.
const DEBIAN: &str = "/usr/bin/rustc";

impl Toolchain {
    /// The first of: `TIGON_RUSTC`, `rustc` from the path, Debian's compiler.
    ///
    /// # Errors
    /// When none of them has the source, or no linker is there, with what to install.
    pub fn find() -> Result<Toolchain> {
        let chosen = std::env::var_os("TIGON_RUSTC").map(PathBuf::from);
        let candidates = match chosen {
            Some(compiler) => vec![compiler],
            None => vec![PathBuf::from("rustc"), PathBuf::from(DEBIAN)],
        };
        for compiler in candidates {
            let Some(sysroot) = sysroot(&compiler) else {
                continue;
            };
            if !has_source(&sysroot) {
                continue;
            }
            let linker = if process::exists("ld.lld") {
                None
            } else if let Some(linker) = rust_lld(&sysroot) {
                Some(linker)
            } else {
                bail!("no linker for the chip: install the package lld");
            };
            return Ok(Toolchain { compiler, linker });
        }
        bail!(
            "no Rust compiler with the source of its library: run `rustup component add rust-src`, \
             or install the packages rustc-web, rust-web-src and lld"
        )
    }
}

fn sysroot(compiler: &Path) -> Option<PathBuf> {
    let output = Command::new(compiler)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success()).then(|| PathBuf::from(text.trim()))
}

fn has_source(sysroot: &Path) -> bool {
    sysroot
        .join("lib/rustlib/src/rust/library/core/src/lib.rs")
        .is_file()
}

fn rust_lld(sysroot: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(sysroot.join("lib/rustlib")).ok()?;
    hosts
        .flatten()
        .map(|host| host.path().join("bin/rust-lld"))
        .find(|linker| linker.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysroot_counts_only_with_the_source_of_core() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(!has_source(folder.path()));
        let core = folder.path().join("lib/rustlib/src/rust/library/core/src");
        std::fs::create_dir_all(&core).expect("folders");
        std::fs::write(core.join("lib.rs"), "").expect("a file");
        assert!(has_source(folder.path()));
    }

    #[test]
    fn the_toolchains_own_linker_is_found_below_its_host() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(rust_lld(folder.path()), None);
        let bin = folder.path().join("lib/rustlib/some-host/bin");
        std::fs::create_dir_all(&bin).expect("folders");
        std::fs::write(bin.join("rust-lld"), "").expect("a file");
        assert_eq!(rust_lld(folder.path()), Some(bin.join("rust-lld")));
    }

    #[test]
    fn something_that_is_not_a_compiler_has_no_sysroot() {
        assert_eq!(sysroot(Path::new("/nonexistent/rustc")), None);
    }
}
