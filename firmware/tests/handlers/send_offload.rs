//! Tests checksums and VLAN tags that the card inserts into the host's frames.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use crate::packet::{Packet, TCP, UDP, add, put, sum};
use host_interface::bd::BdFlags;
use host_interface::info::RcbFlags;

/// The send flags of Linux' driver but for the index update: TCP/UDP sums whose
/// pseudo-header the host did, VLAN, ring in host memory.
fn linux() -> RcbFlags {
    RcbFlags::new()
        .with_transport_checksum(true)
        .with_no_pseudo_header(true)
        .with_vlan_assist(true)
        .with_host_ring(true)
}

/// All is left to the card.
fn everything() -> RcbFlags {
    linux().with_no_pseudo_header(false).with_ip_checksum(true)
}

const TRANSPORT: BdFlags = BdFlags::new().with_transport_checksum(true);
const BOTH: BdFlags = TRANSPORT.with_ip_checksum(true);

fn machine(flags: RcbFlags) -> Machine {
    let mut setup = Setup::default();
    setup.information.send.max_len_and_flags = 128 << 16 | u32::from(flags.into_bits());
    Machine::up(&setup)
}

/// Sends `given` and expects `wanted` on the wire.
#[track_caller]
fn goes_out_as(machine: &mut Machine, given: &[u8], flags: BdFlags, wanted: &[u8]) {
    machine.put_frame_with(&[given], flags, 0);
    machine.send();
    let mut wanted = wanted.to_vec();
    wanted.resize(wanted.len().max(60), 0);
    assert_eq!(machine.wire.pop().as_deref(), Some(&wanted[..]));
    assert!(machine.wire.is_empty());
    machine.acknowledge();
}

/// Reference 13, 16: TCP/UDP alone, with the pseudo-header done by the host as Linux does;
/// the IP header with its valid sum adds 0xFFFF (C).
#[test]
fn the_transport_checksum_with_the_hosts_pseudo_header() {
    let mut machine = machine(linux());
    for protocol in [TCP, UDP] {
        for data in (0..40).chain([555, 1000, 1452]) {
            let packet = Packet::new(protocol, data, data as u32);
            goes_out_as(
                &mut machine,
                &packet.with_pseudo_sum(),
                TRANSPORT,
                &packet.wire(),
            );
        }
    }
}

/// Reference 13: pseudo-header and IP header by the card; what the host left in the fields
/// does not matter.
#[test]
fn all_checksums_by_the_card() {
    let mut machine = machine(everything());
    for protocol in [TCP, UDP] {
        for data in (0..40).chain([555, 1000, 1452]) {
            let packet = Packet::new(protocol, data, data as u32);
            goes_out_as(&mut machine, &packet.with_junk(), BOTH, &packet.wire());
        }
    }
}

/// Reference 6.5: the sum continues over the descriptors of a frame, wherever it is cut;
/// the headers are not in the first BD, or it holds a part of them (C!).
#[test]
fn a_frame_may_be_cut_anywhere() {
    let mut machine = machine(linux());
    let packet = Packet::new(TCP, 1001, 3);
    let (given, wanted) = (packet.with_pseudo_sum(), packet.wire());
    for cut in 1..80 {
        for second in [cut + 1, cut + 2, 333, 1054] {
            let pieces = [&given[..cut], &given[cut..second], &given[second..]];
            machine.put_frame_with(&pieces, TRANSPORT, 0);
            machine.send();
            assert_eq!(machine.wire.pop().as_ref(), Some(&wanted), "{cut} {second}");
            machine.acknowledge();
        }
    }
}

/// Up to a ring full of BDs for one frame, a byte each where need be; the ring of read
/// descriptors is smaller than that.
#[test]
fn a_frame_may_take_all_bds_of_the_ring() {
    for flags in [linux(), RcbFlags::new().with_host_ring(true)] {
        let mut machine = machine(flags);
        for count in [18, 61, 64, 127] {
            let packet = Packet::new(UDP, 700, count as u32);
            let given = packet.with_pseudo_sum();
            let wanted = if flags.transport_checksum() {
                packet.wire()
            } else {
                given.clone()
            };
            let (front, rest) = given.split_at(count - 1);
            let mut pieces: Vec<&[u8]> = front.chunks(1).collect();
            pieces.push(rest);
            machine.put_frame_with(&pieces, TRANSPORT, 0);
            machine.send();
            assert_eq!(machine.wire.pop().as_ref(), Some(&wanted), "{count}");
            machine.pass(200);
            assert_eq!(machine.send_consumer(), machine.send_producer());
        }
    }
}

/// Reference 13: frames with and without checksums go out in the order of the ring, three
/// times round the transmit buffer, whose end no header crosses.
#[test]
fn mixed_frames_keep_their_order_round_the_buffer() {
    let mut machine = machine(linux());
    let mut wanted = Vec::new();
    for seed in 0..900usize {
        let packet = Packet::new([TCP, UDP][seed % 2], (seed * 37) % 1440, seed as u32);
        let mut given = packet.with_pseudo_sum();
        let mut flags = BdFlags::new();
        let mut out = given.clone();
        if seed % 5 != 0 {
            flags = TRANSPORT;
            out = packet.wire();
        }
        if seed % 3 == 0 {
            flags.set_vlan_tag(true);
            out.splice(12..12, [0x81, 0x00, (seed >> 8) as u8, seed as u8]);
        }
        out.resize(out.len().max(60), 0);
        wanted.push(out);
        let rest = given.split_off(20 + seed % 7);
        machine.put_frame_with(&[&given, &rest], flags, seed as u16);
        if seed % 7 == 6 {
            machine.send();
            machine.acknowledge();
        }
    }
    machine.send();
    machine.pass(200);
    assert_eq!(machine.wire.len(), wanted.len());
    for (number, (sent, wanted)) in machine.wire.iter().zip(&wanted).enumerate() {
        assert_eq!(sent, wanted, "frame {number}");
    }
    assert_eq!(machine.send_consumer(), machine.send_producer());
}

/// RFC 768: a UDP checksum of 0 says that there is none, so 0xFFFF is sent; TCP knows no
/// such thing.
#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    for flags in [linux(), everything()] {
        let mut machine = machine(flags);
        for protocol in [TCP, UDP] {
            let packet = Packet::new(protocol, 100, 1);
            let mut given = packet.with_pseudo_sum();
            // Data that makes the sum 0xFFFF: the last halfword takes up the difference.
            let at = given.len() - 2;
            put(&mut given, at, 0);
            let others = sum(&given[34..]);
            let filler = if flags.no_pseudo_header() {
                !others
            } else {
                put(&mut given, packet.field(), 0);
                !add(sum(&given[34..]), pseudo(&given))
            };
            put(&mut given, at, filler);
            let mut wanted = given.clone();
            let checksum = if protocol == UDP { 0xFFFF } else { 0 };
            put(&mut wanted, packet.field(), checksum);
            goes_out_as(&mut machine, &given, TRANSPORT, &wanted);
        }
    }
}

/// The sum of the pseudo-header of a frame with 20 bytes of IP header.
fn pseudo(frame: &[u8]) -> u16 {
    let length = (frame.len() - 34) as u16;
    add(add(sum(&frame[26..34]), u16::from(frame[23])), length)
}

#[test]
fn ip_options_are_not_part_of_the_transport() {
    for flags in [linux(), everything()] {
        let mut machine = machine(flags);
        for options in 1..=10 {
            let mut packet = Packet::new(TCP, 77, u32::from(options));
            packet.options = options;
            if flags.no_pseudo_header() {
                let given = packet.with_pseudo_sum();
                goes_out_as(&mut machine, &given, TRANSPORT, &packet.wire());
            } else {
                goes_out_as(&mut machine, &packet.with_junk(), BOTH, &packet.wire());
            }
        }
    }
}

/// What lies behind the datagram is not in its checksum.
#[test]
fn padding_is_not_part_of_the_transport() {
    let mut machine = machine(everything());
    for (data, padding) in [(1, 17), (2, 16), (0, 1), (5, 700), (3, 2)] {
        let mut packet = Packet::new(UDP, data, 8);
        packet.padding = padding;
        goes_out_as(&mut machine, &packet.with_junk(), BOTH, &packet.wire());
    }
}

/// A frame that has its 802.1Q header already, or two of them.
#[test]
fn frames_with_tags_inside_are_understood() {
    let mut machine = machine(everything());
    for kind in [
        vec![0x81, 0x00, 0x20, 0x05, 0x08, 0x00],
        vec![0x88, 0xA8, 0x00, 0x01, 0x81, 0x00, 0x00, 0x02, 0x08, 0x00],
    ] {
        let mut packet = Packet::new(UDP, 99, 5);
        packet.kind = kind;
        goes_out_as(&mut machine, &packet.with_junk(), BOTH, &packet.wire());
    }
}

/// RCB flag 80: frames with a length and a SNAP header too, if the host says so.
#[test]
fn snap_frames_are_understood_if_the_host_says_so() {
    let mut packet = Packet::new(UDP, 99, 5);
    packet.kind = vec![0, 135, 0xAA, 0xAA, 3, 0, 0, 0, 0x08, 0x00];
    let given = packet.with_junk();
    let mut understands = machine(everything().with_snap_checksum(true));
    goes_out_as(&mut understands, &given, BOTH, &packet.wire());
    let mut does_not = machine(everything());
    goes_out_as(&mut does_not, &given, BOTH, &given);
}

/// A fragment has no transport checksum of its own; its IP header has one.
#[test]
fn fragments_get_the_checksum_of_their_header_only() {
    let mut machine = machine(everything());
    for fragment in [0x2000, 0x2001, 0x00B9] {
        let mut packet = Packet::new(UDP, 99, 5);
        packet.fragment = fragment;
        let mut wanted = packet.wire();
        put(&mut wanted, packet.field(), 0xBEEF);
        goes_out_as(&mut machine, &packet.with_junk(), BOTH, &wanted);
    }
    // "Do not fragment" is none.
    let mut packet = Packet::new(UDP, 99, 5);
    packet.fragment = 0x4000;
    goes_out_as(&mut machine, &packet.with_junk(), BOTH, &packet.wire());
}

/// What has no such checksum goes out as it is, and nothing is reported.
#[test]
fn frames_without_a_checksum_go_out_as_they_are() {
    let mut machine = machine(everything());
    let whole = Packet::new(UDP, 99, 5).with_junk();
    let changed = |at: usize, value: u8| {
        let mut frame = whole.clone();
        frame[at] = value;
        frame
    };
    for given in [
        frame(PEER, MAC, 14, 1),
        frame(PEER, MAC, 1, 1),
        frame(PEER, MAC, 300, 1),
        changed(14, 0x65),
        changed(14, 0x44),
        changed(16, 0xFF),
        changed(17, 19),
        whole[..40].to_vec(),
    ] {
        goes_out_as(&mut machine, &given, BOTH, &given);
    }
    // ICMP, and UDP too short for its header: the IP header's only.
    for (at, value) in [(23, 1), (17, 27)] {
        let given = changed(at, value);
        let mut wanted = given.clone();
        put(&mut wanted, 24, 0);
        let header = !sum(&wanted[14..34]);
        put(&mut wanted, 24, header);
        goes_out_as(&mut machine, &given, BOTH, &wanted);
    }
    assert!(machine.events().is_empty());
}

/// The BD's flags ask for what the control block offers; the others are not looked at.
#[test]
fn the_control_block_decides_what_can_be_asked_for() {
    let all = BOTH.with_vlan_tag(true);
    let packet = Packet::new(TCP, 99, 5);
    let given = packet.with_junk();
    let mut plain = machine(RcbFlags::new().with_host_ring(true));
    goes_out_as(&mut plain, &given, all, &given);
    let mut only_ip = machine(RcbFlags::new().with_host_ring(true).with_ip_checksum(true));
    let mut wanted = packet.wire();
    put(&mut wanted, packet.field(), 0xBEEF);
    goes_out_as(&mut only_ip, &given, all, &wanted);
}

/// Reference 10.2: the MAC inserts {R[214] bits 31:16, tag} behind the source address (C).
/// Linux sets the flag in the first BD of a frame only.
#[test]
fn a_tag_is_inserted_behind_the_addresses() {
    let mut machine = machine(linux());
    let sent = frame(PEER, MAC, 100, 1);
    let flags = BdFlags::new().with_vlan_tag(true);
    machine.put_frame_with(&[&sent[..20], &sent[20..]], flags, 0x6005);
    machine.put_frame(&[&sent]);
    machine.send();
    let mut tagged = sent.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x60, 0x05]);
    assert_eq!(machine.wire, [tagged, sent]);
}

/// Jumbo frames with checksums, more bytes than one lap of the transmit buffer.
#[test]
fn jumbo_frames_are_summed_too() {
    let mut machine = machine(linux());
    for seed in 0..60 {
        let packet = Packet::new(TCP, 8960, seed);
        let given = packet.with_pseudo_sum();
        assert_eq!(given.len(), 9014);
        let pieces: Vec<&[u8]> = given.chunks(1501).collect();
        machine.put_frame_with(&pieces, TRANSPORT, 0);
        machine.send();
        assert!(machine.wire.pop() == Some(packet.wire()), "{seed}");
        machine.acknowledge();
    }
}

/// A frame that is given up in its middle takes nothing with it: the next one has its own
/// sum and its own place.
#[test]
fn a_bad_bd_in_a_summed_frame_harms_no_other() {
    let mut machine = machine(linux());
    let packets: Vec<_> = (0..3).map(|n| Packet::new(UDP, 300, n)).collect();
    let given: Vec<_> = packets.iter().map(Packet::with_pseudo_sum).collect();
    machine.put_frame_with(&[&given[0]], TRANSPORT, 0);
    machine.put_frame_with(&[&given[1][..100], &[], &given[1][100..]], TRANSPORT, 0);
    machine.put_frame_with(&[&given[2]], TRANSPORT, 0);
    machine.send();
    machine.pass(200);
    assert_eq!(machine.wire, [packets[0].wire(), packets[2].wire()]);
    assert_eq!(machine.send_consumer(), machine.send_producer());
}
