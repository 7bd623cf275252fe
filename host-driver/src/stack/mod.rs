//! A network stack in process, for machines where the user has no TAP device.
//!
//! [`Host`] is a smoltcp interface over any [`Wire`]: over the card
//! ([`card::CardWire`]) on the driver's side, over a datagram socket
//! ([`crate::peer`]) on the other side of the wire. Both sides speak the small
//! measuring protocol of [`protocol`]: [`service`] answers, [`ping`] and
//! [`throughput`] ask.
//!
//! ```text
//!   ping, throughput            service
//!        Host                    Host
//!      CardWire     card        peer::DatagramWire
//!         └──── driver ── MAC ──────┘
//! ```

use std::time::{Duration, Instant};

use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::Device;
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};
use thiserror::Error;

use crate::nic::CardState;

pub mod card;
mod conversation;
pub mod ping;
pub mod protocol;
pub mod service;
pub mod throughput;

/// Longest sleep of a turn in which the stack itself has nothing due.
const LONGEST_TURN: Duration = Duration::from_millis(100);

/// Why a wire or a conversation over it came to an end.
#[derive(Debug, Error)]
pub enum StackError {
    /// The card failed.
    #[error(transparent)]
    Nic(#[from] crate::nic::NicError),
    /// The socket that is the wire failed.
    #[error("the wire failed: {0}")]
    Wire(#[from] std::io::Error),
    /// The other host did not answer.
    #[error(
        "{what}: no answer from {address} within {} ms{}",
        after.as_millis(),
        card.as_ref().map_or(String::new(), |state| format!(" (our card: {state})"))
    )]
    NoAnswer {
        /// What was asked for.
        what: &'static str,
        /// The other host.
        address: std::net::Ipv4Addr,
        /// How long it was waited for.
        after: Duration,
        /// What is known of the card on our side, if it is one.
        card: Option<Box<CardState>>,
    },
    /// The other host broke the connection off or said something else.
    #[error("{what}: {reason}")]
    Broken {
        /// What was being done.
        what: &'static str,
        /// What happened.
        reason: String,
    },
    /// The user wants to stop.
    #[error("stopped")]
    Stopped,
}

/// A device that a stack can sit on and wait for.
pub trait Wire: Device {
    /// Sends off what the stack has transmitted since the last call.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn flush(&mut self) -> Result<(), StackError>;

    /// Waits until frames may have come, at most for `timeout`.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn wait(&mut self, timeout: Duration) -> Result<(), StackError>;

    /// What is known of the card, if this is one, for who gives up waiting.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn card_state(&mut self) -> Result<Option<CardState>, StackError> {
        Ok(None)
    }
}

/// Who a host is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its station address.
    pub station: [u8; 6],
    /// Its address and network.
    pub address: Ipv4Cidr,
}

/// A stack over a wire, with its sockets.
pub struct Host<W: Wire> {
    wire: W,
    interface: Interface,
    /// The sockets; conversations add and remove their own.
    pub sockets: SocketSet<'static>,
    epoch: Instant,
}

impl<W: Wire> Host<W> {
    /// Puts a stack on a wire.
    pub fn new(mut wire: W, identity: Identity) -> Self {
        let mut config = Config::new(EthernetAddress(identity.station).into());
        config.random_seed = u64::from(std::process::id()) << 32
            | u64::from(
                std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(0, |time| time.subsec_nanos()),
            );
        let mut interface = Interface::new(config, &mut wire, StackInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // The list is empty and holds at least one.
            let _ = addresses.push(IpCidr::Ipv4(identity.address));
        });
        Self {
            wire,
            interface,
            sockets: SocketSet::new(Vec::new()),
            epoch: Instant::now(),
        }
    }

    /// The wire below.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// The interface and the sockets, for calls that need both.
    pub fn parts(&mut self) -> (&mut Interface, &mut SocketSet<'static>) {
        (&mut self.interface, &mut self.sockets)
    }

    /// Takes the wire back.
    pub fn into_wire(self) -> W {
        self.wire
    }

    fn now(&self) -> StackInstant {
        let micros = self.epoch.elapsed().as_micros();
        StackInstant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    /// Handles everything that is there, without waiting. True if a socket may have
    /// changed, so that there is something to look at before waiting.
    ///
    /// # Errors
    /// [`StackError`] if the wire failed.
    pub fn turn(&mut self) -> Result<bool, StackError> {
        let now = self.now();
        let result = self.interface.poll(now, &mut self.wire, &mut self.sockets);
        self.wire.flush()?;
        Ok(result == PollResult::SocketStateChanged)
    }

    /// Waits until there may be something to do, at most for `limit`.
    ///
    /// # Errors
    /// [`StackError`] if the wire failed.
    pub fn wait(&mut self, limit: Duration) -> Result<(), StackError> {
        let now = self.now();
        let due = self.interface.poll_delay(now, &self.sockets);
        let due = due.map_or(LONGEST_TURN, |delay| {
            Duration::from_micros(delay.total_micros())
        });
        self.wire.wait(due.min(limit).min(LONGEST_TURN))
    }

    /// What is known of the card that it sits on, if it is one.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    pub fn card_state(&mut self) -> Result<Option<CardState>, StackError> {
        self.wire.card_state()
    }
}
