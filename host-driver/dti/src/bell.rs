//! A bell: a word that says whether a side sleeps, and what wakes it.
//!
//! ```text
//!   sleeper                        ringer
//!   word = 1                       publish an entry
//!   fence                          fence
//!   look once more; empty: sleep   word is 1: swap in 0, wake the sleeper
//! ```
//!
//! Of two fences one comes first: either the sleeper sees the entry, or the ringer sees the word.
//! As the ringer clears the word, many entries cost one wake-up. A late ringer may clear the
//! announcement of a sleeper that was awake meanwhile: it wakes that one, so nothing is lost
//! (`tests/sleep.rs` has the model).
//!
//! The word is 2 if the sleeper waits for room in a queue, too: then the ringer also looks at it
//! after it has taken entries.
//!
//! What wakes a side differs. An application writes the engine's eventfd ([`Doorbell`]). The engine
//! sends a byte over the application's control socket ([`crate::control`]): whoever shares an
//! eventfd can make writes to it block, and an application must not be able to stop the engine.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::event::EventfdFlags;
use rustix::io::Errno;

use crate::words::Words;

/// Announces sleep. The caller must look at its queues once more before it sleeps.
pub fn announce<W: Words + ?Sized>(words: &W, word: usize) {
    words.store(word, 1, Ordering::Relaxed);
    words.fence();
}

/// As [`announce`], for a sleeper that also waits for room in a queue that the ringer empties.
pub fn announce_for_room<W: Words + ?Sized>(words: &W, word: usize) {
    words.store(word, 2, Ordering::Relaxed);
    words.fence();
}

/// The sleeper is awake: it needs no bell.
pub fn awake<W: Words + ?Sized>(words: &W, word: usize) {
    words.store(word, 0, Ordering::Relaxed);
}

/// True if the other side sleeps and must be woken by the caller; call it after publishing.
pub fn must_wake<W: Words + ?Sized>(words: &W, word: usize) -> bool {
    words.fence();
    let sleeps = words.load(word, Ordering::Relaxed) != 0;
    sleeps && words.swap(word, 0, Ordering::Relaxed) != 0
}

/// As [`must_wake`], after taking entries instead of publishing one.
pub fn must_wake_for_room<W: Words + ?Sized>(words: &W, word: usize) -> bool {
    words.fence();
    let waits = words.load(word, Ordering::Relaxed) == 2;
    waits && words.swap(word, 0, Ordering::Relaxed) != 0
}

/// The eventfd that wakes an engine. The engine never reads it, so that nobody can make it wait
/// there: it watches for the edge of each write.
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// A new one.
    ///
    /// # Errors
    /// The system's, for example without descriptors.
    pub fn create() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags)?))
    }

    /// The other side's end.
    #[must_use]
    pub fn of(file: OwnedFd) -> Self {
        Self(file)
    }

    /// Another handle of it, to hand to the other side.
    ///
    /// # Errors
    /// The system's, for example without descriptors.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// Wakes the engine.
    ///
    /// # Errors
    /// The system's. A counter that is full is no error: its edge has come before.
    pub fn ring(&self) -> io::Result<()> {
        match rustix::io::write(&self.0, &1u64.to_ne_bytes()) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
