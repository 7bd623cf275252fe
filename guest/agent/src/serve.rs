//! The agent's loop: a request comes in, answers go out as they become ready.

use crate::files::{self, Incoming};
use crate::jobs::Jobs;
use crate::wire::{self, Answer, Request, VERSION, WireError};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The way back to the host, for whoever has something to say.
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

/// Greets the host and serves it until the channel ends.
///
/// # Errors
/// What ended it.
pub fn serve(mut requests: impl Read, answers: impl Write + Send + 'static) -> WireError {
    let outbox = Outbox::new(answers);
    outbox.send(&Answer::Hello { version: VERSION });
    let jobs = Jobs::default();
    let mut incoming = Incoming::default();
    loop {
        match wire::read::<Request>(&mut requests) {
            Ok(Request::Run { id, command }) => jobs.run(id, &command, &outbox),
            Ok(Request::Kill { id }) => jobs.kill(id),
            Ok(Request::Put { id, path, mode }) => incoming.begin(id, &path, mode),
            Ok(Request::Piece { id, bytes }) => incoming.add(id, &bytes),
            Ok(Request::End { id }) => outbox.send(&incoming.end(id)),
            Ok(Request::Get { id, path }) => {
                let outbox = outbox.clone();
                thread::spawn(move || files::send(id, &path, &outbox));
            }
            // A request of a newer host: the frame is whole, so the next one is too.
            Err(WireError::Contents(_)) => {}
            Err(error) => return error,
        }
    }
}
