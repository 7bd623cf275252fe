//! Plain memories and a test bench for the card and for code that runs on it.
//!
//! [`Bench`] puts a [`Card`], SRAM, host memory and CPU state in one place, so that a test (or a
//! bus of another crate) can access registers without building an environment by hand. The engines
//! use none of this.

use crate::environment::{CpuPort, Effect, Environment, HostMemory, HostMemoryError, Sram};
use crate::{Board, Card};
use tigon2_chip::bits::{MacTxState, MiscLocalControl};
use tigon2_chip::mac::{
    FRAME_ALIGNMENT, THRESHOLDS, TX_LENGTHS, TxDescriptor, UNKNOWN_EC_VALUE, VLAN_TYPE,
};
use tigon2_chip::mdio;
use tigon2_chip::memory::block;
use tigon2_chip::{Cpu, Register};

/// SRAM in a vector.
#[derive(Clone, Debug)]
pub struct VecSram {
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl VecSram {
    /// Zeroed memory.
    pub fn new(bytes: u32) -> Self {
        VecSram {
            bytes: vec![0; bytes as usize],
        }
    }
}

impl Sram for VecSram {
    fn read(&self, address: u32, out: &mut [u8]) {
        let at = address as usize;
        out.copy_from_slice(&self.bytes[at..at + out.len()]);
    }

    fn write(&mut self, address: u32, data: &[u8]) {
        let at = address as usize;
        self.bytes[at..at + data.len()].copy_from_slice(data);
    }
}

/// Host memory: one mapped range of bus addresses.
#[derive(Clone, Debug)]
pub struct VecHost {
    /// First bus address of the range.
    pub base: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl VecHost {
    /// Zeroed memory of `bytes` at bus address `base`.
    pub fn new(base: u64, bytes: usize) -> Self {
        VecHost {
            base,
            bytes: vec![0; bytes],
        }
    }

    /// The mapped bytes of a range.
    ///
    /// # Errors
    /// [`HostMemoryError`] if the range is not wholly mapped.
    pub fn slice(&mut self, address: u64, length: usize) -> Result<&mut [u8], HostMemoryError> {
        address
            .checked_sub(self.base)
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|start| self.bytes.get_mut(start..start.checked_add(length)?))
            .ok_or(HostMemoryError { address, length })
    }

    /// The little-endian word at an address, as a driver on such a host reads it.
    ///
    /// # Errors
    /// [`HostMemoryError`] if it is not mapped.
    pub fn word(&mut self, address: u64) -> Result<u32, HostMemoryError> {
        let bytes = self.slice(address, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl HostMemory for VecHost {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), HostMemoryError> {
        let length = out.len();
        out.copy_from_slice(self.slice(address, length)?);
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), HostMemoryError> {
        self.slice(address, data.len())?.copy_from_slice(data);
        Ok(())
    }
}

/// CPUs that execute nothing: their visible state is plain data.
#[derive(Clone, Debug)]
pub struct StillCpus {
    /// Program counters of A and B.
    pub pc: [u32; 2],
    /// General registers of A and B.
    pub gpr: [[u32; 32]; 2],
    /// Scratch pads of A and B, in words.
    pub scratch: [Vec<u32>; 2],
}

impl StillCpus {
    /// CPUs of a board, all zero.
    pub fn new(board: &Board) -> Self {
        StillCpus {
            pc: [0; 2],
            gpr: [[0; 32]; 2],
            scratch: Cpu::ALL.map(|cpu| vec![0; board.scratch_bytes(cpu) as usize / 4]),
        }
    }
}

impl CpuPort for StillCpus {
    fn pc(&self, cpu: Cpu) -> u32 {
        self.pc[cpu.index()]
    }

    fn gpr(&self, cpu: Cpu, n: usize) -> u32 {
        self.gpr[cpu.index()][n]
    }

    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32 {
        self.scratch[cpu.index()][offset as usize / 4]
    }

    fn scratch_write(&mut self, cpu: Cpu, offset: u32, value: u32) {
        self.scratch[cpu.index()][offset as usize / 4] = value;
    }
}

/// Bus address at which [`Bench::new`] maps its host memory.
pub const HOST_BASE: u64 = 0x1_0000_0000;

/// Base K of the descriptor/buffer block with 1 MB of SRAM (reference 2.2).
pub const K: u32 = 0x12_F000;
/// The start of the TX buffer in [`Bench::bring_up`].
pub const TX_BASE: u32 = K + block::PACKET_BUFFERS;
/// The start of the RX buffer in [`Bench::bring_up`].
pub const RX_BASE: u32 = 0x18_0000;
/// The station address that [`Bench::bring_up`] sets.
pub const STATION: [u8; 6] = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];

/// A card with memory, halted CPUs and a manual clock.
pub struct Bench<H = VecHost> {
    /// The card.
    pub card: Card,
    /// NIC memory.
    pub sram: VecSram,
    /// Host memory: unless it is another one, 1 MB at [`HOST_BASE`].
    pub host: H,
    /// The CPUs.
    pub cpus: StillCpus,
    /// The time in nanoseconds.
    pub now: u64,
}

impl Default for Bench {
    fn default() -> Self {
        Bench::new(Board::default())
    }
}

impl Bench {
    /// A powered card of a board; the host has selected a plain view of NIC words, as drivers do
    /// first (`R[40]` = 0x22000022).
    pub fn new(board: Board) -> Self {
        Bench::with_host(board, VecHost::new(HOST_BASE, 0x10_0000))
    }
}

impl<H: HostMemory> Bench<H> {
    /// As [`Bench::new`], with another host memory.
    pub fn with_host(board: Board, host: H) -> Self {
        let sram = VecSram::new(board.memory.sram_bytes);
        let cpus = StillCpus::new(&board);
        let mut bench = Bench {
            card: Card::new(board),
            sram,
            host,
            cpus,
            now: 0,
        };
        bench.with(|card, env| card.power_on(env));
        bench.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        bench
    }

    /// Calls the card with an environment of this bench.
    pub fn with<R>(&mut self, call: impl FnOnce(&mut Card, &mut Environment<'_>) -> R) -> R {
        let mut environment = Environment {
            now: self.now,
            sram: &mut self.sram,
            host: &mut self.host,
            cpus: &mut self.cpus,
        };
        call(&mut self.card, &mut environment)
    }

    /// Configures rings, buffers, assist, station address and MAC as firmware does (reference 10.1,
    /// 19): both assist channels, link up, no pause frames.
    pub fn bring_up(&mut self) {
        use Register as R;
        self.write(R::UnknownEc, UNKNOWN_EC_VALUE);
        for cpu in Cpu::ALL {
            self.write(R::spill_base(cpu), block::spill_base(cpu, K));
        }
        self.write(R::MacThresholds, 0);
        self.write(R::MacTxState, 1);
        self.write(R::MacRxState, 1);
        for register in [
            R::RxDescriptorProducer,
            R::RxDescriptorConsumer,
            R::RxDescriptorReference,
        ] {
            self.write(register, K + block::MAC_RX_RING);
        }
        for register in [
            R::TxDescriptorProducer,
            R::TxDescriptorConsumer,
            R::TxDescriptorReference,
        ] {
            self.write(register, K + block::MAC_TX_RING);
        }
        for register in [R::RxBase, R::RxProducer, R::RxConsumer] {
            self.write(register, RX_BASE);
        }
        for register in [R::TxBase, R::TxProducer, R::TxConsumer] {
            self.write(register, TX_BASE);
        }
        self.write(R::AssistState, 0x20);
        self.write(R::AssistState, 0x21);
        self.write(R::MiscConfig, 0x55);
        let [a, b, c, d, e, f] = STATION;
        self.write(R::StationAddressHigh, u32::from_be_bytes([0, 0, a, b]));
        self.write(R::StationAddressLow, u32::from_be_bytes([c, d, e, f]));
        self.write(
            R::TxLengths,
            u32::from(VLAN_TYPE) << 16 | u32::from(TX_LENGTHS),
        );
        self.write(R::MacThresholds, THRESHOLDS);
        self.write(R::MacTxState, MacTxState::FIBRE | 2);
        self.write(R::MacRxState, 0x802);
        self.effects();
    }

    /// CPU A reads a register.
    pub fn read(&mut self, register: Register) -> u32 {
        self.with(|card, env| card.cpu_read(env, Cpu::A, register.offset()))
    }

    /// CPU A writes a register.
    pub fn write(&mut self, register: Register, value: u32) {
        self.with(|card, env| card.cpu_write(env, Cpu::A, register.offset(), value));
    }

    /// The host reads a word of the BAR.
    pub fn bar_read(&mut self, offset: u32) -> u32 {
        self.with(|card, env| card.bar_read(env, offset))
    }

    /// The host writes a word of the BAR.
    pub fn bar_write(&mut self, offset: u32, value: u32) {
        self.with(|card, env| card.bar_write(env, offset, value));
    }

    /// CPU A drives the lines of the PHY's bus for one bit: data with the clock low, then the clock
    /// high; returns the data line before the rising edge (9).
    fn mdio_clock(&mut self, drive: bool, out: bool) -> bool {
        let lines = MiscLocalControl::new()
            .with_mdio_drive(drive)
            .with_mdio_out(out);
        self.write(Register::MiscLocalControl, lines.into_bits());
        let level = MiscLocalControl::from_bits(self.read(Register::MiscLocalControl)).mdio_in();
        let high = lines.with_mdio_clock(true);
        self.write(Register::MiscLocalControl, high.into_bits());
        level
    }

    fn mdio_send(&mut self, bits: u32, count: u32) {
        for _ in 0..mdio::PREAMBLE_BITS {
            self.mdio_clock(true, true);
        }
        for bit in (0..count).rev() {
            self.mdio_clock(true, bits >> bit & 1 != 0);
        }
    }

    /// CPU A reads a register of a PHY, bit by bit through `R[44]`.
    pub fn mdio_read(&mut self, phy: u8, register: u8) -> u16 {
        self.mdio_send(mdio::read_header(phy, register), mdio::HEADER_BITS);
        for _ in 0..2 {
            self.mdio_clock(false, false);
        }
        (0..16).fold(0, |value, _| {
            value << 1 | u16::from(self.mdio_clock(false, false))
        })
    }

    /// CPU A writes a register of a PHY.
    pub fn mdio_write(&mut self, phy: u8, register: u8, value: u16) {
        self.mdio_send(mdio::write_frame(phy, register, value), 32);
    }

    /// CPU A queues a frame at TxPrd, aligned like any frame, and the card sends it.
    pub fn send(&mut self, frame: &[u8]) {
        let start = self.read(Register::TxProducer);
        let start = start.next_multiple_of(FRAME_ALIGNMENT);
        let descriptor = TxDescriptor::new(start, frame.len() as u16, None);
        self.set_bytes(start, frame);
        let address = self.read(Register::TxDescriptorNextFree);
        self.set_word(address, descriptor.start_and_flags);
        self.set_word(address + 4, descriptor.length_and_tag);
        self.write(Register::TxDescriptorProducer, address + 8);
        self.write(Register::TxProducer, start + frame.len() as u32);
        self.run();
    }

    /// Runs all queued work of the card.
    pub fn run(&mut self) {
        while self.with(|card, env| card.run(env)) {}
    }

    /// A frame arrives from the wire.
    pub fn receive(&mut self, frame: &[u8]) -> crate::Reception {
        self.with(|card, env| card.receive(env, frame))
    }

    /// Advances the time by `nanoseconds`.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.with(|card, env| card.advance(env));
    }

    /// The word at a NIC address.
    pub fn word(&self, address: u32) -> u32 {
        self.card.sram_map().word(&self.sram, address)
    }

    /// Stores a word at a NIC address.
    pub fn set_word(&mut self, address: u32, value: u32) {
        self.card
            .sram_map()
            .set_word(&mut self.sram, address, value);
    }

    /// Bytes from a NIC address on.
    pub fn bytes(&self, address: u32, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.card.sram_map().read(&self.sram, address, &mut bytes);
        bytes
    }

    /// Stores bytes from a NIC address on.
    pub fn set_bytes(&mut self, address: u32, data: &[u8]) {
        self.card.sram_map().write(&mut self.sram, address, data);
    }

    /// The effects so far.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.card.drain_effects().collect()
    }

    /// The frames sent so far; other effects are dropped.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let frames = self.effects().into_iter();
        frames
            .filter_map(|effect| match effect {
                Effect::Transmit(frame) => Some(frame),
                _ => None,
            })
            .collect()
    }
}
