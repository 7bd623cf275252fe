//! Tests VLAN tags and checksums of received frames.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::OperatingMode;
use host_interface::bd::{BdFlags, ReceiveBd, ReturnBd};
use host_interface::command::{Command, CommandCode, STACK_UP};
use host_interface::info::RcbFlags;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::dma::add_bytes;
use tigon2_model::testing::HOST_BASE;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// What Linux asks for: TCP/UDP sums without pseudo-header, VLAN tags taken off.
fn linux() -> RcbFlags {
    RcbFlags::from_bits(0x19)
}

/// TCP/UDP and IP sums, the pseudo-header included.
fn pseudo() -> RcbFlags {
    RcbFlags::new()
        .with_transport_checksum(true)
        .with_ip_checksum(true)
}

fn sum(bytes: &[u8]) -> u16 {
    add_bytes(0, 0, bytes)
}

/// Whether two one's-complement sums mean the same: 0 and 0xFFFF do.
fn same(a: u16, b: u16) -> bool {
    a % 0xFFFF == b % 0xFFFF
}

/// What a datagram is made of.
#[derive(Clone)]
struct Datagram {
    protocol: u8,
    /// Words of IP options.
    options: usize,
    /// Flags and fragment offset.
    fragment: u16,
    payload: usize,
    seed: u32,
    /// Before the type: a VLAN tag.
    tag: Option<u16>,
    /// With LLC and SNAP headers.
    snap: bool,
    /// Behind the datagram.
    padding: Vec<u8>,
}

impl Datagram {
    fn new(protocol: u8, payload: usize) -> Datagram {
        Datagram {
            protocol,
            options: 0,
            fragment: 0,
            payload,
            seed: payload as u32 + 1,
            tag: None,
            snap: false,
            padding: Vec::new(),
        }
    }

    /// The IP datagram with its checksums.
    fn bytes(&self) -> Vec<u8> {
        let header = 20 + 4 * self.options;
        let mut body = frame([0; 6], [0; 6], 14 + self.payload, self.seed)[14..].to_vec();
        let place = match self.protocol {
            TCP => 16,
            UDP => 6,
            _ => 2,
        };
        let total = header + body.len();
        let mut bytes = vec![0x40 | (5 + self.options) as u8, 0];
        bytes.extend((total as u16).to_be_bytes());
        bytes.extend([0x12, 0x34]);
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([64, self.protocol, 0, 0, 10, 1, 2, 3, 192, 168, 77, 99]);
        bytes.resize(header, 1);
        let check = !sum(&bytes);
        bytes[10..12].copy_from_slice(&check.to_be_bytes());
        if body.len() >= place + 2 && self.fragment == 0 {
            body[place..place + 2].fill(0);
            let check = !add_bytes(pseudo_sum(&bytes), 0, &body);
            body[place..place + 2].copy_from_slice(&check.to_be_bytes());
        }
        bytes.extend(body);
        bytes
    }

    /// The frame as it comes from the wire.
    fn frame(&self) -> Vec<u8> {
        let mut bytes = [MAC, PEER].concat();
        if let Some(tag) = self.tag {
            bytes.extend([0x81, 0x00]);
            bytes.extend(tag.to_be_bytes());
        }
        let datagram = self.bytes();
        if self.snap {
            let length = datagram.len() as u16 + 8;
            bytes.extend(length.to_be_bytes());
            bytes.extend([0xAA, 0xAA, 3, 0, 0, 0]);
        }
        bytes.extend([0x08, 0x00]);
        bytes.extend(datagram);
        bytes.extend(&self.padding);
        bytes
    }
}

/// The sum of the pseudo-header of a datagram.
fn pseudo_sum(ip: &[u8]) -> u16 {
    let header = usize::from(ip[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let length = ((total - header) as u16).to_be_bytes();
    let rest = [0, ip[9], length[0], length[1]];
    add_bytes(sum(&ip[12..20]), 0, &rest)
}

/// Sends frames in and takes each with its return BD.
fn exchange(machine: &mut Machine, frames: &[Vec<u8>]) -> Vec<(ReturnBd, Vec<u8>)> {
    let mut got = Vec::new();
    for sent in frames {
        machine.arrive(sent);
        machine.pass(60);
        let received = machine.received();
        machine.give_buffers(received.len() as u32);
        got.extend(received);
    }
    assert_eq!(got.len(), frames.len());
    got
}

fn one(flags: RcbFlags, sent: &[u8]) -> (ReturnBd, Vec<u8>) {
    let mut machine = Machine::up(&Setup::with_receive_flags(flags));
    exchange(&mut machine, &[sent.to_vec()]).remove(0)
}

/// A frame as the wire pads it.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// Reference 10.2, 14: the tag goes to the return BD, the data begins 4 bytes later behind
/// the addresses (C). The frame is byte for byte what was sent without tag.
#[test]
fn a_vlan_tag_is_taken_off() {
    let flags = RcbFlags::new().with_vlan_assist(true);
    for length in [60, 61, 1514] {
        let bare = frame(MAC, PEER, length, 5);
        let mut tagged = bare.clone();
        tagged.splice(12..12, [0x81, 0x00, 0xA0, 0x05]);
        let (bd, bytes) = one(flags, &tagged);
        assert_eq!(bytes, bare);
        assert!(bd.flags().vlan_tag());
        assert_eq!(bd.vlan(), 0xA005);
        assert!(!bd.flags().transport_checksum() && !bd.flags().ip_checksum());
        let (bd, bytes) = one(flags, &bare);
        assert_eq!(bytes, bare);
        assert!(!bd.flags().vlan_tag());
        // Nobody asked.
        let (bd, bytes) = one(RcbFlags::new(), &tagged);
        assert_eq!(bytes, tagged);
        assert!(!bd.flags().vlan_tag());
    }
}

/// Reference 6.5, second section 19: the sum of all behind the Ethernet header, not
/// inverted, without CRC, whatever the length and wherever in the receive buffer the frame
/// lies (C!). So many frames that headers go round the buffer's end at every place.
#[test]
fn the_datagram_sum_is_right_at_every_length_and_place() {
    let mut machine = Machine::up(&Setup::with_receive_flags(linux()));
    for round in 0..3000usize {
        let protocol = if round % 3 == 0 { TCP } else { UDP };
        let mut datagram = Datagram::new(protocol, 20 + round * 7 % 1460);
        datagram.seed = round as u32;
        datagram.options = round % 11;
        datagram.payload = datagram.payload.min(1480 - 4 * datagram.options);
        datagram.tag = (round % 5 == 1).then_some(round as u16);
        let sent = datagram.frame();
        let (bd, bytes) = exchange(&mut machine, std::slice::from_ref(&sent)).remove(0);
        let mut bare = sent;
        if datagram.tag.is_some() {
            bare.drain(12..16);
        }
        let bare = if datagram.tag.is_some() && bare.len() < 56 {
            let mut bare = bare;
            bare.resize(56, 0);
            bare
        } else {
            padded(bare)
        };
        assert_eq!(bytes, bare, "{round}");
        assert!(bd.flags().transport_checksum(), "{round}");
        assert!(!bd.flags().ip_checksum());
        assert_eq!(bd.flags().vlan_tag().then_some(bd.vlan()), datagram.tag);
        assert!(
            same(bd.transport_checksum(), sum(&bytes[14..])),
            "{round}: {:#x}, not {:#x}",
            bd.transport_checksum(),
            sum(&bytes[14..])
        );
    }
}

/// Host/NIC interface, "Checksum conventions": with the pseudo-header a right datagram has
/// the sum 0xFFFF, a damaged one has not; the IP header likewise.
#[test]
fn with_pseudo_header_right_is_all_ones() {
    let mut machine = Machine::up(&Setup::with_receive_flags(pseudo()));
    for payload in 20..200 {
        for protocol in [TCP, UDP] {
            let mut datagram = Datagram::new(protocol, payload);
            datagram.options = payload % 11;
            let good = datagram.frame();
            let mut bad_data = good.clone();
            *bad_data.last_mut().expect("bytes") ^= 0x10;
            let mut bad_header = good.clone();
            bad_header[22] ^= 1;
            let [good, bad_data, bad_header] =
                <[_; 3]>::try_from(exchange(&mut machine, &[good, bad_data, bad_header]))
                    .expect("three")
                    .map(|(bd, _)| bd);
            assert!(good.flags().transport_checksum() && good.flags().ip_checksum());
            assert_eq!(
                (good.transport_checksum(), good.ip_checksum()),
                (0xFFFF, 0xFFFF)
            );
            assert_ne!(bad_data.transport_checksum(), 0xFFFF);
            assert_eq!(bad_data.ip_checksum(), 0xFFFF);
            assert_ne!(bad_header.ip_checksum(), 0xFFFF);
        }
    }
}

/// What is no TCP or UDP datagram has no TCP/UDP flag, what is no IP datagram none at all.
#[test]
fn other_frames_are_not_summed() {
    let both = RcbFlags::new()
        .with_transport_checksum(true)
        .with_ip_checksum(true)
        .with_no_pseudo_header(true);
    let (bd, _) = one(both, &Datagram::new(ICMP, 64).frame());
    assert!(!bd.flags().transport_checksum() && bd.flags().ip_checksum());
    assert_eq!((bd.transport_checksum(), bd.ip_checksum()), (0, 0xFFFF));

    let mut version = Datagram::new(UDP, 64).frame();
    version[14] = 0x65;
    let mut header_length = Datagram::new(UDP, 64).frame();
    header_length[14] = 0x44;
    let mut too_long = Datagram::new(UDP, 64).frame();
    too_long[17] += 1;
    let mut too_short = Datagram::new(UDP, 64).frame();
    too_short[16..18].copy_from_slice(&[0, 19]);
    let plain = frame(MAC, PEER, 200, 1);
    for sent in [version, header_length, too_long, too_short, plain] {
        let (bd, bytes) = one(both, &sent);
        assert_eq!(bytes, sent);
        assert!(!bd.flags().transport_checksum() && !bd.flags().ip_checksum());
        assert_eq!(bd.checksums, 0);
    }
}

/// Flags 80 and 100: each fragment, and besides it the last. Sums of fragments can be
/// added, but for a pseudo-header, which belongs to the whole.
#[test]
fn fragments_are_marked() {
    for (fragment, marked, last) in [
        (0x0000, false, false),
        (0x4000, false, false),
        (0x2000, true, false),
        (0x20B9, true, false),
        (0x00B9, true, true),
    ] {
        let mut datagram = Datagram::new(UDP, 800);
        datagram.fragment = fragment;
        let sent = datagram.frame();
        for flags in [linux(), pseudo()] {
            let (bd, bytes) = one(flags, &sent);
            assert_eq!(bytes, sent);
            assert_eq!(bd.flags().ip_fragment(), marked, "{fragment:#x}");
            assert_eq!(bd.flags().ip_fragment_end(), last, "{fragment:#x}");
            let summed = flags == linux() || !marked;
            assert_eq!(bd.flags().transport_checksum(), summed);
            if flags == linux() {
                assert!(same(bd.transport_checksum(), sum(&bytes[14..])));
            }
        }
    }
}

/// Padding of zeros does not matter. Other padding makes a difference between the
/// datagram's sum and that of all bytes, so the flag is not set and the host sums itself;
/// the word holds the datagram's.
#[test]
fn padding_does_not_count() {
    for payload in 8..20 {
        let mut datagram = Datagram::new(UDP, payload);
        let bare = datagram.frame();
        let (bd, bytes) = one(linux(), &bare);
        assert_eq!(bytes.len(), 60);
        assert!(bd.flags().transport_checksum());
        assert!(same(bd.transport_checksum(), sum(&bare[14..])));

        datagram.padding = vec![0xA5; 60 - bare.len()];
        let sent = datagram.frame();
        let (bd, bytes) = one(linux(), &sent);
        assert_eq!(bytes, sent);
        assert!(!bd.flags().transport_checksum(), "{payload}");
        assert!(same(bd.transport_checksum(), sum(&bare[14..])));
        let (bd, _) = one(pseudo(), &sent);
        assert_eq!(bd.transport_checksum(), 0xFFFF);
    }
    // More than any frame needs.
    let mut datagram = Datagram::new(UDP, 100);
    datagram.padding = vec![0; 900];
    let (bd, bytes) = one(linux(), &datagram.frame());
    assert_eq!(bytes, datagram.frame());
    assert!(!bd.flags().transport_checksum());
}

/// A UDP datagram without checksum has none to be right.
#[test]
fn a_udp_datagram_without_sum_is_not_judged() {
    let mut sent = Datagram::new(UDP, 100).frame();
    sent[40..42].fill(0);
    let (bd, _) = one(pseudo(), &sent);
    assert!(!bd.flags().transport_checksum() && bd.flags().ip_checksum());
    let (bd, bytes) = one(linux(), &sent);
    assert!(bd.flags().transport_checksum());
    assert!(same(bd.transport_checksum(), sum(&bytes[14..])));
}

/// RCB flag 80: datagrams behind LLC and SNAP headers, too.
#[test]
fn snap_frames_are_summed_when_asked_for() {
    let mut datagram = Datagram::new(TCP, 333);
    datagram.snap = true;
    let sent = datagram.frame();
    let (bd, bytes) = one(pseudo(), &sent);
    assert_eq!(bytes, sent);
    assert_eq!(bd.checksums, 0);
    let (bd, bytes) = one(pseudo().with_snap_checksum(true), &sent);
    assert_eq!(bytes, sent);
    assert_eq!(
        (bd.transport_checksum(), bd.ip_checksum()),
        (0xFFFF, 0xFFFF)
    );
    datagram.tag = Some(9);
    let flags = pseudo().with_snap_checksum(true).with_vlan_assist(true);
    let (bd, _) = one(flags, &datagram.frame());
    assert_eq!((bd.transport_checksum(), bd.vlan()), (0xFFFF, 9));
    // Another LLC header.
    let mut other = sent;
    other[16] = 4;
    let (bd, _) = one(pseudo().with_snap_checksum(true), &other);
    assert_eq!(bd.checksums, 0);
}

/// Reference 6.5: the sum is without the CRC, also when that is handed on.
#[test]
fn a_crc_that_is_handed_on_is_not_summed() {
    let mut setup = Setup::with_receive_flags(linux());
    let mode = OperatingMode::new().with_include_crc(true);
    setup.mode = OperatingMode::from_bits(setup.mode.into_bits() | mode.into_bits());
    let mut machine = Machine::up(&setup);
    for round in 0..900 {
        let mut datagram = Datagram::new(UDP, 8 + round % 1400);
        datagram.tag = (round % 3 == 0).then_some(7);
        let sent = datagram.frame();
        let (bd, bytes) = exchange(&mut machine, &[sent]).remove(0);
        let (frame, _crc) = bytes.split_at(bytes.len() - 4);
        assert!(bd.flags().transport_checksum());
        assert!(same(bd.transport_checksum(), sum(&frame[14..])), "{round}");
    }
}

/// A frame that is cut, or that is bad, says nothing by its sum.
#[test]
fn what_is_cut_is_not_summed() {
    let mut machine = Machine::boot(&Setup::with_receive_flags(linux()));
    for room in [0, 1, 2, 100] {
        let address = HOST_BASE + 0x8_0000;
        machine.put_receive_bd(ReceiveBd::new(address, room, BdFlags::new(), room, 5));
    }
    let producer = machine.standard_producer();
    machine.ring(Mailbox::StandardProducer, producer);
    machine.command(&[Command::new(CommandCode::HostState, STACK_UP).pack()]);
    machine.pass(200_000);
    let mut datagram = Datagram::new(UDP, 500);
    datagram.tag = Some(3);
    let sent = datagram.frame();
    for _ in 0..4 {
        machine.arrive(&sent);
    }
    machine.pass(100);
    let mut bare = sent;
    bare.drain(12..16);
    for (bd, bytes) in machine.received() {
        assert_eq!(bytes, bare[..usize::from(bd.index())]);
        assert!(bd.flags().error() && bd.errors().truncated());
        assert!(!bd.flags().transport_checksum());
        assert!(bd.flags().vlan_tag());
        assert_eq!((bd.vlan(), bd.checksums), (3, 0));
    }
}

/// Reference 6.5: the sum goes on over the buffers of an extended BD, odd ones included.
#[test]
fn the_sum_runs_over_all_buffers_of_an_extended_bd() {
    let mut machine = Machine::up(&Setup::with_extended_jumbo(linux()));
    let rooms = [
        [2001, 1999, 1, 4000],
        [1, 4000, 3000, 4000],
        [4000, 4000, 900, 100],
    ];
    for (index, lengths) in rooms.into_iter().enumerate() {
        machine.give_extended_buffer(lengths);
        let datagram = Datagram::new(UDP, 7333);
        let sent = datagram.frame();
        machine.arrive(&sent);
        machine.pass(60);
        let received = machine.received();
        let (bd, _) = &received[0];
        let mut left = sent.len();
        let used = lengths.map(|length| {
            let part = left.min(usize::from(length));
            left -= part;
            part
        });
        assert_eq!(machine.extended_bytes(index as u32, used), sent);
        // A first buffer without room for the seed has no sum.
        assert_eq!(bd.flags().transport_checksum(), lengths[0] > 1);
        if lengths[0] > 1 {
            assert!(same(bd.transport_checksum(), sum(&sent[14..])));
        }
    }
}

/// Mini and jumbo frames are summed as all others; the rings' flags come back.
#[test]
fn every_ring_has_sums_and_tags() {
    let mut machine = Machine::up(&Setup::with_rings(linux()));
    machine.give_mini_buffers(2);
    machine.give_jumbo_buffers(2);
    for (payload, mini, jumbo) in [(50, true, false), (500, false, false), (8000, false, true)] {
        let mut datagram = Datagram::new(TCP, payload);
        datagram.tag = Some(5);
        machine.arrive(&datagram.frame());
        machine.pass(60);
        let received = machine.received();
        let (bd, bytes) = &received[0];
        assert_eq!(
            (bd.flags().mini_ring(), bd.flags().jumbo_ring()),
            (mini, jumbo)
        );
        assert!(bd.flags().vlan_tag() && bd.flags().transport_checksum());
        assert!(same(bd.transport_checksum(), sum(&bytes[14..])));
    }
}

/// Headers of noise: no frame is lost or changed, whatever they claim.
#[test]
fn noise_in_headers_does_no_harm() {
    let all = RcbFlags::from_bits(RcbFlags::RECEIVE_CONSISTENCY);
    for flags in [all, all.with_no_pseudo_header(false)] {
        let mut machine = Machine::up(&Setup::with_receive_flags(flags));
        for seed in 0..1500u32 {
            let mut sent = Datagram::new(UDP, 30 + seed as usize % 90).frame();
            let noise = frame(MAC, PEER, sent.len(), seed);
            for place in 0..30 {
                if noise[20 + place] < 40 {
                    sent[12 + place] = noise[40 + place % 20];
                }
            }
            let (bd, bytes) = exchange(&mut machine, std::slice::from_ref(&sent)).remove(0);
            if !bd.flags().vlan_tag() {
                assert_eq!(bytes, padded(sent));
            }
        }
        assert!(machine.guard_is_untouched());
    }
}
