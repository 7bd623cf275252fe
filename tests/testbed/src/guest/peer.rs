//! The peer at the other end of a card's wire: this machine's Linux in a network namespace, or
//! smoltcp in this process.

use crate::card::{Card, CardOptions, Wire};
use crate::net::namespace::{self, Namespace};
use crate::tools::Tools;
use crate::worker::Worker;
use anyhow::Result;
use clap::ValueEnum;
use host_driver::peer::{self, DatagramWire};
use host_driver::stack::Identity;
use smoltcp::wire::Ipv4Cidr;
use std::net::Ipv4Addr;

/// Who is at the other end of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Linux where that is permitted, else smoltcp
    Auto,
    /// This machine's Linux, in a network namespace (needs root)
    Linux,
    /// smoltcp in this process (needs no privilege)
    Smoltcp,
}

/// Cards with somebody at the other end of each wire.
#[derive(Debug)]
pub struct Peers {
    ends: Vec<End>,
}

#[derive(Debug)]
struct End {
    card: Card,
    who: Who,
}

#[derive(Debug)]
enum Who {
    Linux(Namespace),
    Smoltcp {
        /// Dropping it ends it.
        _worker: Worker<()>,
    },
}

/// The addresses of the guest and of the peer on the wire of card `number`.
pub fn addresses(number: u8) -> (Ipv4Addr, Ipv4Addr) {
    (
        Ipv4Addr::new(10, 77, number, 1),
        Ipv4Addr::new(10, 77, number, 2),
    )
}

/// Starts `count` cards, each with a peer.
///
/// # Errors
/// When a card does not start, or Linux is asked for and not permitted.
pub fn start(tools: &Tools, peer: Peer, count: u8) -> Result<Peers> {
    let linux = match (peer, namespace::permitted()) {
        (Peer::Smoltcp, _) => false,
        (_, Ok(())) => true,
        (Peer::Auto, Err(why)) => {
            println!("{why:#}: smoltcp is at the other end of the wire instead of Linux");
            false
        }
        (Peer::Linux, Err(why)) => return Err(why),
    };
    let end = |number| {
        if linux {
            linux_end(tools, number)
        } else {
            smoltcp_end(tools, number)
        }
    };
    Ok(Peers {
        ends: (0..count).map(end).collect::<Result<_>>()?,
    })
}

impl Peers {
    /// The cards, in their order.
    pub fn cards(&self) -> impl Iterator<Item = &Card> {
        self.ends.iter().map(|end| &end.card)
    }

    /// The namespace at the other end of the wire of card `number`.
    pub fn namespace(&self, number: u8) -> Option<&Namespace> {
        match &self.ends.get(usize::from(number))?.who {
            Who::Linux(namespace) => Some(namespace),
            Who::Smoltcp { .. } => None,
        }
    }

    /// Who is there, for people.
    pub fn name(&self, number: u8) -> String {
        match self.namespace(number) {
            Some(namespace) => format!("on this machine: ip netns exec {} sh", namespace.name()),
            None => "smoltcp, which answers ping".into(),
        }
    }
}

fn linux_end(tools: &Tools, number: u8) -> Result<End> {
    let tap = format!("tgw{}-{number}", std::process::id());
    let namespace = Namespace::create(&format!("peer{number}"))?;
    let card = card(tools, Wire::Tap(tap.clone()), number)?;
    let (_, own) = addresses(number);
    namespace.adopt(&tap, &format!("{own}/24"))?;
    Ok(End {
        card,
        who: Who::Linux(namespace),
    })
}

fn smoltcp_end(tools: &Tools, number: u8) -> Result<End> {
    let card = card(tools, Wire::Datagram, number)?;
    let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())?;
    let (_, own) = addresses(number);
    let identity = Identity {
        station: [0x02, 0x54, 0x47, 0, 1, number],
        address: Ipv4Cidr::new(own, 24),
    };
    let worker = Worker::start(move |stop| Ok(peer::serve(wire, identity, stop)?));
    Ok(End {
        card,
        who: Who::Smoltcp { _worker: worker },
    })
}

fn card(tools: &Tools, wire: Wire, number: u8) -> Result<Card> {
    Card::start(
        tools,
        &CardOptions {
            wire,
            station: Some([0x02, 0x54, 0x47, 0, 0, number + 1]),
            ..CardOptions::default()
        },
    )
}
