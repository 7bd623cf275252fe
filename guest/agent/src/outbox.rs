//! Sends answers to the host: threads share the port, and each answer is sent whole.

use crate::wire::{self, Answer};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// The connection to the host, shared by all threads.
#[derive(Clone)]
pub struct Outbox(Arc<Mutex<dyn Write + Send>>);

impl Outbox {
    /// One that writes to `channel`.
    pub fn new(channel: impl Write + Send + 'static) -> Outbox {
        Outbox(Arc::new(Mutex::new(channel)))
    }

    /// Sends one answer, whole, between the others.
    ///
    /// An answer that cannot be sent is lost: nobody is there to hear of it, and
    /// the loop that reads finds out that the host has gone.
    pub fn send(&self, answer: &Answer) {
        let mut channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = wire::write(&mut *channel, answer);
    }
}
