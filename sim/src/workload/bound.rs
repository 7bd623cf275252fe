//! The limit that the engines set: the card with infinitely fast CPUs.
//!
//! No CPU runs. Whenever the card changes, the rings are refilled at once, in zero time, with the
//! transfers that a pair of frames (one in each direction) needs on the real card:
//!
//! ```text
//!   read ring    send BDs of 16 frames | header | payload | header | payload | ...
//!                standard BDs of 16 frames
//!   write ring   frame | return BD | frame | return BD | ... | index, each 16 frames
//!                or the return BDs of some frames behind these
//! ```
//!
//! The result is a limit for any firmware at this size: the DMA channels, one at a time or both,
//! the PCI bus, the SRAM port, or the wire.

use super::WorkloadError;
use super::datagram::HEADERS;
use crate::machine::Machine;
use crate::timing::Parameters;
use host_driver::DmaMemory;
use tigon2_chip::bits::DmaState;
use tigon2_chip::dma::{DESCRIPTOR_BYTES, DmaDescriptor, RING_BYTES, next, next_free};
use tigon2_chip::mac::{TX_RING_BYTES, TxDescriptor};
use tigon2_chip::memory::{PACKET_MEMORY_END, block};
use tigon2_chip::{HostAddress, Register};
use tigon2_model::{Board, Cpu};

/// Base K of the descriptor and buffer block.
const K: u32 = 0x12_F000;
/// Start of the receive buffer.
const RX_BASE: u32 = 0x18_0000;
/// Frames of a block of BDs, and of an index update.
const BLOCK: u64 = 16;
/// Bytes of a send BD and of a receive BD.
const SEND_BD: u32 = 16;
const RECEIVE_BD: u32 = 32;
/// Bytes of an index update.
const INDEX: u32 = 8;
/// Where BDs go in NIC memory.
const BDS: u32 = 0x2000;
/// Host memory for everything.
const HOST_BYTES: usize = 0x1_0000;
/// Where it is: 8-byte aligned; frames land 2 bytes behind, for IP alignment.
const HOST: u64 = 0x1_0000_0000;
/// Frames by which one direction may be ahead of the other: the rates are equal.
const AHEAD: u64 = 16;
/// Bytes that the transmitter keeps free in front of TxCon.
const GUARD: u32 = 4096;

/// What is asked of the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of a UDP datagram.
    pub datagram: usize,
    /// BDs of a sent frame: 1 or 2.
    pub fragments: u32,
    /// Return BDs of a transfer: 1, or a number by which 16 can be divided.
    pub return_bds: u32,
    /// Only one channel at a time (`R[11C]` bit 2).
    pub one_at_a_time: bool,
}

/// What they gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Pairs of frames, one each way, a second.
    pub pairs_per_s: f64,
    /// Share of the cycles of the SRAM port.
    pub sram: f64,
    /// Share of the cycles of the PCI bus.
    pub pci: f64,
    /// SRAM accesses of a pair.
    pub accesses_per_pair: f64,
}

impl Bound {
    /// Datagram bits both ways, in Mb/s.
    pub fn mbps(&self, datagram: usize) -> f64 {
        2.0 * self.pairs_per_s * datagram as f64 * 8.0 / 1e6
    }
}

/// Runs the engines for `nanoseconds`, after a warm-up of a quarter of that.
///
/// # Errors
/// [`WorkloadError::Stalled`] if no frame moves.
pub fn run(
    board: Board,
    parameters: Parameters,
    demand: Demand,
    nanoseconds: u64,
    seed: u64,
) -> Result<Bound, WorkloadError> {
    on(
        &mut Machine::timed(board, parameters, seed),
        demand,
        nanoseconds,
    )
}

/// The same on a machine, beside what runs there.
pub(super) fn on(
    machine: &mut Machine,
    demand: Demand,
    nanoseconds: u64,
) -> Result<Bound, WorkloadError> {
    let hertz = machine.clock().cycle_at(1_000_000_000) as f64;
    let memory = DmaMemory::new(HOST_BYTES, HOST)
        .map_err(|error| WorkloadError::Driver(host_driver::NicError::from(error)))?;
    machine.map(memory);
    let mut script = Script::start(machine, demand);
    script.run(machine, nanoseconds / 4);
    let before = script.reading(machine);
    script.run(machine, nanoseconds);
    let after = script.reading(machine);
    let cycles = (after.cycle - before.cycle) as f64;
    let pairs = (after.sent - before.sent).min(after.received - before.received) as f64;
    if pairs == 0.0 {
        return Err(WorkloadError::Stalled(nanoseconds / 1_000_000));
    }
    let grants = (after.grants - before.grants) as f64;
    Ok(Bound {
        pairs_per_s: pairs * hertz / cycles,
        sram: grants / cycles,
        pci: (after.pci - before.pci) as f64 / cycles,
        accesses_per_pair: grants / pairs,
    })
}

/// What has been counted.
struct Reading {
    cycle: u64,
    sent: u64,
    received: u64,
    grants: u64,
    pci: u64,
}

/// The firmware that takes no time.
struct Script {
    demand: Demand,
    /// Length of a frame without CRC.
    frame: u32,
    /// Next free entry of the rings, as offsets.
    read: u32,
    write: u32,
    transmit: u32,
    /// Where the next frame goes in the TX buffer, and where the next one comes from in
    /// the RX descriptor ring.
    position: u32,
    receive: u32,
    queued: u64,
    taken: u64,
    sent: u64,
    received: u64,
}

fn set(machine: &mut Machine, register: Register, value: u32) {
    machine.register_write(Cpu::A, register, value);
}

fn get(machine: &mut Machine, register: Register) -> u32 {
    machine.register_read(Cpu::A, register)
}

/// Switches a MAC on whose buffers and rings are empty (reference 10.1).
pub(super) fn switch_on(machine: &mut Machine) {
    let buffers = K + block::PACKET_BUFFERS;
    for register in [Register::TxBase, Register::TxProducer, Register::TxConsumer] {
        set(machine, register, buffers);
    }
    for register in [Register::RxBase, Register::RxProducer, Register::RxConsumer] {
        set(machine, register, RX_BASE);
    }
    for register in [
        Register::RxDescriptorProducer,
        Register::RxDescriptorConsumer,
        Register::RxDescriptorReference,
    ] {
        set(machine, register, K + block::MAC_RX_RING);
    }
    for register in [
        Register::TxDescriptorProducer,
        Register::TxDescriptorConsumer,
        Register::TxDescriptorReference,
    ] {
        set(machine, register, K + block::MAC_TX_RING);
    }
    // Fibre, gigabit, full duplex, pause; promiscuous.
    set(machine, Register::MacTxState, 0x1E2);
    set(machine, Register::MacRxState, 0x1_880A);
}

impl Script {
    /// A card whose engines run (6.3).
    fn start(machine: &mut Machine, demand: Demand) -> Script {
        switch_on(machine);
        let assist = if demand.one_at_a_time { 0x25 } else { 0x21 };
        set(machine, Register::AssistState, assist);
        Script {
            frame: (demand.datagram + HEADERS) as u32,
            demand,
            read: 0,
            write: 0,
            transmit: 0,
            position: K + block::PACKET_BUFFERS,
            receive: 0,
            queued: 0,
            taken: 0,
            sent: 0,
            received: 0,
        }
    }

    fn run(&mut self, machine: &mut Machine, nanoseconds: u64) {
        let end = machine.cycle() + machine.clock().cycle_at(nanoseconds);
        while machine.cycle() < end {
            self.refill(machine);
            while machine.take_frame().is_some() {
                self.sent += 1;
            }
            while machine.pending_frames() < 8 {
                machine.send_frame(0, vec![0; self.frame as usize]);
            }
            // Until the card changes the next time.
            let mut first = true;
            machine.run_until(end, |_| !std::mem::take(&mut first));
        }
    }

    fn reading(&self, machine: &Machine) -> Reading {
        let timed = machine.timing();
        Reading {
            cycle: machine.cycle(),
            sent: self.sent,
            received: self.received,
            grants: timed.map_or(0, |timed| timed.port.grants().iter().sum()),
            pci: timed.map_or(0, |timed| timed.dma.bus_busy()),
        }
    }

    fn refill(&mut self, machine: &mut Machine) {
        while self.queued < self.taken + AHEAD
            && self.room(machine, Register::AssistReadConsumer, self.read, 4)
            && self.transmit_room(machine)
        {
            self.queue_sent(machine);
        }
        let producer =
            get(machine, Register::RxDescriptorProducer) & (block::MAC_RX_RING_BYTES - 1);
        while self.taken < self.queued + AHEAD
            && self.receive != producer & !7
            && self.room(machine, Register::AssistWriteConsumer, self.write, 3)
        {
            self.queue_received(machine);
        }
    }

    /// Whether a ring has room for `count` descriptors behind `producer`.
    fn room(&self, machine: &mut Machine, consumer: Register, producer: u32, count: u32) -> bool {
        let consumer = get(machine, consumer) & (RING_BYTES - 1);
        let mut at = producer;
        for _ in 0..count {
            if next_free(at, consumer).is_none() {
                return false;
            }
            at = next(at, DESCRIPTOR_BYTES, RING_BYTES);
        }
        true
    }

    fn transmit_room(&self, machine: &mut Machine) -> bool {
        let consumer = get(machine, Register::TxConsumer);
        let bytes = RX_BASE - (K + block::PACKET_BUFFERS);
        let used = (self.position + bytes - consumer) % bytes;
        let descriptor = get(machine, Register::TxDescriptorConsumer) & (TX_RING_BYTES - 1) & !7;
        let descriptors = (self.transmit + TX_RING_BYTES - descriptor) % TX_RING_BYTES;
        used + self.frame + GUARD < bytes && descriptors + 16 < TX_RING_BYTES
    }

    /// One frame to send, and every so often its BDs.
    fn queue_sent(&mut self, machine: &mut Machine) {
        if self.queued.is_multiple_of(BLOCK) {
            let frames = BLOCK as u32;
            self.read(
                machine,
                BDS,
                frames * self.demand.fragments * SEND_BD,
                true,
                false,
            );
            self.read(machine, BDS, frames * RECEIVE_BD, true, false);
        }
        let start = self.position;
        if self.demand.fragments > 1 {
            self.read(machine, start, HEADERS as u32, false, false);
            let rest = self.wrapped(start + HEADERS as u32);
            self.read(machine, rest, self.frame - HEADERS as u32, false, true);
        } else {
            self.read(machine, start, self.frame, false, true);
        }
        let descriptor = TxDescriptor::new(start, self.frame as u16, None);
        let at = K + block::MAC_TX_RING + self.transmit;
        machine.load_image(at, &descriptor.start_and_flags.to_be_bytes());
        machine.load_image(at + 4, &descriptor.length_and_tag.to_be_bytes());
        self.transmit = (self.transmit + 8) % TX_RING_BYTES;
        set(machine, Register::TxDescriptorProducer, self.transmit);
        self.position = self.wrapped((start + self.frame).next_multiple_of(8));
        self.queued += 1;
    }

    fn wrapped(&self, address: u32) -> u32 {
        let bytes = RX_BASE - (K + block::PACKET_BUFFERS);
        if address >= RX_BASE {
            address - bytes
        } else {
            address
        }
    }

    /// One frame that has arrived, its return BD, and every so often the indices.
    fn queue_received(&mut self, machine: &mut Machine) {
        let at = K + block::MAC_RX_RING + self.receive;
        let start = machine.word(at);
        let length = (machine.word(at + 4) & 0xFFFF) - 4;
        self.write(machine, start, 2, length, false);
        self.taken += 1;
        let returns = self.demand.return_bds;
        if self.taken.is_multiple_of(returns.into()) {
            self.write(machine, BDS, 0, returns * RECEIVE_BD, true);
        }
        // The return producer index and the send consumer index, once a block each.
        if self.taken.is_multiple_of(BLOCK / 2) {
            self.write(machine, BDS, 0, INDEX, true);
        }
        self.receive = (self.receive + 8) % block::MAC_RX_RING_BYTES;
        set(machine, Register::RxDescriptorConsumer, self.receive);
        set(machine, Register::RxDescriptorReference, self.receive);
        self.received += 1;
    }

    fn read(&mut self, machine: &mut Machine, local: u32, length: u32, words: bool, last: bool) {
        let state = DmaState::new()
            .with_start(true)
            .with_no_swap(words)
            .with_end_of_frame(last);
        let base = K + block::DMA_READ_RING;
        push(machine, base + self.read, HOST, local, length, state);
        self.read = next(self.read, DESCRIPTOR_BYTES, RING_BYTES);
        set(machine, Register::AssistReadProducer, self.read);
        set(machine, Register::AssistReadReference, self.read);
    }

    fn write(&mut self, machine: &mut Machine, local: u32, offset: u64, length: u32, words: bool) {
        let state = DmaState::new()
            .with_start(true)
            .with_no_swap(words)
            .with_end_of_frame(true)
            .with_free_rx_buffer(!words);
        let base = K + block::DMA_WRITE_RING;
        push(
            machine,
            base + self.write,
            HOST + offset,
            local,
            length,
            state,
        );
        self.write = next(self.write, DESCRIPTOR_BYTES, RING_BYTES);
        set(machine, Register::AssistWriteProducer, self.write);
        set(machine, Register::AssistWriteReference, self.write);
    }
}

fn push(machine: &mut Machine, at: u32, host: u64, local: u32, length: u32, state: DmaState) {
    let descriptor = DmaDescriptor {
        host: HostAddress::new(host),
        local,
        length,
        state,
        ..DmaDescriptor::default()
    };
    machine.load_image(at, &descriptor.to_nic_bytes());
}

const _: () = assert!(RX_BASE < PACKET_MEMORY_END);
