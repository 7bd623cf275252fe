//! Converts the ELF to `tg2.bin`, the drivers' load format.
//!
//! The file holds one contiguous piece of SRAM: every segment at its load address. The scratch
//! pad's code is loaded after the rest; the start code moves it.

use anyhow::{Context, Result, ensure};
use host_interface::image::{HEADER_BYTES, Image, SEAL_BYTES, Version, seal};
use object::elf::{FileHeader32, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use tigon2_chip::memory::FIRMWARE_BASE;

/// The file's bytes, sealed so that a driver can tell a file that was cut.
///
/// # Errors
/// When the bytes are no 32-bit ELF, or its image does not fit where drivers load.
pub fn image(elf: &[u8]) -> Result<Vec<u8>> {
    let header = FileHeader32::<object::Endianness>::parse(elf).context("not a 32-bit ELF")?;
    let endian = header.endian()?;
    let mut code = Vec::new();
    for segment in header.program_headers(endian, elf)? {
        let data = segment
            .data(endian, elf)
            .ok()
            .context("a segment without its bytes")?;
        if segment.p_type(endian) != PT_LOAD || data.is_empty() {
            continue;
        }
        let address = segment.p_paddr(endian);
        let offset = address.checked_sub(FIRMWARE_BASE);
        let offset = offset.with_context(|| format!("a segment is loaded to {address:#x}"))?;
        let end = offset as usize + data.len();
        ensure!(end <= 0x10_0000, "a segment is loaded to {address:#x}");
        code.resize(code.len().max(end), 0);
        code[offset as usize..end].copy_from_slice(data);
    }
    code.resize(code.len().next_multiple_of(4), 0);
    code.extend(seal(HEADER_BYTES + code.len() + SEAL_BYTES));
    let image = Image::new(version()?, header.e_entry(endian), FIRMWARE_BASE, &code)
        .and_then(Image::sealed)
        .context("the image cannot be loaded")?;
    Ok([image.header().as_slice(), image.code()].concat())
}

/// The workspace's version, which the firmware shares.
fn version() -> Result<Version> {
    let part = |text: &str| text.parse().context("the version does not fit the header");
    Ok(Version {
        major: part(env!("CARGO_PKG_VERSION_MAJOR"))?,
        minor: part(env!("CARGO_PKG_VERSION_MINOR"))?,
        fix: part(env!("CARGO_PKG_VERSION_PATCH"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A big-endian ELF with an entry and load segments of (virtual, load, words).
    fn elf(entry: u32, segments: &[(u32, u32, &[u32])]) -> Vec<u8> {
        let half = |value: u16| value.to_be_bytes().to_vec();
        let word = |value: u32| value.to_be_bytes().to_vec();
        let mut file = b"\x7FELF\x01\x02\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(
            [
                half(2),
                half(8),
                word(1),
                word(entry),
                word(52),
                word(0),
                word(0),
            ]
            .concat(),
        );
        let count = segments.len() as u16;
        file.extend([half(52), half(32), half(count), half(40), half(0), half(0)].concat());
        let mut offset = 52 + 32 * segments.len() as u32;
        for (address, load, words) in segments {
            let bytes = 4 * words.len() as u32;
            let header = [1, offset, *address, *load, bytes, bytes, 5, 4];
            file.extend(header.map(word).concat());
            offset += bytes;
        }
        for (_, _, words) in segments {
            file.extend(words.iter().flat_map(|value| value.to_be_bytes()));
        }
        file
    }

    #[test]
    fn segments_land_at_their_load_addresses_and_the_file_is_sealed() {
        let elf = elf(
            0x4004,
            &[(0x4000, 0x4000, &[1, 2]), (0x00C0_0400, 0x400C, &[4])],
        );
        let file = image(&elf).expect("an image");
        let image = Image::parse(&file).expect("the format");
        assert_eq!((image.start(), image.load()), (0x4004, 0x4000));
        assert_eq!(image.version().to_string(), env!("CARGO_PKG_VERSION"));
        let words: Vec<_> = image.words().collect();
        assert_eq!(
            words[..4],
            [(0x4000, 1), (0x4004, 2), (0x4008, 0), (0x400C, 4)]
        );
        assert_eq!(words.len(), 6);
        assert_eq!(file[3], host_interface::image::SEALED);
    }

    #[test]
    fn what_cannot_be_loaded_is_refused() {
        assert!(image(b"not an ELF").is_err());
        let low = image(&elf(0x4000, &[(0, 0, &[1])])).expect_err("below the image");
        assert!(low.to_string().contains("loaded to 0x0"), "{low}");
        let high = image(&elf(0x4000, &[(0, 0x20_0000, &[1])])).expect_err("beyond");
        assert!(high.to_string().contains("0x200000"), "{high}");
        let entry = image(&elf(0x100, &[(0x4000, 0x4000, &[1])])).expect_err("entry outside");
        assert!(format!("{entry:#}").contains("start address"), "{entry:#}");
    }
}
