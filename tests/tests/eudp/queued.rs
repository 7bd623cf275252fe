//! Several datagrams in the write channel's queue, of which some are refused.

use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, Received, Refusals, Status};
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

/// The same of one that has no sum, and is right.
fn send_unsummed(card: &mut Card, number: u32) {
    let frame = card.inbound_unsummed(PORT, &bytes(number, length(number)));
    card.stage.engine.send(&frame);
}

/// All datagrams that are completed until the card rests, by their numbers, and their cookies. Each is
/// whole.
fn completed(card: &mut Card) -> Vec<(u32, u32)> {
    let (all, unwritable) = completed_or_not(card);
    assert!(unwritable.is_empty(), "{unwritable:?}");
    all
}

/// The same, and the cookies of buffers that could not be written.
fn completed_or_not(card: &mut Card) -> (Vec<(u32, u32)>, Vec<u32>) {
    let (mut all, mut unwritable) = (Vec::new(), Vec::new());
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
                status,
                datagram: Received { bytes: there, .. },
            } = completion
            else {
                panic!("{completion:?}")
            };
            if (status, there) == (Status::Unwritable, 0) {
                unwritable.push(cookie);
                continue;
            }
            assert_eq!(status, Status::Done);
            let number = (there - 200) / 4;
            let memory = card.memory((cookie * BUFFER) as usize, there as usize);
            let whole = memory == bytes(number, length(number));
            assert!(whole, "datagram {number} at {cookie}");
            all.push((number, cookie));
        }
    }
    (all, unwritable)
}

fn cookies(completed: &[(u32, u32)]) -> BTreeSet<u32> {
    completed.iter().map(|(_, cookie)| *cookie).collect()
}

/// Sends six datagrams without gaps. Those whose bit is set in `unsummed` have no sum, of the others
/// those have a wrong one whose bit is set in `wrong`.
fn burst(card: &mut Card, unsummed: u32, wrong: u32) {
    for number in 0..6 {
        if unsummed >> number & 1 != 0 {
            send_unsummed(card, number);
        } else {
            send(card, number, wrong >> number & 1 != 0);
        }
    }
}

/// The same with `lent` buffers, and others behind them: the good ones arrive in their order, and each
/// buffer is used once, those of the wrong ones by datagrams that come later.
fn burst_and_more(card: &mut Card, lent: u32, unsummed: u32, wrong: u32) {
    lend(card, lent);
    burst(card, unsummed, wrong);
    let mut all = completed(card);
    let good = (0..6).filter(|number| wrong >> number & 1 == 0);
    let context = format!("{wrong:06b} wrong, {unsummed:06b} without: {all:?}");
    assert!(good.eq(all.iter().map(|(number, _)| *number)), "{context}");
    for number in 0..lent - all.len() as u32 {
        if unsummed == 0 {
            send(card, 10 + number, false);
        } else {
            send_unsummed(card, 10 + number);
        }
    }
    all.extend(completed(card));
    assert_eq!(cookies(&all), (0..lent).collect(), "{context}");
    assert_eq!(all.len() as u32, lent, "{context}");
}

/// So many datagrams were refused for their sum, and none for anything else.
fn wrong_sums(card: &mut Card, wrong: u32) {
    let seen = Refusals {
        bad_sum: wrong,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.follow();
}

/// Any of six datagrams have a wrong sum.
#[test]
fn the_buffer_of_a_wrong_datagram_is_for_another_one() {
    let mut card = card();
    for wrong in 0..64 {
        burst_and_more(&mut card, 12, 0, wrong);
    }
    wrong_sums(&mut card, 6 * 32);
}

/// Some of six datagrams have no sum, and any of the others a wrong one. The completions of those
/// without a sum are queued with their data, but none overtakes another.
#[test]
fn datagrams_without_a_sum_keep_their_place_among_others() {
    let mut card = card();
    let mut count = 0;
    for unsummed in [0b111111u32, 0b010101, 0b110011, 0b000111, 0b111000] {
        for wrong in (0u32..64).filter(|wrong| wrong & unsummed == 0) {
            burst_and_more(&mut card, 8, unsummed, wrong);
            count += wrong.count_ones();
        }
    }
    wrong_sums(&mut card, count);
}

/// A datagram without a sum is completed sooner than one with a sum, as its completion does not wait for
/// the end of its data; but it is there when the completion is.
#[test]
fn the_completion_of_a_datagram_without_a_sum_follows_its_data() {
    let mut card = card();
    let mut times = [0; 2];
    for (number, time) in (0..40).flat_map(|round| [(2 * round, 0), (2 * round + 1, 1)]) {
        lend(&mut card, 1);
        card.stage
            .engine
            .pass(Duration::from_nanos(20_000 + 130 * u64::from(number)));
        if time == 0 {
            send(&mut card, number, false);
        } else {
            send_unsummed(&mut card, number);
        }
        let begun = card.now();
        let step = Duration::from_nanos(100);
        let received = Card::received(0, length(number), time == 0);
        assert_eq!(card.completion_in_steps(step), received);
        assert!(card.memory(0, length(number)) == bytes(number, length(number)));
        times[time] += card.now() - begun;
    }
    let [summed, unsummed] = times.map(|time| time / 40);
    println!("{summed} ns with a sum, {unsummed} without");
    assert!(unsummed + 2000 < summed, "{summed} ns, {unsummed} without");
    card.follow();
}

/// Long datagrams without a sum, which are alone in RDMA, give their slots back: all buffers are found, of
/// which only some are in slots at a time.
#[test]
fn long_datagrams_without_a_sum_use_more_buffers_than_slots() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    lend(&mut card, 40);
    for number in 0..40 {
        let data = bytes(number, 3000);
        let frame = card.inbound_unsummed(PORT, &data);
        card.stage.engine.send(&frame);
        assert_eq!(card.completion(), Card::received(number, 3000, false));
        assert!(card.memory((number * BUFFER) as usize, 3000) == data);
    }
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
    let mut other = card.other(PORT + 1);
    let mut lent = EndpointCard(&mut card.stage.nic);
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

/// One of the buffers is in memory that is gone: its datagram is lost, and the process gets it back with
/// an error. What is written in front of it and behind it is whole, with a sum or without, and the
/// buffer can be lent again. On a bus that stalls, completions are queued while the data behind them is
/// written.
#[test]
fn a_buffer_that_cannot_be_written_costs_the_others_nothing() {
    let cases = [
        (0, 0b000000u32),
        (0, 0b111111),
        (0, 0b001110),
        (600, 0b000000),
        (600, 0b001110),
    ];
    for (gone, (stall, unsummed)) in (0..6).flat_map(|gone| cases.map(|case| (gone, case))) {
        let mut card = Card::stalling(stall);
        let (region, memory) = card.gone(BUFFER);
        let machine = card.stage.engine.machine().clone();
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
        burst(&mut card, unsummed, 0);
        let context = format!("buffer {gone}, {unsummed:06b} without a sum, bus {stall}");
        let (there, unwritable) = completed_or_not(&mut card);
        let others: Vec<(u32, u32)> = (0..6).filter(|it| *it != gone).map(|it| (it, it)).collect();
        assert_eq!((there, unwritable), (others, vec![gone]), "{context}");
        let seen = Refusals {
            bad_region: 1,
            ..Refusals::default()
        };
        assert_eq!(card.refusals(), seen, "{context}");
        machine.lock().map(memory.clone());
        let piece = region.segment(0, BUFFER);
        card.with(|endpoint, lent| endpoint.post(lent, &[piece], gone))
            .expect("it is posted");
        card.stage.engine.pass(Duration::from_micros(20));
        for (number, next) in [(0, 6), (1, 7), (2, gone)] {
            send(&mut card, number, false);
            assert_eq!(card.completed(length(number)), next, "{context}");
        }
        let mut data = vec![0; length(2)];
        memory.read_bytes(0, &mut data).expect("it fits");
        assert!(data == bytes(2, length(2)), "{context}");
        card.follow();
    }
}

/// More datagrams than the receive buffer holds, all for memory that is gone: their room is free again.
#[test]
fn datagrams_that_cannot_be_written_do_not_fill_the_receive_buffer() {
    let mut card = card();
    let machine = card.stage.engine.machine().clone();
    let memory = card.memory.clone();
    machine.lock().unmap(&memory);
    let frames = [
        card.inbound(PORT, &bytes(1, 1472)),
        card.inbound_unsummed(PORT, &bytes(1, 1472)),
    ];
    for round in 0..80 {
        lend(&mut card, 15);
        for _ in 0..15 {
            card.stage.engine.send(&frames[round % 2]);
        }
        card.stage.engine.pass(Duration::from_micros(1500));
        let all = (0..15).collect();
        assert_eq!(completed_or_not(&mut card), (vec![], all), "round {round}");
    }
    machine.lock().map(memory);
    let refused = card.refusals().bad_region;
    assert_eq!(refused, 1200);
    lend(&mut card, 8);
    for number in 0..8 {
        send(&mut card, number, false);
    }
    assert_eq!(cookies(&completed(&mut card)), (0..8).collect());
}
