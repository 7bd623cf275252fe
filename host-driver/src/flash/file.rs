//! The file of an emulated board's EEPROM, as storage.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use boot_slots::Storage;

/// The contents of such a file. Nothing reaches the disk before [`FileEeprom::save`].
pub struct FileEeprom {
    path: PathBuf,
    contents: Vec<u8>,
}

impl FileEeprom {
    /// Reads a file; a missing one becomes an erased EEPROM of `bytes` with `first_page` as its
    /// manufacturing data.
    ///
    /// # Errors
    /// When the file cannot be read, or has another size.
    pub fn open(path: &Path, bytes: u32, first_page: &[u8]) -> io::Result<Self> {
        let contents = match std::fs::read(path) {
            Ok(contents) if contents.len() == bytes as usize => contents,
            Ok(contents) => {
                let found = contents.len();
                let text = format!("{found} bytes, the board's EEPROM has {bytes}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut contents = vec![0xFF; bytes as usize];
                let length = first_page.len().min(contents.len());
                contents[..length].copy_from_slice(&first_page[..length]);
                contents
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            contents,
        })
    }

    /// Its size.
    pub fn bytes(&self) -> u32 {
        self.contents.len() as u32
    }

    /// Writes the file atomically: at every moment it is the old or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        let mut partial = self.path.clone().into_os_string();
        partial.push(".new");
        let partial = PathBuf::from(partial);
        let mut file = File::create(&partial)?;
        file.write_all(&self.contents)?;
        file.sync_all()?;
        std::fs::rename(&partial, &self.path)
    }
}

impl Storage for FileEeprom {
    type Error = io::Error;

    fn read(&mut self, at: u32, out: &mut [u8]) -> io::Result<()> {
        let cells = self.contents.get(at as usize..).unwrap_or_default();
        let cells = cells.get(..out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(cells);
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> io::Result<()> {
        let cells = self.contents.get_mut(at as usize..).unwrap_or_default();
        let cells = cells.get_mut(..bytes.len());
        cells
            .ok_or(io::ErrorKind::UnexpectedEof)?
            .copy_from_slice(bytes);
        Ok(())
    }
}
