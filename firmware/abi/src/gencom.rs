//! The general communication block: words in NIC memory that both sides use.
//!
//! Host/NIC software interface, "Gencom words"; hardware reference, section 12. It is ordinary
//! memory: the host writes the configuration before it starts the firmware.

use tigon2_chip::memory;

tigon2_chip::table! {
    /// A word of the block; the value of a variant is its NIC address. The NIC writes the words
    /// that the host only reads, and the host writes all others.
    pub enum Gencom: u16 with access {
        /// BAR 0x600: bits 15:0 are the first two bytes of the MAC address.
        MacAddressHigh: RW = 0x200,
        /// BAR 0x604: the last four bytes of the MAC address.
        MacAddressLow: RW = 0x204,
        /// BAR 0x608: host address of the general information block, high half.
        InfoHigh: RW = 0x208,
        /// BAR 0x60C: host address of the general information block, low half.
        InfoLow: RW = 0x20C,
        /// BAR 0x610: address for the obsolete multicast commands, first two bytes.
        MulticastHigh: RW = 0x210,
        /// BAR 0x614: address for the obsolete multicast commands, last four bytes.
        MulticastLow: RW = 0x214,
        /// BAR 0x618: [`crate::OperatingMode`].
        OperatingMode: RW = 0x218,
        /// BAR 0x61C: [`crate::DmaConfig`] of reads.
        DmaReadConfig: RW = 0x21C,
        /// BAR 0x620: [`crate::DmaConfig`] of writes.
        DmaWriteConfig: RW = 0x220,
        /// BAR 0x624: the transmit buffer's share of the packet memory in 64ths.
        TransmitShare: RW = 0x224,
        /// BAR 0x628: event ring consumer index, written by the host.
        EventConsumer: RW = 0x228,
        /// BAR 0x62C: command ring consumer index, written by the NIC.
        CommandConsumer: R = 0x22C,
        /// BAR 0x630: receive coalescing time in microseconds.
        ReceiveTicks: RW = 0x230,
        /// BAR 0x634: transmit coalescing time in microseconds.
        TransmitTicks: RW = 0x234,
        /// BAR 0x638: time between statistics updates in microseconds.
        StatisticsTicks: RW = 0x238,
        /// BAR 0x63C: transmit BDs before an update.
        TransmitMaxBds: RW = 0x23C,
        /// BAR 0x640: receive BDs before an update.
        ReceiveMaxBds: RW = 0x240,
        /// BAR 0x644: what the firmware traces.
        TraceMask: RW = 0x244,
        /// BAR 0x648: [`crate::LinkWord`] that the host wants on gigabit links.
        GigabitLink: RW = 0x248,
        /// BAR 0x64C: [`crate::LinkWord`] that the host wants on 10/100 links.
        FastLink: RW = 0x24C,
        /// BAR 0x650: NIC address where the next trace entry goes.
        TracePointer: R = 0x250,
        /// BAR 0x654: NIC address of the trace ring.
        TraceStart: R = 0x254,
        /// BAR 0x658: bytes of the trace ring.
        TraceLength: R = 0x258,
        /// BAR 0x65C: the interface's index, repeated in the statistics.
        InterfaceIndex: RW = 0x25C,
        /// BAR 0x660: longest frame that is accepted, without CRC.
        InterfaceMtu: RW = 0x260,
        /// BAR 0x664: not 0 keeps the firmware from raising interrupts.
        MaskInterrupts: RW = 0x264,
        /// BAR 0x668: [`crate::LinkWord`] of the gigabit link as it is.
        GigabitLinkState: R = 0x268,
        /// BAR 0x66C: [`crate::LinkWord`] of the 10/100 link as it is.
        FastLinkState: R = 0x26C,
        /// BAR 0x680: receive return ring consumer index, written by the host.
        ReceiveReturnConsumer: RW = 0x280,
    }
}

/// NIC address of the block.
pub const BASE: u32 = memory::GENCOM;
/// Bytes of the block.
pub const BYTES: u32 = memory::COMMAND_RING - memory::GENCOM;

impl Gencom {
    /// The word's NIC address.
    pub const fn nic_address(self) -> u32 {
        self as u32
    }

    /// The word's offset in BAR 0.
    pub const fn bar_offset(self) -> u32 {
        self as u32 + crate::bar::DIRECT
    }
}

/// A MAC address as the two words that gencom, commands and registers hold: the first has two
/// bytes in bits 15:0, the second four.
pub const fn mac_words(address: [u8; 6]) -> (u32, u32) {
    let [a, b, c, d, e, f] = address;
    (
        u32::from_be_bytes([0, 0, a, b]),
        u32::from_be_bytes([c, d, e, f]),
    )
}

/// The MAC address in two words; bits 31:16 of `high` are ignored.
pub const fn mac_address(high: u32, low: u32) -> [u8; 6] {
    let [_, _, a, b] = high.to_be_bytes();
    let [c, d, e, f] = low.to_be_bytes();
    [a, b, c, d, e, f]
}

const _: () = {
    assert!(BASE == 0x200 && BYTES == 0x100);
    let mut index = 0;
    while index < Gencom::ALL.len() {
        let address = Gencom::ALL[index].nic_address();
        assert!(address.is_multiple_of(4) && address >= BASE && address < BASE + BYTES);
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference 12: host offset / NIC address (C).
    #[test]
    fn words_are_where_drivers_and_vendor_firmware_have_them() {
        for (word, bar, nic) in [
            (Gencom::MacAddressHigh, 0x600, 0x200),
            (Gencom::InfoLow, 0x60C, 0x20C),
            (Gencom::OperatingMode, 0x618, 0x218),
            (Gencom::CommandConsumer, 0x62C, 0x22C),
            (Gencom::ReceiveMaxBds, 0x640, 0x240),
            (Gencom::GigabitLink, 0x648, 0x248),
            (Gencom::InterfaceMtu, 0x660, 0x260),
            (Gencom::FastLinkState, 0x66C, 0x26C),
            (Gencom::ReceiveReturnConsumer, 0x680, 0x280),
        ] {
            assert_eq!(word.bar_offset(), bar, "{}", word.name());
            assert_eq!(word.nic_address(), nic, "{}", word.name());
        }
    }

    #[test]
    fn mac_addresses_survive_their_two_words() {
        let address = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];
        assert_eq!(mac_words(address), (0x0060, 0xCF20_1234));
        assert_eq!(mac_address(0xFFFF_0060, 0xCF20_1234), address);
    }
}
