//! The trusted compiler of extensions, with the compiler that the firmware is built with.

use crate::firmware::toolchain::Toolchain;
use crate::paths;
use anyhow::{Context, Result};
use spine_linker::compile::Compiler;
use spine_linker::sign::Signer;
use std::path::PathBuf;

/// The compiler, its linker, and where things are.
///
/// # Errors
/// As [`Toolchain::find`].
pub fn compiler() -> Result<Compiler> {
    let toolchain = Toolchain::find()?;
    let linker = toolchain.linker.unwrap_or_else(|| PathBuf::from("ld.lld"));
    Ok(Compiler {
        rustc: toolchain.compiler,
        linker,
        root: paths::root(),
        target: paths::target().join("extensions"),
        table: None,
    })
}

/// Who signs where nobody else is named: with the development key, which anybody has.
///
/// # Errors
/// If the key's file is not there.
pub fn development_signer() -> Result<Signer> {
    let path = paths::root().join("firmware/keys/development.key");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Signer::from_text(&text).with_context(|| format!("{} holds no key", path.display()))
}
