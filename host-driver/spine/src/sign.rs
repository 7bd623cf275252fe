//! Ed25519 signatures of containers, in the form that flash images have.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use spine_image::{Builder, Image, ImageError};
use thiserror::Error;

/// Why a container is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrustError {
    /// It is no container.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The signer's key is none.
    #[error("the container's signer has no valid key")]
    NoKey,
    /// Somebody else signed it, or it was changed since.
    #[error("the container is not signed by the signer that it names")]
    Untrusted,
    /// Another compiler, API or gate made it.
    #[error("the container was made by another build of compiler and API")]
    OtherBuild,
}

/// A key to sign with.
#[derive(Debug)]
pub struct Signer(SigningKey);

impl Signer {
    /// From the text of a key file: 64 hexadecimal digits, and lines that begin with `#`.
    pub fn from_text(text: &str) -> Option<Signer> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let digits: String = lines.map(str::trim).collect();
        Some(Signer(SigningKey::from_bytes(&key_bytes(&digits)?)))
    }

    /// The public key.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// The container, signed.
    pub fn sign(&self, builder: &Builder) -> Vec<u8> {
        builder.finish(self.public(), |bytes| self.0.sign(bytes).to_bytes())
    }

    /// A container that somebody else has signed, with this signature instead.
    pub fn sign_again(&self, image: &Image<'_>) -> Vec<u8> {
        let signature = self.0.sign(image.signed()).to_bytes();
        [image.signed(), &self.public(), &signature].concat()
    }
}

/// The bytes of 64 hexadecimal digits.
pub fn key_bytes(digits: &str) -> Option<[u8; 32]> {
    bytes_of_digits(digits)
}

/// The bytes of twice as many hexadecimal digits.
pub fn bytes_of_digits<const BYTES: usize>(digits: &str) -> Option<[u8; BYTES]> {
    if digits.len() != 2 * BYTES || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// The other way round.
pub fn digits_of_bytes(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a container and judges who made it, and with what.
///
/// # Errors
/// [`TrustError`].
pub fn trusted<'a>(bytes: &'a [u8], build_id: &[u8; 16]) -> Result<Image<'a>, TrustError> {
    let image = Image::parse(bytes)?;
    let trailer = image.trailer();
    let key = VerifyingKey::from_bytes(&trailer.signer).map_err(|_| TrustError::NoKey)?;
    let signature = Signature::from_bytes(&trailer.signature);
    key.verify_strict(image.signed(), &signature)
        .map_err(|_| TrustError::Untrusted)?;
    if image.build_id() != build_id {
        return Err(TrustError::OtherBuild);
    }
    Ok(image)
}
