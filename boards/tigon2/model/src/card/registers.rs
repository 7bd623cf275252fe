//! Register reads and writes, one arm per register of the chip.
//!
//! Hardware reference, appendix A. CPUs and host see the same registers. A write stores, compares
//! or queues; [`Device::run`](super::Device::run) does the work on memory.

use super::{Card, REGISTER_WORDS};
use crate::dma::Direction;
use crate::environment::{Effect, Environment};
use crate::mdio::MdioLines;
use crate::operations::Operation;
use crate::undefined::{Accessor, UndefinedKind};
use tigon2_chip::beyond::{self, Further};
use tigon2_chip::bits::{CpuState, MiscConfig};
use tigon2_chip::dma::{read_ring_base, write_ring_base};
use tigon2_chip::mac::RECEIVING_FLAG;
use tigon2_chip::memory::SRAM_MAX_BYTES;
use tigon2_chip::registers::{PCI_CONFIGURATION_BYTES, gpr_at};
use tigon2_chip::{Cpu, Register};

/// The register at each word of the page, in the order of the offsets; `None` is a hole, a copy of
/// PCI configuration space or a CPU's register file.
const TABLE: [Option<Register>; REGISTER_WORDS] = {
    let mut table = [None; REGISTER_WORDS];
    let mut filled = 0;
    while filled < Register::ALL.len() {
        let register = Register::ALL[filled];
        table[register.offset() as usize / 4] = Some(register);
        filled += 1;
    }
    table
};

#[inline]
fn at(offset: u32) -> Option<Register> {
    TABLE.get(offset as usize / 4).copied().flatten()
}

impl Card {
    pub(crate) fn cpu_read(&mut self, env: &mut Environment<'_>, cpu: Cpu, offset: u32) -> u32 {
        self.register_read(env, Accessor::Cpu(cpu), offset)
    }

    pub(crate) fn cpu_write(
        &mut self,
        env: &mut Environment<'_>,
        cpu: Cpu,
        offset: u32,
        value: u32,
    ) {
        self.register_write(env, Accessor::Cpu(cpu), offset, value);
    }

    /// The full address of a DMA ring pointer: the upper bits come from TxBase (6.3, rule a).
    fn ring_address(&self, direction: Direction, offset: u32) -> u32 {
        let tx_base = self.mac.buffers.tx_base;
        let base = match direction {
            Direction::Read => read_ring_base(tx_base),
            Direction::Write => write_ring_base(tx_base),
        };
        base.wrapping_add(offset) & (SRAM_MAX_BYTES - 1)
    }

    /// The address of the descriptor at a ring's consumer.
    pub(super) fn descriptor_address(&self, direction: Direction) -> u32 {
        self.ring_address(direction, self.dma.assist.ring(direction).consumer())
    }

    /// A read of a register. One function with an arm for each, as the reference has a row for each.
    pub(super) fn register_read(
        &mut self,
        env: &mut Environment<'_>,
        by: Accessor,
        offset: u32,
    ) -> u32 {
        use Direction::{Read, Write};
        if offset & 3 != 0 {
            self.undefined.note(by, UndefinedKind::Unaligned, offset, 0);
        }
        let Some(register) = at(offset) else {
            return self.read_without_register(env, by, offset);
        };
        let channel = |direction| self.dma.channel(direction);
        let ring = |direction| self.dma.assist.ring(direction);
        let next_free = |direction| {
            let free = ring(direction).next_free();
            free.map_or(0, |offset| self.ring_address(direction, offset))
        };
        match register {
            Register::EventA => self.events(env.now, Cpu::A),
            Register::EventB => self.events(env.now, Cpu::B),
            Register::MiscHostControl => self.host_control.read(self.interrupt.pending()),
            Register::MiscLocalControl => {
                let (eeprom, mdio) = (self.eeprom.line(), self.link.mdio_in());
                self.local_control.read(eeprom, mdio)
            }
            Register::SemaphoreA => self.semaphore.read(Cpu::A),
            Register::SemaphoreB => self.semaphore.read(Cpu::B),
            Register::Timer => self.timers.count(env.now),
            Register::TimerReferenceA => self.timers.reference(Cpu::A),
            Register::TimerReferenceB => self.timers.reference(Cpu::B),
            Register::PciState => self.bus.read(),
            Register::MailboxEventA => self.mailboxes.read(Cpu::A),
            Register::MailboxEventB => self.mailboxes.read(Cpu::B),
            Register::WindowBase => self.window.base(),
            Register::WindowData => self.map.word(env.sram, self.window.base()),
            Register::DmaWriteHostHigh => (channel(Write).host >> 32) as u32,
            Register::DmaWriteHostLow => channel(Write).host as u32,
            Register::DmaReadHostHigh => (channel(Read).host >> 32) as u32,
            Register::DmaReadHostLow => channel(Read).host as u32,
            Register::DmaReadLength => channel(Read).length(),
            Register::DmaWriteLength => channel(Write).length(),
            Register::DmaReadState => channel(Read).state(),
            Register::DmaWriteState => channel(Write).state(),
            Register::DmaReadLocal => channel(Read).local,
            Register::DmaWriteLocal => channel(Write).local,
            Register::DmaReadChecksum => channel(Read).checksum().into(),
            Register::DmaWriteChecksum => channel(Write).checksum().into(),
            Register::RxBase => self.mac.buffers.rx_base,
            Register::RxProducer => self.mac.filled(),
            Register::RxConsumer => self.mac.rx_consumer.get(),
            Register::TxBase => self.mac.buffers.tx_base,
            Register::TxProducer => self.mac.tx_producer.get(),
            Register::TxConsumer => self.mac.tx_consumer.get(),
            Register::RxDescriptorProducer => {
                let flag = if self.mac.receiving {
                    RECEIVING_FLAG
                } else {
                    0
                };
                self.mac.rx_descriptor_producer.get() | flag
            }
            Register::RxDescriptorConsumer => self.mac.rx_descriptor_consumer.get(),
            Register::RxDescriptorReference => self.mac.rx_descriptor_reference.get(),
            Register::TxDescriptorProducer => self.mac.tx_descriptor_producer.get(),
            Register::TxDescriptorConsumer => self.mac.tx_descriptor_consumer.get(),
            Register::TxDescriptorReference => self.mac.tx_descriptor_reference.get(),
            Register::TxDescriptorNextFree => self.mac.next_free_descriptor().unwrap_or(0),
            Register::AssistReadProducer => self.ring_address(Read, ring(Read).producer()),
            Register::AssistReadConsumer => self.ring_address(Read, ring(Read).consumer()),
            Register::AssistReadReference => self.ring_address(Read, ring(Read).reference()),
            Register::AssistReadNextFree => next_free(Read),
            Register::AssistState => self.dma.assist_state(),
            Register::AssistWriteProducer => self.ring_address(Write, ring(Write).producer()),
            Register::AssistWriteConsumer => self.ring_address(Write, ring(Write).consumer()),
            Register::AssistWriteReference => self.ring_address(Write, ring(Write).reference()),
            Register::AssistWriteNextFree => next_free(Write),
            Register::CpuAState => self.cpus[0].state(),
            Register::CpuBState => self.cpus[1].state(),
            Register::CpuAPc => self.cpus[0].pc().unwrap_or_else(|| env.cpus.pc(Cpu::A)),
            Register::CpuBPc => self.cpus[1].pc().unwrap_or_else(|| env.cpus.pc(Cpu::B)),
            Register::ScratchAddressA => self.scratch_address[0],
            Register::ScratchAddressB => self.scratch_address[1],
            Register::ScratchDataA => env.cpus.scratch_read(Cpu::A, self.scratch_offset(Cpu::A)),
            Register::ScratchDataB => env.cpus.scratch_read(Cpu::B, self.scratch_offset(Cpu::B)),
            Register::CpuAGpr0 => env.cpus.gpr(Cpu::A, 0),
            Register::CpuBGpr0 => env.cpus.gpr(Cpu::B, 0),
            Register::MacTxState => self.mac.tx_state().into_bits(),
            Register::MacRxState => self.mac_rx_state(),
            Register::TxConfigWord => self.link.tx_word(),
            Register::RxConfigWord => self.link.rx_word(),
            Register::PhyInterface => self.link.phy_interface(),
            Register::StationAddressHigh => self.mac.filter.station_high,
            Register::StationAddressLow => self.mac.filter.station_low,
            Register::MulticastHash0 => self.mac.filter.hash[0],
            Register::MulticastHash1 => self.mac.filter.hash[1],
            Register::MulticastHash2 => self.mac.filter.hash[2],
            Register::MulticastHash3 => self.mac.filter.hash[3],
            // Registers that hold the value written (including all of unknown purpose).
            Register::MiscConfig
            | Register::Serial
            | Register::UnknownEc
            | Register::AssistRead110
            | Register::AssistRead114
            | Register::AssistRead118
            | Register::AssistWrite130
            | Register::AssistWrite134
            | Register::AssistWrite138
            | Register::SpillBaseA
            | Register::SpillBaseB
            | Register::BackoffSeed
            | Register::TxLengths
            | Register::MacThresholds
            | Register::Unknown23c => self.stored[register.offset() as usize / 4],
        }
    }

    /// A write of a register: one function, as for reads.
    pub(super) fn register_write(
        &mut self,
        env: &mut Environment<'_>,
        by: Accessor,
        offset: u32,
        value: u32,
    ) {
        use Direction::{Read, Write};
        self.note(|| {
            let by = match by {
                Accessor::Cpu(cpu) => Some(cpu),
                _ => None,
            };
            Operation::Write { by, offset, value }
        });
        if offset & 3 != 0 {
            self.undefined
                .note(by, UndefinedKind::Unaligned, offset, value);
        }
        let Some(register) = at(offset) else {
            return self.write_without_register(env, by, offset, value);
        };
        if !register.access().is_writable() {
            self.undefined
                .note(by, UndefinedKind::ReadOnly, offset, value);
            return;
        }
        match register {
            Register::EventA => self.software_events.write(Cpu::A, value),
            Register::EventB => self.software_events.write(Cpu::B, value),
            Register::MiscHostControl => self.write_host_control(env, value),
            Register::MiscLocalControl => self.write_local_control(env, value),
            Register::SemaphoreA => self.semaphore.write(Cpu::A),
            Register::SemaphoreB => self.semaphore.write(Cpu::B),
            Register::Timer => self.timers.set_count(env.now, value),
            Register::TimerReferenceA => self.timers.set_reference(env.now, Cpu::A, value),
            Register::TimerReferenceB => self.timers.set_reference(env.now, Cpu::B, value),
            Register::PciState => self.bus.write(value),
            Register::MailboxEventA => self.mailboxes.clear(Cpu::A, value),
            Register::MailboxEventB => self.mailboxes.clear(Cpu::B, value),
            Register::WindowBase => self.window.set_base(value),
            Register::WindowData => self.map.set_word(env.sram, self.window.base(), value),
            Register::DmaWriteHostHigh => self.dma.channel_mut(Write).set_host(true, value),
            Register::DmaWriteHostLow => self.dma.channel_mut(Write).set_host(false, value),
            Register::DmaReadHostHigh => self.dma.channel_mut(Read).set_host(true, value),
            Register::DmaReadHostLow => self.dma.channel_mut(Read).set_host(false, value),
            Register::DmaReadLength => self.dma.channel_mut(Read).set_length(value),
            Register::DmaWriteLength => self.dma.channel_mut(Write).set_length(value),
            Register::DmaReadLocal => self.dma.channel_mut(Read).local = value,
            Register::DmaWriteLocal => self.dma.channel_mut(Write).local = value,
            Register::DmaReadChecksum => self.dma.channel_mut(Read).set_checksum(value as u16),
            Register::DmaWriteChecksum => self.dma.channel_mut(Write).set_checksum(value as u16),
            Register::DmaReadState => self.write_dma_state(by, Read, offset, value),
            Register::DmaWriteState => self.write_dma_state(by, Write, offset, value),
            Register::RxBase => self.mac.set_rx_base(value),
            Register::RxProducer => {
                self.mac.rx_producer.set(value);
                self.mac.forget_arrived();
            }
            Register::RxConsumer => self.mac.free(value),
            Register::TxBase => self.mac.set_tx_base(value),
            Register::TxProducer => self.mac.cover(value),
            Register::TxConsumer => self.mac.tx_consumer.set(value),
            Register::RxDescriptorProducer => self.mac.rx_descriptor_producer.set(value),
            Register::RxDescriptorConsumer => self.mac.rx_descriptor_consumer.set(value),
            Register::RxDescriptorReference => self.mac.rx_descriptor_reference.set(value),
            Register::TxDescriptorProducer => self.mac.tx_descriptor_producer.set(value),
            Register::TxDescriptorConsumer => self.mac.tx_descriptor_consumer.set(value),
            Register::TxDescriptorReference => self.mac.tx_descriptor_reference.set(value),
            Register::AssistReadProducer => self.dma.assist.ring_mut(Read).set_producer(value),
            Register::AssistReadConsumer => self.dma.assist.ring_mut(Read).set_consumer(value),
            Register::AssistReadReference => self.dma.assist.ring_mut(Read).set_reference(value),
            Register::AssistState => self.dma.assist.set_state(value),
            Register::AssistWriteProducer => self.dma.assist.ring_mut(Write).set_producer(value),
            Register::AssistWriteConsumer => self.dma.assist.ring_mut(Write).set_consumer(value),
            Register::AssistWriteReference => self.dma.assist.ring_mut(Write).set_reference(value),
            Register::TxDescriptorNextFree
            | Register::AssistReadNextFree
            | Register::AssistWriteNextFree
            | Register::CpuAGpr0
            | Register::CpuBGpr0 => debug_assert!(false, "{register:?} is read only"),
            Register::CpuAState => self.write_cpu_state(env, by, Cpu::A, value),
            Register::CpuBState => self.write_cpu_state(env, by, Cpu::B, value),
            Register::CpuAPc => self.write_cpu_pc(by, Cpu::A, value),
            Register::CpuBPc => self.write_cpu_pc(by, Cpu::B, value),
            Register::SpillBaseA => self.write_spill_base(Cpu::A, value),
            Register::SpillBaseB => self.write_spill_base(Cpu::B, value),
            Register::ScratchAddressA => self.scratch_address[0] = value,
            Register::ScratchAddressB => self.scratch_address[1] = value,
            Register::ScratchDataA => {
                env.cpus
                    .scratch_write(Cpu::A, self.scratch_offset(Cpu::A), value);
            }
            Register::ScratchDataB => {
                env.cpus
                    .scratch_write(Cpu::B, self.scratch_offset(Cpu::B), value);
            }
            Register::MacTxState => {
                if self.mac.set_tx_state(value) {
                    self.count(env, tigon2_chip::mac::MacStatistic::Underruns);
                }
                self.link.set_tx_enabled(self.mac.tx_state().enable());
            }
            Register::MacRxState => self.mac.set_rx_state(value, self.link.cable()),
            Register::TxConfigWord => self.link.set_tx_word(value),
            Register::RxConfigWord => self.link.set_rx_word(value),
            Register::PhyInterface => self.link.set_phy_interface(value),
            Register::StationAddressHigh => self.mac.filter.station_high = value,
            Register::StationAddressLow => self.mac.filter.station_low = value,
            Register::MulticastHash0 => self.mac.filter.hash[0] = value,
            Register::MulticastHash1 => self.mac.filter.hash[1] = value,
            Register::MulticastHash2 => self.mac.filter.hash[2] = value,
            Register::MulticastHash3 => self.mac.filter.hash[3] = value,
            Register::TxLengths => {
                self.mac.vlan_type = (value >> 16) as u16;
                self.store(register, value);
            }
            Register::MiscConfig => {
                let fields = MiscConfig::from_bits(value);
                self.timers.set_prescaler(env.now, fields.timer_prescaler());
                self.link.set_mac_interface(fields.mac_interface());
                self.store(register, value);
            }
            Register::Serial
            | Register::UnknownEc
            | Register::AssistRead110
            | Register::AssistRead114
            | Register::AssistRead118
            | Register::AssistWrite130
            | Register::AssistWrite134
            | Register::AssistWrite138
            | Register::BackoffSeed
            | Register::MacThresholds
            | Register::Unknown23c => self.store(register, value),
        }
    }

    fn read_without_register(
        &mut self,
        env: &mut Environment<'_>,
        by: Accessor,
        offset: u32,
    ) -> u32 {
        if offset < PCI_CONFIGURATION_BYTES {
            self.pci.word(offset as usize)
        } else if let Some((cpu, n)) = gpr_at(offset & !3) {
            env.cpus.gpr(cpu, n)
        } else if let Some((cpu, register)) = Further::at(offset & !3, self.board.cpus().len()) {
            let control = &self.cpus[cpu.index()];
            match register {
                Further::Event => self.events(env.now, cpu),
                Further::State => control.state(),
                Further::Pc => control.pc().unwrap_or_else(|| env.cpus.pc(cpu)),
            }
        } else if offset & !3 == beyond::COUNT && self.board.cpus().len() > Cpu::ALL.len() {
            self.board.cpus.count
        } else {
            self.undefined.note(by, UndefinedKind::Read, offset, 0);
            0
        }
    }

    fn write_without_register(
        &mut self,
        env: &mut Environment<'_>,
        by: Accessor,
        offset: u32,
        value: u32,
    ) {
        match Further::at(offset & !3, self.board.cpus().len()) {
            Some((cpu, Further::Event)) => self.software_events.write(cpu, value),
            Some((cpu, Further::State)) => self.write_cpu_state(env, by, cpu, value),
            Some((cpu, Further::Pc)) => self.write_cpu_pc(by, cpu, value),
            // Neither holes nor the copies of PCI space nor the CPU's registers are writable.
            None => self.undefined.note(by, UndefinedKind::Write, offset, value),
        }
    }

    fn store(&mut self, register: Register, value: u32) {
        self.stored[register.offset() as usize / 4] = value;
    }

    fn mac_rx_state(&self) -> u32 {
        self.mac
            .rx_state()
            .with_synchronised(self.link.cable())
            .with_code_words(self.link.code_words())
            .into_bits()
    }

    /// The aligned offset within the pad that `R[154]` or `R[254]` selects; it wraps.
    fn scratch_offset(&self, cpu: Cpu) -> u32 {
        self.scratch_address[cpu.index()] & (self.board.scratch_bytes(cpu) - 1) & !3
    }

    fn write_host_control(&mut self, env: &mut Environment<'_>, value: u32) {
        let asked = self.host_control.write(value);
        if asked.clear_interrupt {
            self.interrupt.clear();
        }
        if asked.reset {
            self.reset(env);
        }
        self.settle_interrupt();
    }

    fn write_local_control(&mut self, env: &mut Environment<'_>, value: u32) {
        let raise = self.local_control.write(value);
        let lines = self.local_control.lines();
        let data = !lines.eeprom_drive() || lines.eeprom_out();
        self.eeprom.set_lines(lines.eeprom_clock(), data);
        let mdio = MdioLines {
            clock: lines.mdio_clock(),
            drive: lines.mdio_drive(),
            out: lines.mdio_out(),
        };
        self.link.set_mdio_lines(env.now, mdio);
        self.link
            .set_pin_loopback(self.local_control.pin_loopback());
        if raise {
            self.interrupt.raise();
            self.settle_interrupt();
        }
    }

    fn write_dma_state(&mut self, by: Accessor, direction: Direction, offset: u32, value: u32) {
        if !self.dma.channel_mut(direction).set_state(value) {
            self.undefined.note(by, UndefinedKind::Busy, offset, value);
        }
    }

    pub(super) fn write_cpu_state(
        &mut self,
        env: &mut Environment<'_>,
        by: Accessor,
        cpu: Cpu,
        value: u32,
    ) {
        if by == Accessor::Cpu(cpu) && CpuState::from_bits(value).rom_failed() {
            self.cpus[cpu.index()].fail_rom();
        }
        if let Some(command) = self.cpus[cpu.index()].write_state(value) {
            self.command_cpu(env, cpu, command);
        }
    }

    fn write_cpu_pc(&mut self, by: Accessor, cpu: Cpu, value: u32) {
        let control = &mut self.cpus[cpu.index()];
        control.write_pc(value);
        if !control.halted() {
            let offset = beyond::pc(cpu);
            self.undefined.note(by, UndefinedKind::Busy, offset, value);
        }
    }

    fn write_spill_base(&mut self, cpu: Cpu, value: u32) {
        self.store(Register::spill_base(cpu), value);
        let base = self.spill_base(cpu);
        self.effects.push(Effect::SpillBase { cpu, base });
    }
}
