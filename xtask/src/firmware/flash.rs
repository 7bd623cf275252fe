//! From `tg2.bin` to the file that is flashed: a header, signed, and the image.

use super::{FirmwareArtifacts, replace};
use crate::paths;
use anyhow::{Context, Result};
use boot_slots::header::BUILD_ID_BYTES;
use boot_slots::{BoardId, Header};
use host_driver::flash::signature::{ImageSigner, SIGNING_KEY_VARIABLE};
use host_interface::image::Image;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use tigon2_model::Board;

/// Makes the file to flash of a firmware for a board, beside its other files.
///
/// # Errors
/// When the key or the firmware cannot be read, or the image is no image.
pub fn image(built: &FirmwareArtifacts, board: &Board) -> Result<PathBuf> {
    let elf = std::fs::read(&built.elf)
        .with_context(|| format!("cannot read {}", built.elf.display()))?;
    let file = signed(&built.image()?, &elf, board)?;
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

/// A file to flash of an image in the drivers' load format. The build is named by the
/// first bytes of the SHA-256 of its ELF file.
///
/// # Errors
/// As [`image`].
pub fn signed(tg2: &[u8], elf: &[u8], board: &Board) -> Result<Vec<u8>> {
    let image = Image::parse(tg2).context("the firmware is no image")?;
    let mut build_id = [0; BUILD_ID_BYTES];
    build_id.copy_from_slice(&Sha256::digest(elf)[..BUILD_ID_BYTES]);
    let header = Header::of(board_id(board), &image, build_id);
    let key = std::env::var_os(SIGNING_KEY_VARIABLE).map(PathBuf::from);
    let development = || paths::root().join("firmware/keys/development.key");
    let signer = ImageSigner::from_file(&key.unwrap_or_else(development))?;
    Ok(signer.sign(header, image.code()))
}
