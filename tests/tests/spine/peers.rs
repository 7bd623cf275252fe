//! Tests the router between two cards on one bus.

use crate::card::kit;
use crate::page;
use host_interface::spine::peer::PeerWord;
use integration_tests::frames;
use std::io::IoSlice;
use tigon_bench::functions::{self, Run};
use tigon_bench::spine::flow::{self, ROUTER, Recording};
use tigon_bench::spine::frames::{PEER, plain};
use tigon_bench::spine::peers::Pair;
use tigon_bench::spine::routed::{self, Part};
use tigon_bench::spine::router;
use tigon2_chip::Cpu;
use tigon2_model::is_flow_control;
use tigon2_sim::timing::Parameters;

fn pair() -> Pair {
    let pair = Pair::start(kit(), 1000, &Parameters::default());
    pair.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Packets come to one card and leave by the other, each whole and once, and the host's CPU and
/// memory have nothing to do with it.
#[test]
fn packets_go_from_card_to_card_without_the_host() {
    let mut pair = pair();
    for bytes in [1514, 60, 61, 66, 333, 1514] {
        let some = pair.run(bytes, 20e3, 1_000_000).expect("packets");
        assert_eq!(some.packets, [20, 20], "{bytes} bytes");
        assert_eq!(some.host, [0, 0], "accesses, bytes of memory");
        assert!(some.latency_us[1] < 60.0, "{some:?}");
    }
    assert_eq!(pair.word(0, PeerWord::Sent), 120);
    assert_eq!(pair.word(1, PeerWord::Taken), 120);
}

fn pair_by_ring() -> Pair {
    let pair = Pair::start_by_ring(kit(), 1000, &Parameters::default());
    pair.unwrap_or_else(|error| panic!("{error:#}"))
}

/// The same by a ring in host memory, the second card's send ring: many times round it. Each byte is
/// in that memory, and no host touches either card.
#[test]
fn packets_go_from_card_to_card_by_host_memory() {
    let mut pair = pair_by_ring();
    for bytes in [1514, 60, 61, 66, 333, 1514] {
        let some = pair.run(bytes, 20e3, 1_000_000).expect("packets");
        assert_eq!(some.packets, [20, 20], "{bytes} bytes");
        // Frame and half a BD in, frame and a BD out.
        let touched = 20 * (2 * bytes as u64 + 8 + 16);
        assert_eq!(some.host, [0, touched]);
    }
    let most = pair.run(60, 100e3, 12_000_000).expect("packets");
    assert_eq!(most.packets, [1200, 1200], "twice round the ring");
    assert_eq!(most.host[0], 0, "accesses of the host");
}

/// The second card may not send for a while, until its ring is full: what finds no BD is left to the
/// first card's host, and everything else leaves when it may.
#[test]
fn a_full_ring_leaves_packets_to_the_host() {
    const PACKETS: u16 = 1200;
    let mut pair = pair_by_ring();
    {
        let mut machine = pair.cards[1].machine.lock();
        let now = machine.now();
        machine.send_frame(now, frames::pause(0xFFFF));
    }
    pair.fabric.card(0).pass(20_000);
    let station = pair.cards[0].nic.station();
    let (mut left, mut host) = (0, 0);
    for number in 0..PACKETS {
        let packet = router::packet(station, 60, number);
        {
            let mut machine = pair.cards[0].machine.lock();
            let now = machine.now();
            machine.send_frame(now, packet);
        }
        pair.fabric.card(0).pass(22_000);
        host += of_host(&mut pair);
    }
    // The pause is over after 34 ms.
    for _ in 0..60 {
        pair.fabric.card(0).pass(1_000_000);
        left += taken(&pair);
    }
    host += of_host(&mut pair);
    assert_eq!(left + host, PACKETS, "{left} {host}");
    assert!(left > 511 && host > 100, "{left} {host}");
}

/// The second card's host sends meanwhile: its frames go on, and rooms that were granted become
/// void and are granted again.
#[test]
fn the_other_cards_host_is_not_held_up() {
    let mut pair = pair();
    pair.run(60, 20e3, 500_000).expect("packets");
    let frame = [0xFFu8; 60];
    let mut left = 0;
    for _ in 0..40 {
        let card = &mut pair.cards[1];
        let parts = [IoSlice::new(&frame)];
        assert!(card.nic.queue(&parts).expect("a frame"), "there is room");
        card.nic.submit().expect("the card is there");
        card.machine.pass(50_000);
        card.nic.service().expect("the card is there");
        let mut machine = card.machine.lock();
        while let Some(frame) = machine.take_frame() {
            left += u32::from(frame.bytes == [0xFF; 60]);
        }
    }
    assert!(
        left >= 38,
        "{left} of the host's frames have left within 50 us"
    );
    assert!(pair.word(1, PeerWord::Void) > 0);
    pair.fabric.card(0).pass(300_000);
    while let Some(frame) = pair.cards[1].machine.lock().take_frame() {
        assert_eq!(frame.bytes, [0xFF; 60]);
    }
    let some = pair.run(60, 20e3, 1_000_000).expect("packets");
    assert_eq!(some.packets, [20, 20], "rooms are granted again");
}

/// Frames come to the second card's host meanwhile, as fast as it takes them, so that its CPU A has
/// no descriptor left at times: it grants rooms nevertheless.
#[test]
fn the_other_cards_host_receives_meanwhile() {
    const FRAMES: u16 = 400;
    let mut pair = pair();
    let other = &pair.cards[1];
    let sent: Vec<Vec<u8>> = (0..FRAMES)
        .map(|number| router::packet(other.nic.station(), 60, number))
        .collect();
    {
        let mut machine = other.machine.lock();
        let mut at = machine.now();
        for frame in &sent {
            machine.send_frame(at, frame.clone());
            at += 1_900;
        }
    }
    let some = pair.run(60, 50e3, 2_000_000).expect("packets");
    assert_eq!(some.packets, [100, 100]);
    let received = pair.cards[1].nic.receive_batch(FRAMES.into());
    let received = received.expect("the card is there");
    assert!(received == sent, "{} frames", received.len());
}

/// What docs/spine.md says of rates and times, from card to card and by a ring in host memory: a
/// short look, at more than goes through and at less.
#[test]
fn rates_and_times_are_what_the_page_says() {
    for (mut pair, by_ring) in [(pair(), false), (pair_by_ring(), true)] {
        for (bytes, rate, time) in [
            (60, "smallest frames", "the time of one of them"),
            (1514, "frames of 1514 bytes", "the time of one of these"),
        ] {
            let most = pair.run(bytes, 100e3, 2_000_000).expect("packets");
            assert_eq!(most.packets[0], most.packets[1], "nothing is lost");
            let one = pair.run(bytes, 1e3, 50_000_000).expect("packets");
            for (row, measured) in [(rate, most.rate), (time, one.latency_us[0])] {
                let said = page::figures(row);
                let [.., direct, ring] = said.as_slice() else {
                    panic!("{row}: {said:?}");
                };
                let said = if by_ring { *ring } else { *direct };
                println!("{row}, {by_ring}: {measured:.1}, {said}");
                let near = (measured - said).abs() <= 0.03 * said;
                assert!(near, "{row}, {by_ring}: {measured:.1}, {said}");
            }
        }
    }
}

/// From a tenth to twice of what goes through, packets leave as they come, for 50 ms, in which CPU A
/// does its housekeeping five times. Near the most that goes through, packets that come alone and
/// others alternate.
#[test]
fn packets_leave_at_an_even_pace() {
    let mut pair = pair();
    let mut most = 0.0f64;
    let said = page::figures("typical over shortest period, at any rate");
    let slow = [
        7.0, 20.0, 35.0, 45.0, 50.0, 55.0, 60.0, 63.0, 65.0, 66.0, 67.5,
    ];
    let fast = [68.0, 69.0, 69.5, 70.0, 71.0, 73.0, 100.0, 140.0];
    for rate in slow.into_iter().chain(fast) {
        let some = pair.run(60, rate * 1e3, 50_000_000).expect("packets");
        assert_eq!(some.packets[0], some.packets[1], "nothing is lost");
        println!(
            "{rate}: {:.3}, {:.1?} us",
            some.oscillation, some.latency_us
        );
        assert!(some.oscillation <= said[0], "{some:?}");
        most = most.max(some.oscillation);
    }
    assert!((most - said[1]).abs() <= 0.015, "{most}, {said:?}");
    let long = pair.run(1514, 60e3, 50_000_000).expect("packets");
    let said = page::figures("the same of frames of 1514 bytes, at 60 000 /s");
    assert!((long.oscillation - said[0]).abs() <= 0.03, "{long:?}");
}

/// The first card's host has frames among the packets, some of which go round the end of the receive
/// buffer: all of them arrive, whatever else is in the write channel's queue.
#[test]
fn packets_go_their_way_among_the_hosts_frames() {
    let mut pair = pair();
    for (burst, every, bytes, period) in [
        (1, 2, 1514, 40_000),
        (1, 3, 60, 17_000),
        (1, 7, 1514, 18_000),
        (30, 2, 60, 620_000),
        (30, 5, 1514, 560_000),
        (30, 29, 60, 440_000),
    ] {
        let station = pair.cards[0].nic.station();
        let (mut sent, mut left, mut received) = (0u16, 0, 0);
        for number in 0..1500 {
            {
                let mut machine = pair.cards[0].machine.lock();
                let now = machine.now();
                machine.send_frame(now, router::packet(station, bytes, number));
                if number % every == 0 {
                    machine.send_frame(now, plain(station, PEER, 0x88B6, number.into(), bytes));
                    sent += 1;
                }
            }
            if number % burst == 0 {
                pair.fabric.card(0).pass(period);
                left += taken(&pair);
            }
            received += of_host(&mut pair);
        }
        pair.fabric.card(0).pass(2_000_000);
        left += taken(&pair);
        received += of_host(&mut pair);
        assert_eq!([left, received], [1500, sent], "{burst} {every} {bytes}");
    }
}

/// How many frames the first card's host has received since the last look.
fn of_host(pair: &mut Pair) -> u16 {
    let nic = &mut pair.cards[0].nic;
    nic.service().expect("the card is there");
    let frames = nic.receive_batch(64).expect("the card is there");
    frames.len() as u16
}

/// How many packets the second card has sent since the last look.
fn taken(pair: &Pair) -> u16 {
    let mut machine = pair.cards[1].machine.lock();
    let mut left = 0;
    while let Some(frame) = machine.take_frame() {
        left += u16::from(!is_flow_control(&frame.bytes));
    }
    left
}

/// The transfer to the other card frees a packet's room in the receive buffer: it holds some hundred
/// of the longest ones, and some thousand of the smallest, and the packets go round its end.
#[test]
fn packets_go_round_the_receive_buffer() {
    let mut pair = pair();
    for (bytes, rate, time) in [
        (1514, 60e3, 50_000_000),
        (61, 60e3, 10_000_000),
        (60, 65e3, 300_000_000),
    ] {
        let some = pair.run(bytes, rate, time).expect("packets");
        assert_eq!(some.packets[0], some.packets[1], "{some:?}");
        assert!(some.latency_us[1] < 100.0, "{some:?}");
    }
}

/// `cargo xtask trace --experiment router`: a packet comes, runs the router's handler, is moved to
/// the other card and leaves it, in this order; the tool says how long that takes, and how often.
#[test]
fn a_packets_way_from_card_to_card_is_recorded() {
    let recording = Recording {
        datagram: 18,
        rate: Some(20_000.0),
        microseconds: 100..700,
        profile: "default".to_owned(),
        functions: true,
    };
    let flow = flow::record(kit(), &recording).unwrap_or_else(|error| panic!("{error:#}"));
    let row = |card: &str, of: &str| {
        let mut rows = flow.rows.iter();
        let row = rows.find(|row| row.name == card && row.of == of);
        row.unwrap_or_else(|| panic!("no row {card}, {of}"))
    };
    let rows = [
        row("card 0", "wire, in"),
        row("card 0", ROUTER),
        row("card 0", "DMA to card 1"),
        row("card 1", "wire, out"),
    ];
    let times = |number: u32| rows.map(|row| row.boxes.iter().find(|one| one.item == Some(number)));
    for number in 3..12 {
        let [Some(came), Some(routed), Some(moved), Some(left)] = times(number) else {
            panic!("packet {number}: {:?}", times(number));
        };
        assert!(came.to <= routed.from, "{came:?}, {routed:?}");
        assert!(routed.to <= moved.from, "{routed:?}, {moved:?}");
        assert!(moved.to <= left.from, "{moved:?}, {left:?}");
    }
    assert_eq!(flow.arrows.len() % 5, 0);
    assert!(flow.arrows.len() >= 5 * 9, "{}", flow.arrows.len());
    assert!(flow.arrows.iter().all(|arrow| arrow.from.1 <= arrow.to.1));
    let measured = &flow.forwarded;
    assert!(
        (15.0..25.0).contains(&measured.latency_us[0]),
        "{measured:?}"
    );
    assert!((measured.period_us[0] - 50.0).abs() < 5.0, "{measured:?}");
    // Each CPU is in one function or another all the time, and those of a packet are among them.
    let (runs, begin) = &flow.functions;
    for of in [(0, Cpu::A), (0, Cpu::B), (1, Cpu::A), (1, Cpu::B)] {
        let mut at = None;
        for run in runs.iter().filter(|run| run.of == of) {
            assert_eq!(run.time.start, at.unwrap_or(run.time.start), "{run:?}");
            at = Some(run.time.end);
        }
        assert!(at.is_some_and(|at| at > begin + 599_000), "{at:?}");
    }
    let count = |of: (usize, Cpu), part: &str| {
        let is_of = |run: &&Run| run.of == of && run.function.contains(part);
        runs.iter().filter(is_of).count()
    };
    assert!(count((0, Cpu::A), functions::EXTENSION) >= 11);
    assert!((11..=13).contains(&count((0, Cpu::A), "peer::Peer>::forward")));
    assert!(count((1, Cpu::B), "look_round") >= 11);
    assert!(functions::listing(runs, *begin).lines().count() == runs.len() + 1);
}

/// docs/spine.md says where the cycles of a routed packet go: the table of `bench --spine`.
#[test]
fn the_account_of_a_packet_is_what_the_page_says() {
    let accounts = routed::measure(kit(), &Parameters::default(), 4_000_000);
    let accounts = accounts.unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", routed::table(&accounts));
    for (index, part) in Part::ALL.into_iter().enumerate() {
        let said = page::figures(part.text());
        assert_eq!(said.len(), accounts.len(), "{}", part.text());
        for (account, said) in accounts.iter().zip(said) {
            let (_, measured) = account.parts[index];
            let near = (measured - said).abs() <= 15.0 + 0.1 * said;
            assert!(near, "{}: {measured:.0}, {said}", part.text());
        }
    }
    let [same_port, _, built_in] = accounts;
    assert!(built_in.cycles() < same_port.cycles());
    let part = |account: &routed::Account, wanted| {
        let of_part = account.parts.iter().find(|(part, _)| *part == wanted);
        of_part.map_or(0.0, |(_, cycles)| *cycles)
    };
    assert!(part(&built_in, Part::Calls) + part(&built_in, Part::HandOver) < 1.0);
}

/// For who looks for the rate: `PEER_RATES="60 100000 200000"`, for `PEER_MS` milliseconds each.
#[test]
#[ignore = "a look, not a test"]
fn rates() {
    let words = std::env::var("PEER_RATES").unwrap_or_default();
    let mut words = words.split_whitespace();
    let bytes = words.next().map_or(60, |word| word.parse().expect("bytes"));
    let time = std::env::var("PEER_MS").map_or(4, |time| time.parse().expect("milliseconds"));
    let mut pair = pair();
    for rate in words {
        let rate = rate.parse().expect("a rate");
        let through = pair.run(bytes, rate, time * 1_000_000);
        println!("{:?}", through.expect("packets"));
        let words = [
            PeerWord::Sent,
            PeerWord::NoRoom,
            PeerWord::Taken,
            PeerWord::Void,
        ];
        for card in 0..2 {
            println!("{card}: {:?}", words.map(|word| pair.word(card, word)));
        }
    }
}
