//! Operating mode and DMA configuration words of gencom.
//!
//! Host/NIC software interface, "Operating mode bits"; hardware reference, section 12.

use bitfield_struct::bitfield;

/// Operating mode: BAR 0x618.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct OperatingMode {
    __: bool,
    /// bit 1: swap bytes of BDs; clear on a little-endian host.
    pub byte_swap_bd: bool,
    /// bit 2: swap words of BDs; vendor firmware ignores it.
    pub word_swap_bd: bool,
    /// bit 3: warnings.
    pub warn: bool,
    /// bit 4: swap bytes of data; set on a little-endian host.
    pub byte_swap_data: bool,
    __: bool,
    /// bit 6: only one DMA channel is active at a time.
    pub one_dma: bool,
    /// bit 7: alternate meaning of the LEDs.
    pub alternate_leds: bool,
    /// bit 8: SBus card.
    pub sbus: bool,
    /// bit 9: do not spread a jumbo frame over several buffers.
    pub no_jumbo_fragments: bool,
    /// bit 10: leave the CRC on received frames.
    pub include_crc: bool,
    /// bit 11: deliver bad frames as well.
    pub bad_frames: bool,
    /// bit 12: no interrupts for events.
    pub no_event_interrupts: bool,
    /// bit 13: no interrupts for transmit updates.
    pub no_transmit_interrupts: bool,
    /// bit 14: no interrupts for receive updates.
    pub no_receive_interrupts: bool,
    /// bit 15: split the header off jumbo frames.
    pub jumbo_header_split: bool,
    #[bits(14)]
    __: u16,
    /// bit 30: fatal errors stop the firmware.
    pub fatal: bool,
    __: bool,
}

/// DMA read and write configuration, BAR 0x61C and 0x620: bits 8:3 of a DMA state word.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DmaConfig {
    #[bits(3)]
    __: u8,
    /// bit 3: use 32-bit PCI transfers only.
    pub force_32bit: bool,
    /// bits 8:4: FIFO threshold in 32-bit words: 1, 2, 4, 8, 16; 0 means 32.
    #[bits(5)]
    pub threshold_words: u8,
    #[bits(23)]
    __: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference, "Linux settings": OPMODE 0x4000021C on a little-endian host.
    #[test]
    fn the_linux_mode_word() {
        let linux = OperatingMode::new()
            .with_byte_swap_data(true)
            .with_warn(true)
            .with_fatal(true)
            .with_word_swap_bd(true)
            .with_no_jumbo_fragments(true);
        assert_eq!(linux.into_bits(), 0x4000_021C);
    }

    /// Hardware reference 6.1: thresholds 0x10 = 1 word .. 0x100 = 16 words.
    #[test]
    fn dma_thresholds_are_in_words() {
        assert_eq!(DmaConfig::new().with_threshold_words(1).into_bits(), 0x10);
        assert_eq!(DmaConfig::new().with_threshold_words(8).into_bits(), 0x80);
        assert_eq!(DmaConfig::new().with_threshold_words(16).into_bits(), 0x100);
        assert_eq!(DmaConfig::new().with_force_32bit(true).into_bits(), 8);
    }

    /// Host/NIC software interface, "Operating mode bits".
    #[test]
    fn interrupt_and_frame_bits() {
        assert_eq!(
            OperatingMode::new().with_byte_swap_bd(true).into_bits(),
            0x2
        );
        assert_eq!(OperatingMode::new().with_one_dma(true).into_bits(), 0x40);
        assert_eq!(
            OperatingMode::new().with_include_crc(true).into_bits(),
            0x400
        );
        assert_eq!(
            OperatingMode::new().with_bad_frames(true).into_bits(),
            0x800
        );
        assert_eq!(
            OperatingMode::new()
                .with_no_event_interrupts(true)
                .into_bits(),
            0x1000
        );
        assert_eq!(
            OperatingMode::new()
                .with_no_transmit_interrupts(true)
                .into_bits(),
            0x2000
        );
        assert_eq!(
            OperatingMode::new()
                .with_no_receive_interrupts(true)
                .into_bits(),
            0x4000
        );
    }
}
