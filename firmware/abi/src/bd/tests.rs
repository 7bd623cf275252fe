//! Fields of descriptors against the interface's words.

use super::*;

/// "BD flags" and "Error flags", each by its number.
#[test]
fn flags_have_the_numbers_of_the_interface() {
    let flag = BdFlags::new;
    assert_eq!(flag().with_transport_checksum(true).into_bits(), 0x001);
    assert_eq!(flag().with_ip_checksum(true).into_bits(), 0x002);
    assert_eq!(flag().with_end(true).into_bits(), 0x004);
    assert_eq!(flag().with_more(true).into_bits(), 0x008);
    assert_eq!(flag().with_jumbo_ring(true).into_bits(), 0x010);
    assert_eq!(
        flag().with_destination(destination::UNICAST).into_bits(),
        0x020
    );
    assert_eq!(
        flag().with_destination(destination::MULTICAST).into_bits(),
        0x040
    );
    assert_eq!(
        flag().with_destination(destination::BROADCAST).into_bits(),
        0x060
    );
    assert_eq!(flag().with_ip_fragment(true).into_bits(), 0x080);
    assert_eq!(flag().with_ip_fragment_end(true).into_bits(), 0x100);
    assert_eq!(flag().with_vlan_tag(true).into_bits(), 0x200);
    assert_eq!(flag().with_error(true).into_bits(), 0x400);
    assert_eq!(flag().with_coalesce_now(true).into_bits(), 0x800);
    assert_eq!(flag().with_mini_ring(true).into_bits(), 0x1000);
    assert_eq!(BdErrors::new().with_crc(true).into_bits(), 1);
    assert_eq!(BdErrors::new().with_mac_abort(true).into_bits(), 0x20);
    assert_eq!(BdErrors::new().with_truncated(true).into_bits(), 0x80);
    assert_eq!(BdErrors::new().with_giant(true).into_bits(), 0x100);
}

/// "Send BD: 64-bit host address; len:16, flags:16; reserved:16, vlan:16".
#[test]
fn send_bd_words() {
    let bd = SendBd::new(0x1_2345_6789, 1514, BdFlags::new().with_end(true), 5);
    assert_eq!(bd.words(), [1, 0x2345_6789, 0x05EA_0004, 5]);
    assert_eq!(SendBd::from_words(bd.words()), bd);
    assert_eq!((bd.length(), bd.vlan()), (1514, 5));
    assert!(bd.flags().end());
}

/// "idx:16, len:16; type:16, flags:16; ip_csum:16, tcp_udp_csum:16; error_flags:16,
/// vlan:16; reserved:32; opaque:32".
#[test]
fn receive_bd_words() {
    let bd = ReceiveBd::new(
        0x8000_1000,
        1522,
        BdFlags::new().with_mini_ring(true),
        7,
        99,
    )
    .with_checksums(0xFFFF, 0x1234)
    .with_errors_and_vlan(BdErrors::new().with_crc(true), 5);
    let words = [
        0,
        0x8000_1000,
        0x0007_05F2,
        0x1000,
        0xFFFF_1234,
        0x0001_0005,
        0,
        99,
    ];
    assert_eq!(bd.words(), words);
    assert_eq!(ReceiveBd::from_words(words), bd);
    assert_eq!((bd.index(), bd.length(), bd.kind()), (7, 1522, 0));
    assert_eq!(
        (bd.ip_checksum(), bd.transport_checksum(), bd.vlan()),
        (0xFFFF, 0x1234, 5)
    );
    assert!(bd.errors().crc());
    assert_eq!(bd.with_length(60).index(), 7);
    assert_eq!(bd.with_flags(BdFlags::new()).flags(), BdFlags::new());
}

/// "addr1, addr2, addr3; len1:16 len2:16; len3:16 reserved:16; then the 32-byte BD".
#[test]
fn extended_bd_buffers() {
    let bd = ExtendedReceiveBd {
        address1: HostAddress::new(0x1000),
        address2: HostAddress::new(0x2000),
        address3: HostAddress::new(0x3000),
        lengths_1_2: 0x0800_0400,
        length_3: 0x0200_0000,
        base: ReceiveBd::new(0x4000, 2048, BdFlags::new(), 0, 0),
    };
    let buffers: Vec<_> = (0..5)
        .map(|n| bd.buffer(n))
        .map(|(a, l)| (a.get(), l))
        .collect();
    let expected = [
        (0x4000, 2048),
        (0x1000, 2048),
        (0x2000, 1024),
        (0x3000, 512),
        (0, 0),
    ];
    assert_eq!(buffers, expected);
}
