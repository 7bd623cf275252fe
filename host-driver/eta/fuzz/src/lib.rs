//! What an attacker may say to a packet processing engine, as functions of any bytes: each target
//! of cargo-fuzz calls one, and so does a short test. None of them may panic.
//!
//! | target | bytes are |
//! | --- | --- |
//! | [`control`] | messages at the control socket |
//! | [`rings`] | words anywhere in an application's memory file, beside the engine's turns |
//! | [`descriptors`] | operations in any queue, each of which must have one last event |
//! | [`http`] | requests, ranges and conditions |
//! | [`frames`] | frames at the engine's wire, raw or with right sums |

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dti::layout::{ANONYMOUS, BOUND, Descriptor, QUIET, number_of};
use dti::mapped::Mapping;
use dti::words::Words;
use dusi::{Direction, EventQueue, Operation, Sizes, Socket, Status, Ual};
use eta::Engine;
use eta::memory_wire::{MemoryWire, pair};
use host_driver::stack::Identity;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Cidr, Ipv4Packet, TcpPacket,
};
use userver::reply::{Content, Meta, reply};
use userver::request::{Parsed, Request, parse};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);

/// Small queues, so that they are full soon.
const SIZES: Sizes = Sizes {
    work: 16,
    events: 16,
    pool: 4096,
    sockets: 8,
    queues: 2,
    depth: 4,
    anonymous: 8,
    chosen: 2,
};

fn engine() -> (Engine<MemoryWire>, MemoryWire) {
    let (near, far) = pair().expect("descriptors");
    let identity = Identity {
        station: [2, 0, 0, 0, 0, 1],
        address: Ipv4Cidr::new(OWN, 24),
    };
    (Engine::new(near, identity).expect("descriptors"), far)
}

fn turn(engine: &mut Engine<MemoryWire>) {
    engine.turn(Duration::ZERO).expect("a wire that holds");
}

/// The engine still serves: another application gets a socket.
fn serves(engine: &mut Engine<MemoryWire>) {
    let attachment = engine.attach_with(SIZES).expect("memory");
    let mut ual = Ual::open(attachment).expect("a memory file");
    let queue = ual.create_event_queue().expect("the first");
    ual.socket((queue, 7)).expect("room");
    turn(engine);
    let event = ual
        .done(queue)
        .expect("an honest engine")
        .expect("an event");
    assert_eq!((event.tag, event.status), (7, Status::Ok));
}

/// Messages at the control socket.
pub fn control(data: &[u8]) {
    let (near, far) = dti::control::pair().expect("descriptors");
    let flags = rustix::net::SendFlags::DONTWAIT;
    for message in data.chunks(64) {
        // One that the system does not take is not heard.
        let _ = rustix::net::send(&far, message, flags);
        dti::control::hear(near.as_fd());
    }
}

/// Words anywhere in an application's memory, at any time.
pub fn rings(data: &[u8]) {
    let (mut engine, _far) = engine();
    let attachment = engine.attach_with(SIZES).expect("memory");
    let memory = Mapping::open(attachment.memory).expect("sealed");
    for step in data.chunks_exact(7) {
        let place = usize::from(u16::from_le_bytes([step[0], step[1]]));
        let low = u64::from(u32::from_le_bytes([step[2], step[3], step[4], step[5]]));
        // The upper half of words is a queue's number, a socket or nothing.
        let value = low | u64::from(step[6] & 0x0F) << 32 | u64::from(step[6] >> 4) << 60;
        memory.store(place % memory.len(), value, Ordering::Release);
        if step[6] & 1 == 0 {
            turn(&mut engine);
        }
    }
    turn(&mut engine);
    serves(&mut engine);
}

/// An application that counts the events of its operations.
struct Account {
    ual: Ual,
    queues: Vec<EventQueue>,
    expected: HashMap<u64, u32>,
}

impl Account {
    fn settle(&mut self) {
        for queue in &self.queues {
            while let Some(event) = self.ual.done(*queue).expect("an honest engine") {
                if !event.more {
                    let count = self.expected.get_mut(&event.tag);
                    let count = count.filter(|count| **count > 0);
                    *count.expect("one event of each operation") -= 1;
                }
            }
        }
    }

    /// Posts, and lets the engine and the events go on until there is room.
    fn post(
        &mut self,
        engine: &mut Engine<MemoryWire>,
        mut post: impl FnMut(&mut Ual) -> Result<(), dusi::DusiError>,
    ) {
        for _ in 0..1000 {
            if post(&mut self.ual).is_ok() {
                return;
            }
            turn(engine);
            self.settle();
        }
        panic!("the engine makes no room");
    }
}

fn descriptor(bytes: &[u8], tag: u64) -> Descriptor {
    const NUMBERS: [u64; 12] = [
        0,
        1,
        2,
        80,
        81,
        65_536,
        (0x0A4D_0002 << 16) | 80,
        (0x0A4D_0001 << 16) | 80,
        ANONYMOUS as u64,
        1 << 32,
        (6 << 32) | 4096,
        u64::MAX,
    ];
    let lengths = [0, 1, 8, 64, 4096, u32::MAX];
    Descriptor {
        operation: u16::from(bytes[0] % 20) | u16::from(bytes[1] & 0x87) << 8,
        queue: [0, 0, 0, 1, 2, BOUND, QUIET, 99][usize::from(bytes[2] % 8)],
        socket: u32::from(bytes[3] % 12),
        tag,
        offset: u32::from(bytes[4]) * 4,
        length: lengths[usize::from(bytes[5] % 6)],
        argument: NUMBERS[usize::from(bytes[6] % 12)],
    }
}

/// Operations with any numbers, in any queue of any socket: each has one last event.
pub fn descriptors(data: &[u8]) {
    let (mut engine, _far) = engine();
    let attachment = engine.attach_with(SIZES).expect("memory");
    let mut ual = Ual::open(attachment).expect("a memory file");
    let queues = (0..2).map(|_| ual.create_event_queue().expect("a queue"));
    let queues: Vec<_> = queues.collect();
    let first = queues[0];
    let mut account = Account {
        ual,
        queues,
        expected: HashMap::new(),
    };
    for (tag, bytes) in data.chunks_exact(8).take(512).enumerate() {
        let work = descriptor(bytes, tag as u64);
        let known = Operation::from_number(work.operation);
        let quiet = work.queue == QUIET && known.is_some_and(Operation::may_be_quiet);
        let ring = [None, Some(Direction::Transmit), Some(Direction::Receive)];
        let ring = ring[usize::from(bytes[7] % 3)];
        let own = ring.filter(|_| number_of(work.socket) < SIZES.handles());
        let silent = own.is_none() && known == Some(Operation::Doorbell);
        if !quiet && !silent {
            account.expected.insert(work.tag, 1);
        }
        account.post(&mut engine, |ual| match ring {
            None => ual.post(work),
            Some(direction) => ual.post_on(direction, work),
        });
        if bytes[7] & 0x80 != 0 {
            turn(&mut engine);
        }
    }
    for socket in 0..SIZES.handles() {
        let tag = 1 << 32 | u64::from(socket);
        account.expected.insert(tag, 1);
        let socket = Socket::of_handle(socket);
        account.post(&mut engine, |ual| ual.close(socket, (first, tag)));
    }
    for _ in 0..1000 {
        turn(&mut engine);
        account.settle();
    }
    let missing: Vec<_> = account.expected.iter().filter(|one| *one.1 > 0).collect();
    assert!(missing.is_empty(), "no event of {missing:?}");
    assert_eq!(engine.statistics().expelled, 0);
}

/// Requests, and what they get of a file.
pub fn http(data: &[u8]) {
    let mut rest = data;
    while let Parsed::Whole(request) = parse(rest) {
        judged(&request, u64::from(data.first().copied().unwrap_or(0)));
        rest = &rest[request.bytes..];
    }
    // The fields alone, for who does not find a whole request.
    let text = String::from_utf8_lossy(data).into_owned();
    let mut fields = text.split('\n').map(str::to_owned);
    let request = Request {
        range: fields.next(),
        if_range: fields.next(),
        if_none_match: fields.next(),
        if_modified_since: fields.next(),
        ..Request::default()
    };
    judged(&request, data.len() as u64);
}

fn judged(request: &Request, length: u64) {
    let meta = Meta {
        length,
        modified: 1_000_000_000_000_000_000 + length,
    };
    let made = reply(request, &Content::File(meta));
    let end = made.part.0.checked_add(made.part.1);
    assert!(end.is_some_and(|end| end <= length), "{made:?} of {length}");
    assert!(made.header.starts_with("HTTP/1.1 ") && made.header.ends_with("\r\n\r\n"));
    assert!(made.header.len() < 1024, "{made:?}");
}

/// Makes a frame one for the engine whose sums are right.
fn addressed(frame: &mut [u8]) {
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else {
        return;
    };
    ethernet.set_ethertype(EthernetProtocol::Ipv4);
    let payload = ethernet.payload_mut();
    if payload.len() < 40 {
        return;
    }
    let length = payload.len() as u16;
    let mut packet = Ipv4Packet::new_unchecked(payload);
    packet.set_version(4);
    packet.set_header_len(20);
    packet.set_total_len(length);
    packet.set_more_frags(false);
    packet.set_frag_offset(0);
    packet.set_next_header(IpProtocol::Tcp);
    packet.set_src_addr(PEER);
    packet.set_dst_addr(OWN);
    packet.fill_checksum();
    let (from, to) = (IpAddress::Ipv4(PEER), IpAddress::Ipv4(OWN));
    let mut tcp = TcpPacket::new_unchecked(packet.payload_mut());
    if tcp.check_len().is_ok() {
        tcp.set_dst_port(80);
        tcp.fill_checksum(&from, &to);
    }
}

/// Frames at the wire.
pub fn frames(data: &[u8]) {
    let (mut engine, far) = engine();
    let attachment = engine.attach_with(SIZES).expect("memory");
    let mut ual = Ual::open(attachment).expect("a memory file");
    let queue = ual.create_event_queue().expect("the first");
    let listener = ual.socket((queue, 0)).expect("room");
    ual.bind(listener, 80, (queue, 0)).expect("room");
    ual.listen(listener, 2, (queue, 0)).expect("room");
    ual.accept_all(listener, (queue, 1)).expect("room");
    turn(&mut engine);
    let mut rest = data;
    while let [kind, length, tail @ ..] = rest {
        let length = usize::from(*length).min(tail.len());
        let (frame, after) = tail.split_at(length);
        rest = after;
        let mut frame = frame.to_vec();
        if kind & 1 != 0 {
            addressed(&mut frame);
        }
        if kind & 2 != 0 {
            frame.resize(frame.len().max(60), 0);
        }
        far.put(frame);
        turn(&mut engine);
        while far.take().is_some() {}
    }
    assert!(engine.statistics().stack.connections <= 16);
    serves(&mut engine);
}
