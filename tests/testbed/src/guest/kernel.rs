//! Unpacks the kernel from its `bzImage`, so that QEMU boots it fastest.
//!
//! QEMU starts an ELF image with a PVH note at its 32-bit entry, without the real-mode code and
//! without the decompression, which takes seconds on an emulated CPU. The kernel's document "The
//! Linux/x86 Boot Protocol" defines the layout of the header.

use crate::process;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the header's magic number is, and the number.
const HEADER: usize = 0x202;
const MAGIC: &[u8] = b"HdrS";
/// Number of 512-byte sectors of real-mode code behind the first.
const SETUP_SECTORS: usize = 0x1F1;
/// The payload's place behind the real-mode code, and its length (2.08 and later).
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24C;
const VERSION: usize = 0x206;
const WITH_PAYLOAD: u16 = 0x0208;

/// How payloads begin, the programs that unpack them, and whether the length of
/// what is in it stands behind it (gzip has its own).
const PACKERS: &[(&[u8], &str, bool)] = &[
    (b"\x1F\x8B", "gzip", false),
    (b"\xFD7zXZ\0", "xz", true),
    (b"\x28\xB5\x2F\xFD", "zstd", true),
    (b"\x02\x21\x4C\x18", "lz4", true),
    (b"BZh", "bzip2", true),
    (b"\x5D\0\0", "lzma", true),
];

/// Unpacks the kernel in `image` to `vmlinux`.
///
/// # Errors
/// When the image is no kernel, or the program that unpacks it is not there.
pub fn extract(image: &Path, vmlinux: &Path) -> Result<()> {
    let bytes = fs::read(image).with_context(|| format!("cannot read {}", image.display()))?;
    if bytes.starts_with(b"\x7FELF") {
        return fs::write(vmlinux, bytes).context("cannot write the kernel");
    }
    let (program, payload) =
        payload(&bytes).with_context(|| format!("{} is no kernel", image.display()))?;
    if !process::exists(program) {
        bail!("the kernel is packed with {program}, which is not installed");
    }
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(File::create(vmlinux)?)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(payload)
            .with_context(|| format!("{program} does not take the kernel"))?;
    }
    let status = child.wait()?;
    let mut first = [0; 4];
    std::io::Read::read_exact(&mut File::open(vmlinux)?, &mut first)
        .with_context(|| format!("{program} gave no kernel"))?;
    if !status.success() || first != *b"\x7FELF" {
        bail!("{program} cannot unpack the kernel in {}", image.display());
    }
    Ok(())
}

/// The packed kernel in a `bzImage`, and the program that unpacks it.
fn payload(image: &[u8]) -> Option<(&'static str, &[u8])> {
    if image.get(HEADER..)?.get(..4)? != MAGIC {
        return None;
    }
    let version = u16::from_le_bytes(image.get(VERSION..)?.get(..2)?.try_into().ok()?);
    if version < WITH_PAYLOAD {
        return None;
    }
    let word = |at: usize| -> Option<usize> {
        let bytes = image.get(at..)?.get(..4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    // No sectors means four, for the oldest loaders.
    let sectors = match *image.get(SETUP_SECTORS)? {
        0 => 4,
        count => usize::from(count),
    };
    let start = (sectors + 1) * 512 + word(PAYLOAD_OFFSET)?;
    let payload = image.get(start..)?.get(..word(PAYLOAD_LENGTH)?)?;
    let (_, program, length_behind) = PACKERS
        .iter()
        .find(|(begins, _, _)| payload.starts_with(begins))?;
    let behind = if *length_behind { 4 } else { 0 };
    Some((program, &payload[..payload.len().checked_sub(behind)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with one sector of real-mode code and this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x400 + 0x10];
        image[SETUP_SECTORS] = 1;
        image[HEADER..HEADER + 4].copy_from_slice(MAGIC);
        image[VERSION..VERSION + 2].copy_from_slice(&0x020F_u16.to_le_bytes());
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&0x10_u32.to_le_bytes());
        let length = (payload.len() as u32).to_le_bytes();
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length);
        image.extend(payload);
        image
    }

    #[test]
    fn the_payload_is_found_by_the_header() {
        let packed = image(b"\xFD7zXZ\0 packed \x01\x02\x03\x04");
        assert_eq!(payload(&packed), Some(("xz", &b"\xFD7zXZ\0 packed "[..])));
        let packed = image(b"\x1F\x8B packed");
        assert_eq!(payload(&packed), Some(("gzip", &b"\x1F\x8B packed"[..])));
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        assert_eq!(payload(b""), None);
        assert_eq!(payload(&[0; 4096]), None);
        assert_eq!(payload(&image(b"unknown")), None);
        assert_eq!(payload(&image(b"BZh")), None, "no room for the length");
        let mut cut = image(b"\x1F\x8B packed");
        cut.truncate(cut.len() - 1);
        assert_eq!(payload(&cut), None);
    }

    #[test]
    fn a_packed_kernel_is_unpacked() {
        let folder = tempfile::tempdir().expect("a folder");
        let elf = folder.path().join("elf");
        fs::write(&elf, b"\x7FELF and the rest").expect("a file");
        let packed = Command::new("gzip").arg("-c").arg(&elf).output();
        let packed = packed.expect("gzip").stdout;
        let (from, to) = (folder.path().join("vmlinuz"), folder.path().join("vmlinux"));
        fs::write(&from, image(&packed)).expect("a file");
        extract(&from, &to).expect("a kernel");
        assert_eq!(fs::read(&to).expect("a file"), b"\x7FELF and the rest");
        // Damaged behind the header.
        let half = &packed[..packed.len() / 2];
        fs::write(&from, image(half)).expect("a file");
        assert!(extract(&from, &to).is_err());
    }
}
