//! Containers in a table: what is in them, and who answers for it.

use anyhow::{Context, Result, ensure};
use spine_image::{Grade, Image};
use spine_linker::link;
use spine_linker::sign::{TrustError, digits_of_bytes, trusted};
use std::path::{Path, PathBuf};
use testbed::setup::{self, Need};
use testbed::{extensions, paths};

/// Digits of a key that are shown.
const DIGITS: usize = 12;

/// Lists containers, or those of the folder where `build` puts them.
///
/// # Errors
/// What cannot be read or written.
pub fn run(containers: &[PathBuf]) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    let build = extensions::compiler()?.build_id()?;
    let all = if containers.is_empty() {
        built()?
    } else {
        containers.to_vec()
    };
    ensure!(
        !all.is_empty(),
        "no container is there: cargo xtask extension build makes one"
    );
    println!(
        "{:<24}  {:>6}  {:<8}  {:<DIGITS$}  state",
        "extension", "bytes", "grade", "signer"
    );
    for path in &all {
        println!("{}", row(path, &build)?);
    }
    Ok(())
}

/// What `build` has made, by name.
fn built() -> Result<Vec<PathBuf>> {
    let folder = paths::target().join("extensions");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.extension().is_some_and(|end| end == "spine") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn row(path: &Path, build: &[u8; 16]) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let state = match trusted(&bytes, build) {
        Ok(_) => "good".to_owned(),
        Err(TrustError::Image(error)) => {
            return Ok(format!("{}: no container: {error}", path.display()));
        }
        Err(error) => error.to_string(),
    };
    let image = Image::parse(&bytes)?;
    let grade = match image.grade() {
        Grade::Language => "language",
        Grade::Sandbox => "sandbox",
    };
    let key = digits_of_bytes(&image.trailer().signer);
    Ok(format!(
        "{:<24}  {:>6}  {grade:<8}  {}  {state}",
        image.extension(),
        link::bytes(&image),
        key.get(..DIGITS).unwrap_or(&key),
    ))
}
