//! The cache outside the checkout, for slow builds: QEMU, the guest, mdbook.
//!
//! It belongs to a user. A user without write permission, for example under a `sudo` that kept
//! root's home, gets a message that names the variable to set.

use crate::{interrupt, paths};
use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Environment variable: the folder to use as the cache.
pub const VARIABLE: &str = "TIGON_CACHE";

/// How often a lock that somebody else holds is tried.
const LOOK: Duration = Duration::from_millis(100);

/// The cache's folder for `part`, made if it is not there.
///
/// # Errors
/// Without the right to make it.
pub fn folder(part: &str) -> Result<PathBuf> {
    let folder = paths::cache().join(part);
    fs::create_dir_all(&folder).with_context(|| advice(&folder))?;
    Ok(folder)
}

/// Waits until nobody else writes to a folder of the cache, having said `waiting` if it must;
/// dropping the file ends the claim.
///
/// # Errors
/// Without the right to write there, and on Ctrl-C.
pub fn lock(folder: &Path, waiting: &str) -> Result<File> {
    let file = File::create(folder.join("lock")).with_context(|| advice(folder))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return Ok(file);
    }
    println!("{waiting}");
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        interrupt::sleep(LOOK)?;
    }
    Ok(file)
}

fn advice(folder: &Path) -> String {
    format!(
        "cannot write to the cache {}; name a folder of your own with {VARIABLE}",
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_when_its_file_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = lock(folder.path(), "waiting").expect("it is free");
        let other = File::create(folder.path().join("lock")).expect("a file");
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(first);
        drop(lock(folder.path(), "waiting").expect("it is free again"));
    }

    #[test]
    fn where_nothing_can_be_written_the_variable_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = lock(file.path(), "waiting").expect_err("no folder");
        assert!(error.to_string().contains(VARIABLE), "{error}");
    }
}
