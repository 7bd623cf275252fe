//! The fragment that is next in line, by header prediction as of TCP.
//!
//! ```text
//!   IP payload   | first | 2nd | 3rd |                        |
//!                  all of this is there ^ the next one begins here
//!
//!   header last  |       | 2nd | 3rd | 4th |                  |
//!                          this is there ^ the next one begins here
//! ```
//!
//! Most fragments of a datagram come one behind the other. Of the next one all is known but its
//! length, so its header is compared with what it should say, and its data goes behind what is there.
//! The datagram has one piece of memory. As long as its length is not known, its last fragment is none
//! of these.
//!
//! Any other fragment takes the way of [`fragment`](super::fragment), which then
//! [expects](Predicted::expect) the one behind it.

use super::assembly::in_order::Ends;
use super::assembly::{Assembly, Key};
use super::fragment_header::{Fragment, Header};
use super::headers::{ETHERNET, IP};
use super::part::Part;
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;

/// No place of a fragment.
const NOWHERE: u32 = u32::MAX;

/// What the next fragment should be.
#[derive(Debug)]
pub struct Predicted {
    /// Its datagram.
    assembly: Assembly,
    /// Whose that is.
    endpoint: u32,
    /// Where it begins in the IP payload.
    from: u32,
    /// Where it may end.
    ends: Ends,
    /// Whose fragments come.
    key: Key,
    /// Where its data goes.
    host: HostAddress,
}

/// The fragment that was next in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// What RDMA has of it.
    pub part: Part,
    /// Whose it is.
    pub endpoint: u32,
    /// Where its data goes.
    pub host: HostAddress,
    /// Where its data begins in NIC memory.
    pub local: u32,
    /// Its bytes of data.
    pub bytes: u32,
}

impl Predicted {
    /// No fragment.
    pub(super) const NONE: Predicted = Predicted {
        assembly: Assembly::FIRST,
        endpoint: 0,
        from: NOWHERE,
        ends: Ends::at(0),
        key: Key::NONE,
        host: HostAddress { high: 0, low: 0 },
    };

    /// Forgets the next fragment of a datagram: another one has come.
    #[inline(always)]
    pub(super) fn forget(&mut self, assembly: Assembly) {
        if self.assembly == assembly {
            self.from = NOWHERE;
        }
    }

    /// Expects the fragment behind this one, if its datagram has [no gap](Assembly::in_line) there.
    #[inline(never)]
    pub(super) fn expect<B: Bus>(&mut self, bus: &mut B, assembly: Assembly, fragment: &Fragment) {
        if fragment.vlan != 0 {
            return;
        }
        let Some((host, ends)) = assembly.in_line(bus, fragment.ip.end) else {
            return;
        };
        let endpoint = assembly.endpoint(bus);
        self.expect_at(fragment, (assembly, endpoint), host, ends);
    }

    /// The same of the fragment behind one of a row and an endpoint whose data goes to `host`.
    #[inline(always)]
    pub(super) fn expect_at(
        &mut self,
        fragment: &Fragment,
        (assembly, endpoint): (Assembly, u32),
        host: HostAddress,
        ends: Ends,
    ) {
        *self = Predicted {
            assembly,
            endpoint,
            from: fragment.ip.end,
            ends,
            key: fragment.ip.key,
            host,
        };
    }

    /// Takes a fragment whose frame begins at `start`, if it is the next one.
    #[inline(always)]
    pub(super) fn take<B: Bus>(
        &mut self,
        bus: &mut B,
        header: &Header,
        start: u32,
    ) -> Option<Taken> {
        let next = self.next(bus, header, start)?;
        self.advance(bus, next.part, next.bytes);
        Some(next)
    }

    /// The fragment whose frame begins at `start`, if it is the next one: nothing is behind what is
    /// there.
    #[inline(always)]
    pub(super) fn next<B: Bus>(&self, bus: &mut B, header: &Header, start: u32) -> Option<Taken> {
        let Header {
            key,
            from,
            end,
            is_end,
            ..
        } = *header;
        let assembly = self.assembly;
        let is_last = end == self.ends.last;
        if from != self.from
            || key != self.key
            || is_end != is_last
            || end > self.ends.most
            || !assembly.is_open(bus)
        {
            return None;
        }
        Some(Taken {
            part: Part { assembly, is_last },
            endpoint: self.endpoint,
            host: self.host,
            local: start + ETHERNET + IP,
            bytes: end - from,
        })
    }

    /// The next fragment, this one with so many bytes, is there.
    #[inline(always)]
    pub(super) fn advance<B: Bus>(&mut self, bus: &mut B, part: Part, bytes: u32) {
        let end = self.from + bytes;
        self.host = self.host.plus(bytes);
        self.from = if part.is_last { NOWHERE } else { end };
        part.assembly.grow(bus, end);
    }
}
