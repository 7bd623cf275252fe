//! Datagrams that are given up: their descriptors go back to the process.

use super::EudpA;
use super::assembly::{Assembly, MEMORY, PATIENCE, State};
use super::completion::{Entry, Reporter};
use super::{bump, pooled, word};
use crate::io::{Busy, IoA};
use host_interface::eudp::{BlockWord, Kind, Refusal, Status};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// A datagram is given up and counted, unless it was before.
#[inline(never)]
pub(super) fn give_up<B: Dispatch>(
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    assembly: Assembly,
    refusal: Refusal,
) {
    if assembly.state(&mut io.bus) == State::Open {
        bump(&mut io.bus, word(BlockWord::Refused) + refusal as u32);
        fail(reporter, io, assembly);
    }
}

/// The descriptor of a datagram that is given up goes back to the process, and what it has taken of
/// another one's.
#[inline(never)]
fn fail<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>, assembly: Assembly) {
    let state = match give_back(reporter, io, assembly) {
        Ok(()) => State::GivenUp,
        // The next millisecond tries again.
        Err(Busy) => State::Failed,
    };
    assembly.enter(&mut io.bus, state);
}

fn give_back<B: Dispatch>(
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    assembly: Assembly,
) -> Result<(), Busy> {
    let mut entry = Entry {
        kind: Kind::Received,
        status: Status::Incomplete as u32,
        ..Entry::NONE
    };
    if let Some(claim) = assembly.claim(&mut io.bus) {
        entry.cookie = claim.cookie;
        reporter.complete_one(io, claim.endpoint, &entry)?;
        assembly.unclaim(&mut io.bus);
    }
    entry.cookie = assembly.cookie(&mut io.bus);
    let endpoint = assembly.endpoint(&mut io.bus);
    reporter.complete_one(io, endpoint, &entry)
}

/// Each millisecond: gives up datagrams whose fragments do not come.
#[inline(never)]
pub fn expire<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>) {
    let Some((reporter, receiver)) = eudp.parts() else {
        return;
    };
    if !receiver.knows_fragments {
        // CPU B's work from SRAM would take longer meanwhile.
        return;
    }
    let mut knows = false;
    let now = timer::now(&mut io.bus);
    for assembly in Assembly::all() {
        let state = assembly.state(&mut io.bus);
        let age = assembly.age(&mut io.bus, now);
        match state {
            State::Open if age > PATIENCE => give_up(reporter, io, assembly, Refusal::Expired),
            State::Failed => fail(reporter, io, assembly),
            State::Whole => pooled::complete(reporter, io, assembly),
            State::Host if age > PATIENCE => assembly.enter(&mut io.bus, State::Free),
            State::Spent if age > MEMORY => assembly.enter(&mut io.bus, State::Free),
            State::GivenUp if age > MEMORY && !receiver.work.flights.has_part_of(assembly) => {
                assembly.enter(&mut io.bus, State::Free);
            }
            _ => {}
        }
        knows |= state != State::Free;
    }
    receiver.knows_fragments = knows;
}

/// An endpoint is closed: nothing is put together for it any more. Of a datagram in the pool, what is
/// another one's is still to be given back.
#[inline(never)]
pub fn close<B: Bus>(bus: &mut B, endpoint: u32) {
    for assembly in Assembly::all() {
        if !matches!(
            assembly.state(bus),
            State::Open | State::Failed | State::Whole
        ) {
            continue;
        }
        let is_in_its_memory = assembly.endpoint(bus) == endpoint;
        match assembly.claim(bus) {
            Some(claim) if is_in_its_memory => {
                assembly.leave_memory(bus, &claim);
                assembly.enter(bus, State::Failed);
            }
            Some(claim) if claim.endpoint == endpoint => {
                assembly.unclaim(bus);
                assembly.enter(bus, State::Failed);
            }
            None if is_in_its_memory => assembly.enter(bus, State::GivenUp),
            _ => {}
        }
    }
}
