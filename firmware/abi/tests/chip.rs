//! Tests that the interface's own definitions of the chip agree with the chip crate.

use host_interface::bd::BdErrors;
use host_interface::{image, ring};
use tigon2_chip::mac::RxError;
use tigon2_chip::{bits, memory};

#[test]
fn nic_memory_has_one_map() {
    assert_eq!(
        ring::nic_send_ring(ring::SEND_ENTRIES_MAX),
        Some(memory::NIC_SEND_RING)
    );
    assert_eq!(image::LOWEST, memory::FIRMWARE_BASE);
}

/// Hardware reference 10.3: the MAC's errors have the order of the public BDERR bits (C).
#[test]
fn errors_of_the_mac_can_be_copied_to_a_return_bd() {
    for (mac, bd) in [
        (RxError::CRC, BdErrors::new().with_crc(true)),
        (RxError::COLLISION, BdErrors::new().with_collision(true)),
        (RxError::LINK_LOST, BdErrors::new().with_link_lost(true)),
        (RxError::PHY_DECODE, BdErrors::new().with_phy_decode(true)),
        (RxError::ODD_NIBBLES, BdErrors::new().with_odd_nibbles(true)),
        (RxError::MAC_ABORT, BdErrors::new().with_mac_abort(true)),
        (RxError::RUNT, BdErrors::new().with_runt(true)),
        (RxError::TRUNCATED, BdErrors::new().with_truncated(true)),
        (RxError::GIANT, BdErrors::new().with_giant(true)),
    ] {
        assert_eq!(mac.0, bd.into_bits(), "{bd:?}");
    }
}

/// Hardware reference 6.1: bits 8:4 and 3 are taken from gencom's DMA configuration (I).
#[test]
fn dma_configuration_is_part_of_a_state_word() {
    let config = host_interface::DmaConfig::new()
        .with_threshold_words(8)
        .with_force_32bit(true);
    let state = bits::DmaState::new()
        .with_threshold(8)
        .with_force_32bit(true);
    assert_eq!(config.into_bits(), state.into_bits());
}
