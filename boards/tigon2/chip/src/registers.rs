//! Every register of the chip, by its offset.
//!
//! Hardware reference, appendix A; each register cites the section that describes it. The offset
//! is the same in the CPUs' register page and in the host's BAR. Offsets 0x000-0x03C are copies of
//! PCI configuration space (section 9) and have no variants; nor do the 31 further words of each
//! CPU's register file: see [`cpu_gpr`].

use crate::Cpu;

crate::table! {
    /// A register of the chip; the value of a variant is its offset in bytes.
    pub enum Register: u16 with access {
        /// 0x040 Misc host control: interrupt, reset, swap, chip revision (9).
        MiscHostControl: RW = 0x040,
        /// 0x044 Misc local control: interrupt strobe, LEDs, MDIO and EEPROM lines (9).
        MiscLocalControl: RW = 0x044,
        /// 0x048 Hardware semaphore, request of CPU A (4).
        SemaphoreA: RW = 0x048,
        /// 0x04C Hardware semaphore, request of CPU B (4).
        SemaphoreB: RW = 0x04C,
        /// 0x050 Misc configuration: timer prescaler, SRAM kind, MAC interface (9).
        MiscConfig: RW = 0x050,
        /// 0x054 Free running microsecond counter; writing 0 clears it (7).
        Timer: RW = 0x054,
        /// 0x058 Timer reference of CPU A (7).
        TimerReferenceA: RW = 0x058,
        /// 0x05C PCI state: bus width and speed, DMA limits (9).
        PciState: RW = 0x05C,
        /// 0x060 Main event register of CPU A (5).
        EventA: RW = 0x060,
        /// 0x064 Mailbox bits of CPU A, write 1 to clear (8).
        MailboxEventA: W1C = 0x064,
        /// 0x068 NIC address of the host's memory window, 2 KB aligned (9).
        WindowBase: RW = 0x068,
        /// 0x06C SRAM word at the window base, for debugging (9, I).
        WindowData: RW = 0x06C,
        /// 0x070 Main event register of CPU B (5).
        EventB: RW = 0x070,
        /// 0x074 Mailbox bits of CPU B, write 1 to clear (8).
        MailboxEventB: W1C = 0x074,
        /// 0x078 Timer reference of CPU B (7).
        TimerReferenceB: RW = 0x078,
        /// 0x07C Serial port, unused (appendix A).
        Serial: RW = 0x07C,
        /// 0x080 DMA write: host address, high word (6.1).
        DmaWriteHostHigh: RW = 0x080,
        /// 0x084 DMA write: host address, low word (6.1).
        DmaWriteHostLow: RW = 0x084,
        /// 0x090 DMA read: host address, high word (6.1).
        DmaReadHostHigh: RW = 0x090,
        /// 0x094 DMA read: host address, low word (6.1).
        DmaReadHostLow: RW = 0x094,
        /// 0x09C DMA read: bytes left (6.1).
        DmaReadLength: RW = 0x09C,
        /// 0x0A0 DMA write: state (6.1).
        DmaWriteState: RW = 0x0A0,
        /// 0x0A4 DMA write: NIC address, advances (6.1).
        DmaWriteLocal: RW = 0x0A4,
        /// 0x0A8 DMA write: running 16-bit sum (6.5).
        DmaWriteChecksum: RW = 0x0A8,
        /// 0x0AC DMA write: bytes left (6.1).
        DmaWriteLength: RW = 0x0AC,
        /// 0x0B0 DMA read: state (6.1).
        DmaReadState: RW = 0x0B0,
        /// 0x0B4 DMA read: NIC address, advances (6.1).
        DmaReadLocal: RW = 0x0B4,
        /// 0x0B8 DMA read: running 16-bit sum (6.5).
        DmaReadChecksum: RW = 0x0B8,
        /// 0x0C0 Start of the RX buffer, end of the TX buffer (10.1).
        RxBase: RW = 0x0C0,
        /// 0x0C4 Next byte that the MAC fills (10.1).
        RxProducer: RW = 0x0C4,
        /// 0x0C8 Oldest RX byte still in use (10.1).
        RxConsumer: RW = 0x0C8,
        /// 0x0D0 Start of the TX buffer (10.1).
        TxBase: RW = 0x0D0,
        /// 0x0D4 Transmit data is valid up to here (10.1).
        TxProducer: RW = 0x0D4,
        /// 0x0D8 Transmitted up to here (10.1).
        TxConsumer: RW = 0x0D8,
        /// 0x0E0 RX descriptor producer, written by hardware; bits 2:0 are flags (10.1).
        RxDescriptorProducer: RW = 0x0E0,
        /// 0x0E4 RX descriptor consumer, written by software (10.1).
        RxDescriptorConsumer: RW = 0x0E4,
        /// 0x0E8 RX descriptor reference, compared for event bit 6 (10.1).
        RxDescriptorReference: RW = 0x0E8,
        /// 0x0EC Purpose unknown; vendor writes 3 before anything else (9, U).
        UnknownEc: RW = 0x0EC,
        /// 0x0F0 TX descriptor producer, written by software (10.1).
        TxDescriptorProducer: RW = 0x0F0,
        /// 0x0F4 TX descriptor consumer, written by hardware; bits 2:0 are flags (10.1).
        TxDescriptorConsumer: RW = 0x0F4,
        /// 0x0F8 TX descriptor reference, unused (10.1, I).
        TxDescriptorReference: RW = 0x0F8,
        /// 0x0FC Next free TX descriptor, 0 when the ring is full (10.1).
        TxDescriptorNextFree: R = 0x0FC,
        /// 0x100 DMA read ring: producer (6.3).
        AssistReadProducer: RW = 0x100,
        /// 0x104 DMA read ring: consumer (6.3).
        AssistReadConsumer: RW = 0x104,
        /// 0x108 DMA read ring: reference for event bit 15 (6.3).
        AssistReadReference: RW = 0x108,
        /// 0x10C DMA read ring: next free descriptor, 0 when full (6.3).
        AssistReadNextFree: R = 0x10C,
        /// 0x110 DMA read ring: second set, purpose unknown (6.3, U).
        AssistRead110: RW = 0x110,
        /// 0x114 DMA read ring: second set, purpose unknown (6.3, U).
        AssistRead114: RW = 0x114,
        /// 0x118 DMA read ring: second set, purpose unknown (6.3, U).
        AssistRead118: RW = 0x118,
        /// 0x11C DMA assist state (6.2).
        AssistState: RW = 0x11C,
        /// 0x120 DMA write ring: producer (6.3).
        AssistWriteProducer: RW = 0x120,
        /// 0x124 DMA write ring: consumer (6.3).
        AssistWriteConsumer: RW = 0x124,
        /// 0x128 DMA write ring: reference for event bit 14 (6.3).
        AssistWriteReference: RW = 0x128,
        /// 0x12C DMA write ring: next free descriptor, 0 when full (6.3).
        AssistWriteNextFree: R = 0x12C,
        /// 0x130 DMA write ring: second set, purpose unknown (6.3, U).
        AssistWrite130: RW = 0x130,
        /// 0x134 DMA write ring: second set, purpose unknown (6.3, U).
        AssistWrite134: RW = 0x134,
        /// 0x138 DMA write ring: second set, purpose unknown (6.3, U).
        AssistWrite138: RW = 0x138,
        /// 0x140 CPU A: state (3.4).
        CpuAState: RW = 0x140,
        /// 0x144 CPU A: program counter (3.4).
        CpuAPc: RW = 0x144,
        /// 0x150 CPU A: stack spill base (2).
        SpillBaseA: RW = 0x150,
        /// 0x154 CPU A: scratch pad address for the host (3.4, I).
        ScratchAddressA: RW = 0x154,
        /// 0x158 CPU A: scratch pad data for the host (3.4, I).
        ScratchDataA: RW = 0x158,
        /// 0x180 CPU A: first of its 32 general registers (3.4, I).
        CpuAGpr0: R = 0x180,
        /// 0x200 MAC TX state (10.4).
        MacTxState: RW = 0x200,
        /// 0x204 Transmitted 1000BASE-X configuration word (10.4).
        TxConfigWord: RW = 0x204,
        /// 0x208 Station address: bits 15:0 are its first two bytes (10.4).
        StationAddressHigh: RW = 0x208,
        /// 0x20C Station address: its last four bytes (10.4).
        StationAddressLow: RW = 0x20C,
        /// 0x210 Backoff seed: low word of the address (10.4, I).
        BackoffSeed: RW = 0x210,
        /// 0x214 VLAN type in 31:16, inter-packet gap and slot time below (10.4).
        TxLengths: RW = 0x214,
        /// 0x21C MAC thresholds (10.4, U).
        MacThresholds: RW = 0x21C,
        /// 0x220 MAC RX state (10.4).
        MacRxState: RW = 0x220,
        /// 0x224 Received 1000BASE-X configuration word, writable (10.4).
        RxConfigWord: RW = 0x224,
        /// 0x228 Multicast hash, bits 127:96 (10.4).
        MulticastHash0: RW = 0x228,
        /// 0x22C Multicast hash, bits 95:64 (10.4).
        MulticastHash1: RW = 0x22C,
        /// 0x230 Multicast hash, bits 63:32 (10.4).
        MulticastHash2: RW = 0x230,
        /// 0x234 Multicast hash, bits 31:0 (10.4).
        MulticastHash3: RW = 0x234,
        /// 0x238 PHY interface (10.4).
        PhyInterface: RW = 0x238,
        /// 0x23C Purpose unknown; vendor writes 0 (9, U).
        Unknown23c: RW = 0x23C,
        /// 0x240 CPU B: state (3.4).
        CpuBState: RW = 0x240,
        /// 0x244 CPU B: program counter (3.4).
        CpuBPc: RW = 0x244,
        /// 0x250 CPU B: stack spill base (2).
        SpillBaseB: RW = 0x250,
        /// 0x254 CPU B: scratch pad address for the host (3.4, I).
        ScratchAddressB: RW = 0x254,
        /// 0x258 CPU B: scratch pad data for the host (3.4, I).
        ScratchDataB: RW = 0x258,
        /// 0x280 CPU B: first of its 32 general registers (3.4, I).
        CpuBGpr0: R = 0x280,
    }
}

/// The copy of PCI configuration space: offsets below this (section 9).
pub const PCI_CONFIGURATION_BYTES: u32 = 0x40;

/// General registers of a CPU that are visible while it is halted (3.4, I).
pub const GPR_COUNT: usize = 32;

impl Register {
    /// The register at a byte offset, if one is defined there.
    #[inline]
    pub const fn from_offset(offset: u32) -> Option<Register> {
        Register::from_number(offset)
    }

    /// The byte offset in the register page and in the BAR.
    #[inline]
    pub const fn offset(self) -> u32 {
        self as u32
    }

    /// The address at which a CPU finds the register.
    #[inline]
    pub const fn address(self) -> u32 {
        crate::memory::REGISTERS_BASE + self as u32
    }

    /// The CPU's main event register.
    #[inline]
    pub const fn event(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::EventA, Register::EventB)
    }

    /// The CPU's mailbox event register.
    #[inline]
    pub const fn mailbox_event(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::MailboxEventA, Register::MailboxEventB)
    }

    /// The CPU's request register of the semaphore.
    #[inline]
    pub const fn semaphore(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::SemaphoreA, Register::SemaphoreB)
    }

    /// The CPU's timer reference.
    #[inline]
    pub const fn timer_reference(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::TimerReferenceA, Register::TimerReferenceB)
    }

    /// The CPU's state.
    #[inline]
    pub const fn cpu_state(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::CpuAState, Register::CpuBState)
    }

    /// The CPU's program counter.
    #[inline]
    pub const fn cpu_pc(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::CpuAPc, Register::CpuBPc)
    }

    /// The CPU's stack spill base.
    #[inline]
    pub const fn spill_base(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::SpillBaseA, Register::SpillBaseB)
    }

    /// The address half of the host's access to the CPU's scratch pad.
    #[inline]
    pub const fn scratch_address(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::ScratchAddressA, Register::ScratchAddressB)
    }

    /// The data half of the host's access to the CPU's scratch pad.
    #[inline]
    pub const fn scratch_data(cpu: Cpu) -> Register {
        by_cpu(cpu, Register::ScratchDataA, Register::ScratchDataB)
    }
}

const fn by_cpu(cpu: Cpu, a: Register, b: Register) -> Register {
    match cpu {
        Cpu::A => a,
        Cpu::B => b,
        _ => panic!("the chip has CPU A and CPU B; of others see `beyond`"),
    }
}

/// Offset of general register `n` (0..32) of a CPU (3.4, I).
///
/// # Panics
/// If `n` is not below [`GPR_COUNT`].
#[inline]
pub const fn cpu_gpr(cpu: Cpu, n: usize) -> u32 {
    assert!(n < GPR_COUNT);
    by_cpu(cpu, Register::CpuAGpr0, Register::CpuBGpr0).offset() + 4 * n as u32
}

/// The CPU and the number of the general register at an offset, if any.
#[inline]
pub const fn gpr_at(offset: u32) -> Option<(Cpu, usize)> {
    if !offset.is_multiple_of(4) {
        return None;
    }
    match offset {
        0x180..0x200 => Some((Cpu::A, (offset as usize - 0x180) / 4)),
        0x280..0x300 => Some((Cpu::B, (offset as usize - 0x280) / 4)),
        _ => None,
    }
}

const _: () = {
    let mut index = 0;
    while index < Register::ALL.len() {
        let offset = Register::ALL[index].offset();
        assert!(offset.is_multiple_of(4) && offset < crate::memory::REGISTERS_BYTES);
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_is_found_by_its_own_offset_and_no_other() {
        let found = (0..0x1000)
            .filter_map(Register::from_offset)
            .collect::<Vec<_>>();
        assert_eq!(found, Register::ALL);
        for register in Register::ALL {
            assert_eq!(Register::from_offset(register.offset()), Some(*register));
        }
    }

    /// Appendix A and sections 3.4, 5, 7: CPU B's registers.
    #[test]
    fn pairs_give_the_register_of_the_cpu() {
        assert_eq!(Register::event(Cpu::A).offset(), 0x060);
        assert_eq!(Register::event(Cpu::B).offset(), 0x070);
        assert_eq!(Register::mailbox_event(Cpu::B).offset(), 0x074);
        assert_eq!(Register::semaphore(Cpu::B).offset(), 0x04C);
        assert_eq!(Register::timer_reference(Cpu::B).offset(), 0x078);
        assert_eq!(Register::cpu_state(Cpu::B).offset(), 0x240);
        assert_eq!(Register::cpu_pc(Cpu::B).offset(), 0x244);
        assert_eq!(Register::spill_base(Cpu::B).offset(), 0x250);
        assert_eq!(Register::scratch_address(Cpu::B).offset(), 0x254);
        assert_eq!(Register::scratch_data(Cpu::B).offset(), 0x258);
    }

    /// Section 3.4: the register file is at 0x180 + 4n (A) and 0x280 + 4n (B) (I).
    #[test]
    fn register_files_are_arrays_of_words() {
        assert_eq!(cpu_gpr(Cpu::A, 31), 0x1FC);
        assert_eq!(cpu_gpr(Cpu::B, 0), 0x280);
        for cpu in Cpu::ALL {
            for n in 0..GPR_COUNT {
                assert_eq!(gpr_at(cpu_gpr(cpu, n)), Some((cpu, n)));
            }
        }
        assert_eq!(gpr_at(0x17C), None);
        assert_eq!(gpr_at(0x200), None);
        assert_eq!(gpr_at(0x182), None);
    }

    #[test]
    fn a_register_is_named_as_its_variant() {
        assert_eq!(
            Register::RxDescriptorProducer.name(),
            "RxDescriptorProducer"
        );
        assert_eq!(Register::RxDescriptorProducer.address(), 0xC000_00E0);
    }
}
