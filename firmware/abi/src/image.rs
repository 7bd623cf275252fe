//! The firmware file `acenic/tg2.bin`.
//!
//! Host/NIC software interface, "What an unmodified driver does at start", step 5. All
//! words are big-endian:
//!
//! ```text
//! 0  major, minor, fix, 0 or 1
//! 4  start address
//! 8  load address
//! 12 the image, copied word by word to the load address
//! ```
//!
//! The format has no length, so a file that was truncated at a word boundary looks complete. Byte
//! 3, which drivers ignore, is 1 in a *sealed* file: the last two words of its image are [`SEAL`]
//! and the length of the file in bytes. They are loaded like the rest.

/// Lowest address that a driver loads to or starts at.
pub const LOWEST: u32 = 0x4000;
/// Addresses must be below this; drivers clear NIC memory up to here first.
pub const HIGHEST: u32 = 0x8_0000;
/// Bytes before the image.
pub const HEADER_BYTES: usize = 12;

/// Byte 3 of the header of a sealed file.
pub const SEALED: u8 = 1;
/// The last word but one of a sealed file: "TGRS".
pub const SEAL: u32 = 0x5447_5253;
/// Bytes of the seal at the end of a sealed file.
pub const SEAL_BYTES: usize = 8;

/// Version of a firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major number; drivers of revision 12.4 expect 12.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
    /// Fix number.
    pub fix: u8,
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.fix)
    }
}

/// The interface revision that the in-kernel drivers were written for.
pub const INTERFACE_VERSION: Version = Version {
    major: 12,
    minor: 4,
    fix: 13,
};

/// A firmware image whose addresses have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    version: Version,
    start: u32,
    load: u32,
    code: &'a [u8],
    sealed: bool,
}

/// Why a file or its parts do not form a firmware image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Shorter than its header.
    #[error("{0} bytes are too short for a firmware image's header")]
    NoHeader(usize),
    /// No image after the header.
    #[error("the image is empty")]
    Empty,
    /// Drivers copy whole words.
    #[error("the image's length, {0} bytes, is no multiple of 4")]
    PartialWord(usize),
    /// The load address is out of range or not aligned.
    #[error("load address {0:#x} is not a word address within {LOWEST:#x}..{HIGHEST:#x}")]
    LoadAddress(u32),
    /// The start address is out of range or not aligned.
    #[error("start address {0:#x} is not a word address within the image")]
    StartAddress(u32),
    /// The image does not fit.
    #[error("{bytes} bytes at {load:#x} reach beyond {HIGHEST:#x}")]
    TooLarge {
        /// Where it would be loaded.
        load: u32,
        /// Its length in bytes.
        bytes: usize,
    },
    /// A sealed file whose length disagrees with its seal: it was truncated or extended.
    #[error("the firmware file is damaged: {0} bytes do not end with their seal")]
    Damaged(usize),
}

impl<'a> Image<'a> {
    /// An image from its parts.
    ///
    /// # Errors
    /// [`ImageError`] for what a driver would reject or could not load.
    pub const fn new(
        version: Version,
        start: u32,
        load: u32,
        code: &'a [u8],
    ) -> Result<Self, ImageError> {
        if load < LOWEST || load >= HIGHEST || !load.is_multiple_of(4) {
            return Err(ImageError::LoadAddress(load));
        }
        if code.is_empty() {
            return Err(ImageError::Empty);
        }
        if !code.len().is_multiple_of(4) {
            return Err(ImageError::PartialWord(code.len()));
        }
        if code.len() > (HIGHEST - load) as usize {
            return Err(ImageError::TooLarge {
                load,
                bytes: code.len(),
            });
        }
        let inside = start >= load && ((start - load) as usize) < code.len();
        if !inside || !start.is_multiple_of(4) {
            return Err(ImageError::StartAddress(start));
        }
        Ok(Image {
            version,
            start,
            load,
            code,
            sealed: false,
        })
    }

    /// The image in a file.
    ///
    /// # Errors
    /// [`ImageError`] for what a driver would reject or could not load.
    pub fn parse(file: &'a [u8]) -> Result<Self, ImageError> {
        let Some((header, code)) = file.split_first_chunk::<HEADER_BYTES>() else {
            return Err(ImageError::NoHeader(file.len()));
        };
        let [major, minor, fix, sealed, s0, s1, s2, s3, l0, l1, l2, l3] = *header;
        let image = Image::new(
            Version { major, minor, fix },
            u32::from_be_bytes([s0, s1, s2, s3]),
            u32::from_be_bytes([l0, l1, l2, l3]),
            code,
        )?;
        if sealed == SEALED {
            image.sealed()
        } else {
            Ok(image)
        }
    }

    /// The same image, marked as sealed: its last [`SEAL_BYTES`] must be [`seal`].
    ///
    /// # Errors
    /// [`ImageError::Damaged`] if they are not.
    pub fn sealed(mut self) -> Result<Self, ImageError> {
        let bytes = HEADER_BYTES + self.code.len();
        if !self.code.ends_with(&seal(bytes)) {
            return Err(ImageError::Damaged(bytes));
        }
        self.sealed = true;
        Ok(self)
    }

    /// The header of the file; [`Image::code`] follows it.
    pub const fn header(&self) -> [u8; HEADER_BYTES] {
        let Version { major, minor, fix } = self.version;
        let [s0, s1, s2, s3] = self.start.to_be_bytes();
        let [l0, l1, l2, l3] = self.load.to_be_bytes();
        let sealed = if self.sealed { SEALED } else { 0 };
        [major, minor, fix, sealed, s0, s1, s2, s3, l0, l1, l2, l3]
    }

    /// The firmware's version.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Whether it carries the seal of this project's files.
    pub const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Where CPU A starts.
    pub const fn start(&self) -> u32 {
        self.start
    }

    /// The load address.
    pub const fn load(&self) -> u32 {
        self.load
    }

    /// The image's bytes, big-endian words.
    pub const fn code(&self) -> &'a [u8] {
        self.code
    }

    /// Each word of the image with its NIC address.
    pub fn words(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let addresses = (self.load..).step_by(4);
        addresses.zip(self.code.chunks_exact(4).map(|word| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(word);
            u32::from_be_bytes(bytes)
        }))
    }
}

/// The seal of a file of `bytes` in all.
pub const fn seal(bytes: usize) -> [u8; SEAL_BYTES] {
    let [a, b, c, d] = SEAL.to_be_bytes();
    let [e, f, g, h] = (bytes as u32).to_be_bytes();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that lost its end is refused, wherever it was cut.
    #[test]
    fn a_sealed_file_that_was_cut_is_refused() {
        let mut file = std::vec![0, 1, 0, SEALED, 0, 0, 0x40, 0, 0, 0, 0x40, 0];
        file.extend([0x55; 32]);
        file.extend(seal(file.len() + SEAL_BYTES));
        let image = Image::parse(&file).expect("a sealed file");
        assert_eq!(image.header()[3], SEALED);
        for length in HEADER_BYTES + 4..file.len() {
            assert!(Image::parse(&file[..length]).is_err(), "{length}");
        }
        let longer = [file.as_slice(), &[0; 4]].concat();
        assert_eq!(
            Image::parse(&longer),
            Err(ImageError::Damaged(longer.len()))
        );
    }

    const FILE: [u8; 20] = [
        12, 4, 13, 0, 0, 0, 0x40, 4, 0, 0, 0x40, 0, 1, 2, 3, 4, 5, 6, 7, 8,
    ];

    #[test]
    fn a_file_is_header_and_words() {
        let image = Image::parse(&FILE).expect("a good file");
        assert_eq!(image.version(), INTERFACE_VERSION);
        assert_eq!((image.start(), image.load()), (0x4004, 0x4000));
        let words: Vec<_> = image.words().collect();
        assert_eq!(words, [(0x4000, 0x0102_0304), (0x4004, 0x0506_0708)]);
        assert_eq!([&image.header(), image.code()].concat(), FILE);
    }

    #[test]
    fn what_a_driver_cannot_load_is_refused_with_the_reason() {
        let version = INTERFACE_VERSION;
        let code = [0; 8];
        let refuse = |start, load, code| Image::new(version, start, load, code).unwrap_err();
        assert_eq!(Image::parse(&FILE[..11]), Err(ImageError::NoHeader(11)));
        assert_eq!(Image::parse(&FILE[..12]), Err(ImageError::Empty));
        assert_eq!(Image::parse(&FILE[..19]), Err(ImageError::PartialWord(7)));
        assert_eq!(
            refuse(0x4000, 0x3FFC, &code),
            ImageError::LoadAddress(0x3FFC)
        );
        assert_eq!(
            refuse(0x8_0000, 0x8_0000, &code),
            ImageError::LoadAddress(0x8_0000)
        );
        assert_eq!(
            refuse(0x4000, 0x4002, &code),
            ImageError::LoadAddress(0x4002)
        );
        assert_eq!(
            refuse(0x4008, 0x4000, &code),
            ImageError::StartAddress(0x4008)
        );
        assert_eq!(
            refuse(0x4002, 0x4000, &code),
            ImageError::StartAddress(0x4002)
        );
        assert_eq!(
            refuse(0x3000, 0x4000, &code),
            ImageError::StartAddress(0x3000)
        );
        let load = 0x7_FFFC;
        assert_eq!(
            refuse(load, load, &code),
            ImageError::TooLarge { load, bytes: 8 }
        );
        assert!(Image::new(version, load, load, &code[..4]).is_ok());
    }
}
