//! What a run leaves behind that was cut off: nothing but its frame or message.
//!
//! Paper, section 3.3.2. What it asked for is forgotten, and it is counted for whose time it was. A
//! domain says in `init` what becomes of what such a run had ([`WhenCut`]):
//!
//! | it had | as ever | if the domain says so |
//! | --- | --- | --- |
//! | a frame | the host's | dropped and counted |
//! | a message | dropped and counted | passed to the process that drives the card |
//!
//! A message that this process has sent, or that finds no room in its ring, is dropped.

use super::effects::{Effects, OF_MESSAGE, Status};
use super::enter::{self, Ended, Left};
use super::outgoing::Outgoing;
use super::over::Over;
use super::time::SUSPENDED;
use super::{MessageWords, Runtime, call, noted};
use crate::io::IoA;
use crate::memory::layout::{SPINE_BLOCK, SPINE_WHEN_CUT};
use crate::memory::shared::SPINE_LOADING;
use host_interface::spine::counts::PROCEDURES;
use host_interface::spine::rings::DRIVER;
use host_interface::spine::{
    DOMAINS, DomainCount, DomainWord, HANDLERS, HandlerCount, WhenCut, domain_count, domain_word,
};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// NIC address of what a domain has said.
const fn word(domain: u32) -> u32 {
    SPINE_WHEN_CUT + (domain << 2)
}

/// In `init`: what becomes of what runs of the domain had that are cut off.
#[inline(always)]
pub fn set<B: Bus>(effects: &Effects, bus: &mut B, what: u32) -> Status {
    if !effects.is_init() {
        return Status::Full;
    }
    let domain = SPINE_LOADING.get(bus);
    bus.store(word(domain), what);
    Status::Noted
}

/// A domain is about to be loaded: it has said nothing.
pub fn forget<B: Bus>(bus: &mut B, domain: u32) {
    bus.store(word(domain), 0);
}

/// The run in work has returned `word`, which is no verdict, of the domain and handler in `to`, with
/// a message if [`OF_MESSAGE`] is set: it was cut off, or does not keep to what a handler returns. What
/// it asked for is forgotten. In a procedure of another domain a cut is that one's.
#[inline(never)]
pub(super) fn end<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    to: u32,
    message: &MessageWords,
    word: u32,
) -> Over {
    let Runtime {
        domains,
        pool,
        outgoing,
        run,
        ..
    } = runtime;
    noted::forget(&mut io.bus);
    let (own, handler) = (to >> 8 & (DOMAINS - 1), to & (HANDLERS - 1));
    Runtime::count_run(&mut io.bus, (own, handler), HandlerCount::Runs);
    let ended = match enter::left(&mut io.bus, word) {
        Left::Returned(word) => return Over::Returned(word),
        Left::Ended(Ended::Panicked) => HandlerCount::Panics,
        Left::Ended(Ended::Fault) => HandlerCount::Faults,
        Left::Ended(Ended::Overrun) => HandlerCount::Overruns,
    };
    let (number, handler) = match call::account(&mut io.bus, *run) {
        Some(domain) => (domain, PROCEDURES),
        None => (own, handler),
    };
    Runtime::count_run(&mut io.bus, (number, handler), ended);
    if let Some(domain) = domains.get_mut(number as usize) {
        domain.cut += 1;
        let patience = SPINE_BLOCK + domain_word(number, DomainWord::Patience);
        let patience = io.bus.load(patience);
        if patience != 0 && domain.cut >= patience {
            domain.state |= SUSPENDED;
            pool.release_all(&mut io.bus, number);
            let word = SPINE_BLOCK + domain_count(number, DomainCount::Suspended);
            io.bus.store(word, 1);
        }
    }
    let said = io.bus.load(self::word(own));
    let is_seen_to = if to & OF_MESSAGE == 0 {
        said & WhenCut::DropFrame as u32 != 0 && drop_frame(io, own)
    } else {
        said & WhenCut::PassMessage as u32 != 0 && pass_message(io, outgoing, to, message)
    };
    if is_seen_to { Over::Settled } else { Over::Cut }
}

/// The frame is dropped.
fn drop_frame<B: Dispatch>(io: &mut IoA<B>, domain: u32) -> bool {
    Runtime::count(&mut io.bus, domain, DomainCount::Dropped);
    true
}

/// Passes the message's arguments to the driver, if that has room and has not sent it.
fn pass_message<B: Dispatch>(
    io: &mut IoA<B>,
    outgoing: &mut Outgoing,
    to: u32,
    message: &MessageWords,
) -> bool {
    let [_, _, source, arguments, words] = *message;
    let shape = words << 16 | to & 0xFFFF;
    source != DRIVER && outgoing.pass_to_driver(io, shape, source, arguments)
}

#[cfg(test)]
mod tests;
