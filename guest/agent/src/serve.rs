//! The agent's main loop: it reads requests and sends answers as they become ready.

use crate::files::{self, Incoming};
use crate::jobs::Jobs;
use crate::outbox::Outbox;
use crate::wire::{self, Answer, Request, VERSION, WireError};
use std::io::{Read, Write};
use std::thread;

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
