//! Transfers files between host and guest.

use crate::outbox::Outbox;
use crate::wire::{Answer, PIECE};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files that are being written, by the numbers of their transfers.
#[derive(Default)]
pub struct Incoming(HashMap<u32, io::Result<Draft>>);

/// A file that is not complete yet: it gets its name when it is.
struct Draft {
    file: File,
    draft: PathBuf,
    path: PathBuf,
    mode: u32,
}

impl Incoming {
    /// Begins a file.
    pub fn begin(&mut self, id: u32, path: &str, mode: u32) {
        self.0.insert(id, Draft::create(id, Path::new(path), mode));
    }

    /// Adds to it. The first error is kept, and said at the end.
    pub fn add(&mut self, id: u32, bytes: &[u8]) {
        let Some(draft) = self.0.get_mut(&id) else {
            return;
        };
        let written = match draft {
            Ok(draft) => draft.file.write_all(bytes),
            Err(_) => return,
        };
        if let Err(error) = written {
            *draft = Err(error);
        }
    }

    /// Completes it, and says how that went.
    pub fn end(&mut self, id: u32) -> Answer {
        let draft = self
            .0
            .remove(&id)
            .unwrap_or_else(|| Err(io::Error::other("no such file was begun")));
        match draft.and_then(Draft::finish) {
            Ok(()) => Answer::Done { id, status: 0 },
            Err(error) => Answer::Failed {
                id,
                reason: error.to_string(),
            },
        }
    }
}

impl Draft {
    fn create(id: u32, path: &Path, mode: u32) -> io::Result<Draft> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{id}.part"));
        let draft = PathBuf::from(draft);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        Ok(Draft {
            file,
            draft,
            path: path.to_owned(),
            mode,
        })
    }

    fn finish(self) -> io::Result<()> {
        // Whatever the process's mask is.
        self.file
            .set_permissions(Permissions::from_mode(self.mode & 0o7777))?;
        drop(self.file);
        fs::rename(&self.draft, &self.path)
    }
}

/// Sends a file to the host, to its end; a file of `/proc` as well, which does
/// not tell its length.
pub fn send(id: u32, path: &str, outbox: &Outbox) {
    let answer = match send_pieces(id, path, outbox) {
        Ok(()) => Answer::Done { id, status: 0 },
        Err(error) => Answer::Failed {
            id,
            reason: format!("{path}: {error}"),
        },
    };
    outbox.send(&answer);
}

fn send_pieces(id: u32, path: &str, outbox: &Outbox) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; PIECE];
    loop {
        let count = file.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        outbox.send(&Answer::Output {
            id,
            bytes: bytes[..count].to_vec(),
        });
    }
}
