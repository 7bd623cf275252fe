//! Fragments of datagrams for endpoints: CPU A puts them together in the process's memory.
//!
//! ```text
//!   IP payload   | UDP header | data                               |
//!   fragments    |   first, says the ports   | 2nd  |  3rd  | last, says the length
//!                             v              v      v       v
//!   descriptor                | piece 0          | piece 1 ...     |
//! ```
//!
//! Each is a frame of RECV's and RDMA's: written when it is whole, and summed by the write channel.
//! Its data goes where it belongs at once. The descriptor is completed when all bytes are there and
//! the sum of the fragments is right.
//!
//! Who gets a datagram is known from its first fragment. If another one comes before that, it is
//! placed on trial in the memory of the only endpoint that is *connected* to the source
//! ([`EndpointWord::Connected`]). If there is none, all of that datagram's fragments go to the host,
//! whose kernel puts them together.
//!
//! All of this is in SRAM, as CPU A's pad is full.

use super::assembly::{Assembly, Key, Noted, PAYLOAD_MAX, State};
use super::completion::Reporter;
use super::datagram::{ETHERNET, HEADERS};
use super::delivery::TRANSFERS;
use super::expiry::fail;
use super::part::Part;
use super::pieces::{IP, UDP};
use super::receiver::Receiver;
use super::sums::{folded, halves};
use super::{bump, each, wait_for_writes, word};
use crate::io::IoA;
use crate::memory::layout::EUDP_BLOCK;
use crate::path::receive::frame::{CRC, wrapped};
use crate::path::receive::guarded;
use frame_pipeline::{rdma, recv};
use host_interface::eudp::{BlockWord, EndpointWord, Refusal, endpoint_word};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;
use tigon2_hal::timer;

/// Where a fragment begins, in units of 8 bytes.
const OFFSET: u32 = 0x1FFF;
/// The VLAN in an endpoint's port.
const VLAN: u32 = 0xFFFF_0000;
/// More fragments follow.
const MORE: u32 = 0x2000;

/// What was done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is no fragment for an endpoint.
    Passed,
    /// It has to wait; what it waits for calls again.
    Waits,
    /// It was seen to.
    Taken,
}

/// What a fragment's headers say.
struct Fragment {
    key: Key,
    /// Where it begins in the IP payload.
    from: u32,
    /// Behind its last byte.
    end: u32,
    /// Whether it is the last one.
    is_end: bool,
    /// The destination's port and the length of all, if it is the first one: as in the UDP header.
    ports: u32,
    /// The source's port.
    port: u32,
    /// Its VLAN, in bits 31:16; 0 for none.
    vlan: u32,
    /// The sum of the pseudo-header and of the UDP header.
    sum: u32,
    is_summed: bool,
}

impl Fragment {
    /// Reads a frame's headers; `None` if it is no fragment of a UDP datagram, or is wrong in itself.
    #[inline(always)]
    fn of<B: Dispatch>(
        io: &mut IoA<B>,
        frame: &ReceivedFrame,
        (base, vlan): (u32, u32),
        flags: u32,
    ) -> Option<Fragment> {
        let start = frame.start;
        let place = flags >> 16 & (MORE | OFFSET);
        // One with a tag was judged where that is.
        if vlan == 0 && !guarded::is_own(io, frame, HEADERS) {
            return None;
        }
        let mut word = |offset: u32| io.bus.load(wrapped(base, start + offset));
        let (first, packet, source) = (word(12), word(16), word(24));
        let (middle, last) = (word(28), word(32));
        let (ports, check) = (word(36), word(40) >> 16);
        let addresses = (source & 0xFFFF) + halves(middle) + (last >> 16);
        let sum = (first & 0xFFFF) + halves(packet) + halves(flags) + (source >> 16) + addresses;
        let (length, identification) = (packet >> 16, packet & 0xFFFF);
        let bytes = length.wrapping_sub(IP);
        let from = (place & OFFSET) << 3;
        let end = from.wrapping_add(bytes);
        let is_end = place & MORE == 0;
        if first & 0xFFFF_FF00 != 0x0800_4500
            || folded(sum) != 0xFFFF
            || length <= IP
            || length > frame.length - CRC - ETHERNET
            || !is_end && bytes & 7 != 0
            || end > PAYLOAD_MAX
        {
            return None;
        }
        let udp = ports & 0xFFFF;
        let port = last & 0xFFFF;
        Some(Fragment {
            key: Key {
                source: source << 16 | middle >> 16,
                destination: middle << 16 | last >> 16,
                identification,
            },
            from,
            end,
            is_end,
            ports,
            port,
            vlan,
            sum: folded(addresses + 17 + udp + port + halves(ports) + check),
            is_summed: check != 0,
        })
    }

    /// The destination's port, with the VLAN, if it is the first one.
    const fn destination_port(&self) -> u32 {
        self.vlan | self.ports >> 16
    }

    /// Whether it has the UDP header.
    const fn is_first(&self) -> bool {
        self.from == 0
    }

    /// Bytes of the IP payload, if it says so.
    const fn length(&self) -> Option<u32> {
        if self.is_first() {
            return Some(self.ports & 0xFFFF);
        }
        if self.is_end { Some(self.end) } else { None }
    }
}

/// Sees to the oldest frame if it is a fragment of a datagram for an endpoint. `base` is the receive
/// buffer's; with a VLAN in bits 31:16, `frame` begins where it would without its tag, and is this
/// card's own.
#[inline(always)]
pub fn arrived<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    (base, vlan): (u32, u32),
) -> Outcome {
    let flags = io.bus.load(wrapped(base, frame.start + 20));
    if flags & (MORE | OFFSET) << 16 == 0 {
        return Outcome::Passed;
    }
    arrived_one(receiver, reporter, io, frame, (base, vlan, flags))
}

#[inline(never)]
fn arrived_one<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    (base, vlan, flags): (u32, u32, u32),
) -> Outcome {
    if flags & 0xFF != 17 {
        return Outcome::Passed;
    }
    // Whosever it is: looking at it twice takes longer than the host may wait.
    if receiver.is_busy() || !io.has_write_room(TRANSFERS) {
        wait_for_writes(io);
        return Outcome::Waits;
    }
    let Some(fragment) = Fragment::of(io, frame, (base, vlan), flags) else {
        return Outcome::Passed;
    };
    if !reporter.has_address(fragment.key.destination) {
        return Outcome::Passed;
    }
    let known = Assembly::find(&mut io.bus, &fragment.key);
    let known = known.map(|assembly| (assembly, assembly.state(&mut io.bus)));
    match known {
        Some((_, State::Host)) => return Outcome::Passed,
        Some((_, State::Spent | State::Failed)) => {
            receiver.let_pass(reporter, io);
            return Outcome::Taken;
        }
        // One of another VLAN is none of this datagram's.
        Some((assembly, _)) => {
            let endpoint = assembly.endpoint(&mut io.bus);
            if reporter.vlan_of(endpoint) != vlan {
                return Outcome::Passed;
            }
        }
        None => {}
    }
    let found = match known {
        Some((assembly, _)) => Ok(assembly),
        None => begin(receiver, reporter, io, &fragment),
    };
    match found {
        Ok(assembly) => take(
            receiver,
            reporter,
            io,
            &fragment,
            assembly,
            (frame.start, base),
        ),
        Err(outcome) => return outcome,
    }
    Outcome::Taken
}

/// A datagram of which nothing is known: finds its endpoint and memory for it.
#[inline(never)]
fn begin<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
) -> Result<Assembly, Outcome> {
    let Key {
        source,
        destination,
        ..
    } = fragment.key;
    let now = timer::now(&mut io.bus);
    receiver.knows_fragments = true;
    let endpoint = if fragment.is_first() {
        reporter.find(destination, fragment.destination_port())
    } else {
        reporter.connected(&mut io.bus, source, destination, fragment.vlan)
    };
    let Some(endpoint) = endpoint else {
        // If there is no row, its next fragment comes here again.
        Assembly::take(&mut io.bus, &fragment.key, State::Host, now);
        return Err(Outcome::Passed);
    };
    if !reporter.has_next(io, endpoint) {
        // CPU B calls again.
        io.bus.clear(EventBit::ReceiveComplete);
        return Err(Outcome::Waits);
    }
    let Some(assembly) = Assembly::take(&mut io.bus, &fragment.key, State::Spent, now) else {
        receiver.drop_fragment(reporter, io, Refusal::NoContext);
        return Err(Outcome::Taken);
    };
    let work = &mut receiver.work;
    work.datagram.endpoint = endpoint;
    let length = fragment.length().unwrap_or(fragment.end);
    work.datagram.length = length.saturating_sub(UDP);
    work.choose_pieces(reporter, io);
    if let Some(refusal) = work.refused.take() {
        receiver.drop_fragment(reporter, io, refusal);
        return Err(Outcome::Taken);
    }
    assembly.begin(&mut io.bus, endpoint, work.cookie(), work.pieces());
    assembly.enter(&mut io.bus, State::Open);
    if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
        queue.received = queue.received.wrapping_add(1) & 0xFFFF;
    }
    if io.has_write_room(TRANSFERS) {
        return Ok(assembly);
    }
    wait_for_writes(io);
    Err(Outcome::Waits)
}

/// A fragment of a datagram that is put together.
#[inline(never)]
fn take<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
    assembly: Assembly,
    (start, base): (u32, u32),
) {
    match judge(reporter, &mut io.bus, fragment, assembly) {
        Ok(Noted::New) => {}
        Ok(_) => return receiver.drop_fragment(reporter, io, Refusal::Duplicate),
        Err(refusal) => {
            receiver.drop_fragment(reporter, io, refusal);
            return fail(reporter, io, assembly);
        }
    }
    let bus = &mut io.bus;
    if fragment.is_first() {
        assembly.set_from(bus, fragment.port, fragment.is_summed);
        assembly.add(bus, fragment.sum);
    }
    if let Some(length) = fragment.length() {
        assembly.set_length(bus, length);
    }
    let header = if fragment.is_first() { UDP } else { 0 };
    let work = &mut receiver.work;
    work.datagram.endpoint = assembly.endpoint(bus);
    work.start = start;
    work.base = base;
    work.is_good = true;
    work.part = Part {
        assembly,
        local: wrapped(base, start + ETHERNET + IP + header),
        at: fragment.from.saturating_sub(UDP),
        bytes: fragment.end - fragment.from - header,
        is_last: assembly.is_whole(bus),
    };
    receiver.hear(recv::Event::Ended, reporter, io);
    receiver.step_part(rdma::Event::Waiting, reporter, io);
    if receiver.work.part.bytes == 0 {
        // There is nothing to write.
        receiver.part_written(reporter, io, 0);
    }
}

/// Whether a fragment fits what is known of its datagram; notes that it is there.
#[inline(never)]
fn judge<B: Bus>(
    reporter: &Reporter,
    bus: &mut B,
    fragment: &Fragment,
    assembly: Assembly,
) -> Result<Noted, Refusal> {
    let says = fragment.length();
    let known = assembly.length(bus);
    if says.is_some() && known.is_some() && says != known {
        return Err(Refusal::BadHeader);
    }
    let reach = assembly.reach(bus).max(fragment.end);
    let length = says.or(known);
    if length.is_some_and(|length| length < reach || length < UDP) {
        return Err(Refusal::BadHeader);
    }
    if length.unwrap_or(reach).saturating_sub(UDP) > assembly.room(bus) {
        return Err(Refusal::BadRegion);
    }
    let port = fragment.destination_port();
    let endpoint = Some(assembly.endpoint(bus));
    if fragment.is_first() && reporter.find(fragment.key.destination, port) != endpoint {
        return Err(Refusal::Misplaced);
    }
    match assembly.fill(bus, fragment.from, fragment.end) {
        Noted::Overlap => Err(Refusal::Overlap),
        Noted::Full => Err(Refusal::NoContext),
        noted => Ok(noted),
    }
}

impl Receiver {
    /// A fragment that is of no use.
    #[inline(never)]
    fn let_pass<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.work.is_good = false;
        self.hear(recv::Event::Ended, reporter, io);
    }

    /// The same, counted.
    #[inline(never)]
    fn drop_fragment<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        refusal: Refusal,
    ) {
        self.let_pass(reporter, io);
        bump(&mut io.bus, word(BlockWord::Refused) + refusal as u32);
    }
}

impl Reporter {
    /// An endpoint's VLAN, in bits 31:16.
    fn vlan_of(&self, endpoint: u32) -> u32 {
        let queue = self.queues.get(endpoint as usize);
        queue.map_or(0, |queue| queue.port & VLAN)
    }

    /// Whether an open endpoint has this address.
    #[inline(never)]
    fn has_address(&self, address: u32) -> bool {
        each(self.open).any(|endpoint| {
            let queue = self.queues.get(endpoint as usize);
            queue.is_some_and(|queue| queue.address == address)
        })
    }

    /// The only open endpoint of an address that is connected to a source.
    #[inline(never)]
    fn connected<B: Bus>(&self, bus: &mut B, source: u32, address: u32, vlan: u32) -> Option<u32> {
        let mut found = None;
        for endpoint in each(self.open) {
            let queue = self.queues.get(endpoint as usize)?;
            let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Connected);
            if queue.address == address && queue.port & VLAN == vlan && bus.load(at) == source {
                if found.is_some() {
                    return None;
                }
                found = Some(endpoint);
            }
        }
        found
    }
}
