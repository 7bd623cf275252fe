//! Endpoints: where messages come from and go to.
//!
//! Paper, section 3.2. Applications and the process that drives the card have endpoints with rings
//! in the host's memory; the wire is one, too. A handler says in `init` whom it lets call it.

use crate::imports;
use crate::{Durable, HandlerNumber};
use core::ops::BitOr;

/// The number of an endpoint. Those of applications are given out by who drives the card: a
/// handler learns them from [`Message::source`](crate::Message::source).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint(pub u32);

impl Endpoint {
    /// The wire, as a source.
    pub const WIRE: Endpoint = Endpoint(0);
    /// The process that drives the card.
    pub const DRIVER: Endpoint = Endpoint(1);
    /// The handler's own domain, as a source.
    pub const ITSELF: Endpoint = Endpoint(0x100);
    /// The other card on the bus, as a source.
    pub const PEER: Endpoint = Endpoint(0x101);
}

/// A handler of another card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireAddress {
    /// The card's station address: its first two bytes in bits 15:0, the other four.
    pub station: (u32, u32),
    /// The domain's number there.
    pub domain: u8,
    /// The handler's.
    pub handler: HandlerNumber,
}

/// A handler of the other card on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerHandler {
    /// The domain's number there.
    pub domain: u8,
    /// The handler's.
    pub handler: HandlerNumber,
}

/// Whom a handler lets call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callers(u32);

impl Callers {
    /// Nobody: it gets frames alone.
    pub const NOBODY: Callers = Callers(0);
    /// The process that drives the card.
    pub const DRIVER: Callers = Callers(1);
    /// Applications, those that were granted it.
    pub const APPLICATIONS: Callers = Callers(2);
    /// The wire.
    pub const WIRE: Callers = Callers(4);
    /// Handlers of its own domain.
    pub const ITSELF: Callers = Callers(8);
    /// Handlers of the other card on the bus.
    pub const PEER: Callers = Callers(16);
}

impl BitOr for Callers {
    type Output = Callers;

    fn bitor(self, other: Callers) -> Callers {
        Callers(self.0 | other.0)
    }
}

/// Says whom a handler lets call it; without that, the driver and its own domain. Frames come to
/// it by guards, whatever is said here. Returns `false` for a number above the limit.
pub fn accept(durable: &mut Durable, number: HandlerNumber, callers: Callers) -> bool {
    let _ = durable;
    imports::accept(number.0, callers.0)
}
