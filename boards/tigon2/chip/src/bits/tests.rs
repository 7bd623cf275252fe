//! Each field against the values that the reference names.

use super::*;

/// Reference 9: `R[40]` of a Tigon II with word swap and a pending interrupt.
#[test]
fn misc_host_control_fields() {
    let value = MiscHostControl::from_bits(0x6000_0061);
    assert_eq!(value.revision(), REVISION_TIGON_II);
    assert!(value.interrupt_pending() && value.word_swap() && value.mask_interrupts());
    assert!(!value.clear_interrupt() && !value.reset() && !value.byte_swap());
    assert_eq!(MiscHostControl::new().with_reset(true).into_bits(), 8);
}

/// Reference 9, table of `R[44]`, one bit at a time.
#[test]
fn misc_local_control_fields() {
    let bit = |value: MiscLocalControl| value.into_bits();
    let new = MiscLocalControl::new;
    assert_eq!(bit(new().with_raise_interrupt(true)), 1 << 2);
    assert_eq!(bit(new().with_eeprom_write_enable(true)), 1 << 4);
    assert_eq!(bit(new().with_led_clock(true)), 1 << 5);
    assert_eq!(bit(new().with_led_data(true)), 1 << 6);
    assert_eq!(bit(new().with_phy_reset_n(true)), 1 << 7);
    assert_eq!(bit(new().with_sram_bank(2)), 0x200);
    // Vendor's fibre value with and without loopback.
    let normal = new()
        .with_phy_reset_n(true)
        .with_pin1_drive(true)
        .with_pin1(true);
    assert_eq!(bit(normal), 0xA080);
    assert_eq!(bit(normal.with_pin0_drive(true).with_pin0(true)), 0xF080);
    assert_eq!(bit(new().with_mdio_clock(true)), 1 << 16);
    assert_eq!(bit(new().with_mdio_drive(true)), 1 << 17);
    assert_eq!(bit(new().with_mdio_out(true)), 1 << 18);
    assert_eq!(bit(new().with_mdio_in(true)), 1 << 19);
    assert_eq!(bit(new().with_eeprom_clock(true)), 1 << 20);
    assert_eq!(bit(new().with_eeprom_drive(true)), 1 << 21);
    assert_eq!(bit(new().with_eeprom_out(true)), 1 << 22);
    assert_eq!(bit(new().with_eeprom_in(true)), 1 << 23);
}

/// Reference 11: `R[50]` = 0x0D100055 for 1000BASE-T.
#[test]
fn misc_config_fields() {
    let value = MiscConfig::from_bits(0x0D10_0055);
    assert_eq!(value.timer_prescaler(), 85);
    assert!(value.synchronous_sram());
    assert_eq!(value.mac_interface(), mac_interface::GMII);
}

/// Reference, confirmed with the real driver: it writes 0x76020000 and reads the bus bits.
#[test]
fn pci_state_fields() {
    let value = PciState::from_bits(0x7602_0000);
    assert_eq!(value.write_command(), 7);
    assert_eq!(value.read_command(), 6);
    assert!(value.memory_read_multiple());
    assert_eq!(PciState::new().with_bus_66mhz(true).into_bits(), 0x8_0000);
    assert_eq!(PciState::new().with_bus_32bit(true).into_bits(), 0x10_0000);
    assert_eq!(PciState::new().with_byte_enables(true).into_bits(), 1 << 23);
}

/// Reference 3.4: halt is bit 16 and the driver reads bits 31:16.
#[test]
fn cpu_state_fields() {
    let halted = CpuState::new().with_halt(true);
    assert_eq!(halted.into_bits(), 0x1_0000);
    assert_ne!(halted.into_bits() & CpuState::HALTED, 0);
    assert!(CpuState::from_bits(4).started());
    assert!(CpuState::from_bits(0x10).rom_failed());
}

/// Reference 6.1: vendor's state words 0xA0004 (data writes), 0x20004 (last data read).
#[test]
fn dma_state_fields() {
    let data = DmaState::from_bits(0x000A_0084);
    assert!(data.start() && data.end_of_frame() && data.free_rx_buffer());
    assert_eq!(data.threshold(), 8);
    assert!(!data.no_swap() && !data.checksum());
    let sums = DmaState::new()
        .with_checksum(true)
        .with_restart_checksum(true)
        .with_store_checksum(true);
    assert_eq!(sums.into_bits(), 0xE00);
    assert_eq!(DmaState::from_bits(DmaState::BOUNDARY_4GB).error(), 8);
}

/// Reference 6.2: 0x20 -> 0x21 -> 0x25, and live bits 8, 11, 12, 15.
#[test]
fn assist_state_fields() {
    let value = AssistState::from_bits(0x25);
    assert!(value.enable() && value.one_at_a_time() && value.unknown_5() && !value.pause());
    let live = AssistState::new()
        .with_write_busy(true)
        .with_write_pending(true)
        .with_read_busy(true)
        .with_read_pending(true);
    assert_eq!(live.into_bits(), 0x9900);
}

/// Reference 10.4: vendor's values.
#[test]
fn mac_state_fields() {
    let tx = MacTxState::from_bits(MacTxState::FIBRE).with_enable(true);
    assert_eq!(tx.into_bits(), 0xE2);
    assert!(tx.fibre() && tx.gigabit() && tx.full_duplex() && !tx.gmii());
    assert_eq!(
        MacTxState::new().with_attention(0x3F).into_bits(),
        MacTxState::ATTENTION
    );

    let rx = MacRxState::from_bits(0x0001_880A);
    assert!(rx.enable() && rx.promiscuous() && rx.polarity() && rx.obey_pause());
    assert_eq!(rx.threshold(), MacRxState::THRESHOLD_REVISION_6);
    let attentions = MacRxState::new()
        .with_link_attention(true)
        .with_sync_attention(true)
        .with_config_attention(true)
        .with_buffer_attention(true)
        .into_bits();
    assert_eq!(attentions, 0x4700_0000);
    assert_eq!(attentions & !MacRxState::ATTENTION, 0);
    assert_eq!(attentions & MacRxState::FATAL_ATTENTION, 0);
}
