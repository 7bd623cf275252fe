//! Datagrams in a pool, as a card says it that may lie.

mod support;

use eudp::{Completion, EudpError, Memory, PoolConfig, SLOTS, Status};
use host_interface::eudp::{CompletionWord, Kind, Verdict};
use std::net::Ipv4Addr;
use support::Local;

/// Bytes of a datagram.
const BYTES: u32 = 5;

/// An endpoint with a buffer of 64 bytes at 3, beside a pool of two buffers. The second one has a
/// datagram that the card wants in `piece`. Returns what is polled, whether the endpoint is lost, and
/// what stands at 3 and behind.
fn moved(buffer: u32, bytes: u32, piece: [u32; 2]) -> (Option<Completion>, bool, [u8; 6]) {
    let mut local = Local::new();
    let config = PoolConfig {
        address: Ipv4Addr::LOCALHOST,
        vlan: None,
        buffers: 2,
    };
    let pool = local.eudp.open_pool(&mut local.card, config);
    let mut pool = pool.expect("there is room");
    // In the order of their allocation.
    let [completions, _queues, memory, pooled, ..] = &local.card.allocated[..] else {
        panic!("{:?}", local.card.allocated)
    };
    let (completions, memory, pooled) = (completions.clone(), memory.clone(), pooled.clone());
    let posted = local.region.segment(3, 64);
    let posted = local.endpoint.post(&mut local.card, &[posted], 7);
    posted.expect("it is posted");
    pooled.write_bytes(1 << 16, b"later").expect("it fits");
    let mut entry = [7, (Kind::Pooled as u32) << 16, bytes, 0, 0, 0, 0, 1];
    entry[CompletionWord::PortAndVerdict as usize / 4] = buffer << 8 | Verdict::Right as u32;
    entry[CompletionWord::Piece as usize / 4..][..2].copy_from_slice(&piece);
    completions.write_words(0, &entry).expect("it fits");
    let rung = local.card.rung.len();
    let polled = pool.poll(&mut local.card, &mut local.endpoint);
    let polled = polled.expect("the card is there");
    if polled.is_some() {
        // The card has the buffer again.
        assert_eq!(local.card.rung[rung..], [(17, 3)]);
        assert_eq!((pool.moved(), local.endpoint.receiving()), (1, 0));
    }
    let mut there = [0; 6];
    memory.read_bytes(3, &mut there).expect("it is there");
    (polled, local.endpoint.is_lost(), there)
}

#[test]
fn a_datagram_is_moved_to_the_buffer_that_was_lent_for_it() {
    let (polled, is_lost, there) = moved(1, BYTES, [64, 3]);
    let Some(Completion::Received {
        cookie,
        status,
        datagram,
    }) = polled
    else {
        panic!("{polled:?}")
    };
    assert_eq!((cookie, status), (7, Status::Done));
    assert_eq!((datagram.bytes, datagram.summed), (BYTES, true));
    assert_eq!((is_lost, &there), (false, b"later\0"));
}

/// No buffer of the pool, more than a buffer has, more than was lent, no region, behind the region's
/// end: none of it is believed.
#[test]
fn a_card_that_lies_moves_nothing() {
    for (buffer, bytes, piece) in [
        (2, BYTES, [64, 3]),
        (1, 1 << 16, [64, 3]),
        (1, BYTES, [4, 3]),
        (1, BYTES, [1 << 16 | 64, 3]),
        (1, BYTES, [64, (1 << 16) - 4]),
    ] {
        let (polled, is_lost, there) = moved(buffer, bytes, piece);
        assert_eq!((polled, is_lost), (None, true), "{buffer} {piece:?}");
        assert_eq!(there, [0; 6]);
    }
}

#[test]
fn a_pool_has_as_many_buffers_as_a_queue_has_slots() {
    let mut local = Local::new();
    for buffers in [0, SLOTS + 1] {
        let config = PoolConfig {
            address: Ipv4Addr::LOCALHOST,
            vlan: None,
            buffers,
        };
        let refused = local.eudp.open_pool(&mut local.card, config);
        assert!(matches!(refused, Err(EudpError::Buffers(it)) if it == buffers));
    }
}
