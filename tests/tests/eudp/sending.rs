//! Datagrams from a process's memory to a peer.

use crate::card::{Card, PEER_AT, PEER_PORT, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Destination, SendError, Status};
use host_driver::nic::EndpointCard;
use integration_tests::Engine;

const ALL: [Checksum; 3] = [Checksum::None, Checksum::Full, Checksum::Leading];

fn done(cookie: u32) -> Completion {
    Completion::Sent {
        cookie,
        status: Status::Done,
    }
}

/// One at a time: how long they take from the process's call to their end on the wire.
fn latencies(card: &mut Card, length: usize, count: u32) -> Vec<u64> {
    let mut all = Vec::new();
    for number in 0..count {
        let sent = bytes(number, length);
        let begun = card.now();
        card.send(4096, &sent, number);
        let seen = card.wire();
        assert!(data(&seen.bytes) == sent, "datagram {number} is another");
        all.push(seen.at - begun);
        assert_eq!(card.completion(), done(number));
        card.follow();
    }
    all
}

fn mean(all: &[u64]) -> f64 {
    all.iter().sum::<u64>() as f64 / all.len() as f64 / 1000.0
}

/// The peer gets the whole datagram, with a good CRC, and earlier than one that is stored before it
/// leaves. On an idle bus none is cut off.
#[test]
fn a_datagram_leaves_while_it_is_fetched() {
    for (length, mtu, most) in [(6000, 9000, 0.95), (8972, 9000, 0.88)] {
        let mut coarse = Card::timed(CutThrough::Off, Checksum::None, mtu);
        let stored = latencies(&mut coarse, length, 20);
        assert_eq!(coarse.cuts(), [0, 0]);

        let mut fine = Card::timed(CutThrough::OfBus, Checksum::None, mtu);
        let through = latencies(&mut fine, length, 200);
        let [cut, aborted] = fine.cuts();
        println!(
            "{length} bytes: coarse {:.2} us, fine {:.2} us, {cut} cut through, {aborted} aborted",
            mean(&stored),
            mean(&through)
        );
        assert_eq!([cut, aborted], [200, 0], "all of them leave early");
        assert!(mean(&through) < most * mean(&stored));
    }
}

/// CPU B's housekeeping of each millisecond takes as long as a part may be late: it waits while a
/// frame is watched. Else more than 20 of these frames are cut off.
#[test]
fn housekeeping_cuts_no_frame_off() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    for number in 0..2000 {
        // Of any length, so that the millisecond ends at any time of them.
        let sent = bytes(number, 6000 + number as usize * 7919 % 397);
        card.send(4096, &sent, number);
        assert!(data(&card.wire().bytes) == sent, "datagram {number}");
        assert_eq!(card.completion(), done(number));
        card.follow();
    }
    let [cut, aborted] = card.cuts();
    assert_eq!([cut, aborted], [2000, 0], "all of them leave early");
}

/// One that is fetched sooner than CPU B would see to its parts leaves when it is whole, whatever was
/// asked for: it would have left before CPU B could cut it off.
#[test]
fn a_short_datagram_leaves_when_it_is_whole() {
    for cut in [CutThrough::OfBus, CutThrough::Lead(640)] {
        let mut card = Card::timed(cut, Checksum::None, 9000);
        latencies(&mut card, 1472, 20);
        latencies(&mut card, 4096 - 42, 20);
        assert_eq!(card.cuts()[0], 0);
        card.follow();
    }
    let mut card = Card::timed(CutThrough::Lead(640), Checksum::None, 9000);
    latencies(&mut card, 4097 - 42, 20);
    assert_eq!(card.cuts()[0], 20);
    card.follow();
}

/// From the descriptor itself, and gathered from pieces, with and without a checksum.
#[test]
fn datagrams_of_all_shapes_are_what_was_posted() {
    for checksum in ALL {
        let mut card = Card::timed(CutThrough::OfBus, checksum, 1500);
        let has_sum = |frame: &[u8]| frame[40..42] != [0, 0];
        let full = checksum != Checksum::None;
        let to = (card.peer, PEER_PORT);
        for (cookie, length) in (0..).zip([0, 1, 2, 3, 17, 63, 64]) {
            let sent = bytes(cookie, length);
            card.with(|endpoint, card| endpoint.send_inline(card, to, &sent, cookie))
                .expect("it is posted");
            let frame = card.wire().bytes;
            assert_eq!(data(&frame), sent);
            assert_eq!(has_sum(&frame), full);
            assert_eq!(card.completion(), done(cookie));
        }
        for (cookie, lengths) in (20..).zip([&[1usize, 1, 1][..], &[700, 3, 500], &[9; 8]]) {
            let all = bytes(cookie, lengths.iter().sum());
            let (mut pieces, mut from, mut at) = (Vec::new(), 0, 3);
            for length in lengths {
                let piece = &all[from..from + length];
                card.memory.write_bytes(at, piece).expect("it fits");
                pieces.push(card.region.segment(at as u32, *length as u32));
                (from, at) = (from + length, at + length + 5);
            }
            card.with(|endpoint, card| endpoint.send(card, to, &pieces, cookie))
                .expect("it is posted");
            let frame = card.wire().bytes;
            assert!(data(&frame) == all, "pieces {lengths:?}");
            assert_eq!(has_sum(&frame), full);
            assert_eq!(card.completion(), done(cookie));
        }
        card.follow();
    }
}

/// Forty are posted at once: sixteen have a slot in the card, the others wait in the library.
#[test]
fn datagrams_leave_in_their_order() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::Full, 1500);
    for number in 0..40 {
        card.send(number as usize * 2048, &bytes(number, 1200), number);
    }
    for number in 0..40 {
        assert!(data(&card.wire().bytes) == bytes(number, 1200), "{number}");
        assert_eq!(card.completion(), done(number));
    }
    card.follow();
}

/// The next datagram on the wire, put together from its IP fragments: its data, and which fragment
/// has the UDP header.
fn assembled(card: &mut Card, checksum: Checksum, length: usize, mtu: usize) -> (Vec<u8>, usize) {
    let frames = (length + 8).div_ceil((mtu - 20) & !7);
    let mut payload = vec![0; length + 8];
    let (mut first, mut header) = (Vec::new(), 0);
    for number in 0..frames {
        let frame = card.wire().bytes;
        let packet = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let offset = u16::from_be_bytes([frame[20], frame[21]]);
        let at = usize::from(offset & 0x1FFF) * 8;
        let part = &frame[34..14 + packet];
        payload[at..at + part.len()].copy_from_slice(part);
        assert_eq!(offset & 0x2000 != 0, at + part.len() < payload.len());
        if at == 0 {
            (first, header) = (frame[..34].to_vec(), number);
        }
    }
    // The whole packet, as the peer's kernel makes it of the fragments.
    first[16..18].copy_from_slice(&((length + 28) as u16).to_be_bytes());
    first[20..22].fill(0);
    first[24..26].fill(0);
    let sum = first[14..34].chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair[1]]))
    });
    let sum = (sum & 0xFFFF) + (sum >> 16);
    first[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let whole = [first, payload].concat();
    assert_eq!(whole[40..42] != [0, 0], checksum != Checksum::None);
    (data(&whole), header)
}

/// Datagrams that are longer than a frame: IP fragments, which the peer puts together. The UDP header
/// comes first, but for `Full`: there it waits for the sum of what leaves in front of it.
#[test]
fn long_datagrams_go_in_fragments() {
    for (checksum, mtu) in [
        (Checksum::None, 1500),
        (Checksum::Full, 1500),
        (Checksum::Leading, 1500),
        (Checksum::Leading, 9000),
    ] {
        let mut card = Card::timed(CutThrough::OfBus, checksum, mtu);
        for (cookie, length) in (0..).zip([1473, 3000, 9001, 32_768, 65_507]) {
            let sent = bytes(cookie, length);
            card.send(64, &sent, cookie);
            let (came, header) = assembled(&mut card, checksum, length, mtu as usize);
            assert!(came == sent, "{length} bytes");
            assert_eq!(card.completion(), done(cookie));
            let frames = (length + 8).div_ceil((mtu as usize - 20) & !7);
            let last = checksum == Checksum::Full;
            assert_eq!(header, if last { frames - 1 } else { 0 }, "{length} bytes");
        }
        card.follow();
    }
}

/// The sum that leaves first is that of pieces of odd lengths, in which chunks of it end anywhere;
/// datagrams follow one another.
#[test]
fn the_sum_of_gathered_datagrams_leads() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::Leading, 1500);
    let to = (card.peer, PEER_PORT);
    let datagrams = [
        [1, 8191, 1, 8193, 777, 3, 1471, 9],
        [8192; 8].map(|bytes| bytes - 8),
        [65_000, 1, 1, 1, 1, 1, 1, 1],
    ];
    for (cookie, lengths) in (0..).zip(datagrams) {
        let all = bytes(cookie, lengths.iter().sum());
        let (mut pieces, mut from, mut at) = (Vec::new(), 0, 80_000 * cookie as usize + 1);
        for length in lengths {
            let piece = &all[from..from + length];
            card.memory.write_bytes(at, piece).expect("it fits");
            pieces.push(card.region.segment(at as u32, length as u32));
            (from, at) = (from + length, at + length + 3);
        }
        card.with(|endpoint, card| endpoint.send(card, to, &pieces, cookie))
            .expect("it is posted");
    }
    for (cookie, lengths) in (0..).zip(datagrams) {
        let all = bytes(cookie, lengths.iter().sum());
        let (came, header) = assembled(&mut card, Checksum::Leading, all.len(), 1500);
        assert!(came == all && header == 0, "pieces {lengths:?}");
        assert_eq!(card.completion(), done(cookie));
    }
    card.follow();
}

/// To a destination that excludes fragments the longest datagram of one packet leaves, and one that
/// is longer by a byte is refused, whatever the checksum: nothing of it is queued.
#[test]
fn no_fragments_go_where_there_may_be_none() {
    for (checksum, mtu) in ALL.into_iter().zip([1500, 1500, 9000]) {
        let mut card = Card::timed(CutThrough::Off, checksum, mtu);
        let to = Destination {
            dont_fragment: true,
            ..PEER_AT
        };
        let mut lent = EndpointCard(&mut card.stage.nic);
        let endpoint = &mut card.endpoint;
        card.peer = card.eudp.address(&mut lent, endpoint, &to).expect("room");
        let fits = mtu as usize - 28;
        for (cookie, length) in (0..).zip([1, fits]) {
            let sent = bytes(cookie, length);
            card.send(0, &sent, cookie);
            let frame = card.wire().bytes;
            // Which judges the sum of the IP header, too.
            assert!(data(&frame) == sent, "{length} bytes");
            assert_eq!(frame[20..22], [0x40, 0], "Don't Fragment");
            assert_eq!(card.completion(), done(cookie));
        }
        let to = (card.peer, PEER_PORT);
        let piece = card.region.segment(0, fits as u32 + 1);
        let refused = card.with(|endpoint, card| endpoint.send(card, to, &[piece], 7));
        let refused = refused.expect_err("it needs two packets");
        assert!(
            matches!(refused, SendError::NeedsFragments { most, .. } if most == fits),
            "{refused}"
        );
        assert_eq!(card.endpoint.sending(), 0);
        assert!(card.rests());
        assert!(card.stage.engine.receive_now().is_none());
        card.follow();
    }
}
