//! The first fragment of a datagram, if it comes before the others: most of them do.
//!
//! It says whose the datagram is and how long. If no row has its identification, nothing of the datagram
//! is known, and the row behind the one that was taken last has not been of use for longest. So CPU A
//! searches for neither, and writes all words of the row at once. The memory is one piece.
//!
//! ```text
//!   row      | 0 | 1 | 2 | 3 | 4 | ...
//!   newest         ^   ^ the next datagram's
//! ```
//!
//! Any other fragment takes the way of [`fragment`](super::fragment).

use super::assembly::Assembly;
use super::assembly::in_order::{Ends, First};
use super::completion::Reporter;
use super::fragment_header::{Fragment, Header};
use super::headers::{HEADERS, UDP};
use super::part::Part;
use super::pieces::Piece;
use super::predicted::Taken;
use super::receiver::Receiver;
use crate::io::IoA;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

impl Receiver {
    /// Takes a fragment whose frame begins at `start`, if it is the first one of a datagram of which
    /// nothing is known.
    #[inline(always)]
    pub(super) fn take_first<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        header: Header,
        start: u32,
    ) -> Option<Taken> {
        let fragment = Fragment::with(&mut io.bus, header, start, 0, |address| address);
        let length = fragment.ports & 0xFFFF;
        let end = fragment.ip.end;
        if end >= length || end <= UDP {
            return None;
        }
        let endpoint = reporter.find(fragment.ip.key.destination, fragment.destination_port())?;
        let assembly = self.newest.behind();
        if !assembly.is_unused(&mut io.bus)
            || !Assembly::is_new(&mut io.bus, fragment.ip.key.identification)
            || !reporter.has_next(io, endpoint)
        {
            return None;
        }
        let queue = reporter.queues.get_mut(endpoint as usize)?;
        let flight = self.work.flights.next();
        flight.datagram.endpoint = endpoint;
        flight.datagram.length = length - UDP;
        let host = flight.take_descriptor(queue, &mut io.bus)?;
        queue.finish();
        let piece = Piece {
            host,
            bytes: flight.segment[0] & 0xFFFF,
        };
        let first = First {
            endpoint,
            cookie: flight.cookie,
            piece,
            length,
            end,
            port: fragment.ip.port,
            is_summed: fragment.is_summed,
            sum: fragment.sum,
        };
        let now = timer::now(&mut io.bus);
        assembly.begin_first(&mut io.bus, &fragment.ip.key, now, &first);
        self.newest = assembly;
        self.knows_fragments = true;
        let bytes = end - UDP;
        let predicted = &mut self.predicted;
        let next = host.plus(bytes);
        predicted.expect_at(&fragment, (assembly, endpoint), next, Ends::at(length));
        Some(Taken {
            part: Part {
                assembly,
                is_last: false,
            },
            endpoint,
            host,
            local: start + HEADERS,
            bytes,
        })
    }
}
