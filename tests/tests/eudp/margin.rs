//! Frames are cut off while they are on the wire, even when the SRAM port is as busy as it can be.

use crate::card::{Card, PORT, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Status};
use integration_tests::Sim;
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

/// The next datagram on the wire. The MAC may ask the peer to pause.
fn next(card: &mut Card) -> Vec<u8> {
    loop {
        let frame = card.wire().bytes;
        if frame[12..14] != [0x88, 0x08] {
            return data(&frame);
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
            assert!(next(&mut card) == out, "{stall} clocks, {number}");
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
