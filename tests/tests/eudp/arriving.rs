//! Datagrams that are written to a process's memory while they arrive.

use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, Refusals, Status};
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_chip::Register;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_model::faults::Fault;
use tigon2_sim::timing::Parameters;

/// Puts a frame on the wire; returns when it will have arrived, in nanoseconds.
pub fn send(card: &mut Card, frame: &[u8]) -> u64 {
    let machine = card.stage.engine.machine().clone();
    let mut machine = machine.lock();
    let now = machine.now();
    machine.send_frame(now, frame.to_vec())
}

/// Lets time pass until `at`.
pub fn pass_until(card: &mut Card, at: u64) {
    let now = card.now();
    if let Some(left) = at.checked_sub(now) {
        card.stage.engine.pass(Duration::from_nanos(left));
    }
}

/// Lets time pass until `at`, and the MAC reject what arrives meanwhile: the card's address is another
/// one.
pub fn reject_until(card: &mut Card, at: u64) {
    let machine = card.stage.engine.machine().clone();
    let register = Register::StationAddressLow.offset();
    let station = machine.lock().bar_read(register);
    machine.lock().bar_write(register, station ^ 1);
    pass_until(card, at);
    machine.lock().bar_write(register, station);
}

/// Datagrams of a length: one may come while CPU A looks after something else.
const ROUNDS: u32 = 16;

/// Bytes of `sent` that stand in the memory at `offset`.
pub fn there(card: &Card, offset: usize, sent: &[u8]) -> usize {
    let memory = card.memory(offset, sent.len());
    let right = memory.iter().zip(sent);
    right.take_while(|(there, sent)| there == sent).count()
}

/// Most of a datagram is written before its frame has ended, and it is there sooner than one that is
/// written when it is whole; a short one is not much later.
#[test]
fn a_datagram_is_written_while_it_arrives() {
    let mut cards =
        [CutThrough::Off, CutThrough::OfBus].map(|cut| Card::timed(cut, Checksum::None, 9000));
    let mut late = Vec::new();
    for (number, length, early, most) in [
        (1, 400, 0, 1.0),
        (2, 1472, 0, 1.0),
        (3, 4000, 1000, 0.8),
        // CPU A's work of each millisecond takes the time of 1500 bytes.
        (4, 8972, 4500, 0.7),
    ] {
        let [stored, through] = [0, 1].map(|index| {
            let card = &mut cards[index];
            let mut sum = 0;
            for round in 0..ROUNDS {
                let number = 100 * number + round;
                let sent = bytes(number, length);
                card.post(16384, 16384, number);
                let frame = card.inbound(PORT, &sent);
                let end = send(card, &frame);
                pass_until(card, end - 500);
                let written = there(card, 16384, &sent);
                if index == 0 {
                    assert!(written < 8, "{length} bytes: {written} before the end");
                } else {
                    assert!(written >= early, "{length} bytes: {written} before the end");
                }
                assert_eq!(card.completion(), Card::received(number, length, true));
                sum += card.now() - end;
                assert!(card.memory(16384, length) == sent);
            }
            sum as f64 / f64::from(ROUNDS)
        });
        println!("{length} bytes: {stored} ns after the end if stored, {through} if cut through");
        // Between two looks passes a microsecond, and CPU A looks at what arrives.
        late.extend((through > stored * most + 1500.0).then_some(length));
    }
    assert!(late.is_empty(), "{late:?} bytes");
    for card in &mut cards {
        assert_eq!(card.refusals(), Refusals::default());
        card.follow();
    }
}

/// CPU A looks for frames that arrive, but a short one does not wait for the end of a look: it is there
/// as soon as if nobody looked, but for less than 240 ns, half of a look.
#[test]
fn a_short_datagram_does_not_wait_for_a_look() {
    for length in [1, 60, 100, 400, 800, 1200] {
        let [stored, through] = [CutThrough::Off, CutThrough::OfBus].map(|cut| {
            let mut card = Card::timed(cut, Checksum::None, 1500);
            let mut times = [0; 41];
            for (number, time) in (0..).zip(&mut times) {
                card.post(0, 16384, number);
                // The looks are where they are, so the frames come at other times of them.
                let pause = Duration::from_nanos(20_000 + 130 * u64::from(number));
                card.stage.engine.pass(pause);
                let frame = card.inbound(PORT, &bytes(number, length));
                let end = send(&mut card, &frame);
                let step = Duration::from_nanos(20);
                assert_eq!(
                    card.completion_in_steps(step),
                    Card::received(number, length, true)
                );
                *time = card.now() - end;
            }
            times.sort_unstable();
            times[times.len() / 2]
        });
        println!("{length} bytes: {stored} ns after the end if nobody looks, {through} else");
        assert!(through < stored + 240, "{length} bytes");
    }
}

/// What was written of a frame that ends badly is nobody's: its descriptor stays posted, and the next
/// datagram overwrites it.
#[test]
fn a_frame_that_ends_badly_completes_nothing() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    let (bad, good) = (bytes(1, 8000), bytes(2, 1400));
    let inbound = [card.inbound(PORT, &bad), card.inbound(PORT, &good)];
    for (cookie, fault) in (0..).zip([
        "receive crc 1",
        "receive truncated+crc 1",
        "receive phy-decode 1",
    ]) {
        card.post(0, 16384, cookie);
        let fault: Fault = fault.parse().expect("a fault");
        card.stage.engine.machine().lock().inject(fault);
        let end = send(&mut card, &inbound[0]);
        pass_until(&mut card, end - 500);
        assert!(there(&card, 0, &bad) > 4000, "it was written early");
        assert!(card.rests(), "{fault:?}");
        send(&mut card, &inbound[1]);
        assert_eq!(card.completion(), Card::received(cookie, 1400, true));
        assert!(card.memory(0, 1400) == good);
    }
    // The UDP checksum is as good as the CRC.
    card.post(0, 16384, 9);
    let mut wrong = inbound[0].clone();
    wrong[7000] ^= 1;
    send(&mut card, &wrong);
    assert!(card.rests());
    send(&mut card, &inbound[1]);
    assert_eq!(card.completion(), Card::received(9, 1400, true));
    assert!(card.memory(0, 1400) == good);
    let seen = Refusals {
        bad_sum: 1,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.follow();
}

/// A frame that the MAC drops at its end leaves nothing: the next one is not taken for it, though it
/// begins at the same place.
#[test]
fn a_frame_without_an_end_is_forgotten() {
    for wait in [0, 2000, 30_000] {
        let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
        card.post(0, 16384, 1);
        let (lost, good) = (bytes(1, 8000), bytes(2, 8000));
        let inbound = [card.inbound(PORT, &lost), card.inbound(PORT, &good)];
        let machine = card.stage.engine.machine().clone();
        let read = |register: Register| machine.lock().bar_read(register.offset());
        let start = read(Register::RxProducer);
        let end = send(&mut card, &inbound[0]);
        pass_until(&mut card, end - 20_000);
        assert!(there(&card, 0, &lost) > 2000, "it was written early");
        assert!(read(Register::RxProducer) > start + 5000);
        reject_until(&mut card, end + 1000);
        assert_eq!(read(Register::RxProducer), start, "it was dropped");
        pass_until(&mut card, end + 1000 + wait);
        send(&mut card, &inbound[1]);
        assert_eq!(card.completion(), Card::received(1, 8000, true));
        assert_eq!(there(&card, 0, &good), 8000);
        assert!(card.rests());
        assert_eq!(card.refusals(), Refusals::default());
        card.follow();
    }
}

/// A frame whose headers go round the buffer's end is written when it is whole.
#[test]
fn a_frame_that_begins_at_the_buffers_end_is_written_whole() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    let machine = card.stage.engine.machine().clone();
    let receive = |card: &mut Card, number: u32, length: usize| {
        card.post(0, 16384, number);
        let sent = bytes(number, length);
        let frame = card.inbound(PORT, &sent);
        let end = send(card, &frame);
        pass_until(card, end - 500);
        let early = there(card, 0, &sent);
        assert_eq!(card.completion(), Card::received(number, length, true));
        assert_eq!(there(card, 0, &sent), length);
        early
    };
    let mut number = 0;
    for behind in [8, 16, 24, 32, 40] {
        loop {
            let start = machine.lock().bar_read(Register::RxProducer.offset());
            let left = (PACKET_MEMORY_END - start - behind) as usize;
            if left == 0 {
                break;
            }
            // Headers and CRC are beside its data, and it is not to be too short.
            let length = if left < 9000 {
                left - 46
            } else {
                8000.min(left - 1000)
            };
            receive(&mut card, number, length);
            number += 1;
        }
        assert_eq!(
            receive(&mut card, number, 8000),
            0,
            "{behind} bytes before the end"
        );
        number += 1;
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// The MAC drops a frame of which CPU A has seen the headers, and the next one is there before CPU A
/// looks again, which ages datagrams of which fragments came. It is not taken for the first one.
#[test]
fn a_frame_in_the_place_of_another_one_is_its_own() {
    let mut card = Card::connected(9000);
    let machine = card.stage.engine.machine().clone();
    let station = Register::StationAddressLow.offset();
    let address = machine.lock().bar_read(station);
    let first = card.now() + 1_000_000;
    for number in 0..50 {
        let (lost, good) = (bytes(2 * number, 4000), bytes(2 * number + 1, 4000));
        // At one of these places of the millisecond, the frame ends while CPU A does that.
        let begin = first + u64::from(number) * 1_020_000;
        card.post(0, 16384, number);
        for frame in card.fragments((number as u16, PORT), &lost, 2048) {
            send(&mut card, &frame);
        }
        assert_eq!(card.completion(), Card::received(number, 4000, true));
        card.post(0, 16384, number);
        pass_until(&mut card, begin);
        let frame = card.inbound(PORT, &lost);
        let end = send(&mut card, &frame);
        // The filter rejects the frame from its first hundreds of bytes on.
        pass_until(&mut card, begin + 5000);
        machine.lock().bar_write(station, address ^ 1);
        pass_until(&mut card, end + 200);
        machine.lock().bar_write(station, address);
        let frame = card.inbound(PORT, &good);
        send(&mut card, &frame);
        assert_eq!(card.completion(), Card::received(number, 4000, true));
        assert!(card.memory(0, 4000) == good, "{number}");
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// Memory that goes away while a frame is written to it costs its owner that datagram: the buffer comes
/// back with an error, or the datagram is whole.
#[test]
fn memory_that_goes_away_costs_a_datagram() {
    let mut lost = [0; 2];
    let cuts = [CutThrough::Off, CutThrough::OfBus];
    for (number, cut) in (0..30).flat_map(|number| cuts.map(|cut| (number, cut))) {
        let mut card = Card::timed(cut, Checksum::None, 9000);
        let data = bytes(number, 8000);
        let inbound = if number % 2 == 0 {
            card.inbound(PORT, &data)
        } else {
            card.inbound_unsummed(PORT, &data)
        };
        card.post(0, 16384, number);
        let end = send(&mut card, &inbound);
        // From 56 us before its end to 31 us behind it.
        pass_until(&mut card, end + 3000 * u64::from(number) - 56_000);
        let machine = card.stage.engine.machine().clone();
        machine.lock().unmap(&card.memory);
        let completion = card.completion();
        machine.lock().map(card.memory.clone());
        let is_lost = completion != Card::received(number, 8000, number % 2 == 0);
        if is_lost {
            let Completion::Received {
                cookie,
                status,
                datagram,
            } = completion
            else {
                panic!("{completion:?}")
            };
            assert_eq!(
                (cookie, status, datagram.bytes),
                (number, Status::Unwritable, 0)
            );
            lost[(number % 2) as usize] += 1;
        } else {
            assert!(card.memory(0, 8000) == data);
        }
        // What is queued behind the data may come before the firmware counts.
        assert!(card.rests());
        let seen = Refusals {
            bad_region: u32::from(is_lost),
            ..Refusals::default()
        };
        assert_eq!(card.refusals(), seen);
        // The next one arrives.
        card.post(0, 16384, 77);
        send(&mut card, &inbound);
        assert_eq!(card.completion(), Card::received(77, 8000, number % 2 == 0));
        assert!(card.memory(0, 8000) == data);
        card.follow();
    }
    println!("lost: {lost:?}");
    assert!(lost.iter().all(|lost| (10..30).contains(lost)), "{lost:?}");
}

/// Frames of all lengths, for the endpoint and for others, good and bad, with and without gaps, on
/// buses that stall: each good one for which a buffer is posted is completed once, whole, in order.
#[test]
fn a_mixed_stream_arrives_whole_and_in_order() {
    for (seed, stall) in (1..).zip([0, 300, 2000]) {
        let parameters = Parameters {
            pci_wr: Parameters::default().pci_wr + stall,
            jit: 1.0,
            ..Parameters::default()
        };
        let sim = Sim::timed_by(parameters, seed);
        let mut card = Card::on(sim, CutThrough::OfBus, Checksum::None, 9000);
        let mut expected = 0;
        for round in 0..25u32 {
            let length = |number: u32| (number * 7919 + seed as u32 * 1013) as usize % 8900 + 1;
            let numbers: Vec<u32> = (round * 4..round * 4 + 4).collect();
            for number in &numbers {
                card.post((number % 4) * 16384, 16384, *number);
            }
            for number in &numbers {
                let good = card.inbound(PORT, &bytes(*number, length(*number)));
                match number % 5 {
                    0 => {
                        let mut wrong = good.clone();
                        wrong[42 + length(*number) / 2] ^= 0x10;
                        send(&mut card, &wrong);
                    }
                    1 => {
                        let other = card.inbound(PORT + 1, &bytes(*number, 1400));
                        send(&mut card, &other);
                    }
                    2 => card
                        .stage
                        .engine
                        .pass(Duration::from_micros(u64::from(number % 40))),
                    _ => {}
                }
                send(&mut card, &good);
            }
            let mut posted = numbers.clone();
            for number in &numbers {
                let length = length(*number);
                // The descriptor of a wrong datagram is posted again behind those that are in use.
                let cookie = card.completed(length);
                posted.retain(|other| *other != cookie);
                let there = card.memory((cookie % 4) as usize * 16384, length);
                assert!(
                    there == bytes(*number, length),
                    "datagram {number}, {stall} clocks"
                );
                expected += u32::from(number % 5 == 0);
            }
            assert!(posted.is_empty(), "{posted:?} are not completed");
            card.stage
                .receive(numbers.iter().filter(|number| *number % 5 == 1).count());
        }
        let seen = Refusals {
            bad_sum: expected,
            ..Refusals::default()
        };
        assert_eq!(card.refusals(), seen);
        card.follow();
    }
}
