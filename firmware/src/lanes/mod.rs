//! More than two CPUs: the packet path on CPU C and those behind it.
//!
//! Paper, section 7, on a board [beyond the chip](tigon2_chip::beyond); docs/beyond.md has
//! the whole. CPU A and CPU B keep their sides but for what each frame costs: Receive
//! Complete and Send Data Ready run on the others, the *workers*. A channel is one worker's
//! at a time, by *turns*, and nobody waits for a lock:
//!
//! ```text
//! turn      worker C: takes frames 0-7, their BDs and descriptors | passes the turn on
//!           worker D:                                             | takes frames 8-15 ...
//! filling   worker C:                                             [fills 0-7  ]commits
//!           worker D:                                              [fills 8-15   ]commits
//! ```
//!
//! So the descriptors of several runs are filled at the same time, and the channel sees them
//! in order: a worker commits when all in front of its own are committed. All words are
//! written by who has the turn, or whose commit it is, alone.
//!
//! | partition | feature | turns |
//! | --- | --- | --- |
//! | by handler | `by-handler` | CPU C alone receives, CPU D alone sends |
//! | by packet | `by-packet` | all workers receive and send, in a circle |
//!
//! What the two-CPU firmware does for a frame and this does not: sums, VLAN tags, jumbo BDs,
//! extended BDs, the exact multicast list, the BD's wish to be told of at once, and the
//! recovery from a channel's error.
//!
//! | module | what |
//! | --- | --- |
//! | this one | what CPU A and CPU B have to do with it |
//! | [`turn`] | the words that go round |
//! | [`receive`], [`send`] | the two handlers |
//! | [`worker`] | a CPU that runs them |

pub mod receive;
pub mod send;
pub mod turn;
pub mod worker;

use crate::io::buffer_ring::RingId;
use crate::io::states::ReadStates;
use crate::io::{IoA, IoB};
use crate::memory::shared::{LINK_UP, RECEIVE_PRODUCERS};
use crate::path::receive::{Receive, index};
use crate::path::send as send_path;
use crate::sides::{SideA, SideB, completion};
use host_interface::bd::destination::UNICAST;
use host_interface::ring;
use tigon2_chip::beyond;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::REGISTERS_BASE;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::events::Dispatch;
use tigon2_hal::requests::{BASE, Words};
use turn::{Published, Setting};

/// First word of the settings, behind the words of both directions.
pub const SETTINGS: u32 = BASE + 0x2000;
/// Where the workers' code is entered; CPU C there, each other one 8 bytes further on.
pub const ENTRY: u32 = SETTINGS + 0x100;
/// How far send BDs have arrived: written by CPU B.
pub const SEND_ARRIVED: u32 = ENTRY + 4;
/// CPUs that the firmware needs at least.
const LEAST: u32 = 4;

/// Which CPU has the first turn in a direction, and which one the next.
#[derive(Clone, Copy, Debug)]
pub struct Circle;

impl Circle {
    /// Who begins to receive.
    pub const RECEIVE: Cpu = Cpu::C;
    /// Who begins to send.
    pub const SEND: Cpu = Cpu::D;

    /// Whose turn it is behind `number`, among `cpus`.
    #[inline(always)]
    pub const fn behind(number: u32, cpus: u32) -> u32 {
        if cfg!(feature = "by-handler") {
            number
        } else if cpus > 4 {
            // Every other one has the other direction.
            if number + 2 < cpus {
                number + 2
            } else {
                Cpu::C as u32 + (number & 1)
            }
        } else if number + 1 < cpus {
            number + 1
        } else {
            Cpu::C as u32
        }
    }
}

/// Before CPU B runs: nobody has asked for anything.
pub fn clear<B: Dispatch>(bus: &mut B) {
    for address in Words::READ.all().chain(Words::WRITE.all()) {
        bus.store(address, 0);
    }
    bus.store(SEND_ARRIVED, 0);
    bus.store(Words::WRITE.turn(), Circle::RECEIVE as u32);
    bus.store(Words::READ.turn(), Circle::SEND as u32);
}

/// Starts the workers, when both sides are ready.
///
/// # Errors
/// The number of CPUs if there are too few.
pub fn start<B: Dispatch>(a: &mut SideA<B>) -> Result<(), u32> {
    let bus = &mut a.io.bus;
    let there = bus.load(REGISTERS_BASE + beyond::COUNT);
    if there < LEAST || there > Cpu::MOST as u32 {
        return Err(there);
    }
    let cpus = if cfg!(feature = "by-handler") {
        LEAST
    } else {
        there
    };
    let reads = ReadStates::configured(bus);
    for (setting, value) in [
        (Setting::Cpus, cpus),
        (Setting::Block, a.block),
        (Setting::WriteData, a.io.states.data),
        (Setting::WriteWords, a.io.states.words),
        (Setting::ReadData, reads.data),
        (Setting::ReadLast, reads.last),
        (
            Setting::SendBds,
            ring::nic_send_ring(a.config.send.max_len).unwrap_or(0),
        ),
        (Setting::SendMask, a.config.send.max_len - 1),
    ] {
        bus.store(setting.address(), value);
    }
    a.receive.tell_workers(bus);
    let entry = bus.load(ENTRY);
    for cpu in Cpu::EVERY.into_iter().take(cpus as usize).skip(2) {
        let offset = (cpu as u32 - Cpu::C as u32) << 3;
        bus.store(REGISTERS_BASE + beyond::pc(cpu), entry + offset);
        bus.store(REGISTERS_BASE + beyond::state(cpu), 0);
    }
    Ok(())
}

/// Receive Complete on CPU A: a worker sees to it.
pub fn receive_elsewhere<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    io.bus.clear(EventBit::ReceiveComplete);
    receive.tell_workers(&mut io.bus);
    Words::WRITE.wake(&mut io.bus);
}

/// Workers have delivered frames: CPU A's view of the rings follows, and the host is told by
/// number or time.
#[inline(always)]
pub fn returned<B: Dispatch>(a: &mut SideA<B>) {
    let published = Published::WRITE;
    let producer = a.io.bus.load(published.first());
    let count = a.receive.follow(producer);
    let counters = &mut a.receive.counters;
    published.drops_since(&mut a.io.bus, &mut a.seen, &mut counters.drops);
    if count != 0 {
        let (more, bytes) = published.since(&mut a.io.bus, &mut a.seen);
        counters.received(UNICAST, more, bytes);
        index::returned(&mut a.receive, &mut a.io, count, false);
    }
}

/// The host has moved a receive producer: how far the workers are decides what it may be.
pub fn follow_bds<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, id: RingId) {
    let published = Published::WRITE;
    let next = match id {
        RingId::Standard => io.bus.load(published.second()),
        RingId::Mini => io.bus.load(published.third()),
        RingId::Jumbo => RECEIVE_PRODUCERS.of(id as usize).get(&mut io.bus),
    };
    receive.taken_up_to(id, next);
}

/// Send BDs are in NIC memory up to an index.
#[inline(always)]
pub fn send_arrived<B: Dispatch>(io: &mut IoB<B>, after: u32) {
    io.bus.store(SEND_ARRIVED, after);
    Words::READ.wake(&mut io.bus);
}

/// DMA read complete: what CPU B asked for has come, and all else that was moved are send
/// BDs, in order.
#[inline(always)]
pub fn read_complete<B: Dispatch>(b: &mut SideB<B>) {
    let mut walk = b.io.read_ring.finished(&mut b.io.bus);
    let moved = b.io.read_ring.moved();
    while let Some(done) = b.io.read_ring.take(&mut walk) {
        b.asked = b.asked.wrapping_add(1);
        completion::others(b, done);
    }
    b.io.read_ring.acknowledge(&mut b.io.bus, walk);
    let sent = moved.wrapping_sub(b.asked).wrapping_sub(b.sent);
    if sent != 0 {
        b.sent = b.sent.wrapping_add(sent);
        let (more, bytes) = Published::READ.since(&mut b.io.bus, &mut b.seen);
        b.send.counters.octets.add(bytes);
        let drops = &mut b.send.counters.drops;
        if Published::READ.drops_since(&mut b.io.bus, &mut b.seen, drops)
            && LINK_UP.get(&mut b.io.bus) != 0
        {
            b.io.post_error();
        }
        let sent = send_path::Sent::of(sent, more);
        send_path::consumed(&mut b.send, &mut b.io, &sent);
    }
}

/// Rings CPU A from a worker, behind what was stored.
#[inline(always)]
fn ring_a<B: Dispatch>(bus: &mut B) {
    let _ = bus.load(tigon2_chip::memory::MAILBOXES);
    bus.write(Register::EventA, tigon2_chip::events::SOFTWARE_BITS);
}
