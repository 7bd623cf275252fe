//! The results of a host in a window of time, and the work of its card.

use crate::hosts::account::{Account, Activity};
use crate::hosts::kernel::Side;
use crate::hosts::system::System;
use crate::timing::counts::{self, Counts};

/// Bytes that a frame takes on the wire beside its own: preamble, CRC, gap.
const WIRE_OVERHEAD: u64 = 24;
/// Bytes of the wire per second.
const WIRE_BYTES_PER_S: f64 = 125e6;

/// All that is counted, at some time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Nanoseconds since power-on.
    now: u64,
    cycle: u64,
    accounts: Vec<Account>,
    sent: (u64, u64),
    put: u64,
    interrupts: u64,
    used: [u64; 2],
    card: Vec<Counts>,
}

impl Reading {
    /// A system's counts, now.
    pub fn of(system: &mut System) -> Reading {
        let accounts = system.accounts();
        let machine = system.kernel.card.machine().lock();
        let cpus = 0..machine.cpus().all().len();
        let timed = machine.timing();
        let counts = |index: usize| {
            timed
                .map(|timed| timed.pipelines[index].counts.clone())
                .unwrap_or_default()
        };
        Reading {
            now: machine.now(),
            cycle: machine.cycle(),
            accounts,
            sent: system.sent(),
            put: system.put(),
            interrupts: system.kernel.interrupts,
            used: [Side::Network, Side::Application].map(|side| system.kernel.used(side)),
            card: cpus.map(counts).collect(),
        }
    }
}

/// What happened between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// How long it was.
    pub seconds: f64,
    /// Where the time of each host CPU went. Work that had begun is in it to its end, so
    /// that an account may be longer or shorter than the window by a piece of work.
    pub accounts: Vec<Account>,
    /// Share of its time in which each of the card's CPUs was busy.
    pub card: Vec<f64>,
    /// Share of the wire from the card.
    pub wire: f64,
    /// Nanoseconds of all CPUs for the network and for the application.
    pub used: [u64; 2],
    /// Interrupts that the host took.
    pub interrupts: u64,
    /// Frames from the card.
    pub frames: u64,
    /// Frames to the card.
    pub arrived: u64,
}

impl Window {
    /// Between two readings of the same system.
    pub fn between(before: &Reading, after: &Reading) -> Window {
        let seconds = (after.now - before.now) as f64 / 1e9;
        let cycles = (after.cycle - before.cycle).max(1) as f64;
        let busy = |(before, after): (&Counts, &Counts)| {
            let counts = after.since(before);
            let busy = counts.iter();
            let busy = busy.filter(|(activity, _)| *activity != counts::Activity::Idle);
            busy.map(|(_, tally)| tally.total()).sum::<u64>() as f64 / cycles
        };
        let frames = after.sent.0 - before.sent.0;
        let bytes = after.sent.1 - before.sent.1 + frames * WIRE_OVERHEAD;
        let accounts = after.accounts.iter().zip(&before.accounts);
        Window {
            seconds,
            accounts: accounts.map(|(after, before)| *after - *before).collect(),
            card: before.card.iter().zip(&after.card).map(busy).collect(),
            wire: bytes as f64 / (seconds * WIRE_BYTES_PER_S),
            used: [0, 1].map(|side| after.used[side] - before.used[side]),
            interrupts: after.interrupts - before.interrupts,
            frames,
            arrived: after.put - before.put,
        }
    }

    /// The share of an activity in the time of all CPUs, 0 to 1.
    pub fn share(&self, activity: Activity) -> f64 {
        let all: u64 = self.accounts.iter().map(Account::total).sum();
        let of: u64 = self.accounts.iter().map(|account| account[activity]).sum();
        of as f64 / all.max(1) as f64
    }

    /// The application's time (Ta) over the network's (Te), all that they wait for included,
    /// as `top` saw it in the paper.
    pub fn ratio(&self) -> f64 {
        let [network, application] = self.used;
        application as f64 / network.max(1) as f64
    }

    /// Interrupts for a hundred frames to the card.
    pub fn interrupts_in_100(&self) -> f64 {
        100.0 * self.interrupts as f64 / self.arrived.max(1) as f64
    }

    /// The load of the card's busiest CPU.
    pub fn busiest(&self) -> f64 {
        self.card.iter().copied().fold(0.0, f64::max)
    }
}
