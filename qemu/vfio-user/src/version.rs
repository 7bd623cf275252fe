//! Version and capabilities: the payload of the first message each way.
//!
//! The payload is four bytes of version, then JSON text with a final NUL, which may be missing.
//! Unknown names are ignored, wrong types are refused.

use crate::message::{DEFAULT_MAX_TRANSFER, VersionHeader};
use serde_json::{Map, Value, json};
use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

/// What one side can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Most file descriptors with one message (`max_msg_fds`; 1 if not said).
    pub max_message_fds: u64,
    /// Most bytes in one data transfer (`max_data_xfer_size`; 1 MiB if not said).
    pub max_transfer: u64,
    /// Page sizes of DMA maps, or'ed (`pgsizes`; 4096 if not said).
    pub page_sizes: u64,
    /// Most DMA maps at a time (`max_dma_maps`; 65535 if not said).
    pub max_dma_maps: u64,
    /// REGION_WRITE_MULTI is understood (`write_multiple`; false if not said).
    pub write_multiple: bool,
}

impl Default for Capabilities {
    /// What holds for a peer that names no capability.
    fn default() -> Self {
        Self {
            max_message_fds: 1,
            max_transfer: DEFAULT_MAX_TRANSFER as u64,
            page_sizes: 4096,
            max_dma_maps: 65535,
            write_multiple: false,
        }
    }
}

/// A version proposal or its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Capabilities.
    pub capabilities: Capabilities,
}

/// Why a VERSION payload is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VersionError {
    /// Shorter than the two version numbers.
    #[error("version message without version numbers")]
    Short,
    /// The text has no final NUL.
    #[error("version text does not end in NUL")]
    Unterminated,
    /// The text is not JSON.
    #[error("version text is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A known name has a value of the wrong type.
    #[error("version text: {0} has a value of the wrong type")]
    Type(&'static str),
}

impl Version {
    /// Reads the payload of a VERSION message.
    pub fn parse(payload: &[u8]) -> Result<Self, VersionError> {
        let (header, text) =
            VersionHeader::read_from_prefix(payload).map_err(|_| VersionError::Short)?;
        let mut capabilities = Capabilities::default();
        if let Some((last, json)) = text.split_last() {
            if *last != 0 {
                return Err(VersionError::Unterminated);
            }
            capabilities = parse_text(json)?;
        }
        Ok(Self {
            major: header.major,
            minor: header.minor,
            capabilities,
        })
    }

    /// The payload of a VERSION message, with the final NUL.
    pub fn to_payload(&self) -> Vec<u8> {
        let c = &self.capabilities;
        let mut names = json!({
            "max_msg_fds": c.max_message_fds,
            "max_data_xfer_size": c.max_transfer,
            "pgsizes": c.page_sizes,
            "max_dma_maps": c.max_dma_maps,
        });
        if c.write_multiple {
            names["write_multiple"] = Value::Bool(true);
        }
        let header = VersionHeader {
            major: self.major,
            minor: self.minor,
        };
        let mut payload = header.as_bytes().to_vec();
        payload.extend_from_slice(json!({ "capabilities": names }).to_string().as_bytes());
        payload.push(0);
        payload
    }
}

fn parse_text(json: &[u8]) -> Result<Capabilities, VersionError> {
    let mut result = Capabilities::default();
    let text: Value = serde_json::from_slice(json)?;
    let text = text
        .as_object()
        .ok_or(VersionError::Type("the whole text"))?;
    let Some(names) = text.get("capabilities") else {
        return Ok(result);
    };
    let names = names
        .as_object()
        .ok_or(VersionError::Type("capabilities"))?;
    number(names, "max_msg_fds", &mut result.max_message_fds)?;
    number(names, "max_data_xfer_size", &mut result.max_transfer)?;
    number(names, "pgsizes", &mut result.page_sizes)?;
    number(names, "max_dma_maps", &mut result.max_dma_maps)?;
    if let Some(value) = names.get("write_multiple") {
        result.write_multiple = value
            .as_bool()
            .ok_or(VersionError::Type("write_multiple"))?;
    }
    Ok(result)
}

fn number(
    names: &Map<String, Value>,
    name: &'static str,
    to: &mut u64,
) -> Result<(), VersionError> {
    if let Some(value) = names.get(name) {
        *to = value.as_u64().ok_or(VersionError::Type(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_the_protocols_defaults() {
        let bare = Version::parse(&[0, 0, 0, 0]).unwrap();
        assert_eq!(bare, Version::default());
        let empty = Version::parse(b"\0\0\0\0{}\0").unwrap();
        assert_eq!(empty.capabilities.max_message_fds, 1);
        assert_eq!(empty.capabilities.max_transfer, 1 << 20);
        let unknown = b"\0\0\0\0{\"capabilities\":{\"twin_socket\":{\"supported\":true}}}\0";
        assert_eq!(Version::parse(unknown).unwrap(), empty);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let version = Version {
            major: 0,
            minor: 1,
            capabilities: Capabilities {
                max_message_fds: 3,
                max_transfer: u64::MAX,
                page_sizes: 0x10_1000,
                max_dma_maps: 0,
                write_multiple: true,
            },
        };
        assert_eq!(Version::parse(&version.to_payload()).unwrap(), version);
    }
}
