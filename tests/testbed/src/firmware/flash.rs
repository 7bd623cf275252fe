//! Makes the file to flash from `tg2.bin`: a header, signed, and the image.
//!
//! The image's rollback counter is in `firmware/Cargo.toml`; raise it with a build that no older
//! one may replace.

use super::{FirmwareArtifacts, own, replace};
use crate::paths;
use anyhow::{Context, Result};
use boot_slots::header::BUILD_ID_BYTES;
use boot_slots::{BoardId, Header};
use host_driver::flash::signature::{ImageSigner, SIGNING_KEY_VARIABLE};
use host_interface::image::Image;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use tigon2_model::Board;
use toml_edit::DocumentMut;

/// Makes the file to flash of a firmware for a board, beside its other files.
///
/// # Errors
/// When the key or the firmware cannot be read, or the image is no image.
pub fn image(built: &FirmwareArtifacts, board: &Board) -> Result<PathBuf> {
    let elf = std::fs::read(&built.elf)
        .with_context(|| format!("cannot read {}", built.elf.display()))?;
    let file = signed(&built.image()?, &elf, board, counter(&own::manifest()?)?)?;
    let id = board_id(board);
    let name = format!("{:04x}-{:04x}.flash.bin", id.vendor, id.device);
    let path = built.tg2.with_extension("").with_extension(name);
    replace(&path, &file).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The ids by which an image names its board.
pub fn board_id(board: &Board) -> BoardId {
    BoardId {
        vendor: board.pci.vendor,
        device: board.pci.device,
    }
}

/// The rollback counter that a manifest gives its images; 0 if it gives none.
fn counter(manifest: &str) -> Result<u32> {
    let manifest: DocumentMut = manifest.parse().context("firmware/Cargo.toml")?;
    let metadata = manifest.get("package").and_then(|it| it.get("metadata"));
    let Some(counter) = metadata.and_then(|it| it.get("flash")?.get("counter")) else {
        return Ok(0);
    };
    let number = counter.as_integer().and_then(|it| u32::try_from(it).ok());
    number.with_context(|| {
        let given = counter.to_string();
        format!(
            "firmware/Cargo.toml: flash.counter = {} is no number of 32 bits",
            given.trim()
        )
    })
}

/// What images are signed with: the key that `TIGON_SIGNING_KEY` names, else the development
/// key.
///
/// # Errors
/// When the file holds no key.
pub fn signer() -> Result<ImageSigner> {
    let key = std::env::var_os(SIGNING_KEY_VARIABLE).map(PathBuf::from);
    let development = || paths::root().join("firmware/keys/development.key");
    Ok(ImageSigner::from_file(&key.unwrap_or_else(development))?)
}

/// A file to flash of an image in the drivers' load format, with a rollback counter. The
/// build is named by the first bytes of the SHA-256 of its ELF file.
///
/// # Errors
/// As [`image`].
pub fn signed(tg2: &[u8], elf: &[u8], board: &Board, counter: u32) -> Result<Vec<u8>> {
    let image = Image::parse(tg2).context("the firmware is no image")?;
    let mut build_id = [0; BUILD_ID_BYTES];
    build_id.copy_from_slice(&Sha256::digest(elf)[..BUILD_ID_BYTES]);
    let header = Header {
        counter,
        ..Header::of(board_id(board), &image, build_id)
    };
    Ok(signer()?.sign(header, image.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_gives_the_counter() {
        let of = |text: &str| counter(text);
        assert_eq!(of("[package]\nname = \"x\"\n").expect("none"), 0);
        let with = |value: &str| of(&format!("[package.metadata.flash]\ncounter = {value}\n"));
        assert_eq!(with("7").expect("a number"), 7);
        for wrong in ["-1", "\"7\"", "4294967296"] {
            let error = with(wrong).expect_err(wrong).to_string();
            assert!(error.contains(wrong), "{error}");
        }
        let ours = own::manifest().expect("the manifest");
        assert!(of(&ours).expect("a number") > 0, "older builds have 0");
    }
}
