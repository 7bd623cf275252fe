//! Tests that a flow leaves the same state as simulating each cycle.

use super::parameters::{BusStalls, Parameters};
use super::port::Client;
use super::{Fine, Timed, dma};
use crate::memory::SramBytes;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tigon2_chip::Cpu;
use tigon2_chip::bits::DmaState;
use tigon2_model::dma::Transfer;
use tigon2_model::{Board, Direction};

/// Cycles of a story.
const CYCLES: u64 = 3000;

fn below(random: &mut SplitMix64, limit: u32) -> u32 {
    random.next_u32() % limit
}

/// Transfers and frames under way, of any length, with any FIFO, and perhaps CPUs that load.
fn under_way(random: &mut SplitMix64) -> Timed {
    let fifo = 1 + below(random, 20);
    let parameters = Parameters {
        fifo,
        thresh: 1 + below(random, fifo),
        pci_rd: below(random, 40).into(),
        pci_wr: below(random, 40).into(),
        burst: 64 << below(random, 4),
        stalls: BusStalls {
            every: below(random, 4),
            least: 1,
            most: 100,
        },
        ..Parameters::default()
    };
    let mut timed = Timed::new(parameters, &Board::default(), random.next_u64());
    let Timed {
        parameters,
        port,
        dma,
        mac,
        pipelines,
        ..
    } = &mut timed;
    for direction in Direction::ALL {
        dma.looks(direction);
        let transfer = Transfer {
            host: below(random, 64).into(),
            local: below(random, 64),
            length: below(random, 1600),
            state: DmaState::new(),
            assist: false,
        };
        match below(random, 4) {
            0 => {}
            1 => dma.start(0, direction, dma::Work::Descriptor, parameters, port),
            _ => dma.begun(0, direction, Some(transfer), parameters, port),
        }
    }
    dma.arbitrate(0, parameters);
    dma.plan(0, parameters);
    mac.looked();
    if below(random, 3) != 0 {
        mac.send(0, 60 + below(random, 1500) as usize);
    }
    if below(random, 3) != 0 {
        mac.receive(Fine::cycle(0), 60 + below(random, 1500) as usize);
    }
    mac.plan(0, u64::MAX);
    for cpu in Cpu::ALL {
        if below(random, 4) == 0 {
            let pipeline = &mut pipelines[cpu.index()];
            pipeline.load_sram();
            pipeline.ask(0, port, Client::cpu(cpu));
        }
    }
    timed
}

/// The engines' turn in a cycle; `None` if it is more than moving data.
fn turn(timed: &mut Timed, cycle: u64) -> Option<()> {
    let Timed {
        parameters,
        port,
        dma,
        mac,
        ..
    } = timed;
    let moves = dma.wake > cycle || dma.only_moves(cycle, parameters, port);
    let asks = moves && (mac.wake > cycle || mac.only_asks(cycle, port));
    asks.then_some(())
}

/// All but when the engines want to be looked at (earlier does no harm), and what of the
/// port makes no difference while each access takes a cycle.
fn told(timed: &Timed) -> String {
    let Timed {
        mut dma,
        mut mac,
        port,
        pipelines,
        ..
    } = timed.clone();
    (dma.wake, mac.wake) = (0, 0);
    let wanted = (port.wanted(), port.wanted_by_cpus());
    let pipelines = &pipelines[..Cpu::ALL.len()];
    format!(
        "{dma:?} {mac:?} {wanted:?} {:?} {pipelines:?}",
        port.grants()
    )
}

#[test]
fn data_is_where_it_would_be_if_each_cycle_had_been_gone_through() {
    let sram = SramBytes::new(1 << 19);
    let mut flowed = 0;
    for seed in 0..600 {
        let random = &mut SplitMix64::seed_from_u64(seed);
        let mut timed = under_way(random);
        let mut cycle = 1;
        while cycle < CYCLES {
            let mut fast = timed.clone();
            let last = cycle + u64::from(below(random, 80));
            let end = fast.flow(cycle, last);
            assert!((cycle..=last).contains(&end.cycle), "seed {seed}: {end:?}");
            for n in cycle..end.cycle {
                turn(&mut timed, n).expect("data moves only");
                timed.grant(n, &sram);
            }
            if end.engines {
                turn(&mut timed, end.cycle).expect("data moves only");
            }
            let same = told(&fast) == told(&timed);
            assert!(same, "seed {seed}, from {cycle} to {end:?}");
            assert!(
                fast.dma.wake <= timed.dma.wake.max(end.cycle),
                "seed {seed}"
            );
            flowed += end.cycle - cycle;
            // What ends a flow.
            if !end.engines && turn(&mut timed, end.cycle).is_none() {
                break;
            }
            timed.grant(end.cycle, &sram);
            cycle = end.cycle + 1;
        }
    }
    assert!(flowed > 50_000, "{flowed} cycles");
}
