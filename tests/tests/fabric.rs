//! Tests two cards on one wire, each with real firmware and a host with the real driver.

use integration_tests::stage;
use std::io::IoSlice;
use std::sync::Arc;
use tigon2_model::Board;
use tigon2_sim::fabric::{Cable, Fabric, Program};
use tigon2_sim::timeline::event::{Event, Span};
use tigon2_sim::timeline::{LIMIT, Recorder, number};
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::WorkloadError;
use tigon2_sim::workload::testbench::{Load, Reading, Setup, Testbench};
use tigon2_sim::{Machine, SimTransport};

/// Two cards on one wire, links up.
fn pair(firmware: &[u8]) -> (Arc<Fabric>, [Testbench; 2]) {
    let setup = Setup::new(Board::default(), Parameters::default(), firmware);
    let machines = (0..2).map(|number| {
        let mut machine = Machine::timed(Board::default(), Parameters::default(), 1 + number);
        machine.set_mac_address([2, 0x54, 0x47, 0, 1, number as u8]);
        machine
    });
    let fabric = Fabric::new(machines, &[(0, 1, Cable::default())]);
    let start = |card| {
        let transport = SimTransport::to(&fabric.card(card));
        Testbench::start_on(transport, &setup).expect("a card")
    };
    let both = [start(0), start(1)];
    (fabric, both)
}

/// Both hosts run their loads at the same time.
fn together(fabric: &Arc<Fabric>, sides: [(&mut Testbench, &mut Load); 2], nanoseconds: u64) {
    let programs = sides.map(|(host, load)| {
        let program = move || host.run(load, nanoseconds);
        Box::new(program) as Program<'_, Result<(), WorkloadError>>
    });
    for result in fabric.together(programs.into()) {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The frames of a recording, and when they were on the wire: those that left, those that came.
fn frames(events: &[Event]) -> [Vec<(Span, u32)>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for event in events {
        match event {
            Event::Transmit { span, length, .. } => found[0].push((*span, *length)),
            Event::Receive { span, length, .. } => found[1].push((*span, *length)),
            _ => {}
        }
    }
    found
}

/// A frame begins to arrive exactly the cable's delay after it has begun to leave.
#[test]
fn one_way_times_are_exact() {
    let firmware = stage::firmware();
    let (fabric, [mut one, mut other]) = pair(&firmware);
    let mut flows = [
        one.flow_to(&mut other, 18).expect("a size"),
        other.flow_to(&mut one, 1472).expect("a size"),
    ];
    for host in [&one, &other] {
        let mut machine = host.machine().lock();
        machine.record(Recorder::new(LIMIT, number::of_datagram));
    }
    for _ in 0..20 {
        for (host, flow) in [&mut one, &mut other].into_iter().zip(&mut flows) {
            let frame = flow.frame();
            let queued = host.nic().queue(&[IoSlice::new(&frame)]);
            assert!(queued.expect("a frame that can be sent"), "there is room");
            host.nic().submit().expect("the card is there");
        }
        for host in [&mut one, &mut other] {
            host.run(&mut Load::default(), 150_000).expect("a card");
        }
    }
    let recorded = [&one, &other].map(|host| {
        let timeline = host.machine().lock().recorded().expect("a recording");
        frames(&timeline.events)
    });
    let clock = fabric.card(0).lock().clock();
    let delay = Cable::default().delay_ns;
    for (left, arrived) in [(0, 1), (1, 0)] {
        let (left, arrived) = (&recorded[left][0], &recorded[arrived][1]);
        assert_eq!((left.len(), arrived.len()), (20, 20));
        for ((left, length), (arrived, there)) in left.iter().zip(arrived) {
            let due = clock.nanoseconds(left.start) + delay;
            assert_eq!(arrived.start, clock.cycle_at(due));
            assert_eq!(length, there);
        }
    }
    for host in [&mut one, &mut other] {
        host.run(&mut Load::default(), 1_000_000).expect("a card");
        assert_eq!(host.reading().received, 20);
    }
}

/// Both ways at the wire's rate: 81 274 frames of 1514 bytes a second each.
#[test]
fn both_ways_at_full_rate_and_the_same_again() {
    let firmware = stage::firmware();
    let look = || -> [Reading; 2] {
        let (fabric, [mut one, mut other]) = pair(&firmware);
        let mut loads = [
            one.flow_to(&mut other, 1472).expect("a size"),
            other.flow_to(&mut one, 1472).expect("a size"),
        ]
        .map(|flow| Load {
            send: Some(flow),
            receive: None,
        });
        let [first, second] = &mut loads;
        together(
            &fabric,
            [(&mut one, first), (&mut other, second)],
            1_000_000,
        );
        let arrived = |host: &Testbench| {
            let machine = host.machine().lock();
            (machine.received().accepted, machine.now())
        };
        let before = [arrived(&one), arrived(&other)];
        together(
            &fabric,
            [(&mut one, first), (&mut other, second)],
            3_000_000,
        );
        let after = [arrived(&one), arrived(&other)];
        for ((before, from), (after, to)) in before.into_iter().zip(after) {
            let rate = (after - before) as f64 * 1e9 / (to - from) as f64;
            assert!(rate > 0.99 * 81_274.0, "{rate} frames a second");
        }
        let readings = [one.reading(), other.reading()];
        for reading in &readings {
            assert_eq!(reading.dropped, 0, "the host checks each frame");
            assert!(reading.received > 250);
        }
        readings
    };
    let seen = look().map(|reading| (reading.cycle, reading.received, reading.instructions));
    let again = look().map(|reading| (reading.cycle, reading.received, reading.instructions));
    assert_eq!(seen, again);
}
