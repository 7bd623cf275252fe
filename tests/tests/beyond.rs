//! Tests more than two CPUs (section 7 of the paper), on the boards beyond the chip: the firmware
//! by handler and by packet. docs/beyond.md has the figures of `cargo xtask bench --beyond`.

use host_driver::{Config, Nic, Transport};
use host_interface::bar;
use integration_tests::spy::{END, Spy};
use integration_tests::{Engine, Sim, frames};
use std::time::Duration as Time;
use tigon_bench::simulated::cpus;
use tigon2_model::Board;
use tigon2_sim::workload::experiment::{self, Duration, Experiment, Measured};
use tigon2_sim::workload::testbench::Setup;
use tigon2_sim::{SimTransport, explore};

/// Short looks.
const LOOK: Duration = Duration {
    warm_up: 1_000_000,
    window: 2_000_000,
    steps: 6,
    nearness: 0.02,
};
/// Schedules of each.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

fn image(name: &str) -> Vec<u8> {
    cpus::image(name).expect("a firmware")
}

fn board(cpus: u32) -> Board {
    cpus::board(cpus).expect("a board").0
}

fn carries(image: &[u8], cpus: u32, datagram: usize) -> Measured {
    let (board, parameters) = cpus::board(cpus).expect("a board");
    let setup = Setup {
        fragments: 1,
        ..Setup::new(board, parameters, image)
    };
    // Every byte of every frame is checked, and the order.
    experiment::run(&setup, Experiment::Bidirectional, datagram, LOOK).expect("all frames")
}

/// Nothing is lost or changed, and what sharing a side costs leaves the frames of two CPUs:
/// docs/beyond.md has the account.
#[test]
fn more_cpus_carry_the_frames_of_two() {
    let two = carries(&image("parallel"), 4, 400);
    for (name, cpus) in [("by-handler", 4), ("by-packet", 4), ("by-packet", 6)] {
        let measured = carries(&image(name), cpus, 400);
        assert_eq!(measured.dropped, 0, "{name} on {cpus}");
        let share = measured.mbps() / two.mbps();
        assert!(share > 0.85, "{name} on {cpus}: {share:.2} of two CPUs");
        if name == "by-handler" {
            assert!(measured.busy(2).max(measured.busy(3)) > 0.9);
        }
    }
}

/// It must be right under every skew of any CPU against the others: each frame once, in order,
/// whole.
#[test]
fn every_frame_comes_out_once_and_in_order_on_four_and_six_cpus() {
    for (name, cpus) in [("by-handler", 4), ("by-packet", 4), ("by-packet", 6)] {
        let image = image(name);
        for seed in SEEDS {
            let transport = SimTransport::power_on(board(cpus));
            let outcome = explore::run_on(transport, &image, seed, explore::PATIENCE, None);
            if let Err(error) = outcome {
                panic!("{name} on {cpus} CPUs, seed {seed}: {error}");
            }
        }
    }
}

/// Send BDs of a frame that has more of them than claims take, of no bytes, and of too many: the
/// first leaves, the others are dropped and counted once, and the good frames between and behind
/// them leave, in order.
#[test]
fn frames_that_cannot_be_sent_are_counted_and_stop_nothing() {
    for (name, cpus) in [("by-handler", 4), ("by-packet", 4), ("by-packet", 6)] {
        let (mut engine, transport) = Sim::of(board(cpus));
        let (spy, shared) = Spy::on(transport);
        let mut nic = Nic::probe(spy, Config::default()).expect("a card");
        nic.load(&image(name)).expect("an image");
        nic.open().expect("a good card");
        nic.wait_link(Time::from_secs(5)).expect("a link");
        let station = nic.station();
        let memory = nic.transport().allocate(0x1000).expect("4 KB");
        let good: Vec<Vec<u8>> = (0..4)
            .map(|number| frames::numbered(frames::PEER, station, number))
            .collect();
        // A slot of its own for each of them.
        for (slot, frame) in good.iter().enumerate() {
            memory.write_bytes(slot * 0x400, frame).expect("inside");
        }
        let mut index = 0;
        let mut put = |nic: &mut Nic<_>, slot: usize, length: usize, flags: u32| {
            let address = memory.iova() + slot as u64 * 0x400;
            let words = [
                (address >> 32) as u32,
                address as u32,
                (length as u32) << 16 | flags,
                0,
            ];
            shared.write_send_bd(nic.transport(), index, words);
            index += 1;
        };
        for (slot, frame) in good.iter().enumerate() {
            put(&mut nic, slot, frame.len(), END);
            match slot {
                // More BDs than a claim has, several times over.
                0 => (0..100).for_each(|at| put(&mut nic, 0, 20, if at == 99 { END } else { 0 })),
                // Many frames of no bytes, more than there are descriptors.
                1 => (0..90).for_each(|_| put(&mut nic, 0, 0, END)),
                // Too long.
                2 => (0..20).for_each(|at| put(&mut nic, 0, 900, if at == 19 { END } else { 0 })),
                _ => {}
            }
        }
        let transport = nic.transport();
        transport
            .write(bar::MAILBOX_SEND_PRODUCER, index)
            .and_then(|()| transport.flush())
            .expect("the card is there");
        let pieces = good[0][..20].repeat(100);
        let mut expected: Vec<&Vec<u8>> = good.iter().collect();
        expected.insert(1, &pieces);
        for frame in expected {
            assert_eq!(engine.receive().as_ref(), Some(frame), "{name} on {cpus}");
        }
        assert_eq!(engine.receive(), None, "{name} on {cpus}");
        let statistics = loop {
            // An error event comes before the answer.
            match nic.statistics() {
                Ok(statistics) => break statistics,
                Err(error) => println!("{name} on {cpus}: {error}"),
            }
        };
        let drops = &statistics.firmware_drops;
        assert_eq!(drops.get("BadSendBd"), Some(90), "{name} on {cpus}");
        assert_eq!(drops.get("SendTooLong"), Some(1), "{name} on {cpus}");
    }
}
