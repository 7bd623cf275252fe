//! An in-process network stack, for machines where the user has no TAP device.
//!
//! A [`Wire`] is what a stack runs on: the card ([`card::CardWire`]) on the driver's side, a datagram
//! socket ([`crate::peer`]) at the far end. [`flows`] is TCP/IP for many connections, which the
//! packet processing engine and the server [`service`] of the small measuring protocol
//! ([`protocol`]) are built on. [`Host`] is smoltcp's interface with one socket set, for the clients
//! of that protocol, [`ping`] and [`throughput`], which have one conversation at a time.
//!
//! ```text
//!   ping, throughput            service
//!        Host                 flows::Stack
//!      CardWire     card        peer::DatagramWire
//!         └──── driver ── MAC ──────┘
//! ```

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::Device;
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};
use thiserror::Error;

use crate::dma::DmaMemory;
use crate::nic::{CardState, InPlace};

pub mod card;
mod conversation;
pub mod flows;
pub mod ping;
pub mod protocol;
pub mod service;
pub mod throughput;

/// Longest sleep of a turn if the stack has no timer due.
const LONGEST_TURN: Duration = Duration::from_millis(100);

/// Why a wire or a conversation ended.
#[derive(Debug, Error)]
pub enum StackError {
    /// The card failed.
    #[error(transparent)]
    Nic(#[from] crate::nic::NicError),
    /// The wire's socket failed.
    #[error("the wire failed: {0}")]
    Wire(#[from] std::io::Error),
    /// The other host did not answer.
    #[error(
        "{what}: no answer from {address} within {} ms{}",
        after.as_millis(),
        card.as_ref().map_or(String::new(), |state| format!(" (our card: {state})"))
    )]
    NoAnswer {
        /// The request.
        what: &'static str,
        /// The other host.
        address: std::net::Ipv4Addr,
        /// How long the client waited.
        after: Duration,
        /// The state of the card on our side, if there is one.
        card: Option<Box<CardState>>,
    },
    /// The other host closed the connection or sent something unexpected.
    #[error("{what}: {reason}")]
    Broken {
        /// The operation.
        what: &'static str,
        /// What happened.
        reason: String,
    },
    /// The user requested to stop.
    #[error("stopped")]
    Stopped,
}

/// A device for a stack that can wait.
pub trait Wire: Device {
    /// Sends everything that the stack has transmitted since the last call.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn flush(&mut self) -> Result<(), StackError>;

    /// Waits until frames may have arrived, at most for `timeout`.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn wait(&mut self, timeout: Duration) -> Result<(), StackError>;

    /// A descriptor that becomes readable when frames may have arrived, for who sleeps on others
    /// as well; none if the device can only be waited for alone. After it, call [`Wire::wait`]
    /// with no time, and then look for frames.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Lets the wire read a memory file of someone else where it is; none if it only takes whole
    /// frames. The file is sealed against shrinking and growing.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn map(&mut self, file: OwnedFd) -> Result<Option<DmaMemory>, StackError> {
        let _ = file;
        Ok(None)
    }

    /// Takes such memory away from the wire, which must have returned all that points there.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), StackError> {
        let _ = memory;
        Ok(())
    }

    /// Frames with parts in place that it takes now.
    fn room_in_place(&self) -> usize {
        0
    }

    /// Sends a frame of which everything behind the first `header` bytes stands elsewhere.
    fn send_in_place(&mut self, frame: &mut [u8], header: usize, parts: &[InPlace<'_>]) {
        let _ = (frame, header, parts);
    }

    /// A mark of what has been sent in place: nothing before it is read any more when
    /// [`Wire::returned`] has reached it.
    fn queued(&self) -> u64 {
        0
    }

    /// See [`Wire::queued`].
    fn returned(&self) -> u64 {
        0
    }

    /// Resets what has failed, so that the wire can be used again; false if it cannot.
    ///
    /// # Errors
    /// [`StackError`] if the reset fails.
    fn recover(&mut self, failure: &StackError) -> Result<bool, StackError> {
        let _ = failure;
        Ok(false)
    }

    /// Looks whether the device is still there, for who waits for it: one that is gone sends no
    /// interrupt. Costs an access to the device.
    ///
    /// # Errors
    /// [`StackError`] if it is not.
    fn check(&mut self) -> Result<(), StackError> {
        Ok(())
    }

    /// The state of the card, if there is one, for messages about timeouts.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    fn card_state(&mut self) -> Result<Option<CardState>, StackError> {
        Ok(None)
    }
}

/// A host's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its station address.
    pub station: [u8; 6],
    /// Its address and network.
    pub address: Ipv4Cidr,
}

/// A number for a stack's first sequence numbers. They guard measurements, not strangers' data: a
/// packet processing engine takes the system's random ones.
fn seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |time| time.subsec_nanos());
    u64::from(std::process::id()) << 32 | u64::from(nanos)
}

/// A stack over a wire, with its sockets: a client of the measuring protocol. Servers are over
/// [`flows`].
pub struct Host<W: Wire> {
    wire: W,
    interface: Interface,
    /// The sockets; conversations add and remove their own.
    pub sockets: SocketSet<'static>,
    epoch: Instant,
}

impl<W: Wire> Host<W> {
    /// Creates a stack on a wire.
    pub fn new(mut wire: W, identity: Identity) -> Self {
        let mut config = Config::new(EthernetAddress(identity.station).into());
        config.random_seed = seed();
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

    /// The wire.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// The interface and the sockets, for calls that need both.
    pub fn parts(&mut self) -> (&mut Interface, &mut SocketSet<'static>) {
        (&mut self.interface, &mut self.sockets)
    }

    /// Returns the wire.
    pub fn into_wire(self) -> W {
        self.wire
    }

    fn now(&self) -> StackInstant {
        let micros = self.epoch.elapsed().as_micros();
        StackInstant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    /// Processes everything that is there, without waiting. True if a socket may have changed, so
    /// that the caller should check before waiting.
    ///
    /// # Errors
    /// [`StackError`] if the wire failed.
    pub fn turn(&mut self) -> Result<bool, StackError> {
        let now = self.now();
        let result = self.interface.poll(now, &mut self.wire, &mut self.sockets);
        self.wire.flush()?;
        Ok(result == PollResult::SocketStateChanged)
    }

    /// Waits until there may be work, at most for `limit`.
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

    /// The state of its card, if there is one.
    ///
    /// # Errors
    /// [`StackError`] if the device failed.
    pub fn card_state(&mut self) -> Result<Option<CardState>, StackError> {
        self.wire.card_state()
    }
}
