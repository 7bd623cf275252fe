//! The other end of what an endpoint sends.

use crate::support::Local;
use eudp::{AddressHandle, Destination};
use std::net::Ipv4Addr;

/// An address handle.
pub fn peer(local: &mut Local, dont_fragment: bool) -> AddressHandle {
    let to = Destination {
        station: [2, 0, 0, 0, 0, 2],
        address: Ipv4Addr::new(10, 0, 0, 2),
        lifetime: 64,
        dont_fragment,
    };
    let handle = local
        .eudp
        .address(&mut local.card, &mut local.endpoint, &to);
    handle.expect("there is room")
}
