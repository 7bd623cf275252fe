//! Ed25519 signatures of images.
//!
//! An image is signed when it is built. The tools that bring it to a card check the signature: the
//! flashing tool before it writes, the driver before it confirms an image on trial. The card
//! itself checks only the CRC-32 (`boot_slots::header`).
//!
//! By default the development key is trusted. Its secret half is in the source tree, so it detects
//! damaged and foreign files but keeps nobody away. The tools therefore name it wherever they
//! check a signature, and [`TrustedKey::required`] rejects it.
//!
//! A key file holds 64 hexadecimal digits (the seed of a signing key, or a public key);
//! lines that begin with `#` are comments.

use std::fmt;
use std::path::{Path, PathBuf};

use boot_slots::{Header, ImageFile};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use thiserror::Error;

use super::hex;

/// Names a file with the signing seed, in place of the development key.
pub const SIGNING_KEY_VARIABLE: &str = "TIGON_SIGNING_KEY";
/// Names a file with the trusted public key, in place of the development key's.
pub const TRUSTED_KEY_VARIABLE: &str = "TIGON_TRUSTED_KEY";

const DEVELOPMENT_KEY: &str = include_str!("../../../firmware/keys/development.pub");
/// Bytes of a public key in its short name.
const SHOWN_BYTES: usize = 8;

/// Why a signature or a key is rejected.
#[derive(Debug, Error)]
pub enum SignatureError {
    /// Another key signed it, or it was changed since.
    #[error("the image is not signed with the trusted key")]
    Untrusted,
    /// It is signed with the development key, which is not the trusted one.
    #[error(
        "the image is not signed with the trusted key, but with the development key, which anybody has"
    )]
    DevelopmentKey,
    /// The development key was given as the required one.
    #[error("key {}: this is the development key, which anybody has", .path.display())]
    DevelopmentKeyRequired {
        /// The file.
        path: PathBuf,
    },
    /// A key file cannot be read.
    #[error("key {}: {error}", .path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A key file that holds no key.
    #[error("{place} holds no key of 64 hexadecimal digits")]
    NoKey {
        /// Which file.
        place: String,
    },
}

/// Parses the 32 bytes of a key file.
fn parse(text: &str, place: &str) -> Result<[u8; 32], SignatureError> {
    let wrong = || SignatureError::NoKey {
        place: place.to_owned(),
    };
    let digits: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::trim)
        .collect();
    if digits.len() != 64 || !digits.is_ascii() {
        return Err(wrong());
    }
    let mut key = [0; 32];
    for (index, byte) in key.iter_mut().enumerate() {
        let pair = digits.get(2 * index..2 * index + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(key)
}

fn read(path: &Path) -> Result<[u8; 32], SignatureError> {
    let text = std::fs::read_to_string(path).map_err(|error| SignatureError::KeyFile {
        path: path.to_owned(),
        error,
    })?;
    parse(&text, &path.display().to_string())
}

/// The key whose images are accepted. Its name is "development key", or "key" and the first digits
/// of the public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedKey(VerifyingKey);

impl TrustedKey {
    /// The key that `TIGON_TRUSTED_KEY` names, else the development key.
    ///
    /// # Errors
    /// If the file holds no key.
    pub fn from_environment() -> Result<Self, SignatureError> {
        match std::env::var_os(TRUSTED_KEY_VARIABLE) {
            Some(path) => Self::from_file(Path::new(&path)),
            None => Self::development(),
        }
    }

    /// The public key in a file, which must not be the development key.
    ///
    /// # Errors
    /// [`SignatureError::DevelopmentKeyRequired`], or if the file holds no key.
    pub fn required(path: &Path) -> Result<Self, SignatureError> {
        let key = Self::from_file(path)?;
        if key.is_development() {
            let path = path.to_owned();
            return Err(SignatureError::DevelopmentKeyRequired { path });
        }
        Ok(key)
    }

    fn development() -> Result<Self, SignatureError> {
        let place = "the development key";
        Self::of(&parse(DEVELOPMENT_KEY, place)?, place)
    }

    /// Whether it is the development key, with which anybody can sign.
    pub fn is_development(&self) -> bool {
        Self::development().is_ok_and(|key| key == *self)
    }

    /// The public key in a file.
    ///
    /// # Errors
    /// If the file holds no key.
    pub fn from_file(path: &Path) -> Result<Self, SignatureError> {
        Self::of(&read(path)?, &path.display().to_string())
    }

    fn of(bytes: &[u8; 32], place: &str) -> Result<Self, SignatureError> {
        let key = VerifyingKey::from_bytes(bytes);
        key.map(TrustedKey).map_err(|_| SignatureError::NoKey {
            place: place.to_owned(),
        })
    }

    /// Whether this key's owner signed the image.
    ///
    /// # Errors
    /// [`SignatureError::DevelopmentKey`], [`SignatureError::Untrusted`].
    pub fn verify(&self, file: &ImageFile<'_>) -> Result<(), SignatureError> {
        let signature = Signature::from_bytes(&file.header.signature);
        let message = message(&file.header, file.image);
        let signed_by = |key: &Self| key.0.verify_strict(&message, &signature).is_ok();
        if signed_by(self) {
            return Ok(());
        }
        Err(if Self::development().is_ok_and(|key| signed_by(&key)) {
            SignatureError::DevelopmentKey
        } else {
            SignatureError::Untrusted
        })
    }
}

impl fmt::Display for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_development() {
            return f.write_str("development key");
        }
        let first = self.0.as_bytes().first_chunk::<SHOWN_BYTES>();
        write!(f, "key {}", hex(first.map_or(&[], |first| first)))
    }
}

/// A key to sign with.
pub struct ImageSigner(SigningKey);

impl ImageSigner {
    /// The key whose seed is in a file.
    ///
    /// # Errors
    /// If the file holds no key.
    pub fn from_file(path: &Path) -> Result<Self, SignatureError> {
        Ok(Self(SigningKey::from_bytes(&read(path)?)))
    }

    /// The key that accepts this signer's images.
    pub fn trusted(&self) -> TrustedKey {
        TrustedKey(self.0.verifying_key())
    }

    /// The file to flash: the signed header and the image.
    pub fn sign(&self, mut header: Header, image: &[u8]) -> Vec<u8> {
        header.signature = self.0.sign(&message(&header, image)).to_bytes();
        [header.to_bytes().as_slice(), image].concat()
    }
}

fn message(header: &Header, image: &[u8]) -> Vec<u8> {
    [header.signed_bytes().as_slice(), image].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use boot_slots::BoardId;
    use host_interface::image::{Image, Version};

    fn signer() -> ImageSigner {
        let key = include_str!("../../../firmware/keys/development.key");
        let seed = parse(key, "the development key").expect("a key");
        ImageSigner(SigningKey::from_bytes(&seed))
    }

    fn unsigned() -> (Header, Vec<u8>) {
        let code = vec![0x55; 256];
        let version = Version {
            major: 0,
            minor: 1,
            fix: 0,
        };
        let image = Image::new(version, 0x4000, 0x4000, &code).expect("an image");
        let board = BoardId {
            vendor: 0x12AE,
            device: 1,
        };
        (Header::of(board, &image, [7; 20]), code)
    }

    fn check(file: &[u8]) -> Result<(), SignatureError> {
        let trusted = TrustedKey::from_environment().expect("the development key");
        trusted.verify(&ImageFile::parse(file).expect("whole"))
    }

    #[test]
    fn what_the_development_key_signed_is_trusted() {
        let (header, code) = unsigned();
        assert!(check(&signer().sign(header, &code)).is_ok());
    }

    /// An attacker can recompute an image's CRCs, but not its signature.
    #[test]
    fn what_was_changed_or_signed_by_others_is_not() {
        let (header, mut code) = unsigned();
        let stranger = ImageSigner(SigningKey::from_bytes(&[9; 32]));
        assert!(check(&stranger.sign(header, &code)).is_err());
        assert!(check(&[header.to_bytes().as_slice(), &code].concat()).is_err());
        let signed = signer().sign(header, &code);
        let mut header = ImageFile::parse(&signed).expect("whole").header;
        code[100] ^= 1;
        header.image_crc = boot_slots::CRC.checksum(&code);
        let mended = [header.to_bytes().as_slice(), &code].concat();
        assert!(matches!(check(&mended), Err(SignatureError::Untrusted)));
        code[100] ^= 1;
        header.image_crc = boot_slots::CRC.checksum(&code);
        header.board.device = 2;
        let readdressed = [header.to_bytes().as_slice(), &code].concat();
        assert!(check(&readdressed).is_err());
    }

    #[test]
    fn keys_are_named() {
        let development = TrustedKey::from_environment().expect("the development key");
        assert_eq!(development.to_string(), "development key");
        assert_eq!(development, signer().trusted());
        let stranger = ImageSigner(SigningKey::from_bytes(&[9; 32])).trusted();
        assert_eq!(stranger.to_string(), "key fd1724385aa0c75b");
    }

    /// Whoever requires a key gets no other, and never the development key.
    #[test]
    fn a_required_key_refuses_the_development_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key.pub");
        let signer_of_others = ImageSigner(SigningKey::from_bytes(&[9; 32]));
        let key = hex(signer_of_others.trusted().0.as_bytes());
        std::fs::write(&path, key).expect("room");
        let required = TrustedKey::required(&path).expect("a key");
        let (header, code) = unsigned();
        let verify = |file: &[u8]| required.verify(&ImageFile::parse(file).expect("whole"));
        assert!(verify(&signer_of_others.sign(header, &code)).is_ok());
        let refused = verify(&signer().sign(header, &code));
        assert!(matches!(refused, Err(SignatureError::DevelopmentKey)));
        let refused = verify(&[header.to_bytes().as_slice(), &code].concat());
        assert!(matches!(refused, Err(SignatureError::Untrusted)));

        std::fs::write(&path, DEVELOPMENT_KEY).expect("room");
        let refused = TrustedKey::required(&path);
        assert!(
            matches!(refused, Err(SignatureError::DevelopmentKeyRequired { path: named }) if named == path)
        );
    }

    #[test]
    fn key_files_are_read_or_named() {
        let good = format!("# a key\n{}\n", "0a".repeat(32));
        assert_eq!(parse(&good, "k").expect("a key"), [10; 32]);
        for wrong in ["", "0a", &"zz".repeat(32), &"é".repeat(32)] {
            let error = parse(wrong, "the file k").expect_err("no key");
            assert!(error.to_string().contains("the file k"), "{error}");
        }
        let error = TrustedKey::from_file(Path::new("/nonexistent/key")).expect_err("no file");
        assert!(error.to_string().contains("/nonexistent/key"));
    }
}
