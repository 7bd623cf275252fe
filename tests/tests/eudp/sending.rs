//! Datagrams from a process's memory to a peer.

use crate::card::{Card, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Status};

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
        let done = Completion::Sent {
            cookie: number,
            status: Status::Done,
        };
        assert_eq!(card.completion(), done);
    }
    all
}

fn mean(all: &[u64]) -> f64 {
    all.iter().sum::<u64>() as f64 / all.len() as f64 / 1000.0
}

/// The peer gets the whole datagram, with a good CRC, and earlier than one that is stored before it
/// leaves.
#[test]
fn a_datagram_leaves_while_it_is_fetched() {
    for (length, mtu, most) in [(1472, 1500, 0.99), (8972, 9000, 0.85)] {
        let mut coarse = Card::timed(CutThrough::Off, Checksum::None, mtu);
        let stored = latencies(&mut coarse, length, 20);
        assert_eq!(coarse.cuts(), [0, 0]);
        coarse.follow();

        let mut fine = Card::timed(CutThrough::FAST_BUS, Checksum::None, mtu);
        let through = latencies(&mut fine, length, 20);
        let [cut, aborted] = fine.cuts();
        println!(
            "{length} bytes: coarse {:.2} us, fine {:.2} us, {cut} cut through, {aborted} aborted",
            mean(&stored),
            mean(&through)
        );
        fine.follow();
        assert_eq!((cut, aborted), (20, 0), "all of them leave early");
        assert!(mean(&through) < most * mean(&stored));
    }
}
