//! The helper that reads files which are not in the cache, so that the server never waits for a
//! disk ("Scalable networking for next-generation computing platforms", section IV.B: completions
//! of files are waited for together with those of sockets).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

use rustix::event::EventfdFlags;

use crate::cache::{Cache, Place, open};
use crate::reply::Meta;

/// Files that may wait to be read.
const DEPTH: usize = 1024;
/// The largest file that is sent without the cache.
const LARGEST: u64 = 64 << 20;

/// What became of a file.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// It is in the cache now.
    Cached(Place),
    /// The cache has no room: its bytes.
    Alone(Vec<u8>, Meta),
    /// There is none, or it cannot be read.
    Nothing,
    /// It is larger than what is sent without the cache.
    TooLarge,
}

/// The helper.
pub(crate) struct Loader {
    asked: SyncSender<(u64, String)>,
    done: Receiver<(u64, Loaded)>,
    /// Written when some files have been read.
    bell: OwnedFd,
}

impl Loader {
    /// Begins, for files below a root.
    pub(crate) fn new(root: &Path, cache: Cache) -> io::Result<Self> {
        let (asked, questions) = sync_channel(DEPTH);
        let (answers, done) = channel();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = rustix::event::eventfd(0, flags)?;
        let helper = Helper {
            root: root.to_owned(),
            cache,
            answers,
            bell: bell.try_clone()?,
        };
        std::thread::Builder::new()
            .name("files".to_owned())
            .spawn(move || helper.run(&questions))?;
        Ok(Self { asked, done, bell })
    }

    /// Asks for the file of a path below the root; false if too many wait.
    pub(crate) fn ask(&self, serial: u64, path: &str) -> bool {
        match self.asked.try_send((serial, path.to_owned())) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// A file that has been read.
    pub(crate) fn done(&self) -> Option<(u64, Loaded)> {
        self.done.try_recv().ok()
    }

    /// Takes the bell's ring, before the answers are taken.
    pub(crate) fn heard(&self) {
        // Nothing rang: that is as well.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

/// Readable when files have been read.
impl AsFd for Loader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

struct Helper {
    root: PathBuf,
    cache: Cache,
    answers: Sender<(u64, Loaded)>,
    bell: OwnedFd,
}

impl Helper {
    fn run(&self, questions: &Receiver<(u64, String)>) {
        while let Ok((serial, path)) = questions.recv() {
            let loaded = self.load(&path);
            if self.answers.send((serial, loaded)).is_err() {
                return;
            }
            // A counter that is full has been written before.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    fn load(&self, path: &str) -> Loaded {
        if let Some(place) = self.cache.find(path) {
            return Loaded::Cached(place);
        }
        let found = open(&self.root, Path::new(path));
        let Some((file, meta)) = found else {
            return Loaded::Nothing;
        };
        match self.cache.insert(path, &file, meta) {
            Ok(Some(place)) => Loaded::Cached(place),
            Ok(None) if meta.length > LARGEST => Loaded::TooLarge,
            Ok(None) => {
                let mut bytes = vec![0; meta.length as usize];
                match file.read_exact_at(&mut bytes, 0) {
                    Ok(()) => Loaded::Alone(bytes, meta),
                    Err(_) => Loaded::Nothing,
                }
            }
            Err(_) => Loaded::Nothing,
        }
    }
}
