//! Where things lie: the checkout, what is built, reports and the cache.

use std::path::{Path, PathBuf};

/// The root of the checkout: `TIGON_ROOT`, for tests that work on a copy, else the one that
/// this program was built in.
pub fn root() -> PathBuf {
    if let Some(root) = std::env::var_os("TIGON_ROOT") {
        return PathBuf::from(root);
    }
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace's root")
        .to_path_buf()
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
