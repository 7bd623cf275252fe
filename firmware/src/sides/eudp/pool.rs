//! The pool: where fragments go that come before their UDP header, and nobody is connected to their
//! source.
//!
//! ```text
//!   from the wire        | 2nd | 3rd | last | first, says the port |
//!                           v     v     v      v
//!   the pool's buffer    | all of it                               |
//!                           | copied by the library
//!                           v
//!   the endpoint's       | its next descriptor, taken with the header |
//! ```
//!
//! The pool is an endpoint without a port. What is in its memory is put together as elsewhere. With the
//! header the datagram takes the next descriptor of the endpoint whose port it names, of one piece, and
//! this one's [completion](super::pooled) says where the data is. If the datagram is given up, both
//! descriptors go back to whose they are.

use super::assembly::claim::Claim;
use super::completion::Reporter;
use super::fragment_header::{Fragment, Outcome};
use super::headers::UDP;
use super::receiver::Receiver;
use crate::io::IoA;
use host_interface::eudp::{POOL, Refusal};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

impl Reporter {
    /// The pool of an address, and of a VLAN in bits 31:16.
    #[inline(never)]
    pub(super) fn pool(&self, address: u32, vlan: u32) -> Option<u32> {
        self.find(address, POOL | vlan)
    }

    fn is_pool(&self, endpoint: u32) -> bool {
        let queue = self.queues.get(endpoint as usize);
        queue.is_some_and(|queue| queue.port >= POOL)
    }
}

/// Sees to the first fragment of the recent datagram. If that is in the pool, it takes the next
/// descriptor of the endpoint whose port the header names.
///
/// # Errors
/// What was done with the fragment, if it is not to be written.
#[inline(never)]
pub(super) fn claim<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
) -> Result<(), Outcome> {
    let assembly = receiver.recent;
    let pool = assembly.endpoint(&mut io.bus);
    if !reporter.is_pool(pool) || assembly.claim(&mut io.bus).is_some() {
        return Ok(());
    }
    let port = fragment.destination_port();
    let Some(endpoint) = reporter.find(fragment.ip.key.destination, port) else {
        receiver.give_up(reporter, io, Refusal::Unclaimed);
        return Err(Outcome::Taken);
    };
    if !reporter.has_next(io, endpoint) {
        // CPU B calls again.
        io.bus.clear(EventBit::ReceiveComplete);
        return Err(Outcome::Waits);
    }
    match take(receiver, reporter, &mut io.bus, endpoint, fragment) {
        Ok(claim) => {
            assembly.set_claim(&mut io.bus, &claim);
            Ok(())
        }
        Err(refusal) => {
            receiver.give_up(reporter, io, refusal);
            Err(Outcome::Taken)
        }
    }
}

/// The next descriptor of an endpoint, if it is long enough and of one piece.
fn take<B: Bus>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    bus: &mut B,
    endpoint: u32,
    fragment: &Fragment,
) -> Result<Claim, Refusal> {
    let queue = reporter.queues.get_mut(endpoint as usize);
    let queue = queue.ok_or(Refusal::NoBuffer)?;
    if queue.received == queue.filled {
        return Err(Refusal::NoBuffer);
    }
    let flight = receiver.work.flights.next();
    flight.datagram.endpoint = endpoint;
    flight.datagram.length = (fragment.ports & 0xFFFF).saturating_sub(UDP);
    let taken = flight.take_descriptor(queue, bus);
    taken.ok_or(Refusal::BadRegion)?;
    // The row has what its slot said.
    queue.finish();
    Ok(Claim {
        endpoint,
        cookie: flight.cookie,
        segment: flight.segment,
    })
}
