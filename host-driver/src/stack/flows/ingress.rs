//! Received frames: which connection each concerns.

use smoltcp::iface::{Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, RxToken, TxToken};
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetFrame, IpAddress, Ipv4Packet, TcpPacket, TcpSeqNumber};

use super::frame::{Kind, Segment, sort};
use super::{HALF_OPEN_TIME, Holder, Id, Stack};

impl Stack {
    /// Processes at most `budget` frames; how many there were.
    pub fn receive(&mut self, wire: &mut impl Device, budget: usize) -> usize {
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
            Some(id) if segment.opens => match self.succession(id, segment.sequence) {
                Succession::Replaces => {
                    self.displace(id);
                    self.opened(frame, segment, room);
                }
                Succession::Challenged => self.challenge(id, frame, room),
                Succession::Repeats => self.for_connection(id, frame, segment, room),
            },
            Some(id) => self.for_connection(id, frame, segment, room),
            None if segment.opens => self.opened(frame, segment, room),
            // smoltcp resets what nobody has.
            None => self.for_nobody(frame, room),
        }
    }

    /// What a SYN is to the connection from its port.
    ///
    /// It may take the place of one that is in TIME-WAIT, or that its application has left, by a
    /// higher sequence number (RFC 9293, section 3.6.1): Linux gives out a port again at once, and
    /// often before the application here has closed its socket. smoltcp would drop it without a
    /// word until the old connection's time is over.
    fn succession(&mut self, id: Id, sequence: u32) -> Succession {
        let Some(slot) = self.slot(id) else {
            return Succession::Repeats;
        };
        let newer = slot
            .highest
            .is_none_or(|highest| is_after(sequence, highest));
        let state = slot.set.get::<tcp::Socket<'_>>(slot.handle).state();
        let over = slot.holder == Holder::Nobody || state == State::TimeWait;
        if over && newer {
            return Succession::Replaces;
        }
        self.statistics.unanswered += 1;
        match state {
            State::SynSent | State::SynReceived => Succession::Repeats,
            _ => Succession::Challenged,
        }
    }

    /// Answers a SYN for a connection that exists by an acknowledgement (RFC 5961, section 4). A
    /// peer that has forgotten the connection then resets it, and may open another; who only
    /// guesses its ports does no harm.
    ///
    /// smoltcp drops such a SYN. It does acknowledge a segment from before its window, at most once
    /// a second, so the SYN is given to it as one.
    fn challenge(&mut self, id: Id, frame: &[u8], room: impl TxToken) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        let mut changed = frame.to_vec();
        let (Some(highest), Some(acknowledged)) = (slot.highest, slot.acknowledged) else {
            return;
        };
        let old = highest.wrapping_sub(OLD);
        if as_old_acknowledgement(&mut changed, old, acknowledged).is_some() {
            self.statistics.looked_at += 1;
            give(&mut self.interface, now, &mut slot.set, &changed, room);
        }
    }

    fn for_connection(&mut self, id: Id, frame: &[u8], segment: Segment, room: impl TxToken) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        self.statistics.looked_at += 1;
        // A SYN that was not accepted says nothing of the connection's numbers.
        if !segment.opens {
            raise(&mut slot.highest, segment.sequence);
            if let Some(acknowledged) = segment.acknowledged {
                raise(&mut slot.acknowledged, acknowledged);
            }
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
        let id = self.insert(socket, options, segment.flow, Holder::Port(port));
        self.ports.started(port, id);
        let deadline = self.tick() + HALF_OPEN_TIME;
        self.limit(id, Some(deadline));
        if let Some(slot) = self.slot(id) {
            slot.highest = Some(segment.sequence);
        }
        self.for_connection(id, frame, segment, room);
        // A frame that smoltcp refused, for example for its sum, opens nothing.
        let refused = |socket: &mut tcp::Socket<'_>| socket.state() == State::Listen;
        if self.socket(id).is_some_and(refused) {
            self.remove(id);
        }
    }
}

/// What a SYN is to a connection that exists.
enum Succession {
    /// The beginning of the next one: the old one is over.
    Replaces,
    /// The one that opened it, again, or another before that is done.
    Repeats,
    /// One for a connection that lives.
    Challenged,
}

/// How far before the window a segment is that only asks for an acknowledgement.
const OLD: u32 = 1 << 30;

/// Whether a sequence number is later than another.
fn is_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() > 0
}

/// Raises a sequence number to a later one.
fn raise(highest: &mut Option<u32>, number: u32) {
    if highest.is_none_or(|highest| is_after(number, highest)) {
        *highest = Some(number);
    }
}

/// Makes a bare acknowledgement of a segment; none if it is no whole IPv4 segment.
fn as_old_acknowledgement(frame: &mut [u8], sequence: u32, acknowledged: u32) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    let mut packet = Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?;
    let from = IpAddress::Ipv4(packet.src_addr());
    let to = IpAddress::Ipv4(packet.dst_addr());
    let mut tcp = TcpPacket::new_checked(packet.payload_mut()).ok()?;
    // A SYN that is damaged gets no answer.
    if !tcp.verify_checksum(&from, &to) {
        return None;
    }
    tcp.set_syn(false);
    tcp.set_ack(true);
    tcp.set_seq_number(TcpSeqNumber(sequence.cast_signed()));
    tcp.set_ack_number(TcpSeqNumber(acknowledged.cast_signed()));
    tcp.fill_checksum(&from, &to);
    Some(())
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
