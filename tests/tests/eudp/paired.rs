//! Long datagrams on a bus that is slower than the wire, where completions go two in one transfer.

use crate::card::{Card, PORT, bytes};
use crate::fragments::random;
use eudp::{Checksum, Completion, CutThrough, Received, Status};
use host_driver::nic::EndpointCard;

use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;

/// Bytes of a buffer, and buffers.
const BUFFER: u32 = 2048;
const BUFFERS: u32 = 40;
/// Datagrams of a run.
const COUNT: u32 = 32;

fn card() -> Card {
    let sim = Sim::timed_on(Board::with_bus(32, 33), Parameters::default(), 1);
    Card::on(sim, CutThrough::OfBus, Checksum::None, 1500)
}

/// What a datagram is like.
#[derive(Clone, Copy, Debug)]
struct Kind {
    length: usize,
    has_sum: bool,
    is_wrong: bool,
    is_others: bool,
}

impl Kind {
    /// Most are long, and without a sum.
    fn of(random: &mut impl FnMut(usize) -> usize) -> Kind {
        let is_short = random(6) == 0;
        let has_sum = random(4) == 0;
        Kind {
            length: if is_short { 18 } else { 1024 } + random(400),
            has_sum,
            is_wrong: has_sum && random(3) == 0,
            is_others: random(8) == 0,
        }
    }

    fn frame(self, card: &Card, number: u32) -> Vec<u8> {
        let port = PORT + u16::from(self.is_others);
        let data = bytes(number, self.length);
        if !self.has_sum {
            return card.inbound_unsummed(port, &data);
        }
        let mut frame = card.inbound(port, &data);
        if self.is_wrong {
            frame[50] ^= 1;
        }
        frame
    }
}

/// Takes the next completion if it is there: its buffer, and what is in it.
fn next(card: &mut Card) -> Option<(u32, Status, Vec<u8>)> {
    let polled = card.with(|endpoint, lent| endpoint.poll(lent));
    let Completion::Received {
        cookie,
        status,
        datagram: Received { bytes, .. },
    } = polled.expect("the card is there")?
    else {
        panic!("nothing is sent")
    };
    let there = card.memory((cookie * BUFFER) as usize, bytes as usize);
    Some((cookie, status, there))
}

/// What comes for the endpoint until the card rests.
fn all(card: &mut Card) -> Vec<(u32, Status, Vec<u8>)> {
    let (mut all, mut idle) = (Vec::new(), 0);
    while idle < 100 {
        idle += 1;
        card.stage.engine.pass(Duration::from_micros(5));
        while let Some(one) = next(card) {
            idle = 0;
            all.push(one);
        }
    }
    all
}

fn lend(card: &mut Card, cookies: std::ops::Range<u32>) {
    for cookie in cookies {
        card.post(cookie * BUFFER, BUFFER, cookie);
    }
    card.stage.engine.pass(Duration::from_micros(40));
}

/// Datagrams of all kinds, for two endpoints: what is right arrives once, whole and in its order.
#[test]
fn what_is_right_is_completed_in_its_order() {
    let mut card = card();
    let mut other = card.other(PORT + 1);
    let mut lent = EndpointCard(&mut card.stage.nic);
    let memory = eudp::Card::allocate(&mut lent, (COUNT * BUFFER) as usize).expect("memory");
    let region = card.eudp.register(&mut lent, &mut other, &memory);
    let region = region.expect("a region");
    for seed in 0..40 {
        let mut random = random(seed);
        lend(&mut card, 0..BUFFERS);
        let kinds: Vec<Kind> = (0..COUNT).map(|_| Kind::of(&mut random)).collect();
        let good = |others: bool| {
            let all = (0..).zip(&kinds);
            let good = all.filter(move |(_, kind)| kind.is_others == others && !kind.is_wrong);
            good.map(|(number, kind)| bytes(number, kind.length))
        };
        let count = good(true).count() as u32;
        let mut lent = EndpointCard(&mut card.stage.nic);
        for cookie in 0..count {
            let piece = region.segment(cookie * BUFFER, BUFFER);
            let posted = other.post(&mut lent, &[piece], cookie);
            posted.expect("it is posted");
        }
        card.stage.engine.pass(Duration::from_micros(40));
        for (number, kind) in (0..).zip(&kinds) {
            let frame = kind.frame(&card, number);
            card.stage.engine.send(&frame);
        }
        let seen = all(&mut card);
        let there: Vec<_> = seen.iter().map(|(_, _, there)| there.clone()).collect();
        assert!(good(false).eq(there), "seed {seed}: {kinds:?}");
        for number in 0..count {
            let polled = other.poll(&mut EndpointCard(&mut card.stage.nic));
            let Ok(Some(Completion::Received { .. })) = polled else {
                panic!("seed {seed}: {number} of {count}: {polled:?}")
            };
        }
        // The other buffers are for the next run.
        let left = BUFFERS - seen.len() as u32;
        for number in 0..left {
            let frame = card.inbound_unsummed(PORT, &bytes(number, 1200));
            card.stage.engine.send(&frame);
        }
        let mut cookies: Vec<u32> = seen.iter().map(|(cookie, ..)| *cookie).collect();
        cookies.extend(all(&mut card).iter().map(|(cookie, ..)| *cookie));
        cookies.sort_unstable();
        assert!((0..BUFFERS).eq(cookies), "seed {seed}");
    }
    card.follow();
}

/// One buffer is in memory that is gone: its datagram is lost, and those before and behind it arrive.
#[test]
fn a_buffer_that_is_gone_takes_no_other_completion_with_it() {
    for (gone, sums) in
        (0..8).flat_map(|gone| [0b0000_0000u32, 0b0101_0100].map(|sums| (gone, sums)))
    {
        let mut card = card();
        let (region, _memory) = card.gone(BUFFER);
        lend(&mut card, 0..gone);
        let piece = region.segment(0, BUFFER);
        card.with(|endpoint, lent| endpoint.post(lent, &[piece], gone))
            .expect("it is posted");
        lend(&mut card, gone + 1..10);
        for number in 0..10 {
            let data = bytes(number, 1300);
            let frame = if sums >> number & 1 == 0 {
                card.inbound_unsummed(PORT, &data)
            } else {
                card.inbound(PORT, &data)
            };
            card.stage.engine.send(&frame);
        }
        let seen = all(&mut card);
        let expected = (0..10).map(|number| {
            if number == gone {
                (number, Status::Unwritable, vec![])
            } else {
                (number, Status::Done, bytes(number, 1300))
            }
        });
        assert!(expected.eq(seen), "buffer {gone}, sums {sums:b}");
        assert_eq!(card.refusals().bad_region, 1);
        card.follow();
    }
}

/// No completion waits for a datagram that does not come.
#[test]
fn the_last_datagram_is_completed_like_the_others() {
    for count in 1..20 {
        let mut card = card();
        lend(&mut card, 0..count);
        for number in 0..count {
            let frame = card.inbound_unsummed(PORT, &bytes(number, 1472));
            card.stage.engine.send(&frame);
        }
        let seen = all(&mut card);
        assert_eq!(seen.len() as u32, count);
    }
}
