//! Tests the metadata between driver and card: checksums, tags, errors.

mod support;

use std::io::IoSlice;

use host_driver::checksum;
use host_driver::nic::{ChecksumOffload, DropReason, Ring, SendOptions};
use host_driver::stack::card::CardWire;
use host_driver::stack::{Host, Identity};
use host_driver::{Config, NicError};
use host_interface::OperatingMode;
use host_interface::bd::{BdErrors, BdFlags};
use host_interface::info::RcbFlags;
use smoltcp::wire::{EthernetFrame, Ipv4Cidr, Ipv4Packet, UdpPacket};
use support::{STATION, frame, open_card};

fn ring_flags(nic: &mut host_driver::Nic<support::ScriptedCard>, offset: u64) -> u16 {
    let flags = nic.transport().info_word(offset + 8) as u16;
    RcbFlags::from_bits(flags).into_bits()
}

/// Reference, "Linux settings": send RCB flags 0x79, receive RCBs 0x19 (C).
#[test]
fn the_flags_of_every_ring_are_those_of_linux() {
    let mut nic = open_card(Config {
        mtu: 9000,
        mini: Some(100),
        send_checksums: ChecksumOffload::LINUX,
        receive_checksums: ChecksumOffload::LINUX,
        vlan: true,
        ..Config::default()
    });
    let rings = [(0x420, 0x79), (0x430, 0x19), (0x440, 0x19), (0x450, 0x19)];
    for (offset, flags) in rings {
        assert_eq!(ring_flags(&mut nic, offset), flags, "{offset:#x}");
    }
    let mut nic = open_card(Config::default());
    let rings = [(0x420, 0x60), (0x430, 0), (0x440, 0x200), (0x450, 0x200)];
    for (offset, flags) in rings {
        assert_eq!(ring_flags(&mut nic, offset), flags, "{offset:#x}");
    }
}

#[test]
fn what_is_asked_for_stands_in_every_bd_of_the_frame() {
    let mut nic = open_card(Config::default());
    let options = SendOptions {
        vlan: Some(0x6005),
        transport_checksum: true,
        ip_checksum: true,
        coalesce_now: true,
    };
    let (head, body) = (frame(1, 14), frame(2, 800));
    let fragments = [IoSlice::new(&head), IoSlice::new(&body)];
    assert!(nic.queue_as(&fragments, options).expect("an open card"));
    assert!(nic.queue(&[IoSlice::new(&body)]).expect("an open card"));
    nic.submit().expect("a card");
    let bds = &nic.transport().sent_bds;
    for bd in &bds[0] {
        assert_eq!(bd.vlan(), 0x6005);
        assert_eq!(bd.flags().into_bits() & 0x203, 0x203);
    }
    assert!(bds[0][1].flags().coalesce_now() && !bds[0][0].flags().coalesce_now());
    assert_eq!((bds[1][0].flags().into_bits(), bds[1][0].vlan()), (4, 0));
}

#[test]
fn tags_and_sums_are_handed_up_when_their_flags_say_so() {
    let mut nic = open_card(Config::default());
    let flags = BdFlags::new()
        .with_vlan_tag(true)
        .with_transport_checksum(true);
    nic.transport()
        .deliver_in(Ring::Standard, &frame(1, 60), |bd| {
            bd.with_flags(flags)
                .with_checksums(0x1111, 0x2222)
                .with_errors_and_vlan(BdErrors::new(), 5)
        });
    nic.transport()
        .deliver_in(Ring::Standard, &frame(2, 60), |bd| {
            bd.with_checksums(0x1111, 0x2222)
                .with_errors_and_vlan(BdErrors::from_bits(0x1FF), 5)
        });
    let received = nic.receive_described(8).expect("good BDs");
    assert_eq!(received[0].vlan, Some(5));
    assert_eq!(received[0].checksums.transport, Some(0x2222));
    assert_eq!(received[0].checksums.ip, None);
    assert_eq!(received[0].errors, None);
    assert_eq!(
        (received[1].vlan, received[1].checksums.transport),
        (None, None)
    );
    assert_eq!(received[1].errors, None);
}

#[test]
fn bad_frames_come_only_when_they_were_asked_for() {
    let flags = BdFlags::new().with_error(true);
    let runt = |bd: host_interface::bd::ReceiveBd| {
        bd.with_flags(flags)
            .with_errors_and_vlan(BdErrors::new().with_runt(true).with_crc(true), 0)
    };
    let mut nic = open_card(Config::default());
    nic.transport()
        .deliver_in(Ring::Standard, &frame(1, 9), runt);
    assert_eq!(nic.receive_batch(8).expect("counted"), [[0; 0]; 0]);
    assert_eq!(nic.drops().get(DropReason::FrameError), 1);
    let mut nic = open_card(Config {
        mode: OperatingMode::new().with_bad_frames(true).with_fatal(true),
        ..Config::default()
    });
    nic.transport()
        .deliver_in(Ring::Standard, &frame(1, 9), runt);
    let received = nic.receive_described(8).expect("a bad frame");
    assert_eq!(received[0].bytes, frame(1, 9));
    assert_eq!(received[0].errors.map(BdErrors::into_bits), Some(0x41));
}

/// A stack over a card that makes the checksums hands frames over unfinished, and
/// the card can finish them.
#[test]
fn a_stack_leaves_the_checksums_to_the_card() {
    for offload in [ChecksumOffload::LINUX, ChecksumOffload::FULL] {
        let mut nic = open_card(Config {
            send_checksums: offload,
            receive_checksums: offload,
            ..Config::default()
        });
        let identity = Identity {
            station: STATION,
            address: Ipv4Cidr::new([10, 84, 0, 1].into(), 24),
        };
        let mut host = Host::new(CardWire::new(&mut nic), identity);
        let socket = {
            use smoltcp::socket::udp;
            let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY], vec![0; 512]);
            let mut socket = udp::Socket::new(buffer(), buffer());
            socket.bind(1000).expect("a port");
            let all = (smoltcp::wire::Ipv4Address::BROADCAST, 2000);
            socket.send_slice(b"payload", all).expect("room");
            host.sockets.add(socket)
        };
        host.turn().expect("a card");
        host.sockets.remove(socket);
        drop(host);
        let card = nic.transport();
        let flags = card.sent_bds[0][0].flags();
        assert_eq!(
            (flags.transport_checksum(), flags.ip_checksum()),
            (true, offload.ip)
        );
        // What the card adds.
        let mut frame = card.sent[0].clone();
        let mut ethernet = EthernetFrame::new_checked(&mut frame).expect("a frame");
        let mut packet = Ipv4Packet::new_checked(ethernet.payload_mut()).expect("a packet");
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        if offload.ip {
            packet.fill_checksum();
        }
        assert!(packet.verify_checksum());
        let mut total = checksum::sum(packet.payload_mut());
        if !offload.no_pseudo_header {
            let mut pseudo = [from.octets(), to.octets(), [0, 17, 0, 15]].concat();
            pseudo[11] = packet.payload_mut().len() as u8;
            total = checksum::add(total, checksum::sum(&pseudo));
        }
        let mut datagram = UdpPacket::new_checked(packet.payload_mut()).expect("a datagram");
        datagram.set_checksum(!total);
        assert!(datagram.verify_checksum(&from.into(), &to.into()));
    }
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let mut nic = open_card(Config::default());
    use host_interface::command::CommandCode;
    let error = nic.raw_command(CommandCode::AddMulticastExtended, 0);
    assert!(matches!(error, Err(NicError::BadSetting { .. })));
}
