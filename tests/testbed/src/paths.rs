//! The paths of the checkout, of builds, reports and the cache.

mod checkout;

pub use checkout::CheckoutError;

use anyhow::{Context, Result, ensure};
use checkout::Signs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The checkout that this program works on: `TIGON_ROOT`, for tests that work on a copy,
/// else the one in which Cargo runs it and the working directory is. It stays the same.
///
/// # Errors
/// When there is none, or it is not clear which one is meant.
pub fn find() -> Result<&'static Path, CheckoutError> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let found = Signs::of_this_process().checkout()?;
    Ok(FOUND.get_or_init(|| found))
}

/// The root of the checkout, which [`find`] has found before.
///
/// # Panics
/// Where it would not find one: `main` and tests begin in a checkout.
pub fn root() -> PathBuf {
    find().unwrap_or_else(|error| panic!("{error}")).to_owned()
}

/// The text of this project's board file.
///
/// # Errors
/// If it cannot be read.
pub fn board_file() -> Result<String> {
    let board = root().join("boards/tigon2/tigon2.toml");
    std::fs::read_to_string(&board).with_context(|| format!("cannot read {}", board.display()))
}

/// Cargo's target directory: `CARGO_TARGET_DIR`, else `target` in the checkout.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where the commands write their JSON reports: `target/reports` of the
/// checkout, wherever Cargo builds.
pub fn reports() -> PathBuf {
    root().join("target/reports")
}

/// The cache outside the checkout for what takes minutes to build:
/// `TIGON_CACHE`, else `tigon-rs` in `XDG_CACHE_HOME`, else `~/.cache/tigon-rs`.
pub fn cache() -> PathBuf {
    let under_home = |home| PathBuf::from(home).join(".cache");
    if let Some(cache) = std::env::var_os("TIGON_CACHE") {
        return PathBuf::from(cache);
    }
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(under_home))
        .unwrap_or_else(std::env::temp_dir)
        .join("tigon-rs")
}

/// Copies the sources, without what Git does not know, for tests that work on a copy.
///
/// # Errors
/// Outside of a clone, and if a file cannot be copied.
pub fn copy_sources(to: &Path) -> Result<()> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(root());
    let list = list.output().context("start git")?;
    ensure!(list.status.success(), "git does not list the sources");
    let names = String::from_utf8(list.stdout).context("a name that is no text")?;
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root().join(name), to.join(name));
        if let Some(folder) = to.parent().filter(|_| from.is_file()) {
            std::fs::create_dir_all(folder)?;
            std::fs::copy(&from, &to).with_context(|| format!("copy {}", from.display()))?;
        }
    }
    Ok(())
}

/// Makes a target folder for a copy of the sources: what is built for this machine is
/// shared, what is built for the card is the copy's own, as its reports are. To Cargo its
/// crates look like those of the same name here, and what it made of them would stay.
///
/// # Errors
/// If there is no room.
pub fn share_target(copy: &Path) -> Result<()> {
    let to = copy.join("target");
    std::fs::create_dir_all(&to)?;
    for entry in std::fs::read_dir(target())? {
        let entry = entry?;
        let there = to.join(entry.file_name());
        match entry.file_name().to_str() {
            Some("reports") => {}
            Some("firmware") => {
                // With the times that Cargo goes by.
                let mut copied = Command::new("cp");
                copied.arg("-a").arg(entry.path()).arg(there);
                ensure!(copied.status().context("start cp")?.success(), "no copy");
            }
            _ => std::os::unix::fs::symlink(entry.path(), there)?,
        }
    }
    Ok(())
}
