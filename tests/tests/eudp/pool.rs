//! Datagrams of which another fragment comes before the one with the UDP header, from a source to which
//! no endpoint is connected.

use crate::burst::changed;
use crate::card::{Card, PEER_AT, PEER_PORT, PORT, bytes};
use crate::fragments::{random, shuffled};
use eudp::{
    Checksum, Completion, CutThrough, Destination, EndpointConfig, EudpError, Pool, PoolConfig,
    Received, Refusals, SendError, Status,
};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use integration_tests::{Engine, Sim};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Bytes of the IP payload in a frame of an MTU of 1500.
const MOST: usize = 1480;

/// A card whose endpoint is connected to nobody, and the pool beside it.
struct Pooled {
    card: Card,
    pool: Pool<DmaMemory>,
    /// Identifications that were used.
    used: u16,
}

impl Pooled {
    fn new(buffers: u32) -> Pooled {
        let card = Card::timed(CutThrough::OfBus, Checksum::None, 1500);
        let EndpointConfig { address, .. } = *card.endpoint.config();
        Pooled::for_address(card, address, buffers)
    }

    fn for_address(mut card: Card, address: Ipv4Addr, buffers: u32) -> Pooled {
        let EndpointConfig { vlan, .. } = *card.endpoint.config();
        let config = PoolConfig {
            address,
            vlan,
            buffers,
        };
        let mut lent = EndpointCard(&mut card.stage.nic);
        let pool = card.eudp.open_pool(&mut lent, config).expect("a pool");
        card.stage.engine.pass(Duration::from_micros(20));
        let used = 0;
        Pooled { card, pool, used }
    }

    /// The fragments of a datagram of its own, the first one first.
    fn fragments(&mut self, port: u16, data: &[u8]) -> Vec<Vec<u8>> {
        self.used += 1;
        self.card.fragments((self.used, port), data, MOST)
    }

    /// What the endpoint gets within two milliseconds.
    fn next(&mut self) -> Option<Completion> {
        let Pooled { card, pool, .. } = self;
        for _ in 0..400 {
            card.stage.engine.pass(Duration::from_micros(5));
            let mut lent = EndpointCard(&mut card.stage.nic);
            let polled = pool.poll(&mut lent, &mut card.endpoint);
            let completion = polled.expect("the card is there");
            if completion.is_some() {
                return completion;
            }
        }
        None
    }

    /// A datagram of these bytes is the next one, in the memory that was lent for it at `offset`.
    fn has(&mut self, cookie: u32, offset: usize, sent: &[u8]) {
        let completion = self.next();
        assert_eq!(completion, Some(Card::received(cookie, sent.len(), true)));
        assert!(
            self.card.memory(offset, sent.len()) == sent,
            "{} bytes",
            sent.len()
        );
    }

    /// A buffer has come back with nothing in it.
    fn gave_up(&mut self, cookie: u32) {
        let Some(Completion::Received {
            cookie: ended,
            status,
            ..
        }) = self.next()
        else {
            panic!("nothing came back");
        };
        assert_eq!((ended, status), (cookie, Status::Incomplete));
    }

    /// The pool has its only buffer: the next datagram whose header comes last arrives.
    fn is_ready(&mut self) {
        let moved = self.pool.moved();
        let sent = bytes(moved + 77, 4000);
        self.card.post(0x2_0000, 4000, 77);
        let frames = self.header_last(PORT, &sent);
        self.card.arrive(&frames);
        self.has(77, 0x2_0000, &sent);
        assert_eq!(self.pool.moved(), moved + 1);
    }

    /// The same with the header behind the others.
    fn header_last(&mut self, port: u16, data: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = self.fragments(port, data);
        frames.rotate_left(1);
        frames
    }

    /// The endpoint is another one, which has the card's memory.
    fn reopen(&mut self, config: EndpointConfig) {
        let card = &mut self.card;
        let mut lent = EndpointCard(&mut card.stage.nic);
        let endpoint = card.eudp.open(&mut lent, config).expect("an endpoint");
        let old = std::mem::replace(&mut card.endpoint, endpoint);
        card.eudp.close(&mut lent, old).expect("it closes");
        let region = card
            .eudp
            .register(&mut lent, &mut card.endpoint, &card.memory);
        card.region = region.expect("a region");
    }

    /// Only these were refused, and the machines have kept to their tables.
    fn refused(&mut self, refusals: Refusals) {
        assert_eq!(self.card.refusals(), refusals);
        self.card.follow();
    }
}

/// As a card with the checksum `Full` sends it.
#[test]
fn a_datagram_whose_header_comes_last_arrives_whole() {
    let mut pooled = Pooled::new(2);
    for (cookie, length) in (0..).zip([1473, 2960, 4000, 20_000, 65_507]) {
        let sent = bytes(cookie, length);
        pooled.card.post(8192, 65_507, cookie);
        let frames = pooled.header_last(PORT, &sent);
        pooled.card.arrive(&frames);
        pooled.has(cookie, 8192, &sent);
        assert_eq!(pooled.pool.moved(), cookie + 1);
    }
    assert!(pooled.next().is_none());
    // One whose header comes first needs no pool.
    let sent = bytes(9, 4000);
    pooled.card.post(0, 4096, 9);
    let frames = pooled.fragments(PORT, &sent);
    pooled.card.arrive(&frames);
    pooled.has(9, 0, &sent);
    assert_eq!(pooled.pool.moved(), 5);
    pooled.refused(Refusals::default());
}

/// Whatever comes first, and whatever comes twice. If that is the header, no pool is needed.
#[test]
fn fragments_come_in_any_order() {
    let mut pooled = Pooled::new(3);
    for number in 0..300 {
        let mut random = random(number);
        let sent = bytes(number, 1473 + random(12_000));
        let at = 4096 + random(7);
        pooled.card.post(at as u32, 16_000, number);
        let mut frames = pooled.fragments(PORT, &sent);
        let again = frames[random(frames.len())].clone();
        shuffled(&mut frames, &mut random);
        frames.insert(random(frames.len()), again);
        pooled.card.arrive(&frames);
        pooled.has(number, at, &sent);
    }
    let moved = pooled.pool.moved();
    assert!((150..280).contains(&moved), "{moved}");
    assert!(pooled.next().is_none());
    let Refusals { duplicate, .. } = pooled.card.refusals();
    // One that comes when its datagram is complete is none that is known.
    assert!((200..=300).contains(&duplicate), "{duplicate}");
    pooled.refused(Refusals {
        duplicate,
        ..Refusals::default()
    });
}

/// The same frames from 10.0.0.3, whose sums are 1 more than the peer's.
fn from_another(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut frames: Vec<_> = (frames.iter())
        .map(|frame| changed(frame, |packet| packet[15] += 1))
        .collect();
    let sum = u16::from_be_bytes([frames[0][40], frames[0][41]]);
    let sum = if sum == 1 { 0xFFFF } else { sum - 1 };
    frames[0][40..42].copy_from_slice(&sum.to_be_bytes());
    frames
}

/// Both give their datagrams the same identification, and their fragments come in turn.
#[test]
fn two_sources_do_not_disturb_each_other() {
    let mut pooled = Pooled::new(2);
    for round in 0..20 {
        let sent = [bytes(2 * round, 9000), bytes(2 * round + 1, 9000)];
        let identification = 100 + round as u16;
        let [mut one, other] = [0, 1].map(|source| {
            pooled
                .card
                .fragments((identification, PORT), &sent[source], MOST)
        });
        let mut other = from_another(&other);
        for frames in [&mut one, &mut other] {
            frames.rotate_left(1);
        }
        pooled.card.post(0, 9000, 0);
        pooled.card.post(16_384, 9000, 1);
        for (one, other) in one.iter().zip(&other) {
            pooled.card.arrive(&[one.clone(), other.clone()]);
        }
        pooled.has(0, 0, &sent[0]);
        let datagram = Received {
            bytes: 9000,
            from: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 3), PEER_PORT),
            summed: true,
        };
        let received = Completion::Received {
            cookie: 1,
            status: Status::Done,
            datagram,
        };
        assert_eq!(pooled.next(), Some(received));
        assert!(pooled.card.memory(16_384, 9000) == sent[1]);
    }
    assert_eq!(pooled.pool.moved(), 40);
    pooled.refused(Refusals::default());
}

/// What has a buffer, and what needs none, arrives all the same.
#[test]
fn a_pool_without_a_buffer_loses_only_what_needs_one() {
    let mut pooled = Pooled::new(1);
    let sent = bytes(1, 4000);
    for cookie in 0..3 {
        pooled.card.post(8192 * cookie, 8192, cookie);
    }
    let first = pooled.header_last(PORT, &sent);
    let second = pooled.header_last(PORT, &sent);
    let third = pooled.fragments(PORT, &bytes(3, 3000));
    let whole = pooled.card.inbound(PORT, &bytes(4, 300));
    pooled.card.arrive(&first[..1]);
    pooled.card.arrive(&second);
    pooled.card.arrive(&third);
    pooled.card.arrive(&[whole]);
    pooled.card.arrive(&first[1..]);
    pooled.has(0, 0, &bytes(3, 3000));
    pooled.has(1, 8192, &bytes(4, 300));
    pooled.has(2, 16_384, &sent);
    pooled.is_ready();
    pooled.refused(Refusals {
        no_buffer: 1,
        ..Refusals::default()
    });
}

/// Each reason has its counter, and the pool has its only buffer back.
#[test]
fn what_cannot_be_delivered_is_counted_by_reason() {
    let mut pooled = Pooled::new(1);
    let sent = bytes(1, 4000);
    let mut seen = Refusals::default();
    // Nobody has the port. The endpoint does not hear of it.
    let frames = pooled.header_last(PORT + 1, &sent);
    pooled.card.arrive(&frames);
    assert!(pooled.next().is_none());
    seen.unclaimed += 1;
    assert_eq!(pooled.card.refusals(), seen);
    pooled.is_ready();
    // The endpoint has lent nothing.
    let frames = pooled.header_last(PORT, &sent);
    pooled.card.arrive(&frames);
    assert!(pooled.next().is_none());
    seen.no_buffer += 1;
    assert_eq!(pooled.card.refusals(), seen);
    pooled.is_ready();
    // It has lent too little, and in pieces: both stay lent, for what fits.
    pooled.card.post(0, 3999, 1);
    let frames = pooled.header_last(PORT, &sent);
    pooled.card.arrive(&frames);
    assert!(pooled.next().is_none());
    seen.bad_region += 1;
    assert_eq!(pooled.card.refusals(), seen);
    let frames = pooled.header_last(PORT, &sent[..3999]);
    pooled.card.arrive(&frames);
    pooled.has(1, 0, &sent[..3999]);
    let region = pooled.card.region;
    let pieces = [region.segment(0, 2000), region.segment(4096, 4000)];
    let posted = pooled
        .card
        .with(|endpoint, lent| endpoint.post(lent, &pieces, 2));
    posted.expect("it is posted");
    let frames = pooled.header_last(PORT, &sent);
    pooled.card.arrive(&frames);
    assert!(pooled.next().is_none());
    seen.bad_region += 1;
    assert_eq!(pooled.card.refusals(), seen);
    let frames = pooled.fragments(PORT, &sent);
    pooled.card.arrive(&frames);
    assert_eq!(pooled.next(), Some(Card::received(2, 4000, true)));
    pooled.is_ready();
    // Damaged, which the sum says: the endpoint's buffer comes back, too.
    pooled.card.post(0, 4000, 3);
    let mut frames = pooled.header_last(PORT, &sent);
    frames[1][300] ^= 4;
    pooled.card.arrive(&frames);
    pooled.gave_up(3);
    seen.bad_sum += 1;
    assert_eq!(pooled.card.refusals(), seen);
    pooled.is_ready();
    // An overlap behind the header.
    pooled.card.post(0, 4000, 4);
    let frames = pooled.fragments(PORT, &sent);
    let over = pooled
        .card
        .fragment(pooled.used, MOST - 8, &[0x66; 64], true);
    pooled
        .card
        .arrive(&[frames[2].clone(), frames[0].clone(), over]);
    pooled.gave_up(4);
    seen.overlap += 1;
    pooled.is_ready();
    pooled.refused(seen);
}

#[test]
fn what_does_not_become_whole_gives_its_buffers_back() {
    let mut pooled = Pooled::new(1);
    let sent = bytes(1, 4000);
    // Its header has not come, so it is nobody's.
    let frames = pooled.header_last(PORT, &sent);
    pooled.card.arrive(&frames[..1]);
    pooled.card.stage.engine.pass(Duration::from_millis(210));
    assert!(pooled.next().is_none());
    pooled.is_ready();
    // Its header has.
    pooled.card.post(0, 4000, 2);
    let frames = pooled.fragments(PORT, &sent);
    pooled.card.arrive(&[frames[1].clone(), frames[0].clone()]);
    pooled.card.stage.engine.pass(Duration::from_millis(210));
    pooled.gave_up(2);
    pooled.is_ready();
    pooled.refused(Refusals {
        expired: 2,
        ..Refusals::default()
    });
}

/// Without a pool, and when it is closed, the kernel gets such a datagram as it came, also what is in
/// another VLAN than the pool's.
#[test]
fn what_no_pool_is_for_is_the_kernels() {
    let mut pooled = Pooled::new(1);
    pooled.card.post(0, 4000, 1);
    let Pooled {
        mut card,
        pool,
        used,
    } = pooled;
    let mut lent = EndpointCard(&mut card.stage.nic);
    card.eudp.close_pool(&mut lent, pool).expect("it closes");
    let sent = bytes(1, 4000);
    let mut frames = card.fragments((used + 1, PORT), &sent, MOST);
    frames.rotate_left(1);
    card.arrive(&frames);
    assert_eq!(card.stage.receive(3), frames);
    let config = PoolConfig {
        address: card.endpoint.config().address,
        vlan: Some(5),
        buffers: 1,
    };
    let mut lent = EndpointCard(&mut card.stage.nic);
    let pool = card.eudp.open_pool(&mut lent, config).expect("a pool");
    let mut frames = card.fragments((used + 2, PORT), &sent, MOST);
    frames.rotate_left(1);
    card.arrive(&frames);
    assert_eq!(card.stage.receive(3), frames);
    // There is one pool of an address and a VLAN.
    let mut lent = EndpointCard(&mut card.stage.nic);
    let second = card.eudp.open_pool(&mut lent, config);
    assert!(matches!(second, Err(EudpError::Refused(_))), "{second:?}");
    let mut pooled = Pooled { card, pool, used };
    pooled.used += 2;
    assert!(pooled.next().is_none());
    let frames = pooled.fragments(PORT, &sent);
    pooled.card.arrive(&frames);
    pooled.has(1, 0, &sent);
    pooled.refused(Refusals::default());
}

/// An endpoint that is connected to nobody is not connected to who has no address.
#[test]
fn fragments_from_nowhere_are_the_kernels() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 1500);
    card.post(0, 4000, 1);
    let frames = card.fragments((1, PORT), &bytes(1, 4000), MOST);
    let from_nowhere = |frame: &Vec<u8>| changed(frame, |packet| packet[12..16].fill(0));
    let mut frames: Vec<Vec<u8>> = frames.iter().map(from_nowhere).collect();
    frames.rotate_left(1);
    card.arrive(&frames);
    assert_eq!(card.stage.receive(3), frames);
    assert_eq!(card.refusals(), Refusals::default());
}

/// A datagram in the pool has taken the endpoint's buffer. Whichever of the two is closed, the other
/// one goes on.
#[test]
fn closing_gives_back_what_is_the_others() {
    let mut pooled = Pooled::new(1);
    let config = *pooled.card.endpoint.config();
    let sent = bytes(1, 4000);
    pooled.card.post(0, 4000, 1);
    let frames = pooled.fragments(PORT, &sent);
    pooled.card.arrive(&[frames[1].clone(), frames[0].clone()]);
    pooled.card.stage.engine.pass(Duration::from_micros(100));
    pooled.reopen(EndpointConfig { port: 1, ..config });
    pooled.reopen(config);
    pooled.card.arrive(&frames[2..]);
    assert!(pooled.next().is_none());
    pooled.is_ready();
    pooled.card.post(0, 4000, 2);
    let frames = pooled.fragments(PORT, &sent);
    pooled.card.arrive(&[frames[1].clone(), frames[0].clone()]);
    pooled.card.stage.engine.pass(Duration::from_micros(100));
    let Pooled { mut card, pool, .. } = pooled;
    let mut lent = EndpointCard(&mut card.stage.nic);
    card.eudp.close_pool(&mut lent, pool).expect("it closes");
    card.stage.engine.pass(Duration::from_millis(2));
    assert_eq!(card.ended(), (2, Status::Incomplete, 0));
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// Who does not ask the pool is told to, and misses nothing.
#[test]
fn an_endpoint_that_is_asked_alone_names_the_pool() {
    let mut pooled = Pooled::new(1);
    let sent = bytes(1, 4000);
    pooled.card.post(0, 4000, 1);
    let frames = pooled.header_last(PORT, &sent);
    pooled.card.arrive(&frames);
    pooled.card.stage.engine.pass(Duration::from_micros(200));
    for _ in 0..2 {
        let polled = pooled.card.with(|endpoint, lent| endpoint.poll(lent));
        assert!(matches!(polled, Err(SendError::Pooled)), "{polled:?}");
    }
    pooled.has(1, 0, &sent);
    pooled.refused(Refusals::default());
}

/// With the checksum `Full` a card sends the fragment with the UDP header last. The other card's
/// endpoint is connected to nobody, in a VLAN or in none.
#[test]
fn a_card_with_full_checksums_sends_to_an_endpoint_that_is_not_connected() {
    for vlan in [None, Some(5)] {
        let config = EndpointConfig {
            vlan,
            ..EndpointConfig::default()
        };
        let start = || Card::with_config(Sim::timed("default"), CutThrough::OfBus, config);
        let (mut sender, mut receiver) =
            (start(), Pooled::for_address(start(), PEER_AT.address, 1));
        let here = sender.endpoint.config().address;
        let config = EndpointConfig {
            address: PEER_AT.address,
            port: PEER_PORT,
            ..*receiver.card.endpoint.config()
        };
        receiver.reopen(config);
        let station = receiver.card.stage.nic.station();
        let to = Destination { station, ..PEER_AT };
        let mut lent = EndpointCard(&mut sender.stage.nic);
        let peer = sender.eudp.address(&mut lent, &mut sender.endpoint, &to);
        sender.peer = peer.expect("room");
        for number in 0..3 {
            let sent = bytes(number, 20_000);
            receiver.card.post(512, 20_000, number);
            sender.send(0, &sent, number);
            for _ in 0..20_008_usize.div_ceil(MOST) {
                let frame = sender.wire().bytes;
                receiver.card.stage.engine.send(&frame);
            }
            assert!(matches!(sender.completion(), Completion::Sent { .. }));
            let datagram = Received {
                bytes: 20_000,
                from: SocketAddrV4::new(here, PORT),
                summed: true,
            };
            let received = Completion::Received {
                cookie: number,
                status: Status::Done,
                datagram,
            };
            assert_eq!(receiver.next(), Some(received));
            assert!(receiver.card.memory(512, 20_000) == sent);
        }
        assert_eq!(receiver.pool.moved(), 3);
        receiver.refused(Refusals::default());
    }
}
