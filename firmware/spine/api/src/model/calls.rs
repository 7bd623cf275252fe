//! What a run calls: each call is judged as on the card, and noted.

use super::Sent;
use crate::context::PATCHES;
use crate::ephemeral::HandlerNumber;
use crate::message::ARGUMENT_WORDS;
use crate::{Called, Context, Endpoint, HandlerProc, PeerHandler, Procedure, WireAddress};
use std::cell::RefCell;
use std::vec::Vec;

/// Counters of a domain.
pub(super) const COUNTERS: usize = 8;
/// Longest frame that is transmitted.
const LONGEST: usize = 1536;
/// Transfers of a run.
const TRANSFERS: usize = 4;
/// Slots of the pool, and how many of them a domain keeps at most.
pub(super) const SLOTS: usize = 12;
const KEEPS: usize = 4;
/// Messages of a run, and those to the own domain that may wait.
const MESSAGES: usize = 4;
/// Procedures that a domain exports here, and calls of a run.
const EXPORTS: usize = 8;
const CALLS: u32 = 15;

/// What the run in work has asked for.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) handlers: Vec<(u8, HandlerProc, u32)>,
    pub(super) in_init: bool,
    pub(super) patches: Vec<(u32, u32)>,
    pub(super) transmits: bool,
    pub(super) forwards: bool,
    pub(super) counts: Vec<u32>,
    /// Bytes of the lease, and of the frame for transfers into it.
    pub(super) lease: u32,
    pub(super) transfers: Vec<(u32, u32, u32)>,
    pub(super) frame_bytes: usize,
    pub(super) keeps: bool,
    pub(super) sent: u32,
    pub(super) released: u32,
    pub(super) messages: Vec<(Sent, Vec<u32>)>,
    pub(super) posts: Vec<(u8, Vec<u32>)>,
    /// Texts of the lines that were logged, by their numbers.
    pub(super) texts: Vec<(u32, &'static str)>,
    /// Whom handlers let call them.
    pub(super) callers: Vec<(u8, u32)>,
    /// What becomes of what runs had that are cut off.
    pub(super) when_cut: u32,
    /// Procedures that `init` has exported, and those that the run may call, by their numbers.
    pub(super) exports: Vec<(u32, Procedure)>,
    pub(super) imports: Vec<(u32, Procedure)>,
    pub(super) called: u32,
    /// What the domain keeps: a frame's bytes and its words, by its slot.
    pub(super) kept: [Option<(u32, Vec<u32>)>; SLOTS],
}

std::thread_local! {
    pub(super) static NOTED: RefCell<Noted> = RefCell::new(Noted::default());
}

pub(super) fn free_slot(kept: &[Option<(u32, Vec<u32>)>; SLOTS]) -> Option<usize> {
    kept.iter().position(Option::is_none)
}

/// See [`crate::add_handler`].
pub(crate) fn add_handler(handler: HandlerProc, number: u8, argument: u32) -> bool {
    NOTED.with_borrow_mut(|noted| {
        let taken = noted.handlers.iter().any(|(at, ..)| *at == number);
        let takes = noted.in_init && !taken && number < HandlerNumber::LIMIT;
        if takes {
            noted.handlers.push((number, handler, argument));
        }
        takes
    })
}

/// See [`Context::now`]. Time stands still in a test.
pub(crate) fn now() -> u32 {
    0
}

/// See [`Context::patch`].
pub(crate) fn patch(index: u32, value: u32) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        let words = noted.frame_bytes.div_ceil(4);
        if noted.patches.len() == PATCHES || index as usize >= words {
            return 1;
        }
        noted.patches.push((index, value));
        0
    })
}

/// See [`Context::patch_three`].
pub(crate) fn patch_three(index: u32, values: [u32; 3]) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        let words = noted.frame_bytes.div_ceil(4);
        if noted.patches.len() + 3 > PATCHES || index as usize >= words.saturating_sub(2) {
            return 1;
        }
        noted.patches.extend((index..).zip(values));
        0
    })
}

/// See [`Context::transmit`].
pub(crate) fn transmit() -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if noted.transmits || noted.frame_bytes == 0 || noted.frame_bytes > LONGEST {
            return 1;
        }
        noted.transmits = true;
        0
    })
}

/// See [`Context::forward`].
pub(crate) fn forward() -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if noted.forwards || noted.frame_bytes == 0 || noted.frame_bytes > LONGEST {
            return 1;
        }
        noted.forwards = true;
        0
    })
}

/// See [`Context::transfer`].
pub(crate) fn transfer(from: u32, bytes: u32, to: u32) -> u32 {
    let inside = |from: u32, bytes: u32, whole: u32| bytes <= whole && from <= whole - bytes;
    NOTED.with_borrow_mut(|noted| {
        let fits = inside(from, bytes, noted.frame_bytes as u32) && inside(to, bytes, noted.lease);
        if noted.transfers.len() == TRANSFERS || !fits || bytes == 0 {
            return 1;
        }
        noted.transfers.push((from, bytes, to));
        0
    })
}

/// See [`Context::keep`].
pub(crate) fn keep() -> u32 {
    NOTED.with_borrow_mut(|noted| {
        let fits = noted.frame_bytes != 0 && noted.frame_bytes <= LONGEST;
        let count = noted.kept.iter().flatten().count();
        if noted.keeps || !fits || count == KEEPS {
            return u32::MAX;
        }
        noted.keeps = true;
        free_slot(&noted.kept).map_or(u32::MAX, |slot| slot as u32)
    })
}

/// See [`Context::kept`].
pub(crate) fn kept() -> u32 {
    NOTED.with_borrow(|noted| {
        let slots = noted.kept.iter().enumerate();
        let kept = slots.filter(|(_, place)| place.is_some());
        kept.fold(0, |bits, (slot, _)| bits | 1 << slot)
    })
}

fn keeps(noted: &Noted, slot: u32) -> bool {
    let place = noted.kept.get(slot as usize);
    place.is_some_and(Option::is_some)
}

/// See [`Context::buffer`]. The words stay as they are until the run is over.
pub(crate) fn kept_words(slot: u32) -> Option<(*const u32, u32)> {
    NOTED.with_borrow(|noted| {
        let (bytes, words) = noted.kept.get(slot as usize)?.as_ref()?;
        Some((words.as_ptr(), *bytes))
    })
}

/// See [`Context::transmit_kept`].
pub(crate) fn send(slot: u32) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if !keeps(noted, slot) || noted.sent >> slot & 1 != 0 {
            return 1;
        }
        noted.sent |= 1 << slot;
        0
    })
}

/// See [`Context::release`].
pub(crate) fn release(slot: u32) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if !keeps(noted, slot) {
            return 1;
        }
        noted.released |= 1 << slot;
        0
    })
}

/// See [`Context::count`].
pub(crate) fn count(counter: u32) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if noted.counts.len() == PATCHES || counter as usize >= COUNTERS {
            return 1;
        }
        noted.counts.push(counter);
        0
    })
}

/// See [`crate::accept`].
pub(crate) fn accept(number: u8, callers: u32) -> bool {
    NOTED.with_borrow_mut(|noted| {
        let takes = noted.in_init && number < HandlerNumber::LIMIT;
        if takes {
            noted.callers.retain(|(at, _)| *at != number);
            noted.callers.push((number, callers));
        }
        takes
    })
}

/// See [`crate::when_cut`].
pub(crate) fn when_cut(what: u32) {
    NOTED.with_borrow_mut(|noted| {
        if noted.in_init {
            noted.when_cut = what;
        }
    });
}

fn send_to(to: Sent, arguments: &[u32]) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if noted.messages.len() == MESSAGES || arguments.len() > ARGUMENT_WORDS {
            return 1;
        }
        noted.messages.push((to, arguments.to_vec()));
        0
    })
}

/// See [`Context::send`]. All endpoints of applications are there, and have room.
pub(crate) fn send_message(to: u32, arguments: &[u32]) -> u32 {
    if !(1..=64).contains(&to) {
        return 1;
    }
    send_to(Sent::To(Endpoint(to)), arguments)
}

/// See [`Context::send_wire`].
pub(crate) fn send_wire(high: u32, low: u32, arguments: &[u32]) -> u32 {
    let taken = |noted: &Noted| {
        noted
            .messages
            .iter()
            .any(|(to, _)| matches!(to, Sent::Wire(_)))
    };
    if NOTED.with_borrow(taken) {
        return 1;
    }
    let to = WireAddress {
        station: (high & 0xFFFF, low),
        domain: (high >> 24) as u8,
        handler: HandlerNumber((high >> 16) as u8),
    };
    send_to(Sent::Wire(to), arguments)
}

/// See [`Context::send_peer`]. The peer is there.
pub(crate) fn send_peer(to: u32, arguments: &[u32]) -> u32 {
    let to = PeerHandler {
        domain: (to >> 8) as u8,
        handler: HandlerNumber(to as u8),
    };
    send_to(Sent::Peer(to), arguments)
}

/// See [`Context::post`].
pub(crate) fn post(handler: u8, arguments: &[u32]) -> u32 {
    NOTED.with_borrow_mut(|noted| {
        if noted.posts.len() == MESSAGES || arguments.len() > ARGUMENT_WORDS {
            return 1;
        }
        noted.posts.push((handler, arguments.to_vec()));
        0
    })
}

/// See [`crate::log!`]: the text of a line that is about to be sent.
pub(crate) fn name_text(number: u32, text: &'static str) {
    NOTED.with_borrow_mut(|noted| noted.texts.push((number, text)));
}

/// See [`crate::export`].
pub(crate) fn export(number: u32, procedure: Procedure) -> bool {
    NOTED.with_borrow_mut(|noted| {
        let takes = noted.in_init && noted.exports.len() < EXPORTS;
        if takes {
            noted.exports.push((number, procedure));
        }
        takes
    })
}

/// See [`Context::call`].
pub(crate) fn call(context: &Context, number: u32, arguments: &[u32; 3]) -> u64 {
    let found = NOTED.with_borrow_mut(|noted| {
        let found = noted.imports.iter().find(|(one, _)| *one == number);
        let (_, procedure) = *found.ok_or(1_u64)?;
        if noted.called == CALLS {
            return Err(2_u64);
        }
        noted.called += 1;
        Ok(procedure)
    });
    let [first, second, third] = *arguments;
    match found {
        Ok(procedure) => {
            let called = Called::of_model(context.domain());
            procedure(&called, first, second, third).into()
        }
        Err(why) => why << 32,
    }
}
