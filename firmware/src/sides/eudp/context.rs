//! Which datagram a fragment belongs to, if it is not the one of the fragment before.

use super::assembly::{Assembly, Key, State};
use super::completion::Reporter;
use super::each;
use super::fragment_header::{Fragment, Outcome, VLAN};
use super::headers::UDP;
use super::receiver::Receiver;
use crate::io::IoA;
use crate::memory::layout::EUDP_BLOCK;
use host_interface::eudp::{EndpointWord, Refusal, endpoint_word};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// The row of a fragment's datagram, a new one if nothing is known of it.
///
/// # Errors
/// What was done with the fragment, if it is put together with no others.
#[inline(never)]
pub(super) fn find<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
) -> Result<Assembly, Outcome> {
    if !reporter.has_address(fragment.ip.key.destination) {
        return Err(Outcome::Passed);
    }
    let Some(assembly) = Assembly::find(&mut io.bus, &fragment.ip.key) else {
        return begin(receiver, reporter, io, fragment);
    };
    match assembly.state(&mut io.bus) {
        State::Host => return Err(Outcome::Passed),
        State::Spent | State::GivenUp | State::Failed | State::Whole => {
            receiver.let_pass(reporter, io);
            return Err(Outcome::Taken);
        }
        State::Open | State::Free => {}
    }
    // One of another VLAN is none of this datagram's.
    if reporter.vlan_of(assembly.endpoint(&mut io.bus)) != fragment.vlan {
        return Err(Outcome::Passed);
    }
    Ok(assembly)
}

/// A datagram of which nothing is known: finds its endpoint and memory for it.
#[inline(never)]
fn begin<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
) -> Result<Assembly, Outcome> {
    let Key {
        source,
        destination,
        ..
    } = fragment.ip.key;
    let now = timer::now(&mut io.bus);
    receiver.knows_fragments = true;
    let endpoint = if fragment.is_first() {
        reporter.find(destination, fragment.destination_port())
    } else {
        let connected = reporter.connected(&mut io.bus, source, destination, fragment.vlan);
        connected.or_else(|| reporter.pool(destination, fragment.vlan))
    };
    let Some(endpoint) = endpoint else {
        // If there is no row, its next fragment comes here again.
        take_row(receiver, &mut io.bus, &fragment.ip.key, State::Host, now);
        return Err(Outcome::Passed);
    };
    if !reporter.has_next(io, endpoint) {
        // CPU B calls again.
        io.bus.clear(EventBit::ReceiveComplete);
        return Err(Outcome::Waits);
    }
    let Some(assembly) = take_row(receiver, &mut io.bus, &fragment.ip.key, State::Spent, now)
    else {
        receiver.drop_fragment(reporter, io, Refusal::NoContext);
        return Err(Outcome::Taken);
    };
    let work = &mut receiver.work;
    let length = fragment.length().unwrap_or(fragment.ip.end);
    let datagram = &mut work.flights.next().datagram;
    datagram.endpoint = endpoint;
    datagram.length = length.saturating_sub(UDP);
    work.choose_pieces(reporter, io);
    if let Some(refusal) = work.refused.take() {
        receiver.drop_fragment(reporter, io, refusal);
        return Err(Outcome::Taken);
    }
    let cookie = work.flights.next().cookie;
    assembly.begin(&mut io.bus, endpoint, cookie, work.pieces());
    assembly.enter(&mut io.bus, State::Open);
    if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
        // The row has what its slot said.
        queue.finish();
    }
    Ok(assembly)
}

/// A row for a datagram of which nothing is known: none whose fragments RDMA writes.
#[inline(never)]
fn take_row<B: Bus>(
    receiver: &mut Receiver,
    bus: &mut B,
    key: &Key,
    state: State,
    now: u32,
) -> Option<Assembly> {
    let flights = &receiver.work.flights;
    let row = Assembly::take(bus, key, state, now, |row| flights.has_part_of(row))?;
    receiver.newest = row;
    Some(row)
}

impl Reporter {
    /// Whether an open endpoint has this address.
    #[inline(never)]
    fn has_address(&self, address: u32) -> bool {
        each(self.open).any(|endpoint| {
            let queue = self.queues.get(endpoint as usize);
            queue.is_some_and(|queue| queue.address == address)
        })
    }

    /// The only open endpoint of an address that is connected to a source; none is to 0.0.0.0.
    #[inline(never)]
    fn connected<B: Bus>(&self, bus: &mut B, source: u32, address: u32, vlan: u32) -> Option<u32> {
        let mut found = None;
        if source == 0 {
            return None;
        }
        for endpoint in each(self.open) {
            let queue = self.queues.get(endpoint as usize)?;
            let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Connected);
            if queue.address == address && queue.port & VLAN == vlan && bus.load(at) == source {
                if found.is_some() {
                    return None;
                }
                found = Some(endpoint);
            }
        }
        found
    }
}
