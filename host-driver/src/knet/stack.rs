//! A smoltcp stack for each network thread, all with one address.
//!
//! A flow stays in its queue, so its connection lives in the stack of that queue's thread, and
//! stacks share nothing but the [`Neighbours`]. Every stack must listen where any of them does:
//! one that does not know a flow resets it. For the same reason the classifier must not change
//! while there are connections.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetAddress, IpCidr};

use super::neighbours::Neighbours;
use super::{QueueUser, SharedSend, Work};
use crate::nic::{DropReason, NicError, ReceivedFrame, SendOptions};
use crate::stack::Identity;

/// Frames that wait for a turn at the send ring before the stack makes no more.
const OUTGOING: usize = 64;
/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// What uses a stack's sockets.
pub trait Application: Send {
    /// Looks after the sockets; true if it did anything.
    fn turn(&mut self, sockets: &mut SocketSet<'static>) -> bool;
}

/// A stack on one receive queue, and what uses it.
pub struct QueueStack<A> {
    wire: QueueWire,
    interface: Interface,
    sockets: SocketSet<'static>,
    application: A,
    epoch: Instant,
}

/// Frames from the queue and for the send ring.
struct QueueWire {
    received: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
    neighbours: Arc<Neighbours>,
    mtu: usize,
}

impl<A: Application> QueueStack<A> {
    /// A stack with an address, for packets of at most `mtu` bytes. `seed` is another one for
    /// each thread.
    pub fn new(
        identity: Identity,
        mtu: u16,
        seed: u64,
        neighbours: Arc<Neighbours>,
        application: impl FnOnce(&mut SocketSet<'static>) -> A,
    ) -> Self {
        let mut wire = QueueWire {
            received: VecDeque::new(),
            outgoing: VecDeque::new(),
            neighbours,
            mtu: mtu.into(),
        };
        let mut config = Config::new(EthernetAddress(identity.station).into());
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, StackInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // The list is empty and holds at least one.
            let _ = addresses.push(IpCidr::Ipv4(identity.address));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let application = application(&mut sockets);
        Self {
            wire,
            interface,
            sockets,
            application,
            epoch: Instant::now(),
        }
    }

    /// What uses it.
    pub fn application(&self) -> &A {
        &self.application
    }

    fn now(&self) -> StackInstant {
        let micros = self.epoch.elapsed().as_micros();
        StackInstant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    /// Hands frames to the card, as many as there is room for.
    fn send(&mut self, send: &SharedSend) -> Result<Work, NicError> {
        if self.wire.outgoing.is_empty() {
            return Ok(Work::None);
        }
        let mut turn = send.turn();
        turn.reclaim()?;
        let mut done = 0;
        while let Some(frame) = self.wire.outgoing.front() {
            match turn.queue(&[IoSlice::new(frame)], SendOptions::default()) {
                Ok(true) => {}
                Ok(false) => break,
                Err(NicError::BadFrame { .. }) => turn.count_drops(DropReason::Unsendable, 1),
                Err(error) => return Err(error),
            }
            self.wire.outgoing.pop_front();
            done += 1;
        }
        turn.submit()?;
        Ok(if done > 0 {
            Work::Done(done)
        } else {
            Work::NoRoom
        })
    }
}

impl<A: Application> QueueUser for QueueStack<A> {
    fn frame(&mut self, frame: ReceivedFrame<'_>) -> Result<(), NicError> {
        let frame = frame.to_vec()?;
        self.wire.neighbours.learn(&frame);
        self.wire.received.push_back(frame);
        Ok(())
    }

    fn work(&mut self, send: &SharedSend) -> Result<Work, NicError> {
        let mut worked = false;
        // The application's words go out in the same call as what made it speak.
        for _ in 0..2 {
            let now = self.now();
            let polled = self.interface.poll(now, &mut self.wire, &mut self.sockets);
            worked |= polled == PollResult::SocketStateChanged;
            worked |= self.application.turn(&mut self.sockets);
        }
        Ok(match self.send(send)? {
            Work::None if worked || !self.wire.received.is_empty() => Work::Done(0),
            work => work,
        })
    }

    fn due(&mut self) -> Option<Duration> {
        let now = self.now();
        let delay = self.interface.poll_delay(now, &self.sockets)?;
        Some(Duration::from_micros(delay.total_micros()))
    }
}

impl Device for QueueWire {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: StackInstant) -> Option<(Incoming, Outgoing<'_>)> {
        if self.outgoing.len() >= OUTGOING {
            return None;
        }
        let frame = self.received.pop_front()?;
        Some((Incoming(frame), Outgoing(self)))
    }

    fn transmit(&mut self, _: StackInstant) -> Option<Outgoing<'_>> {
        (self.outgoing.len() < OUTGOING).then_some(Outgoing(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + HEADER;
        capabilities
    }
}

/// A received frame.
pub struct Incoming(Vec<u8>);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

/// Room for a frame.
pub struct Outgoing<'a>(&'a mut QueueWire);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        match self.0.neighbours.answer(&frame) {
            // Known here already: the answer to a question would come to queue 0.
            Some(answer) => self.0.received.push_back(answer),
            None => self.0.outgoing.push_back(frame),
        }
        result
    }
}
