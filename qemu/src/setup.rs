//! Reads the board file, and opens the file that keeps the serial EEPROM.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tigon2_model::{Board, BoardError, BootCodeTooLarge, Card};

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The vfio-user socket; none: no client can use the card.
    pub socket: Option<PathBuf>,
    /// The board file; none: the built-in board.
    pub board: Option<PathBuf>,
    /// The EEPROM's image; none: it is forgotten at the end.
    pub eeprom: Option<PathBuf>,
    /// The MAC address to put in the EEPROM; none: what is there.
    pub mac: Option<[u8; 6]>,
}

/// Why there is no card.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A file cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// The board file says something impossible.
    #[error("{}: {error}", .path.display())]
    Board {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: BoardError,
    },
    /// The boot code does not fit.
    #[error("{}: {error}", .path.display())]
    BootCode {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: BootCodeTooLarge,
    },
    /// The EEPROM's image has another size than the board's EEPROM.
    #[error("{}: {found} bytes, the board's EEPROM has {expected}", .path.display())]
    EepromSize {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: usize,
        /// The EEPROM's size.
        expected: usize,
    },
}

/// The environment variable that names the file for the card's operations.
pub const OPERATIONS: &str = "TIGON2_OPERATIONS";

/// Makes the file for the card's operations, if one is wanted.
pub fn operations() -> Result<Option<fs::File>, SetupError> {
    let Some(path) = std::env::var_os(OPERATIONS).map(PathBuf::from) else {
        return Ok(None);
    };
    let file = fs::File::create(&path).map_err(|error| file_error(&path, error))?;
    Ok(Some(file))
}

/// Reads the board.
pub fn board(path: Option<&Path>) -> Result<Board, SetupError> {
    let Some(path) = path else {
        return Ok(Board::default());
    };
    let text = fs::read_to_string(path).map_err(|error| file_error(path, error))?;
    let mut board = Board::from_toml(&text).map_err(|error| SetupError::Board {
        path: path.to_owned(),
        error,
    })?;
    // What a board file names is beside it.
    if let (Some(code), Some(folder)) = (&mut board.boot.code, path.parent()) {
        *code = folder.join(&*code);
    }
    Ok(board)
}

/// A card of this board with the EEPROM that the options name.
pub fn card(board: Board, options: &Options) -> Result<(Card, Option<EepromFile>), SetupError> {
    let boot = board.boot.code.clone();
    let mut card = Card::new(board);
    if let Some(path) = boot {
        let code = fs::read(&path).map_err(|error| file_error(&path, error))?;
        card.set_boot_code(&code)
            .map_err(|error| SetupError::BootCode { path, error })?;
    }
    let file = match &options.eeprom {
        Some(path) => Some(EepromFile::open(path, &mut card)?),
        None => None,
    };
    if let Some(mac) = options.mac {
        card.set_mac_address(mac);
    }
    Ok((card, file))
}

/// The file that keeps the EEPROM's contents.
#[derive(Debug)]
pub struct EepromFile {
    path: PathBuf,
    saved: Option<Vec<u8>>,
}

impl EepromFile {
    /// Loads the file into the card's EEPROM if it is there.
    fn open(path: &Path, card: &mut Card) -> Result<Self, SetupError> {
        let saved = match fs::read(path) {
            Ok(data) => {
                let expected = card.inspect().eeprom().bytes().len();
                if data.len() != expected {
                    return Err(SetupError::EepromSize {
                        path: path.to_owned(),
                        found: data.len(),
                        expected,
                    });
                }
                card.eeprom_mut().load(&data);
                Some(data)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(file_error(path, error)),
        };
        Ok(EepromFile {
            path: path.to_owned(),
            saved,
        })
    }

    /// Writes the file if the contents have changed since it was last read or
    /// written. The file is whole at every moment.
    pub fn save(&mut self, contents: &[u8]) -> Result<(), SetupError> {
        if self.saved.as_deref() == Some(contents) {
            return Ok(());
        }
        let mut partial = self.path.clone().into_os_string();
        partial.push(".new");
        let partial = PathBuf::from(partial);
        let write = || -> io::Result<()> {
            let mut file = fs::File::create(&partial)?;
            file.write_all(contents)?;
            file.sync_all()?;
            fs::rename(&partial, &self.path)
        };
        write().map_err(|error| file_error(&self.path, error))?;
        self.saved = Some(contents.to_vec());
        Ok(())
    }
}

fn file_error(path: &Path, error: io::Error) -> SetupError {
    SetupError::File {
        path: path.to_owned(),
        error,
    }
}
