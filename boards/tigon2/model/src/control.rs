//! Chip control: `R[40]` misc host control, `R[44]` misc local control, `R[5C]` PCI state.
//!
//! Hardware reference, section 9, with the corrections of section 19.

use crate::board::PciIdentity;
use tigon2_chip::bits::{MiscHostControl, MiscLocalControl, PciState, REVISION_TIGON_II};

/// `R[40]` without the interrupt state, which [`Interrupt`](crate::interrupt::Interrupt) holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostControl {
    byte_swap: bool,
    word_swap: bool,
    mask_interrupts: bool,
}

/// The actions that a write to `R[40]` requests, besides storing bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostControlWrite {
    /// Bit 1: clear the interrupt.
    pub clear_interrupt: bool,
    /// Bit 3: reset the chip.
    pub reset: bool,
}

impl HostControl {
    /// Bit 6: the interrupt does not reach the pin.
    pub fn masked(&self) -> bool {
        self.mask_interrupts
    }

    /// Bit 4: the bytes of the host's accesses are reversed (I).
    pub fn byte_swap(&self) -> bool {
        self.byte_swap
    }

    /// Bit 5: the host sees NIC words at their own addresses.
    pub fn word_swap(&self) -> bool {
        self.word_swap
    }

    /// `R[40]`: bits 1 and 3 read 0, bits 31:28 read 6 (19, C!).
    pub fn read(&self, interrupt_pending: bool) -> u32 {
        MiscHostControl::new()
            .with_interrupt_pending(interrupt_pending)
            .with_byte_swap(self.byte_swap)
            .with_word_swap(self.word_swap)
            .with_mask_interrupts(self.mask_interrupts)
            .with_revision(REVISION_TIGON_II)
            .into_bits()
    }

    /// A write: the mirror in the top byte, the revision and bit 0 are ignored (19, FIX).
    pub fn write(&mut self, value: u32) -> HostControlWrite {
        let value = MiscHostControl::from_bits(value);
        self.byte_swap = value.byte_swap();
        self.word_swap = value.word_swap();
        self.mask_interrupts = value.mask_interrupts();
        HostControlWrite {
            clear_interrupt: value.clear_interrupt(),
            reset: value.reset(),
        }
    }
}

/// `R[44]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalControl {
    stored: MiscLocalControl,
}

impl LocalControl {
    /// The lines as last written.
    pub fn lines(&self) -> MiscLocalControl {
        self.stored
    }

    /// `R[44]` with the levels of the data lines of EEPROM and PHY. Bit 2 is a strobe and reads 0.
    pub fn read(&self, eeprom_in: bool, mdio_in: bool) -> u32 {
        self.stored
            .with_eeprom_in(eeprom_in)
            .with_mdio_in(mdio_in)
            .into_bits()
    }

    /// A write; returns whether it raises the host interrupt. Bits 19 and 23 are inputs
    /// and are not stored (19, NEW).
    pub fn write(&mut self, value: u32) -> bool {
        let value = MiscLocalControl::from_bits(value);
        self.stored = value
            .with_raise_interrupt(false)
            .with_mdio_in(false)
            .with_eeprom_in(false);
        value.raise_interrupt()
    }

    /// Bits 12 and 14: pin 0 is driven high, the external SERDES loops back (9, C).
    pub fn pin_loopback(&self) -> bool {
        self.stored.pin0_drive() && self.stored.pin0()
    }
}

/// `R[5C]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusState {
    stored: PciState,
    bus: PciState,
}

impl BusState {
    /// The register of a card in this kind of slot.
    pub fn new(pci: &PciIdentity) -> Self {
        BusState {
            stored: PciState::new(),
            bus: PciState::new()
                .with_bus_66mhz(pci.mhz == 66)
                .with_bus_32bit(pci.bits == 32),
        }
    }

    /// The register: bits 19 and 20 show the bus (19, C).
    pub fn read(&self) -> u32 {
        self.stored.into_bits() | self.bus.into_bits()
    }

    /// A write: stores all bits except the two of the bus.
    pub fn write(&mut self, value: u32) {
        self.stored = PciState::from_bits(value)
            .with_bus_66mhz(false)
            .with_bus_32bit(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Board;
    use crate::Effect;
    use crate::testing::Bench;
    use tigon2_chip::Register;

    /// Reference 19: after 0x22000022 the driver reads revision 6 and later writes plain
    /// read-modify-writes; bits 1 and 3 read 0 and the mirror is ignored (C!).
    #[test]
    fn host_control_reads_back_what_the_driver_expects() {
        let mut bench = Bench::default();
        bench.bar_write(0x40, 0x0800_0008);
        bench.bar_write(0x40, 0x2200_0022);
        assert_eq!(bench.bar_read(0x40), 0x6000_0020);
        bench.bar_write(0x40, 0x6000_0060);
        assert_eq!(bench.bar_read(0x40), 0x6000_0060);
        bench.bar_write(0x40, 0x6000_0021);
        assert_eq!(
            bench.bar_read(0x40),
            0x6000_0020,
            "a written bit 0 is ignored"
        );
    }

    /// Reference 8: R[44] bit 2 raises the interrupt and reads back 0; R[40] bit 0 shows it;
    /// mailbox 0 clears it (C!), so does R[40] bit 1 (I).
    #[test]
    fn the_interrupt_is_raised_and_cleared() {
        let mut bench = Bench::default();
        bench.bar_write(0x40, 0x2200_0022);
        bench.write(Register::MiscLocalControl, 0x84);
        // Bit 23 is the pulled-up data line of the EEPROM.
        assert_eq!(bench.read(Register::MiscLocalControl), 0x80_0080);
        assert_eq!(bench.bar_read(0x40) & 1, 1);
        bench.bar_write(0x504, 0);
        assert_eq!(bench.bar_read(0x40) & 1, 0);
        assert_eq!(
            bench.effects(),
            [Effect::Interrupt(true), Effect::Interrupt(false)]
        );
        bench.write(Register::MiscLocalControl, 0x84);
        bench.bar_write(0x40, 0x22);
        assert_eq!(
            bench.effects(),
            [Effect::Interrupt(true), Effect::Interrupt(false)]
        );
    }

    /// Reference 9 and 19: bit 6 keeps it off the pin, bit 0 stays visible; unmasking with
    /// 0x60000021 asserts it.
    #[test]
    fn a_masked_interrupt_waits() {
        let mut bench = Bench::default();
        bench.bar_write(0x40, 0x6000_0060);
        bench.write(Register::MiscLocalControl, 4);
        assert_eq!(bench.bar_read(0x40), 0x6000_0061);
        assert_eq!(bench.effects(), []);
        bench.bar_write(0x40, 0x6000_0021);
        assert_eq!(bench.effects(), [Effect::Interrupt(true)]);
    }

    /// Reference 9 and 19: firmware's read-modify-write of R[44] writes the inputs 19 and 23 back
    /// as 1: they are masked (NEW). Bits 9:8 are stored (C).
    #[test]
    fn local_control_does_not_store_its_inputs() {
        let mut control = LocalControl::default();
        assert!(!control.write(0x00E8_3240));
        assert_eq!(control.read(false, false), 0x0060_3240);
        assert_eq!(control.read(true, true), 0x00E8_3240);
        assert_eq!(control.lines().sram_bank(), 2);
        assert!(!control.pin_loopback());
        control.write(0xF080);
        assert!(control.pin_loopback());
        control.write(0xA080);
        assert!(!control.pin_loopback());
    }

    /// Reference 19: bit 19 = 66 MHz, bit 20 = 32-bit bus, the driver writes 0x76020000 (C).
    #[test]
    fn pci_state_shows_the_bus() {
        let mut pci = Board::default().pci;
        (pci.mhz, pci.bits) = (33, 32);
        let mut state = BusState::new(&pci);
        state.write(0x7602_0000 | 0x8_0000);
        assert_eq!(state.read(), 0x7612_0000);
        (pci.mhz, pci.bits) = (66, 64);
        assert_eq!(BusState::new(&pci).read(), 0x8_0000);
    }
}
