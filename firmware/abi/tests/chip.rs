//! The interface and the chip name some of the same places: they must be the same.
//!
//! The crate itself does not depend on the chip's, because drivers for other hosts need
//! the one without the other.

use host_interface::bd::BdErrors;
use host_interface::{bar, gencom, image, pci, ring};
use tigon2_chip::mac::RxError;
use tigon2_chip::mailbox::{self, Mailbox};
use tigon2_chip::{bits, memory};

#[test]
fn mailboxes_are_where_the_chip_has_them() {
    for (offset, mailbox) in [
        (bar::MAILBOX_HOST_INTERRUPT, Mailbox::HostInterrupt),
        (bar::MAILBOX_COMMAND_PRODUCER, Mailbox::CommandProducer),
        (bar::MAILBOX_SEND_PRODUCER, Mailbox::SendProducer),
        (bar::MAILBOX_STANDARD_PRODUCER, Mailbox::StandardProducer),
        (bar::MAILBOX_JUMBO_PRODUCER, Mailbox::JumboProducer),
        (bar::MAILBOX_MINI_PRODUCER, Mailbox::MiniProducer),
    ] {
        assert_eq!(offset, mailbox.bar_offset(), "{mailbox:?}");
    }
    assert_eq!(bar::MAILBOXES, mailbox::BAR_BASE);
}

#[test]
fn nic_memory_has_one_map() {
    let seen = |address| bar::direct_offset(address).expect("it is directly visible");
    assert_eq!(bar::DIRECT_BYTES, memory::DIRECT_BYTES);
    assert_eq!(bar::MAC_STATISTICS, seen(memory::MAC_STATISTICS));
    assert_eq!(bar::MAILBOXES, seen(memory::MAILBOXES));
    assert_eq!(bar::GENCOM, seen(memory::GENCOM));
    assert_eq!(bar::COMMAND_RING, seen(memory::COMMAND_RING));
    assert_eq!(gencom::BASE, memory::GENCOM);
    assert_eq!(gencom::BASE + gencom::BYTES, memory::COMMAND_RING);
    assert_eq!(
        ring::nic_send_ring(ring::SEND_ENTRIES_MAX),
        Some(memory::NIC_SEND_RING)
    );
    assert_eq!(image::LOWEST, memory::FIRMWARE_BASE);
    assert_eq!(
        (bar::BYTES, bar::DIRECT),
        (pci::BAR0_BYTES, memory::REGISTERS_BYTES)
    );
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
