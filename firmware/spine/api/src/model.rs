//! The runtime for tests on the developer's computer.
//!
//! A [`Domain`] runs an extension's `init` and its handlers natively and keeps the rules of the
//! card: effects count when the handler has returned, and not if it panics, which here stands
//! for being cut off.
//!
//! ```
//! use spine::model::Domain;
//! use spine::*;
//!
//! fn drop_all(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
//!     Verdict::Drop
//! }
//!
//! let mut domain = Domain::load(|durable| {
//!     add_handler(durable, drop_all, HandlerNumber(3), Argument::NIL);
//! });
//! let run = domain.frame(HandlerNumber(3), &[0; 60]).expect("installed");
//! assert_eq!(run.verdict, Some(Verdict::Drop));
//! ```

pub(crate) mod calls;
mod log;

use crate::ephemeral::HandlerNumber;
use crate::message::ARGUMENT_WORDS;
use crate::{
    Context, Durable, Endpoint, Ephemeral, HandlerProc, Message, PeerHandler, Procedure, Verdict,
    WhenCut, WireAddress,
};
use calls::{COUNTERS, NOTED, Noted, SLOTS, free_slot};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;
use std::vec::Vec;

/// An extension that is loaded.
#[derive(Debug)]
pub struct Domain {
    handlers: Vec<(u8, HandlerProc, u32)>,
    callers: Vec<(u8, u32)>,
    exports: Vec<(u32, Procedure)>,
    imports: Vec<(u32, Procedure)>,
    counters: [u32; COUNTERS],
    runs: u32,
    kept: [Option<(u32, Vec<u32>)>; SLOTS],
    lease: u32,
    when_cut: WhenCut,
}

/// Where a message goes that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// To an endpoint.
    To(Endpoint),
    /// To a handler of another card.
    Wire(WireAddress),
    /// To a handler of the other card on the bus.
    Peer(PeerHandler),
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What becomes of the message; none if the handler was cut off.
    pub verdict: Option<Verdict>,
    /// The frame that goes out.
    pub transmitted: Option<Vec<u8>>,
    /// The frame that goes to the peer, which has room for it.
    pub forwarded: Option<Vec<u8>>,
    /// What is written into the lease: where, and the bytes.
    pub transferred: Vec<(u32, Vec<u8>)>,
    /// Frames that were kept and go out, too.
    pub sent: Vec<Vec<u8>>,
    /// Messages that were sent, with their arguments; those that are lines of the log are not here.
    pub messages: Vec<(Sent, Vec<u32>)>,
    /// Messages to handlers of the own domain, by their numbers.
    pub posts: Vec<(u8, Vec<u32>)>,
    /// Lines of the log, as the driver prints them.
    pub logged: Vec<String>,
}

impl Domain {
    /// Runs `init`.
    pub fn load(init: impl FnOnce(&mut Durable)) -> Domain {
        NOTED.with_borrow_mut(|noted| {
            *noted = Noted {
                in_init: true,
                ..Noted::default()
            }
        });
        init(&mut Durable::new());
        let noted = NOTED.take();
        Domain {
            handlers: noted.handlers,
            callers: noted.callers,
            exports: noted.exports,
            imports: Vec::new(),
            counters: [0; COUNTERS],
            runs: 0,
            kept: Default::default(),
            lease: 0,
            when_cut: WhenCut::of_word(noted.when_cut),
        }
    }

    /// What becomes of what runs had that are cut off.
    pub fn when_cut(&self) -> WhenCut {
        self.when_cut
    }

    /// Numbers of the handlers that are installed.
    pub fn handlers(&self) -> Vec<HandlerNumber> {
        let numbers = self.handlers.iter();
        numbers.map(|(number, ..)| HandlerNumber(*number)).collect()
    }

    /// A counter.
    pub fn counter(&self, number: usize) -> Option<u32> {
        self.counters.get(number).copied()
    }

    /// Lets it call what another extension exports.
    pub fn link(&mut self, other: &Domain) {
        self.imports.extend(&other.exports);
    }

    /// Leases so many bytes of a bus to it.
    pub fn lease(&mut self, bytes: u32) {
        self.lease = bytes;
    }

    /// How many frames are kept.
    pub fn kept(&self) -> usize {
        self.kept.iter().flatten().count()
    }

    /// Hands a frame without CRC to a handler; none if there is no such handler.
    pub fn frame(&mut self, number: HandlerNumber, frame: &[u8]) -> Option<Run> {
        let words: Vec<u32> = frame.chunks(4).map(word).collect();
        self.run(Endpoint::WIRE, number, frame, &words, &[])
    }

    /// Hands a small message to a handler; none if there is no such handler or if there are
    /// too many arguments.
    pub fn message(&mut self, number: HandlerNumber, arguments: &[u32]) -> Option<Run> {
        self.message_from(Endpoint::DRIVER, number, arguments)
    }

    /// The same from an endpoint; none, too, if the handler does not let it call.
    pub fn message_from(
        &mut self,
        source: Endpoint,
        number: HandlerNumber,
        arguments: &[u32],
    ) -> Option<Run> {
        (arguments.len() <= ARGUMENT_WORDS).then_some(())?;
        let said = self.callers.iter().find(|(at, _)| *at == number.0);
        let callers = said.map_or(1 | 8, |(_, callers)| *callers);
        let caller = match source {
            Endpoint::WIRE => 4,
            Endpoint::DRIVER => 1,
            Endpoint::ITSELF => 8,
            _ => 2,
        };
        (callers & caller != 0).then_some(())?;
        self.run(source, number, &[], &[], arguments)
    }

    fn run(
        &mut self,
        source: Endpoint,
        number: HandlerNumber,
        frame: &[u8],
        words: &[u32],
        arguments: &[u32],
    ) -> Option<Run> {
        let found = self.handlers.iter().find(|(at, ..)| *at == number.0);
        let (_, handler, argument) = *found?;
        self.runs = self.runs.wrapping_add(1);
        let message = Message::of_model(words, frame.len() as u32, arguments, source.0);
        let context = Context::of_model(argument, 0, self.runs);
        NOTED.with_borrow_mut(|noted| {
            *noted = Noted {
                frame_bytes: frame.len(),
                lease: self.lease,
                kept: self.kept.clone(),
                imports: self.imports.clone(),
                ..Noted::default()
            }
        });
        let run = AssertUnwindSafe(|| handler(Ephemeral::new(), &message, &context));
        let verdict = catch_unwind(run).ok();
        let noted = NOTED.take();
        let (mut transmitted, mut forwarded) = (None, None);
        let (mut sent, mut transferred) = (Vec::new(), Vec::new());
        if verdict.is_some() {
            for (from, bytes, to) in &noted.transfers {
                let bytes = frame.iter().skip(*from as usize).take(*bytes as usize);
                transferred.push((*to, bytes.copied().collect()));
            }
            for number in &noted.counts {
                if let Some(counter) = self.counters.get_mut(*number as usize) {
                    *counter = counter.wrapping_add(1);
                }
            }
            transmitted = noted.transmits.then(|| patched(words, frame.len(), &noted));
            forwarded = noted.forwards.then(|| patched(words, frame.len(), &noted));
            sent = self.move_kept(&noted, words, frame.len());
        }
        let returned = verdict.is_some();
        let (messages, logged) = if returned {
            log::lines(noted.messages, &noted.texts)
        } else {
            Default::default()
        };
        Some(Run {
            verdict,
            transmitted,
            forwarded,
            transferred,
            sent,
            messages,
            posts: if returned { noted.posts } else { Vec::new() },
            logged,
        })
    }

    /// Carries out what a run has asked for of frames that are kept; returns what goes out.
    fn move_kept(&mut self, noted: &Noted, words: &[u32], bytes: usize) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        let free = free_slot(&self.kept);
        for (slot, place) in self.kept.iter_mut().enumerate() {
            if let Some((bytes, words)) = place.as_ref().filter(|_| noted.sent >> slot & 1 != 0) {
                let all = words.iter().flat_map(|word| word.to_be_bytes());
                sent.push(all.take(*bytes as usize).collect());
            }
            if noted.released >> slot & 1 != 0 {
                *place = None;
            }
        }
        if let Some(place) = free.and_then(|slot| self.kept.get_mut(slot))
            && noted.keeps
        {
            *place = Some((bytes as u32, changed(words, noted)));
        }
        sent
    }
}

fn changed(words: &[u32], noted: &Noted) -> Vec<u32> {
    let mut words = words.to_vec();
    for (index, value) in &noted.patches {
        if let Some(word) = words.get_mut(*index as usize) {
            *word = *value;
        }
    }
    words
}

fn patched(words: &[u32], bytes: usize, noted: &Noted) -> Vec<u8> {
    let words = changed(words, noted);
    let all = words.iter().flat_map(|word| word.to_be_bytes());
    all.take(bytes).collect()
}

fn word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u32::from_be_bytes(word)
}
