//! Tests checksums and VLAN tags in both directions, verified independently of the driver.
//! (`send_offload.rs` tests the other send offloads.)

use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use host_driver::Config;
use host_driver::checksum;
use host_driver::nic::{ChecksumOffload, SendOptions};
use integration_tests::{Engine, Stage, frames, stories, stories_beyond};

stories!(
    the_card_finishes_the_checksums_of_udp_and_tcp,
    frames_without_a_checksum_pass_unchanged,
    the_sums_of_received_frames_are_right,
    a_damaged_datagram_is_recognised_by_its_sum,
    a_tag_is_stripped_and_handed_up,
    tags_pass_as_bytes_without_the_offload,
    tags_and_checksums_work_together_on_jumbo_frames,
);

stories_beyond!(
    the_card_finishes_the_checksums_of_udp_and_tcp,
    frames_without_a_checksum_pass_unchanged,
    the_sums_of_received_frames_are_right,
    a_damaged_datagram_is_recognised_by_its_sum,
    a_tag_is_stripped_and_handed_up,
    tags_pass_as_bytes_without_the_offload,
    tags_and_checksums_work_together_on_jumbo_frames,
);

const HERE: [u8; 4] = [10, 84, 0, 1];
const THERE: [u8; 4] = [10, 84, 0, 2];

/// Each way to share the work with the card.
const OFFLOADS: [ChecksumOffload; 4] = [
    ChecksumOffload::LINUX,
    ChecksumOffload::FULL,
    ChecksumOffload {
        transport: true,
        ..ChecksumOffload::NONE
    },
    ChecksumOffload {
        transport: true,
        ip: true,
        no_pseudo_header: true,
        snap: false,
    },
];

fn offload(offload: ChecksumOffload) -> Config {
    Config {
        send_checksums: offload,
        receive_checksums: offload,
        ..Config::default()
    }
}

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Udp,
    Tcp,
}

/// A frame of `payload` bytes of payload, whose checksums are right.
fn packet(
    destination: [u8; 6],
    source: [u8; 6],
    (from, to): ([u8; 4], [u8; 4]),
    protocol: Protocol,
    payload: usize,
) -> Vec<u8> {
    let payload: Vec<u8> = (0..payload).map(|at| (at * 37 + payload) as u8).collect();
    let builder = PacketBuilder::ethernet2(source, destination).ipv4(from, to, 64);
    let mut frame = Vec::new();
    match protocol {
        Protocol::Udp => builder.udp(1234, 5678).write(&mut frame, &payload),
        Protocol::Tcp => builder
            .tcp(1234, 5678, 0x1234_5678, 4096)
            .ack(0x0BAD_CAFE)
            .write(&mut frame, &payload),
    }
    .expect("memory");
    frame
}

fn outbound<E: Engine>(stage: &Stage<E>, protocol: Protocol, payload: usize) -> Vec<u8> {
    let station = stage.nic.station();
    packet(frames::PEER, station, (HERE, THERE), protocol, payload)
}

fn inbound<E: Engine>(stage: &Stage<E>, protocol: Protocol, payload: usize) -> Vec<u8> {
    let station = stage.nic.station();
    packet(station, frames::PEER, (THERE, HERE), protocol, payload)
}

/// Judges a frame by another hand than the driver's.
fn checksums_are_right(frame: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ethernet(frame).expect("a packet");
    let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else {
        return false;
    };
    let header = ip.header().to_header();
    let sum_of_header = header.calc_header_checksum() == header.header_checksum;
    let transport = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => {
            let made = udp
                .to_header()
                .calc_checksum_ipv4(&header, udp.payload())
                .expect("short enough");
            made == udp.checksum()
        }
        Some(TransportSlice::Tcp(tcp)) => {
            let made = tcp
                .to_header()
                .calc_checksum_ipv4(&header, tcp.payload())
                .expect("short enough");
            made == tcp.checksum()
        }
        _ => false,
    };
    sum_of_header && transport
}

/// What the MAC makes of a frame: at least 60 bytes.
fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(frames::SHORTEST), 0);
    frame
}

/// Reference 13: the sum is patched into the frame before it is sent (C).
fn the_card_finishes_the_checksums_of_udp_and_tcp<E: Engine>() {
    for how in OFFLOADS {
        let mut stage = Stage::<E>::open_with(offload(how));
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            for payload in [0, 1, 2, 3, 17, 18, 19, 511, 512, 1000, 1459, 1460] {
                let finished = outbound(&stage, protocol, payload);
                assert!(checksums_are_right(&finished));
                let mut frame = finished.clone();
                let options = checksum::prepare(&mut frame, how);
                assert!(options.transport_checksum);
                assert_ne!(frame, finished, "something is left to do");
                stage.transmit_as(&[&frame], options);
                let left = stage.wire();
                assert_eq!(left, padded(finished), "{protocol:?} {payload} {how:?}");
            }
        }
    }
}

fn frames_without_a_checksum_pass_unchanged<E: Engine>() {
    let mut stage = Stage::<E>::open_with(offload(ChecksumOffload::FULL));
    for number in 0..20 {
        // No IP at all, although the flags ask for it; and frames that do not ask.
        let frame = stage.outbound(number);
        let asked = SendOptions {
            transport_checksum: number % 2 == 0,
            ip_checksum: number % 3 == 0,
            ..SendOptions::default()
        };
        stage.transmit_as(&[&frame], asked);
        assert_eq!(stage.wire(), frame, "frame {number}");
    }
    let mut wrong = outbound(&stage, Protocol::Udp, 100);
    wrong[40] ^= 0xFF;
    stage.transmit(&[&wrong]);
    assert_eq!(stage.wire(), wrong, "nobody asked");
}

/// Reference 14: with receive checksums the sum of the data goes into the return BD (C).
fn the_sums_of_received_frames_are_right<E: Engine>() {
    for how in OFFLOADS {
        let mut stage = Stage::<E>::open_with(offload(how));
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            for payload in [0, 1, 2, 5, 17, 18, 19, 700, 701, 1459, 1460] {
                let mut frame = padded(inbound(&stage, protocol, payload));
                stage.engine.send(&frame);
                let received = &stage.receive_described(1)[0];
                assert_eq!(received.bytes, frame);
                let verdict = checksum::check(&received.bytes, received.checksums, how);
                let what = format!("{protocol:?} {payload} {how:?}: {:?}", received.checksums);
                assert_eq!(verdict.transport, Some(true), "{what}");
                assert_eq!(verdict.ip, how.ip.then_some(true), "{what}");
                // Padding is not always zero (reference 19: "padded with 0xA5"); hosts
                // differ in whether they want it summed, so the card may pass.
                let end = inbound(&stage, protocol, payload).len();
                frame[end..].fill(0xA5);
                stage.engine.send(&frame);
                let received = &stage.receive_described(1)[0];
                assert_eq!(received.bytes, frame);
                let verdict = checksum::check(&received.bytes, received.checksums, how);
                assert_ne!(verdict.transport, Some(false), "{what}");
                assert_eq!(verdict.ip, how.ip.then_some(true), "{what}");
            }
        }
    }
}

fn a_damaged_datagram_is_recognised_by_its_sum<E: Engine>() {
    for how in [ChecksumOffload::LINUX, ChecksumOffload::FULL] {
        let mut stage = Stage::<E>::open_with(offload(how));
        let good = inbound(&stage, Protocol::Udp, 333);
        for at in [36, 40, 42, 100, good.len() - 1] {
            let mut frame = good.clone();
            frame[at] ^= 0x10;
            stage.engine.send(&frame);
            let received = &stage.receive_described(1)[0];
            let verdict = checksum::check(&received.bytes, received.checksums, how);
            assert_eq!(verdict.transport, Some(false), "byte {at}");
        }
    }
}

fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
    let [high, low] = tag.to_be_bytes();
    [&frame[..12], &[0x81, 0x00, high, low], &frame[12..]].concat()
}

/// Reference 19: received tags are stripped; the host's data begins four bytes later (C).
fn a_tag_is_stripped_and_handed_up<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        vlan: true,
        mini: Some(128),
        ..Config::default()
    });
    for number in 0..30 {
        let frame = stage.inbound(number);
        let tag = (number as u16) << 12 | 5;
        stage.engine.send(&tagged(&frame, tag));
        stage.engine.send(&frame);
        let received = stage.receive_described(2);
        assert_eq!(received[0].bytes, frame, "frame {number}");
        assert_eq!(received[0].vlan, Some(tag));
        assert_eq!((&received[1].bytes, received[1].vlan), (&frame, None));
    }
}

fn tags_pass_as_bytes_without_the_offload<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let longest = frames::of_length(stage.nic.station(), frames::PEER, 1, frames::LONGEST);
    for frame in [tagged(&stage.inbound(3), 5), tagged(&longest, 5)] {
        stage.engine.send(&frame);
        let received = &stage.receive_described(1)[0];
        assert_eq!((&received.bytes, received.vlan), (&frame, None));
    }
    let frame = tagged(&stage.outbound(1), 5);
    stage.transmit(&[&frame]);
    assert_eq!(stage.wire(), frame);
}

fn tags_and_checksums_work_together_on_jumbo_frames<E: Engine>() {
    for how in [ChecksumOffload::LINUX, ChecksumOffload::FULL] {
        let mut stage = Stage::<E>::open_with(Config {
            mtu: 9000,
            mini: Some(128),
            vlan: true,
            ..offload(how)
        });
        for payload in [30, 1400, 5001, 8960] {
            let finished = outbound(&stage, Protocol::Tcp, payload);
            let mut frame = finished.clone();
            let options = SendOptions {
                vlan: Some(0x2005),
                ..checksum::prepare(&mut frame, how)
            };
            let (head, rest) = frame.split_at(66);
            stage.transmit_as(&[head, rest], options);
            assert!(stage.wire() == tagged(&finished, 0x2005), "{payload} out");
            let frame = inbound(&stage, Protocol::Tcp, payload);
            stage.engine.send(&tagged(&frame, 0x2005));
            let received = &stage.receive_described(1)[0];
            assert!(received.bytes == frame, "{payload} in");
            assert_eq!(received.vlan, Some(0x2005));
            let verdict = checksum::check(&received.bytes, received.checksums, how);
            assert_eq!(verdict.transport, Some(true), "{payload} in");
        }
    }
}
