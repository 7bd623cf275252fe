//! Bit fields of the control and state registers.
//!
//! Hardware reference: 9 (`R[40]`, `R[44]`, `R[50]`, `R[5C]`), 3.4 (CPU state), 6.1 and 6.2 (DMA),
//! 10.4 (MAC). Each type is one 32-bit word: `from_bits` and `into_bits` are lossless, including
//! unnamed bits.

use bitfield_struct::bitfield;

/// `R[40]` misc host control (9).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MiscHostControl {
    /// bit 0: an interrupt is pending; read-only (C!).
    pub interrupt_pending: bool,
    /// bit 1: write 1 to clear the interrupt; reads 0 (I).
    pub clear_interrupt: bool,
    __: bool,
    /// bit 3: reset the chip; reads 0 (I).
    pub reset: bool,
    /// bit 4: swap the bytes of the host's accesses (I).
    pub byte_swap: bool,
    /// bit 5: swap the words of the host's accesses; set for a plain view of 32-bit words (C).
    pub word_swap: bool,
    /// bit 6: keep the interrupt off the pin (I).
    pub mask_interrupts: bool,
    #[bits(21)]
    __: u32,
    /// bits 31:28: chip revision, read-only; see [`REVISION_TIGON_II`] (C!).
    #[bits(4)]
    pub revision: u8,
}

/// The revision that a Tigon II reports in `R[40]` bits 31:28 (9, C!).
pub const REVISION_TIGON_II: u8 = 6;

/// `R[44]` misc local control (9).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MiscLocalControl {
    #[bits(2)]
    __: u8,
    /// bit 2: raise the host interrupt; a strobe that reads 0 (C).
    pub raise_interrupt: bool,
    __: bool,
    /// bit 4: write enable of the parallel EEPROM (I).
    pub eeprom_write_enable: bool,
    /// bit 5: first LED, or shift clock of boards with 4 or 6 LEDs (I).
    pub led_clock: bool,
    /// bit 6: second LED, or shift data of boards with 4 or 6 LEDs (I).
    pub led_data: bool,
    /// bit 7: PHY or SERDES reset, active low (I).
    pub phy_reset_n: bool,
    /// bits 9:8: SRAM bank size: 0 off, 1 = 1 MB, 2 = 512 KB, 3 = 256 KB (C, stored).
    #[bits(2)]
    pub sram_bank: u8,
    #[bits(2)]
    __: u8,
    /// bit 12: general pin 0 is an output (I).
    pub pin0_drive: bool,
    /// bit 13: general pin 1 is an output (I).
    pub pin1_drive: bool,
    /// bit 14: value of general pin 0, SERDES loopback (C).
    pub pin0: bool,
    /// bit 15: value of general pin 1 (I).
    pub pin1: bool,
    /// bit 16: MDIO clock (C).
    pub mdio_clock: bool,
    /// bit 17: MDIO output enable (C).
    pub mdio_drive: bool,
    /// bit 18: MDIO data out (C).
    pub mdio_out: bool,
    /// bit 19: MDIO data in; read-only (C).
    pub mdio_in: bool,
    /// bit 20: serial EEPROM clock (C!).
    pub eeprom_clock: bool,
    /// bit 21: serial EEPROM: drive the data line (C!).
    pub eeprom_drive: bool,
    /// bit 22: serial EEPROM data out (C!).
    pub eeprom_out: bool,
    /// bit 23: serial EEPROM data in; read-only (C!).
    pub eeprom_in: bool,
    __: u8,
}

/// `R[50]` misc configuration (9).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MiscConfig {
    /// bits 6:0: the timer counts every (this + 1) core clocks (7, C value, I formula).
    #[bits(7)]
    pub timer_prescaler: u8,
    #[bits(13)]
    __: u16,
    /// bit 20: the SRAM is synchronous (C).
    pub synchronous_sram: bool,
    #[bits(3)]
    __: u8,
    /// bits 27:24: MAC interface; see [`mac_interface`] (C values, I meaning).
    #[bits(4)]
    pub mac_interface: u8,
    #[bits(4)]
    __: u8,
}

/// Values of [`MiscConfig::mac_interface`] (9).
pub mod mac_interface {
    /// On-chip SERDES path.
    pub const ON_CHIP_SERDES: u8 = 0;
    /// MII, 10 and 100 Mb/s.
    pub const MII: u8 = 7;
    /// Fibre through an external SERDES.
    pub const EXTERNAL_SERDES: u8 = 0xA;
    /// GMII, gigabit copper.
    pub const GMII: u8 = 0xD;
}

/// `R[5C]` PCI state (9; names from the public headers).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct PciState {
    /// bit 0: force a reset.
    pub force_reset: bool,
    /// bit 1: provide the length.
    pub provide_length: bool,
    /// bits 4:2: longest read burst: 0 no limit, 1..7 = 4, 16, 32, 64, 128, 256, 1024 bytes.
    #[bits(3)]
    pub read_max_dma: u8,
    /// bits 7:5: longest write burst, coded as for reads.
    #[bits(3)]
    pub write_max_dma: u8,
    /// bits 15:8: shortest burst.
    pub min_dma: u8,
    /// bit 16: retry on FIFO conditions.
    pub fifo_retry: bool,
    /// bit 17: use the memory read multiple command.
    pub memory_read_multiple: bool,
    /// bit 18: Tigon I only: no swap of read DMA.
    pub no_swap_read: bool,
    /// bit 19: the bus runs at 66 MHz; read-only (C).
    pub bus_66mhz: bool,
    /// bit 20: the bus is 32 bits wide; read-only (C).
    pub bus_32bit: bool,
    #[bits(2)]
    __: u8,
    /// bit 23: byte enables; firmware rejects them together with receive checksums (C).
    pub byte_enables: bool,
    /// bits 27:24: PCI command of reads.
    #[bits(4)]
    pub read_command: u8,
    /// bits 31:28: PCI command of writes.
    #[bits(4)]
    pub write_command: u8,
}

/// `R[140]` and `R[240]` CPU state (3.4).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CpuState {
    /// bit 0: reset the CPU (I).
    pub reset: bool,
    /// bit 1: single step (I).
    pub step: bool,
    /// bit 2: each CPU sets it for itself at its start; stored and ignored (U).
    pub started: bool,
    __: bool,
    /// bit 4: the ROM's self-test failed (I).
    pub rom_failed: bool,
    #[bits(11)]
    __: u16,
    /// bit 16: halt; 1 stops, 0 runs, reads 1 while halted (C!).
    pub halt: bool,
    /// bits 31:17: further reasons for being halted.
    #[bits(15)]
    pub halt_reasons: u16,
}

impl CpuState {
    /// Any of these bits reads 1 when the CPU is halted (3.4).
    pub const HALTED: u32 = 0xFFFF_0000;
}

/// `R[A0]`, `R[B0]` and word 4 of a DMA descriptor: a channel's state (6.1).
#[bitfield(u32)]
#[derive(
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
pub struct DmaState {
    /// bit 0: reset the channel (C).
    pub reset: bool,
    /// bit 1: keep the value of 32-bit words; 0 keeps the order of bytes (6.4, C!).
    pub no_swap: bool,
    /// bit 2: start; reads 1 while the transfer runs (C).
    pub start: bool,
    /// bit 3: use 32-bit PCI transfers only (I).
    pub force_32bit: bool,
    /// bits 8:4: FIFO threshold in words, 0 = 32 (I).
    #[bits(5)]
    pub threshold: u8,
    /// bit 9: sum the bytes (C).
    pub checksum: bool,
    /// bit 10: begin the sum at 0 (C).
    pub restart_checksum: bool,
    /// bit 11: assist: store the sum where descriptor word 5 says (C).
    pub store_checksum: bool,
    #[bits(4)]
    __: u8,
    __: bool,
    /// bit 17: read: end of frame, TxProducer becomes the end address (C!). Write: vendor
    /// sets it always (U).
    pub end_of_frame: bool,
    __: bool,
    /// bit 19: write: RxConsumer becomes the end address (C! that it frees, I which bit).
    pub free_rx_buffer: bool,
    #[bits(4)]
    __: u8,
    /// bits 31:24: errors (I).
    pub error: u8,
}

impl DmaState {
    /// The error bits that attention handlers test (6.1, I).
    pub const ERRORS: u32 = 0x7F00_0000;
    /// The error bits that are fatal at boot (6.1, I).
    pub const BOOT_ERRORS: u32 = 0xEF00_0000;
    /// With length 0 a benign end at a 4 GB boundary (6.1, I).
    pub const BOUNDARY_4GB: u32 = 0x0800_0000;
}

/// `R[11C]` DMA assist state (6.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AssistState {
    /// bit 0: run the assist engines (C).
    pub enable: bool,
    /// bit 1: pause, used round error recovery (I).
    pub pause: bool,
    /// bit 2: only one of the two channels at a time (C).
    pub one_at_a_time: bool,
    #[bits(2)]
    __: u8,
    /// bit 5: vendor sets it first; keep it (U).
    pub unknown_5: bool,
    #[bits(2)]
    __: u8,
    /// bit 8: the write channel is busy; read-only (C).
    pub write_busy: bool,
    #[bits(2)]
    __: u8,
    /// bit 11: the write ring is not empty; read-only (C).
    pub write_pending: bool,
    /// bit 12: the read channel is busy; read-only (C).
    pub read_busy: bool,
    #[bits(2)]
    __: u8,
    /// bit 15: the read ring is not empty; read-only (C).
    pub read_pending: bool,
    __: u16,
}

/// `R[200]` MAC TX state (10.4).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MacTxState {
    /// bit 0: reset, clears itself (C).
    pub reset: bool,
    /// bit 1: enable; on fibre 0 sends negotiation code words (C).
    pub enable: bool,
    /// bit 2: stop (C).
    pub stop: bool,
    __: bool,
    /// bit 4: GMII (I).
    pub gmii: bool,
    /// bit 5: full duplex (I).
    pub full_duplex: bool,
    /// bit 6: gigabit (I).
    pub gigabit: bool,
    /// bit 7: fibre PCS (I).
    pub fibre: bool,
    /// bit 8: send pause frames (I).
    pub send_pause: bool,
    #[bits(15)]
    __: u16,
    /// bits 29:24: attentions, write 1 to clear (C).
    #[bits(6)]
    pub attention: u8,
    #[bits(2)]
    __: u8,
}

impl MacTxState {
    /// The attention bits, write 1 to clear (C).
    pub const ATTENTION: u32 = 0x3F00_0000;
    /// Vendor's value for fibre, not yet enabled.
    pub const FIBRE: u32 = 0xE0;
    /// Vendor's value for gigabit copper, not yet enabled.
    pub const GIGABIT_COPPER: u32 = 0x70;
    /// Vendor's value for 10/100 full duplex, enabled.
    pub const FAST_COPPER: u32 = 0x22;
}

/// `R[220]` MAC RX state (10.4).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MacRxState {
    /// bit 0: reset, clears itself (C).
    pub reset: bool,
    /// bit 1: enable (C).
    pub enable: bool,
    /// bit 2: stop (C).
    pub stop: bool,
    /// bit 3: accept every address (C).
    pub promiscuous: bool,
    #[bits(4)]
    __: u8,
    /// bits 11:8: a threshold; 8 on revision 6 (U).
    #[bits(4)]
    pub threshold: u8,
    #[bits(3)]
    __: u8,
    /// bit 15: signal polarity (I).
    pub polarity: bool,
    /// bit 16: obey received pause frames (I).
    pub obey_pause: bool,
    __: bool,
    /// bit 18: synchronised, a signal is there; read-only (C).
    pub synchronised: bool,
    /// bit 19: negotiation code words arrive; read-only (C).
    pub code_words: bool,
    #[bits(4)]
    __: u8,
    /// bit 24: attention: link (I).
    pub link_attention: bool,
    /// bit 25: attention: sync changed (C).
    pub sync_attention: bool,
    /// bit 26: attention: code word changed (I).
    pub config_attention: bool,
    #[bits(3)]
    __: u8,
    /// bit 30: attention: no room for a received frame (C).
    pub buffer_attention: bool,
    __: bool,
}

impl MacRxState {
    /// The attention bits, write 1 to clear; any raises event bit 25 (C).
    pub const ATTENTION: u32 = 0xF700_0000;
    /// Attention bits that must be 0: firmware treats others as fatal (I).
    pub const FATAL_ATTENTION: u32 = 0xB800_0000;
    /// The threshold of chip revision 6 (U).
    pub const THRESHOLD_REVISION_6: u8 = 8;
}

#[cfg(test)]
mod tests;
