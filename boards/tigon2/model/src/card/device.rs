//! Driving a card: the calls of an engine.
//!
//! ```text
//!            accesses ──►┌────────┐
//!   frames from the wire │ Device │──► what the card does at once
//!           time ───────►└────────┘
//!                        ┌────────┐
//!   DMA, sending ───────►│ Stages │──► the same work, begun and completed
//!                        └────────┘
//! ```
//!
//! Each call gets an [`Environment`]; afterwards the engine carries out the card's
//! [effects](Card::drain_effects). An engine in which transfers take no time calls
//! [`Device::run`]. One that gives them a duration takes them apart with [`Stages`].

use super::Card;
use crate::cpu::CpuFault;
use crate::dma::{Direction, Transfer};
use crate::environment::Environment;
use crate::mac::Reception;
use crate::undefined::{Accessor, UndefinedKind};
use tigon2_chip::Cpu;
use tigon2_chip::mac::RxError;

/// A card as an engine drives it: [`Card::device`].
pub struct Device<'card, 'call, 'env> {
    card: &'card mut Card,
    env: &'call mut Environment<'env>,
}

/// A card's work in parts: [`Card::stages`].
pub struct Stages<'card, 'call, 'env> {
    card: &'card mut Card,
    env: &'call mut Environment<'env>,
}

impl Card {
    /// The calls that may change the card, with what it may access during one.
    #[inline]
    pub fn device<'card, 'call, 'env>(
        &'card mut self,
        env: &'call mut Environment<'env>,
    ) -> Device<'card, 'call, 'env> {
        Device { card: self, env }
    }

    /// The same for an engine in which the card's work takes time.
    #[inline]
    pub fn stages<'card, 'call, 'env>(
        &'card mut self,
        env: &'call mut Environment<'env>,
    ) -> Stages<'card, 'call, 'env> {
        Stages { card: self, env }
    }
}

impl Device<'_, '_, '_> {
    /// Power-on, or RST# of the bus: PCI configuration and chip go to their reset state, and both
    /// CPUs halt. EEPROM, cable and NIC memory keep their state.
    #[inline]
    pub fn power_on(&mut self) {
        self.card.power_on(self.env);
    }

    /// Chip reset, `R[40]` bit 3 (engines also call it when the host goes away): clears all
    /// registers, drops all work, halts both CPUs and deasserts the interrupt line (9, I).
    #[inline]
    pub fn reset(&mut self) {
        self.card.reset(self.env);
    }

    /// The host reads the aligned word at `offset` of BAR 0. An unaligned offset is counted and
    /// reads the word that contains it.
    #[inline]
    pub fn bar_read(&mut self, offset: u32) -> u32 {
        self.card.bar_read(self.env, offset)
    }

    /// The host writes the aligned word at `offset` of BAR 0.
    #[inline]
    pub fn bar_write(&mut self, offset: u32, value: u32) {
        self.card.bar_write(self.env, offset, value);
    }

    /// Writes configuration space; writes to read-only bits are ignored.
    #[inline]
    pub fn config_write(&mut self, offset: usize, data: &[u8]) {
        self.card.config_write(self.env, offset, data);
    }

    /// A CPU reads the register at `offset` in its register page.
    #[inline]
    pub fn cpu_read(&mut self, cpu: Cpu, offset: u32) -> u32 {
        self.card.cpu_read(self.env, cpu, offset)
    }

    /// A CPU writes the register at `offset` in its register page.
    #[inline]
    pub fn cpu_write(&mut self, cpu: Cpu, offset: u32, value: u32) {
        self.card.cpu_write(self.env, cpu, offset, value);
    }

    /// A CPU faults: it is halted, and the host sees the place in its PC register (3.1, I).
    #[inline]
    pub fn cpu_fault(&mut self, cpu: Cpu, fault: CpuFault, pc: u32) {
        self.card.cpu_fault(self.env, cpu, fault, pc);
    }

    /// Logs an access that only the engine sees: a CPU address without memory or register, or an
    /// access of an unsupported width.
    #[inline]
    pub fn note_undefined(&mut self, by: Accessor, kind: UndefinedKind, address: u32, value: u32) {
        self.card.note_undefined(by, kind, address, value);
    }

    /// A frame without CRC arrives from the wire. Frames below 60 bytes are padded with zeros, as
    /// their sender would have done.
    #[inline]
    pub fn receive(&mut self, frame: &[u8]) -> Reception {
        self.card.receive(self.env, frame)
    }

    /// As [`receive`](Self::receive), for a frame with receive errors: the rest of it is accepted
    /// with the errors in its descriptor. See [`faults`](crate::faults).
    #[inline]
    pub fn receive_damaged(&mut self, frame: &[u8], error: RxError) -> Reception {
        self.card.receive_damaged(self.env, frame, error)
    }

    /// As [`receive_damaged`](Self::receive_damaged), from a wire that cannot hold a frame: its
    /// sender obeys pause frames when they reach it, and what has left is taken or dropped.
    #[inline]
    pub fn receive_unheld(&mut self, frame: &[u8], error: RxError) -> Reception {
        self.card.receive_unheld(self.env, frame, error)
    }

    /// Advances the time: call it at [`next_deadline`](super::Inspect::next_deadline) or later.
    #[inline]
    pub fn advance(&mut self) {
        self.card.advance(self.env);
    }

    /// Does queued DMA and MAC work until none is left or a bound for one call is reached; returns
    /// whether more remains. Transfers take no time, except those for which host memory
    /// [waits](crate::HostMemory::waits): these are only begun.
    #[inline]
    pub fn run(&mut self) -> bool {
        self.card.run(self.env)
    }
}

impl Stages<'_, '_, '_> {
    /// As [`Device::advance`], but no work is done. Returns whether a transmitter that a pause frame
    /// held may go on.
    #[inline]
    pub fn let_time_pass(&mut self) -> bool {
        self.card.let_time_pass(self.env)
    }

    /// A channel takes its next transfer: one that software started, or the next descriptor of its
    /// ring (6.3). `None` if there is none or the channel is busy.
    #[inline]
    pub fn dma_begin(&mut self, direction: Direction) -> Option<Transfer> {
        self.card.dma_begin(self.env, direction)
    }

    /// Moves the bytes of the transfer that a channel has begun up to `moved`: what
    /// looks at memory before its end finds them, and the old ones behind them. Without a call all
    /// bytes move at the end. If the host does not answer, the end says so.
    #[inline]
    pub fn dma_moved(&mut self, direction: Direction, moved: u32) {
        self.card.dma_moved(self.env, direction, moved);
    }

    /// Completes the transfer that a channel has begun: bytes, checksum, pointers and events all
    /// change now (6.1, 6.3). Does nothing if none has begun.
    #[inline]
    pub fn dma_complete(&mut self, direction: Direction) {
        self.card.dma_complete(self.env, direction);
    }

    /// The transmitter takes the next frame if its data has arrived (10.2); returns its length on
    /// the wire without CRC. Empty descriptors are skipped.
    #[inline]
    pub fn transmit_begin(&mut self) -> Option<usize> {
        self.card.transmit_begin(self.env)
    }

    /// The transmitter has read the first `bytes` of its frame from the TX buffer: those that it
    /// had not read before are what stands there now. Without a call it has read the frame as it
    /// stood at its start.
    #[inline]
    pub fn transmit_fetched(&mut self, bytes: usize) {
        self.card.transmit_fetched(self.env, bytes);
    }

    /// The frame has left: frees its descriptor and its buffer space (10.2). In loopback the frame
    /// comes back; without a cable it is lost. Does nothing if no frame is being sent.
    #[inline]
    pub fn transmit_complete(&mut self) {
        self.card.transmit_complete(self.env);
    }

    /// Sends a pause frame if the partner should stop, stay stopped or resume (10.4, `R[200]` bit
    /// 8). [`Device::run`] and [`Device::receive`] do so, too.
    #[inline]
    pub fn flow_control(&mut self) {
        self.card.flow_control(self.env);
    }

    /// A frame begins (true) or ends arriving: E0 bit 2 (10.1, I). For engines that give frames a
    /// duration.
    #[inline]
    pub fn set_receiving(&mut self, receiving: bool) {
        self.card.set_receiving(receiving);
    }

    /// The first `bytes` of the frame that arrives have come: who looks into the RX buffer finds them,
    /// damaged as a [fault](crate::faults) of the frame asks, and old bytes behind them; `R[C4]` stands
    /// in between. Without a call all bytes come at the end.
    pub fn received_so_far(&mut self, frame: &[u8], bytes: usize) {
        self.card.received_so_far(self.env, frame, bytes);
    }
}
