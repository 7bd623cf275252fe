//! The flashing tool's view of a board file: the board's ids, and the key of its images.
//!
//! ```toml
//! [pci]
//! vendor = 0x12AE
//! device = 0x0001
//!
//! [boot]
//! require_key = "release.pub"    # beside the board file
//! ```
//!
//! The hardware model and the simulator read the rest of the file.

use std::path::{Path, PathBuf};

use boot_slots::BoardId;
use serde::Deserialize;
use thiserror::Error;

/// Why a board file cannot be used.
#[derive(Debug, Error)]
pub enum BoardFileError {
    /// It cannot be read.
    #[error("board file {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is not TOML, or lacks the PCI function.
    #[error("board file {}: {error}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: Box<toml::de::Error>,
    },
}

#[derive(Deserialize)]
struct Raw {
    pci: Pci,
    #[serde(default)]
    boot: Boot,
}

#[derive(Deserialize)]
struct Pci {
    vendor: u16,
    device: u16,
}

#[derive(Default, Deserialize)]
struct Boot {
    require_key: Option<PathBuf>,
}

/// The EEPROM settings in a board file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFile {
    /// The board.
    pub board: BoardId,
    /// The file with the key that must have signed images. A relative path starts at the board
    /// file.
    pub require_key: Option<PathBuf>,
}

impl BoardFile {
    /// Reads a board file.
    ///
    /// # Errors
    /// [`BoardFileError`], with the file's name.
    pub fn read(path: &Path) -> Result<Self, BoardFileError> {
        let text = std::fs::read_to_string(path).map_err(|error| BoardFileError::Read {
            path: path.to_owned(),
            error,
        })?;
        let raw: Raw = toml::from_str(&text).map_err(|error| BoardFileError::Syntax {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self {
            board: BoardId {
                vendor: raw.pci.vendor,
                device: raw.pci.device,
            },
            require_key: raw.boot.require_key.map(|key| folder.join(key)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> (PathBuf, Result<BoardFile, BoardFileError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("room");
        (folder.path().to_owned(), BoardFile::read(&path))
    }

    const PCI: &str = "name = \"x\"\n[pci]\nvendor = 0x12AE\ndevice = 2\nmhz = 66\n";

    #[test]
    fn a_key_lies_beside_the_board_file() {
        let (_, plain) = read("board.toml", PCI);
        let plain = plain.expect("a board");
        assert_eq!(plain.board.to_string(), "12ae:0002");
        assert_eq!(plain.require_key, None);
        let text = format!("{PCI}[boot]\ncode = \"boot.bin\"\nrequire_key = \"keys/mine.pub\"\n");
        let (folder, with) = read("board.toml", &text);
        let key = with.expect("a board").require_key;
        assert_eq!(key, Some(folder.join("keys/mine.pub")));
        let text = format!("{PCI}[boot]\nrequire_key = \"/etc/mine.pub\"\n");
        let key = read("board.toml", &text).1.expect("a board").require_key;
        assert_eq!(key, Some("/etc/mine.pub".into()));
    }

    #[test]
    fn what_is_no_board_file_is_named() {
        let missing = BoardFile::read(Path::new("/nonexistent/board.toml"));
        let missing = missing.expect_err("no file").to_string();
        assert!(missing.contains("/nonexistent/board.toml"), "{missing}");
        for wrong in ["[", "name = \"x\"", &PCI.replace("0x12AE", "0x12AE00")] {
            let error = read("wrong.toml", wrong).1.expect_err(wrong).to_string();
            assert!(error.contains("wrong.toml"), "{error}");
        }
    }
}
