//! Writes a file system as one file: the `newc` archive that the kernel unpacks.
//!
//! Archives may be concatenated; the kernel unpacks them in order, and a later file replaces an
//! earlier one. So the large part stays unchanged when the small one changes.

use anyhow::{Context, Result};
use cpio::newc::{Builder, ModeFileType};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Each archive ends on this boundary, so that the next one begins on it.
const ALIGNMENT: usize = 512;

/// An archive under construction.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    inode: u32,
}

impl Archive {
    /// Adds a folder and those above it. Paths have no leading `/`.
    pub fn folder(&mut self, path: &str) -> Result<()> {
        if path.is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        self.parent(path)?;
        self.folders.insert(path.to_owned());
        self.entry(path, ModeFileType::Directory, 0o755, &[], None)
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.parent(path)?;
        self.entry(path, ModeFileType::Regular, mode, bytes, None)
    }

    /// Adds a file of this machine, with its permissions.
    pub fn copy(&mut self, path: &str, from: &Path) -> Result<()> {
        let read = || Ok::<_, std::io::Error>((fs::read(from)?, fs::metadata(from)?));
        let (bytes, data) = read().with_context(|| format!("cannot read {}", from.display()))?;
        self.file(path, data.permissions().mode() & 0o7777, &bytes)
    }

    /// Adds a folder of this machine with all that is in it.
    pub fn copy_all(&mut self, path: &str, from: &Path) -> Result<()> {
        let entries =
            fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
        let mut entries: Vec<_> = entries.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        self.folder(path)?;
        for entry in entries {
            let name = format!("{path}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.copy_all(&name, &entry.path())?;
            } else {
                self.copy(&name, &entry.path())?;
            }
        }
        Ok(())
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.parent(path)?;
        self.entry(path, ModeFileType::Symlink, 0o777, target.as_bytes(), None)
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, mode: u32, number: (u32, u32)) -> Result<()> {
        self.parent(path)?;
        self.entry(path, ModeFileType::Char, mode, &[], Some(number))
    }

    /// The finished archive.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        cpio::newc::trailer(&mut self.bytes)?;
        let length = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(length, 0);
        Ok(self.bytes)
    }

    fn parent(&mut self, path: &str) -> Result<()> {
        match path.rsplit_once('/') {
            Some((folder, _)) => self.folder(folder),
            None => Ok(()),
        }
    }

    fn entry(
        &mut self,
        path: &str,
        kind: ModeFileType,
        mode: u32,
        bytes: &[u8],
        device: Option<(u32, u32)>,
    ) -> Result<()> {
        self.inode += 1;
        let (major, minor) = device.unwrap_or_default();
        let size = u32::try_from(bytes.len()).with_context(|| format!("{path} is too large"))?;
        let mut writer = Builder::new(path)
            .ino(self.inode)
            .nlink(1)
            .mode(mode)
            .set_mode_file_type(kind)
            .rdev_major(major)
            .rdev_minor(minor)
            .write(&mut self.bytes, size);
        writer.write_all(bytes)?;
        writer.finish()?;
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cpio::NewcReader;
    use std::collections::BTreeMap;
    use std::io::Read;

    /// Every entry of the archives in `bytes`: its mode and its contents.
    pub fn list(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut reader = NewcReader::new(rest).expect("an entry");
            let entry = (reader.entry().name().to_owned(), reader.entry().mode());
            if reader.entry().is_trailer() {
                rest = reader.finish().expect("the end");
                let left = rest.len() % ALIGNMENT;
                rest = &rest[left..];
                continue;
            }
            let mut contents = Vec::new();
            reader.read_to_end(&mut contents).expect("its contents");
            rest = reader.finish().expect("the next entry");
            found.insert(entry.0, (entry.1, contents));
        }
        found
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_once() {
        let mut archive = Archive::default();
        archive
            .file("lib/firmware/acenic/tg2.bin", 0o644, b"image")
            .expect("a file");
        archive
            .file("lib/firmware/other", 0o600, b"")
            .expect("a file");
        archive.link("usr/bin", "../bin").expect("a link");
        archive
            .device("dev/console", 0o600, (5, 1))
            .expect("a device");
        let bytes = archive.finish().expect("an archive");
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(text.matches("lib/firmware\0").count(), 1);
        assert!(text.find("lib/firmware\0") < text.find("lib/firmware/acenic\0"));
        let found = list(&bytes);
        assert_eq!(
            found["lib/firmware/acenic/tg2.bin"],
            (0o100_644, b"image".to_vec())
        );
        assert_eq!(found["lib"].0, 0o040_755);
        assert_eq!(found["usr/bin"], (0o120_777, b"../bin".to_vec()));
        assert_eq!(found["dev/console"].0, 0o020_600);
    }

    #[test]
    fn a_second_archive_is_read_behind_the_first() {
        let one = |contents: &[u8]| {
            let mut archive = Archive::default();
            archive.file("tg2.bin", 0o644, contents).expect("a file");
            archive.finish().expect("an archive")
        };
        let both = [one(b"ours"), one(b"another")].concat();
        assert_eq!(list(&both)["tg2.bin"].1, b"another");
    }
}
