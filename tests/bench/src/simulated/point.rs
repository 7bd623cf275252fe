//! One measurement, in the format of `target/reports/bench.json`.

use super::papers::{Compared, published};
use super::task::{CONSTANT, Task};
use serde::Serialize;
use tigon2_sim::timing::counts::{Activity, Cause, Tally};
use tigon2_sim::workload::experiment::{Experiment, Measured};

/// An experiment at a datagram size.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// `send`, `receive`, `bidirectional` or `ping`.
    pub experiment: Experiment,
    /// The firmware variant.
    pub firmware: String,
    /// Where its code and data lie.
    pub placement: String,
    /// The timing profile.
    pub profile: String,
    /// What the datagrams are like: `constant`, or what else there is.
    pub traffic: String,
    /// Bytes of a datagram, on average.
    pub datagram: usize,
    /// BDs of a sent frame.
    pub bds: u32,
    /// Frames a second out of the card.
    pub frames_per_s_tx: f64,
    /// Frames a second into the host.
    pub frames_per_s_rx: f64,
    /// Datagram bits both ways, in Mb/s.
    pub mbps: f64,
    /// What Ethernet allows.
    pub limit_mbps: f64,
    /// What the same firmware carries with CPUs that take no time; both ways what the engines
    /// allow, if that is more: such CPUs find less to do at once, so that they ask for more
    /// transfers.
    pub bound_mbps: f64,
    /// Measured by bound; of a ping, the bound's time by the measured one.
    pub share_of_bound: f64,
    /// What the engines allow any firmware both ways, with the fewest descriptors.
    pub engines_mbps: Option<f64>,
    /// What the paper published.
    pub paper: Vec<Compared>,
    /// A ping's time in card and host, there and back.
    pub latency_us: Option<f64>,
    /// The same with CPUs that take no time.
    pub bound_latency_us: Option<f64>,
    /// Share of its time in which CPU A did not idle.
    pub cpu_a_busy: f64,
    /// The same of CPU B.
    pub cpu_b_busy: f64,
    /// Share of the cycles of the SRAM port.
    pub sram_utilisation: f64,
    /// Share of the cycles of the PCI bus.
    pub pci_utilisation: f64,
    /// What limits it.
    pub bottleneck: &'static str,
    /// Frames that were lost.
    pub drops: u64,
    /// What CPU A does for a frame.
    pub cpu_a: PerFrame,
    /// What CPU B does for a frame.
    pub cpu_b: PerFrame,
}

/// What a CPU does for one frame, on average.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PerFrame {
    /// Instructions, without idling.
    pub instructions: f64,
    /// Cycles, without idling.
    pub cycles: f64,
    /// Those cycles by cause.
    pub causes: Vec<(&'static str, f64)>,
    /// Cycles by handler: event bit, runs, cycles of a frame.
    pub handlers: Vec<Handler>,
}

/// A handler's part.
#[derive(Clone, Debug, Serialize)]
pub struct Handler {
    /// Its event bit; none for dispatch.
    pub bit: Option<u8>,
    /// Its event's name.
    pub name: String,
    /// Runs for a frame.
    pub runs: f64,
    /// Instructions for a frame.
    pub instructions: f64,
    /// Cycles for a frame.
    pub cycles: f64,
    /// Share of the CPU's busy cycles.
    pub share: f64,
}

/// What a point is of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The firmware variant.
    pub firmware: String,
    /// Where its code and data lie.
    pub placement: String,
    /// The timing profile.
    pub profile: String,
}

impl Subject {
    /// A firmware in the scratch pads, under the default profile.
    pub fn usual(firmware: &str) -> Subject {
        Subject {
            firmware: firmware.to_owned(),
            placement: "scratch".to_owned(),
            profile: "default".to_owned(),
        }
    }
}

impl Point {
    /// From a measurement of a task, the same with CPUs that take no time, and what the engines allow,
    /// in Mb/s.
    pub fn new(
        subject: &Subject,
        task: &Task,
        measured: &Measured,
        bound: &Measured,
        engines: Option<f64>,
    ) -> Point {
        let datagram = measured.datagram.round() as usize;
        let mbps = measured.mbps();
        let figures = match task.name.as_str() {
            CONSTANT => published(measured.experiment, datagram),
            _ => Vec::new(),
        };
        let paper = figures.into_iter().map(|figure| Compared {
            ratio: rounded(mbps / figure.mbps, 1e3),
            figure: super::papers::Published {
                mbps: rounded(figure.mbps, 10.0),
                ..figure
            },
        });
        let bound_mbps = bound.mbps().max(engines.unwrap_or(0.0));
        let share = match (measured.latency_us, bound.latency_us) {
            (Some(us), Some(at_least)) => at_least / us,
            _ => mbps / bound_mbps,
        };
        let per_s = |frames: u64| rounded(frames as f64 / measured.seconds, 1.0);
        Point {
            experiment: measured.experiment,
            firmware: subject.firmware.clone(),
            placement: subject.placement.clone(),
            profile: subject.profile.clone(),
            traffic: task.name.clone(),
            datagram,
            bds: task.fragments,
            frames_per_s_tx: per_s(measured.sent),
            frames_per_s_rx: per_s(measured.received),
            mbps: rounded(mbps, 100.0),
            limit_mbps: rounded(measured.limit_mbps(), 100.0),
            bound_mbps: rounded(bound_mbps, 100.0),
            share_of_bound: rounded(share, 1e3),
            engines_mbps: engines.map(|mbps| rounded(mbps, 100.0)),
            paper: paper.collect(),
            latency_us: measured.latency_us.map(|time| rounded(time, 100.0)),
            bound_latency_us: bound.latency_us.map(|time| rounded(time, 100.0)),
            cpu_a_busy: rounded(measured.busy(0), 1e4),
            cpu_b_busy: rounded(measured.busy(1), 1e4),
            sram_utilisation: rounded(measured.sram(), 1e4),
            pci_utilisation: rounded(measured.pci(), 1e4),
            bottleneck: measured.bottleneck(bound),
            drops: measured.dropped,
            cpu_a: per_frame(measured, 0),
            cpu_b: per_frame(measured, 1),
        }
    }
}

impl Point {
    /// Whether another point is of the same firmware, placement and timing profile.
    pub fn same_subject(&self, other: &Point) -> bool {
        (&self.firmware, &self.placement, &self.profile)
            == (&other.firmware, &other.placement, &other.profile)
    }
}

pub(super) fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn per_frame(measured: &Measured, cpu: usize) -> PerFrame {
    let [before, after] = &measured.readings;
    let counts = after.counts[cpu].since(&before.counts[cpu]);
    let moved = (after.sent - before.sent) + (after.received - before.received);
    let frames = moved.max(1) as f64;
    let each = |count: u64| rounded(count as f64 / frames, 100.0);
    let busy: Vec<(Activity, Tally)> = counts
        .iter()
        .filter(|(activity, _)| *activity != Activity::Idle)
        .collect();
    let mut all = Tally::default();
    for (_, tally) in &busy {
        all.add(tally);
    }
    let handlers = busy.iter().map(|(activity, tally)| {
        let (bit, name) = match activity {
            Activity::Handler(bit) => (Some(*bit), handler_name(*bit)),
            _ => (None, "dispatch".to_owned()),
        };
        Handler {
            bit,
            name,
            runs: each(tally.runs),
            instructions: each(tally.instructions),
            cycles: each(tally.total()),
            share: rounded(tally.total() as f64 / all.total().max(1) as f64, 1e4),
        }
    });
    PerFrame {
        instructions: each(all.instructions),
        cycles: each(all.total()),
        causes: Cause::ALL
            .into_iter()
            .map(|cause| (cause.name(), each(all.of(cause))))
            .collect(),
        handlers: handlers.collect(),
    }
}

fn handler_name(bit: u8) -> String {
    tigon2_chip::events::EventBit::from_number(bit.into())
        .map_or_else(|| format!("bit {bit}"), |event| event.name().to_owned())
}
