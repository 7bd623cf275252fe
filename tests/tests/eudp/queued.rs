//! Several datagrams in the write channel's queue, of which some are refused.

use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, EndpointConfig, Received, Refusals, Status};
use host_driver::nic::EndpointCard;
use integration_tests::Engine;
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes of a buffer.
const BUFFER: u32 = 4096;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 1500)
}

/// Lends buffers; each is where its cookie says.
fn lend(card: &mut Card, count: u32) {
    for cookie in 0..count {
        let piece = card.region.segment(cookie * BUFFER, BUFFER);
        card.with(|endpoint, lent| endpoint.lend(lent, &[piece], cookie))
            .expect("it is lent");
    }
    card.with(|endpoint, lent| endpoint.submit(lent))
        .expect("the card is there");
    card.stage.engine.pass(Duration::from_micros(20));
}

/// Each datagram has a length of its own.
const fn length(number: u32) -> usize {
    200 + 4 * number as usize
}

/// Sends a datagram behind the one before, with a wrong sum if it is to be refused.
fn send(card: &mut Card, number: u32, is_wrong: bool) {
    let mut frame = card.inbound(PORT, &bytes(number, length(number)));
    if is_wrong {
        frame[100] ^= 0x40;
    }
    card.stage.engine.send(&frame);
}

/// All datagrams that are completed until the card rests, by their numbers, and their cookies. Each is
/// whole.
fn completed(card: &mut Card) -> Vec<(u32, u32)> {
    let mut all = Vec::new();
    let mut idle = 0;
    while idle < 100 {
        idle += 1;
        card.stage.engine.pass(Duration::from_micros(5));
        while let Some(completion) = card
            .with(|endpoint, lent| endpoint.poll(lent))
            .expect("the card is there")
        {
            idle = 0;
            let Completion::Received {
                cookie,
                status: Status::Done,
                datagram: Received { bytes: there, .. },
            } = completion
            else {
                panic!("{completion:?}")
            };
            let number = (there - 200) / 4;
            let memory = card.memory((cookie * BUFFER) as usize, there as usize);
            let whole = memory == bytes(number, length(number));
            assert!(whole, "datagram {number} at {cookie}");
            all.push((number, cookie));
        }
    }
    all
}

fn cookies(completed: &[(u32, u32)]) -> BTreeSet<u32> {
    completed.iter().map(|(_, cookie)| *cookie).collect()
}

/// Any of six datagrams that come without gaps have a wrong sum. The others arrive in their order, and
/// each buffer is used once: those of the wrong ones by datagrams that come later.
#[test]
fn the_buffer_of_a_wrong_datagram_is_for_another_one() {
    let mut card = card();
    let mut wrong = 0;
    for pattern in 0u32..64 {
        lend(&mut card, 12);
        for number in 0..6 {
            send(&mut card, number, pattern >> number & 1 != 0);
        }
        let mut all = completed(&mut card);
        let good: Vec<u32> = (0..6).filter(|number| pattern >> number & 1 == 0).collect();
        let numbers: Vec<u32> = all.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, good, "pattern {pattern:06b}");
        wrong += pattern.count_ones();
        for number in 0..12 - good.len() as u32 {
            send(&mut card, 10 + number, false);
        }
        all.extend(completed(&mut card));
        assert_eq!(cookies(&all), (0..12).collect(), "pattern {pattern:06b}");
        assert_eq!(all.len(), 12);
    }
    let seen = Refusals {
        bad_sum: wrong,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.follow();
}

/// The same with more buffers than slots: what the card fetches meanwhile gets other slots than those
/// whose datagrams may turn out to be wrong.
#[test]
fn no_slot_is_used_again_before_its_datagram_is_right() {
    let mut card = card();
    for first in 0..3 {
        lend(&mut card, 64);
        for number in 0..80 {
            send(&mut card, number, number % 3 == first);
        }
        let mut all = completed(&mut card);
        let good = (0..80).filter(|number| number % 3 != first);
        assert!(good.eq(all.iter().map(|(number, _)| *number)), "{all:?}");
        for number in 0..64 - all.len() as u32 {
            send(&mut card, number, false);
        }
        all.extend(completed(&mut card));
        assert_eq!(cookies(&all), (0..64).collect());
    }
    assert_eq!(card.refusals().no_buffer, 0);
    card.follow();
}

/// With as many buffers as datagrams that are right, wrong ones between them take none away.
#[test]
fn the_last_buffers_wait_for_datagrams_that_are_right() {
    let mut card = card();
    for pattern in 0u32..64 {
        let good = 6 - pattern.count_ones();
        lend(&mut card, good);
        for number in 0..6 {
            send(&mut card, number, pattern >> number & 1 != 0);
        }
        let all = completed(&mut card);
        assert_eq!(all.len() as u32, good, "pattern {pattern:06b}: {all:?}");
    }
}

/// Datagrams for two endpoints by turns, each fourth with a wrong sum: those of one leave the other's
/// buffers alone.
#[test]
fn endpoints_have_their_own_buffers() {
    let mut card = card();
    let config = EndpointConfig {
        port: PORT + 1,
        ..*card.endpoint.config()
    };
    let mut lent = EndpointCard(&mut card.stage.nic);
    let mut other = card.eudp.open(&mut lent, config).expect("an endpoint");
    let memory = eudp::Card::allocate(&mut lent, 1 << 16).expect("memory");
    let region = card.eudp.register(&mut lent, &mut other, &memory);
    let region = region.expect("a region");
    for cookie in 0..12 {
        let pieces = [region.segment(cookie * BUFFER, BUFFER)];
        let posted = other.post(&mut EndpointCard(&mut card.stage.nic), &pieces, cookie);
        posted.expect("it is posted");
    }
    lend(&mut card, 12);
    for number in 0..16 {
        send(&mut card, number, number % 4 == 1);
        let mut frame = card.inbound(PORT + 1, &bytes(100 + number, 300));
        if number % 4 == 2 {
            frame[60] ^= 1;
        }
        card.stage.engine.send(&frame);
    }
    let all = completed(&mut card);
    let good: Vec<u32> = (0..16).filter(|number| number % 4 != 1).collect();
    assert_eq!(
        all.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        good
    );
    assert_eq!(cookies(&all), (0..12).collect());
    let mut used = BTreeSet::new();
    for number in (0..16).filter(|number| number % 4 != 2) {
        let completion = other.poll(&mut EndpointCard(&mut card.stage.nic));
        let Ok(Some(Completion::Received { cookie, .. })) = completion else {
            panic!("datagram {number}: {completion:?}")
        };
        let mut there = vec![0; 300];
        let at = (cookie * BUFFER) as usize;
        memory.read_bytes(at, &mut there).expect("it fits");
        assert!(there == bytes(100 + number, 300), "datagram {number}");
        used.insert(cookie);
    }
    assert_eq!(used, (0..12).collect());
    assert_eq!(card.refusals().bad_sum, 8);
}

/// One of the buffers is in memory that is gone: its datagram is lost, and those that get it next. What
/// is written in front of it and behind it is whole, and the buffer is used when its memory is back.
#[test]
fn a_buffer_that_cannot_be_written_costs_the_others_nothing() {
    for gone in 0..6 {
        let mut card = card();
        let mut lent = EndpointCard(&mut card.stage.nic);
        let memory = eudp::Card::allocate(&mut lent, BUFFER as usize).expect("memory");
        let region = card.eudp.register(&mut lent, &mut card.endpoint, &memory);
        let region = region.expect("a region");
        let machine = card.stage.engine.machine().clone();
        machine.lock().unmap(&memory);
        for cookie in 0..8 {
            let piece = if cookie == gone {
                region.segment(0, BUFFER)
            } else {
                card.region.segment(cookie * BUFFER, BUFFER)
            };
            card.with(|endpoint, lent| endpoint.post(lent, &[piece], cookie))
                .expect("it is posted");
        }
        card.stage.engine.pass(Duration::from_micros(20));
        for number in 0..6 {
            send(&mut card, number, false);
        }
        let first = completed(&mut card);
        let lost = card.refusals().bad_region;
        assert_eq!(first.len() as u32 + lost, 6, "buffer {gone}: {first:?}");
        assert!(
            lost > 0 && first.len() as u32 >= gone,
            "buffer {gone}: {first:?}"
        );
        assert!(!cookies(&first).contains(&gone));
        machine.lock().map(memory.clone());
        for number in 0..8 - first.len() as u32 {
            send(&mut card, number, false);
        }
        let mut used = cookies(&first);
        for _ in 0..8 - first.len() {
            let Completion::Received { cookie, .. } = card.completion() else {
                panic!("not received")
            };
            assert!(used.insert(cookie), "buffer {cookie} twice");
        }
        assert_eq!(used, (0..8).collect());
        card.follow();
    }
}

/// More datagrams than the receive buffer holds, all for memory that is gone: their room is free again.
#[test]
fn datagrams_that_cannot_be_written_do_not_fill_the_receive_buffer() {
    let mut card = card();
    let machine = card.stage.engine.machine().clone();
    lend(&mut card, 8);
    let memory = card.memory.clone();
    machine.lock().unmap(&memory);
    let frame = card.inbound(PORT, &bytes(1, 1472));
    for _ in 0..80 {
        for _ in 0..15 {
            card.stage.engine.send(&frame);
        }
        card.stage.engine.pass(Duration::from_micros(1500));
    }
    machine.lock().map(memory);
    let refused = card.refusals().bad_region;
    assert_eq!(refused, 1200);
    for number in 0..8 {
        send(&mut card, number, false);
    }
    assert_eq!(cookies(&completed(&mut card)), (0..8).collect());
}
