//! Frames are cut off while they are on the wire, even when the SRAM port is as busy as it can be.

use crate::card::{Card, PEER_PORT, PORT, bytes, data};
use eudp::{Card as _, Checksum, Completion, CutThrough, Segment, Status};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_sim::timing::Parameters;

/// Datagrams to send of each seed.
const COUNT: u32 = 40;
/// Where buffers to receive lie in the region, and how many there are.
const BUFFERS: u32 = 0x2_0000;
const POSTED: u32 = 200;
/// The mean stalls of the buses, in clocks. With short ones the write channel leaves CPU B the least
/// of the SRAM port.
const STALLS: [u64; 16] = [
    20, 20, 20, 20, 20, 20, 35, 35, 35, 50, 75, 110, 150, 200, 300, 1500,
];

/// Fills the wire to the card for the time of the story: datagrams of 8972 bytes, which the write
/// channel moves while CPU B works, and fragments, for which CPU A runs from SRAM.
fn fill(card: &mut Card) {
    for cookie in 0..POSTED {
        let piece = card.region.segment(BUFFERS, 9000);
        card.with(|endpoint, card| endpoint.post(card, &[piece], 1000 + cookie))
            .expect("it is posted");
    }
    let long = card.inbound(PORT, &bytes(7, 8972));
    let mut at = card.now();
    for number in 0..POSTED as u16 / 2 {
        let fragments = card.fragments((number, PORT), &bytes(8, 6000), 1480);
        let mut machine = card.stage.engine.machine().lock();
        for frame in [&long].into_iter().chain(&fragments) {
            at = machine.send_frame(at, frame.clone());
        }
    }
}

/// The next frame on the wire. The MAC may ask the peer to pause.
fn next_frame(card: &mut Card) -> Vec<u8> {
    loop {
        let frame = card.wire().bytes;
        if frame[12..14] != [0x88, 0x08] {
            return frame;
        }
    }
}

/// The completion of a datagram that was sent; those that came in are passed over.
fn sent(card: &mut Card) -> Completion {
    loop {
        let completion = card.completion();
        if matches!(completion, Completion::Sent { .. }) {
            return completion;
        }
    }
}

/// The MAC sends and receives, both channels move data and CPU A runs from SRAM, while the bus stalls
/// so that parts are late. Each frame that is cut off has time left on the wire,
/// and the others are whole.
#[test]
fn a_late_frame_is_cut_off_in_time_on_the_busiest_port() {
    let (mut aborted, mut least) = (0, u64::MAX);
    for (seed, stall) in (1..).zip(STALLS) {
        let parameters = Parameters {
            pci_rd: stall,
            jit: 1.0,
            ..Parameters::default()
        };
        let sim = Sim::timed_by(parameters, seed);
        let mut card = Card::on(sim, CutThrough::Lead(512), Checksum::None, 9000);
        fill(&mut card);
        for number in 0..COUNT {
            let length = [4200, 4800, 6000, 8972][number as usize % 4];
            let out = bytes(number, length);
            card.send(4096, &out, number);
            assert!(
                data(&next_frame(&mut card)) == out,
                "{stall} clocks, {number}"
            );
            let done = Completion::Sent {
                cookie: number,
                status: Status::Done,
            };
            assert_eq!(sent(&mut card), done);
        }
        card.follow();
        let cuts = card.cuts();
        let left = card.stage.engine.machine().lock().least_left_at_cut();
        println!("{stall} clocks: {cuts:?}, {left:?} ns left");
        aborted += cuts[1];
        least = least.min(left.unwrap_or(u64::MAX));
    }
    println!("{aborted} cut off, {least} ns left at the least");
    assert!(aborted > 50, "{aborted}");
    assert!(least > 4000, "{least}");
}

/// A card whose port is busy, on a bus that stalls, and memory of `length` bytes that may go.
fn with_memory(stall: u64, seed: u64, length: usize) -> (Card, DmaMemory, Segment) {
    let parameters = Parameters {
        pci_rd: stall,
        jit: 1.0,
        ..Parameters::default()
    };
    let sim = Sim::timed_by(parameters, seed);
    let mut card = Card::on(sim, CutThrough::OfBus, Checksum::None, 9000);
    fill(&mut card);
    let mut lent = EndpointCard(&mut card.stage.nic);
    let memory = lent.allocate(length).expect("memory");
    let region = card.eudp.register(&mut lent, &mut card.endpoint, &memory);
    let piece = region.expect("a region").segment(0, length as u32);
    (card, memory, piece)
}

/// Posts a datagram, and waits until its first frame leaves early.
fn leave(card: &mut Card, pieces: &[Segment], number: u32) {
    let to = (card.peer, PEER_PORT);
    let early = card.cuts()[0];
    card.with(|endpoint, card| endpoint.send(card, to, pieces, number))
        .expect("it is posted");
    while card.cuts()[0] == early {
        card.stage.engine.pass(Duration::from_nanos(500));
    }
}

fn status(card: &mut Card) -> Status {
    let Completion::Sent { status, .. } = sent(card) else {
        unreachable!("others are passed over");
    };
    status
}

/// Memory goes at each time while a frame leaves. Recovery of the channel takes longer than the frame
/// has left: all the same it leaves with a good CRC and an address only with what the process has sent.
#[test]
fn a_frame_whose_memory_goes_is_cut_off_in_time() {
    let (mut given_up, mut aborted) = (0, 0);
    for (seed, stall) in (1..).zip([20, 20, 75, 150]) {
        let (mut card, memory, piece) = with_memory(stall, seed, 8972);
        let machine = card.stage.engine.machine().clone();
        for number in 0..60 {
            let out = bytes(number, 8972);
            memory.write_bytes(0, &out).expect("it fits");
            leave(&mut card, &[piece], number);
            let us = number.into();
            card.stage.engine.pass(Duration::from_micros(us));
            machine.lock().unmap(&memory);
            let for_us = if number % 5 == 0 { 1500 } else { 100 };
            card.stage.engine.pass(Duration::from_micros(for_us));
            machine.lock().map(memory.clone());
            let status = status(&mut card);
            let frame = next_frame(&mut card);
            if status == Status::Done {
                assert!(data(&frame) == out, "{stall} clocks, {us} us");
            } else {
                assert_eq!(status, Status::Unreadable, "{stall} clocks, {us} us");
                assert_eq!(frame[..6], [0; 6], "it is for nobody");
                given_up += 1;
            }
        }
        card.follow();
        aborted += card.cuts()[1];
    }
    println!("{aborted} cut off, {given_up} given up");
    assert!(aborted > 50, "{aborted}");
    assert!(given_up > 5, "{given_up}");
}

/// The frame that leaves has all its data, and what cannot be read is of the one behind it.
#[test]
fn a_frame_leaves_whole_while_memory_of_another_one_is_gone() {
    for (seed, (stall, length)) in (1..).zip([(20, 6000), (150, 6000), (150, 64)]) {
        let (mut card, memory, gone) = with_memory(stall, seed, length);
        card.stage.engine.machine().lock().unmap(&memory);
        // As much as the first frame has.
        let there = card.region.segment(4096, 8968);
        for number in 0..20 {
            let out = bytes(number, 8968);
            card.memory.write_bytes(4096, &out).expect("it fits");
            leave(&mut card, &[there, gone], number);
            let frame = next_frame(&mut card);
            assert!(frame[42..] == out, "{stall} clocks, {number}");
            assert_eq!(status(&mut card), Status::Unreadable);
        }
        card.follow();
        println!("{stall} clocks: {:?}", card.cuts());
    }
}
