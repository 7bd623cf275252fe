//! Measures how fast this computer simulates the timed card, under the loads of the experiments.
//!
//! Only this module uses the host's clock, and only for the report: the caller passes it in, and
//! the simulation does not see it.

use super::WorkloadError;
use super::arrivals::{Arrivals, Pattern};
use super::testbench::{Load, Reading, Setup, Source, Testbench};
use crate::timing::Parameters;
use std::hash::{DefaultHasher, Hash, Hasher};
use tigon2_chip::Cpu;
use tigon2_model::Board;

/// Simulated nanoseconds before a measurement, in which rings and buffers fill.
const WARM_UP_NS: u64 = 1_000_000;
/// Arrivals are drawn with this seed.
const SEED: u64 = 7;
/// SRAM that goes into the digest, in bytes.
const DIGESTED: u32 = 0x10_0000;

/// What a card carries while its simulation is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedLoad {
    /// Its name in reports.
    pub name: &'static str,
    /// Whether the host sends as fast as it can.
    pub send: bool,
    /// Frames a second that arrive, at Poisson's intervals; 0: none.
    pub arrivals: f64,
    /// Size of all datagrams in bytes.
    pub datagram: usize,
}

/// Every load.
pub const LOADS: [SpeedLoad; 5] = [
    load("both 1472", true, 60_000.0, 1472),
    load("both 18", true, 100_000.0, 18),
    load("send 400", true, 0.0, 400),
    load("receive 800", false, 100_000.0, 800),
    load("idle", false, 0.0, 400),
];

const fn load(name: &'static str, send: bool, arrivals: f64, datagram: usize) -> SpeedLoad {
    SpeedLoad {
        name,
        send,
        arrivals,
        datagram,
    }
}

/// How a measurement went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Frames out of the card.
    pub sent: u64,
    /// Frames into the host.
    pub received: u64,
    /// Core cycles that were simulated.
    pub cycles: u64,
    /// Instructions of both CPUs.
    pub instructions: u64,
    /// Seconds that it took by the caller's clock.
    pub seconds: f64,
    /// Core cycles in a second of the card's.
    pub core_hz: f64,
    /// Of all that was counted, of CPU A's registers and of the first megabyte of SRAM:
    /// equal before and after a change of the simulator, not a cycle has changed.
    pub digest: u64,
}

impl Speed {
    /// Instructions a second of the host's.
    pub fn instructions_per_second(&self) -> f64 {
        self.instructions as f64 / self.seconds
    }

    /// The card's time by the host's: 1 is as fast as the card itself.
    pub fn of_real_time(&self) -> f64 {
        self.cycles as f64 / self.core_hz / self.seconds
    }

    /// Frames both ways in a second of the host's.
    pub fn frames_per_second(&self) -> f64 {
        (self.sent + self.received) as f64 / self.seconds
    }
}

/// Simulates a load for a time of the card's; `clock` gives seconds of the host's.
///
/// # Errors
/// As [`Testbench::start`] and [`Testbench::run`].
pub fn measure(
    firmware: &[u8],
    load: &SpeedLoad,
    nanoseconds: u64,
    clock: impl Fn() -> f64,
) -> Result<Speed, WorkloadError> {
    let parameters = Parameters::default();
    let setup = Setup::new(Board::default(), parameters, firmware);
    let mut testbench = Testbench::start(&setup)?;
    let mut carried = Load::default();
    if load.send {
        carried.send = Some(testbench.outbound(load.datagram)?);
    }
    if load.arrivals > 0.0 {
        let flow = testbench.inbound(load.datagram)?;
        let arrivals = Arrivals::new(Pattern::Poisson, load.arrivals, testbench.now(), SEED);
        carried.receive = Some(Source::new(flow, arrivals));
    }
    testbench.run(&mut carried, WARM_UP_NS)?;
    let before = testbench.reading();
    let start = clock();
    testbench.run(&mut carried, nanoseconds)?;
    let seconds = clock() - start;
    let after = testbench.reading();
    Ok(Speed {
        sent: after.sent - before.sent,
        received: after.received - before.received,
        cycles: after.cycle - before.cycle,
        instructions: after.instructions - before.instructions,
        seconds,
        core_hz: f64::from(setup.board.clock.core_hz),
        digest: digest(&testbench, &after),
    })
}

fn digest(testbench: &Testbench, reading: &Reading) -> u64 {
    let mut digest = DefaultHasher::new();
    let frames = (reading.sent, reading.received);
    (
        reading.cycle,
        frames,
        &reading.grants[..6],
        reading.pci_busy,
    )
        .hash(&mut digest);
    reading.instructions.hash(&mut digest);
    for counts in &reading.counts {
        for (activity, tally) in counts.iter() {
            (activity, tally.runs, tally.instructions, tally.cycles).hash(&mut digest);
        }
    }
    let machine = testbench.machine().lock();
    machine.cpus().core(Cpu::A).gprs().hash(&mut digest);
    for address in (0..DIGESTED).step_by(4) {
        machine.word(address).hash(&mut digest);
    }
    digest.finish()
}
