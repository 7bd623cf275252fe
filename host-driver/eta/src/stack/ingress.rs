//! Received frames: which connection each concerns.

use smoltcp::iface::{Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, RxToken, TxToken};
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Instant as StackInstant;

use super::frame::{Kind, Segment, sort};
use super::{HALF_OPEN_TIME, Holder, Id, Stack};

impl Stack {
    /// Processes at most `budget` frames; how many there were.
    pub(crate) fn receive(&mut self, wire: &mut impl Device, budget: usize) -> usize {
        self.interface.poll_maintenance(self.now);
        for number in 0..budget {
            let Some((received, room)) = wire.receive(self.now) else {
                return number;
            };
            received.consume(|frame| self.process(frame, room));
        }
        budget
    }

    fn process(&mut self, frame: &[u8], room: impl TxToken) {
        self.statistics.frames += 1;
        match sort(frame, self.address.address()) {
            Kind::Tcp(segment) => self.segment(frame, segment, room),
            Kind::Arp => {
                self.for_nobody(frame, room);
                // A neighbour may be known now.
                for id in std::mem::take(&mut self.unresolved) {
                    self.make_ready(id);
                }
            }
            Kind::Other => self.for_nobody(frame, room),
        }
    }

    fn for_nobody(&mut self, frame: &[u8], room: impl TxToken) {
        let now = self.now;
        give(&mut self.interface, now, &mut self.nobody, frame, room);
    }

    fn segment(&mut self, frame: &[u8], segment: Segment, room: impl TxToken) {
        let known = self.flows.get(&segment.flow).copied();
        match known {
            Some(id) if segment.opens && self.is_over(id, segment.sequence) => {
                self.remove(id);
                self.opened(frame, segment, room);
            }
            Some(id) => self.for_connection(id, frame, segment.sequence, room),
            None if segment.opens => self.opened(frame, segment, room),
            // smoltcp resets what nobody has.
            None => self.for_nobody(frame, room),
        }
    }

    /// Whether a SYN may take the place of a connection: one that its application has left, by a
    /// higher sequence number (RFC 9293, section 3.6.1). In TIME-WAIT that is usual; in other
    /// states the peer has forgotten a connection that nobody wants here either. smoltcp would
    /// drop the SYN without a word until the old connection's time is over.
    fn is_over(&mut self, id: Id, sequence: u32) -> bool {
        let Some(slot) = self.slot(id) else {
            return false;
        };
        let newer = sequence.wrapping_sub(slot.highest).cast_signed() > 0;
        let over = slot.holder == Holder::Nobody && newer;
        if !over {
            self.statistics.unanswered += 1;
        }
        over
    }

    fn for_connection(&mut self, id: Id, frame: &[u8], sequence: u32, room: impl TxToken) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        self.statistics.looked_at += 1;
        if sequence.wrapping_sub(slot.highest).cast_signed() > 0 {
            slot.highest = sequence;
        }
        give(&mut self.interface, now, &mut slot.set, frame, room);
        self.make_ready(id);
    }

    fn opened(&mut self, frame: &[u8], segment: Segment, room: impl TxToken) {
        let port = segment.flow.port;
        let Some(admitted) = self.ports.admit(port) else {
            return self.for_nobody(frame, room);
        };
        let Some(options) = admitted else {
            self.statistics.refused += 1;
            return;
        };
        let mut socket = options.socket();
        // Fresh, and the port is not 0: listening cannot fail.
        let _ = socket.listen(port);
        let id = self.insert(socket, segment.flow, Holder::Port(port));
        self.ports.started(port, id);
        let deadline = self.tick() + HALF_OPEN_TIME;
        self.limit(id, Some(deadline));
        if let Some(slot) = self.slot(id) {
            slot.highest = segment.sequence;
        }
        self.for_connection(id, frame, segment.sequence, room);
        // A frame that smoltcp refused, for example for its sum, opens nothing.
        let refused = |socket: &mut tcp::Socket<'_>| socket.state() == State::Listen;
        if self.socket(id).is_some_and(refused) {
            self.remove(id);
        }
    }
}

/// Gives one frame to one set.
fn give(
    interface: &mut Interface,
    now: StackInstant,
    set: &mut SocketSet<'_>,
    frame: &[u8],
    room: impl TxToken,
) {
    let mut device = Single {
        frame: Some(frame),
        room: Some(room),
    };
    interface.poll_ingress_single(now, &mut device, set);
}

/// A device that has received one frame and has room for one.
struct Single<'f, T> {
    frame: Option<&'f [u8]>,
    room: Option<T>,
}

/// The frame.
struct Frame<'f>(&'f [u8]);

impl RxToken for Frame<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl<'f, T: TxToken> Device for Single<'f, T> {
    type RxToken<'t>
        = Frame<'f>
    where
        Self: 't;
    type TxToken<'t>
        = T
    where
        Self: 't;

    fn receive(&mut self, _: StackInstant) -> Option<(Frame<'f>, T)> {
        Some((Frame(self.frame.take()?), self.room.take()?))
    }

    fn transmit(&mut self, _: StackInstant) -> Option<T> {
        None
    }

    fn capabilities(&self) -> DeviceCapabilities {
        // The interface has the wire's.
        DeviceCapabilities::default()
    }
}
