//! Datagrams whose data is in their descriptor: CPU B sends a few of them in one go.

use crate::card::{Card, Overseen, PEER_AT, PEER_PORT, PORT, bytes, data};
use crate::faults::{by_others, word};
use crate::fragments::random;
use crate::streams::{COUNT, LEAST};
use eudp::{Card as _, Checksum, Completion, CutThrough, INLINE_BYTES, PUSHED, Status};
use host_driver::nic::EndpointCard;
use host_interface::eudp::{posted, send_slot, to_word};
use host_interface::extension::Extension;
use integration_tests::Engine;
use smoltcp::wire::{EthernetFrame, IpAddress, Ipv4Packet, UdpPacket};

/// Nanoseconds of the shortest frame on the wire, with what is in front of it and between two.
const SHORTEST_NS: u64 = 84 * 8 + 12;

/// The data of a frame whose sums are right.
fn checked(frame: &[u8], is_summed: bool) -> Vec<u8> {
    let ethernet = EthernetFrame::new_checked(frame).expect("a frame");
    let packet = Ipv4Packet::new_checked(ethernet.payload()).expect("a packet");
    assert!(packet.verify_checksum(), "the sum of the IP header");
    let addresses = [packet.src_addr(), packet.dst_addr()].map(IpAddress::Ipv4);
    let datagram = UdpPacket::new_checked(packet.payload()).expect("a datagram");
    assert_eq!(datagram.checksum() != 0, is_summed);
    assert!(datagram.verify_checksum(&addresses[0], &addresses[1]));
    datagram.payload().to_vec()
}

/// Of all lengths, and of which all, few or most have their data elsewhere: posted all at once, and a
/// few at a time.
#[test]
fn they_leave_in_their_order_among_others() {
    for checksum in [Checksum::None, Checksum::Full, Checksum::Leading] {
        for (seed, others, at_once) in [(1, 0, 120), (2, 10, 120), (3, 80, 120), (4, 30, 3)] {
            let mut card = Card::timed(CutThrough::OfBus, checksum, 1500);
            let mut random = random(seed);
            let mut length = || match random(100) < others {
                true => [65, 66, 400, 1472, 1000][random(5)],
                false => random(INLINE_BYTES as usize + 1),
            };
            let lengths: Vec<usize> = (0..COUNT).map(|_| length()).collect();
            let mut next = 0;
            let mut cookies = Vec::new();
            for some in lengths.chunks(at_once) {
                for (number, length) in (next..).zip(some) {
                    card.post_some(number, *length);
                }
                cookies.extend(card.frames(some.len(), |frame| {
                    let sent = bytes(next, lengths[next as usize]);
                    let is_summed = checksum != Checksum::None;
                    assert!(checked(frame, is_summed) == sent, "{next} of seed {seed}");
                    next += 1;
                }));
            }
            assert_eq!(cookies, (0..COUNT).collect::<Vec<_>>());
            card.follow();
        }
    }
}

/// One whose descriptor is refused is completed in its place, and those around it leave.
#[test]
fn a_refused_one_has_its_place_among_them() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::Full, 1500);
    let mut other = card.other(PORT + 1);
    let mut lent = EndpointCard(&mut card.stage.nic);
    let foreign = card.eudp.address(&mut lent, &mut other, &PEER_AT);
    let foreign = (foreign.expect("room"), PEER_PORT);
    let ours = (card.peer, PEER_PORT);
    for number in 0..60 {
        let to = if number % 7 == 3 { foreign } else { ours };
        let sent = bytes(number, LEAST);
        card.with(|endpoint, card| endpoint.send_inline(card, to, &sent, number))
            .expect("it is posted");
    }
    for number in 0..60 {
        let status = if number % 7 == 3 {
            Status::BadDescriptor
        } else {
            assert_eq!(data(&card.wire().bytes), bytes(number, LEAST));
            Status::Done
        };
        let cookie = number;
        assert_eq!(card.completion(), Completion::Sent { cookie, status });
    }
    assert_eq!(card.stage.engine.receive_now(), None);
    card.follow();
}

/// A process may leave what it likes behind its data: that is neither sent nor summed.
#[test]
fn what_stands_behind_the_data_does_not_count() {
    for checksum in [Checksum::None, Checksum::Full] {
        let mut card = Card::timed(CutThrough::Off, checksum, 1500);
        let block = word(&mut card, Extension::Eudp.nic_address());
        for length in 0..=INLINE_BYTES {
            let sent = bytes(length, length as usize);
            let mut data = vec![0xA5; 2 + INLINE_BYTES as usize];
            data[..sent.len()].copy_from_slice(&sent);
            let first = u32::from(data[0]) << 24 | u32::from(data[1]) << 16;
            let mut words = vec![
                length,
                to_word(0, 0, PEER_PORT),
                first | length,
                posted(length),
            ];
            let others = data[2..].chunks_exact(4);
            words.extend(
                others.map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]])),
            );
            let peer = (card.peer, PEER_PORT);
            card.with(|endpoint, lent| {
                lent.write(block + send_slot(0, length), &words)?;
                let posted =
                    endpoint.send_inline(&mut Overseen(lent, by_others), peer, &[], length);
                posted.map_err(|error| panic!("{error}"))
            })
            .unwrap_or_else(|error: host_driver::NicError| panic!("{error}"));
            let frame = card.wire().bytes;
            assert_eq!(checked(&frame, checksum != Checksum::None), sent);
            card.completion();
        }
        card.follow();
    }
}

/// Those that a process writes to NIC memory itself leave together, too: one behind the other, but for
/// what CPU B takes before it has seen the others.
#[test]
fn a_few_that_were_pushed_leave_together() {
    let mut card = Card::timed(CutThrough::Off, Checksum::None, 1500);
    for round in 0..20 {
        for number in 0..PUSHED {
            card.post_some(round * PUSHED + number, LEAST);
        }
        let ends: Vec<u64> = (0..PUSHED).map(|_| card.wire().at).collect();
        let gaps = ends.windows(2).map(|pair| pair[1] - pair[0]);
        let together = gaps.filter(|gap| *gap <= SHORTEST_NS).count();
        assert!(together >= 5, "{together} of 7, ends {ends:?}");
        for number in 0..PUSHED {
            let cookie = round * PUSHED + number;
            let status = Status::Done;
            assert_eq!(card.completion(), Completion::Sent { cookie, status });
        }
    }
    card.follow();
}
