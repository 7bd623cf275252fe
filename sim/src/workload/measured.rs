//! The results of an experiment, and its limiting resource.

use super::testbench::{Reading, Testbench};
use super::traffic::{Experiment, Traffic};
use crate::timing::counts::Activity;
use tigon2_chip::Cpu;

/// Beyond this share of its capacity a resource is the bottleneck.
const SATURATED: f64 = 0.97;
/// The same of the wire, of which all can be used.
const FULL: f64 = 0.985;
/// The same of the PCI bus and the SRAM port, whose clients cannot use every cycle.
const CROWDED: f64 = 0.9;
/// The part by which a direction may miss a rate and still count as keeping up.
const MISSED_SHARE: f64 = 0.005;
/// A ping that waits for CPUs for more than this part waits for them most of all.
const MOST: f64 = 0.5;

/// What was measured of some traffic.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which way.
    pub experiment: Experiment,
    /// Mean bytes of a datagram.
    pub datagram: f64,
    /// Frames a second that a direction of the wire carries of these.
    pub wire_limit: f64,
    /// Seconds of the window.
    pub seconds: f64,
    /// Frames that left the card.
    pub sent: u64,
    /// Frames that the host got.
    pub received: u64,
    /// Bytes of the datagrams in both.
    pub bytes: u64,
    /// Frames that were lost.
    pub dropped: u64,
    /// A ping's time in the card and the host, there and back, in microseconds.
    pub latency_us: Option<f64>,
    /// What was counted before and after the window.
    pub readings: [Reading; 2],
}

impl Measured {
    /// What has happened since a reading.
    pub(super) fn new(
        testbench: &Testbench,
        experiment: Experiment,
        traffic: &Traffic,
        before: Reading,
    ) -> Measured {
        let after = testbench.reading();
        let hertz = testbench.machine().lock().clock().cycle_at(1_000_000_000) as f64;
        let bytes = |reading: &Reading| reading.sent_bytes + reading.received_bytes;
        Measured {
            experiment,
            datagram: traffic.datagram(),
            wire_limit: traffic.wire_limit() * testbench.wire_times(),
            seconds: (after.cycle - before.cycle) as f64 / hertz,
            sent: after.sent - before.sent,
            received: after.received - before.received,
            bytes: bytes(&after) - bytes(&before),
            dropped: after.dropped - before.dropped,
            latency_us: None,
            readings: [before, after],
        }
    }

    /// Counts both ways as much as the lesser one: the sender may have sent more.
    pub(super) fn level(&mut self) {
        let [before, after] = &self.readings;
        let sent = after.sent_bytes - before.sent_bytes;
        let received = after.received_bytes - before.received_bytes;
        self.bytes = 2 * sent.min(received);
        self.sent = self.sent.min(self.received);
    }

    /// Datagram bits both ways, in Mb/s.
    pub fn mbps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds / 1e6
    }

    /// What Ethernet allows, in the same measure.
    pub fn limit_mbps(&self) -> f64 {
        let ways = match self.experiment {
            Experiment::Bidirectional => 2.0,
            _ => 1.0,
        };
        ways * self.wire_limit * self.datagram * 8.0 / 1e6
    }

    /// Frames a second, the mean of the ways that are in use.
    pub(super) fn mean_rate(&self) -> f64 {
        let ways = match self.experiment {
            Experiment::Bidirectional => 2.0,
            _ => 1.0,
        };
        (self.sent + self.received) as f64 / self.seconds / ways
    }

    /// How much better than needed it went at an offered rate, as a part of it: negative
    /// if frames were lost, the wire was held, or fewer were sent than were offered.
    pub(super) fn surplus(&self, rate: f64) -> f64 {
        let [before, after] = &self.readings;
        let expected = (rate * self.seconds).max(1.0);
        let held = (after.held_back - before.held_back) as f64 / 1e9 / self.seconds;
        if self.dropped != 0 {
            return -(self.dropped as f64 / expected).max(MISSED_SHARE);
        }
        if held > MISSED_SHARE {
            return -held.min(1.0);
        }
        if self.experiment == Experiment::Receive {
            return 0.0;
        }
        (self.sent as f64 + 1.0) / expected - 1.0 + MISSED_SHARE
    }

    fn cycles(&self) -> f64 {
        (self.readings[1].cycle - self.readings[0].cycle) as f64
    }

    /// The share of its time in which a CPU (0 for A) did not idle; 0 if there is none.
    pub fn busy(&self, cpu: usize) -> f64 {
        let [before, after] = &self.readings;
        if cpu >= after.counts.len() {
            return 0.0;
        }
        let counts = after.counts[cpu].since(&before.counts[cpu]);
        let busy: u64 = counts
            .iter()
            .filter(|(activity, _)| *activity != Activity::Idle)
            .map(|(_, tally)| tally.total())
            .sum();
        busy as f64 / self.cycles()
    }

    /// The share of the cycles in which the SRAM port was given away.
    pub fn sram(&self) -> f64 {
        let [before, after] = &self.readings;
        let grants: u64 = after.grants.iter().sum::<u64>() - before.grants.iter().sum::<u64>();
        grants as f64 / self.cycles()
    }

    /// The share of the cycles in which a transaction was on the PCI bus.
    pub fn pci(&self) -> f64 {
        let [before, after] = &self.readings;
        (after.pci_busy - before.pci_busy) as f64 / self.cycles()
    }

    /// What limits it; `bound` is the same with CPUs that take no time.
    pub fn bottleneck(&self, bound: &Measured) -> &'static str {
        const NAMES: [&str; Cpu::MOST] = ["CPU A", "CPU B", "CPU C", "CPU D", "CPU E", "CPU F"];
        let (mut cpu, mut busiest) = (NAMES[0], self.busy(0));
        for (index, name) in NAMES.into_iter().enumerate().skip(1) {
            if self.busy(index) > busiest {
                (cpu, busiest) = (name, self.busy(index));
            }
        }
        if let (Some(us), Some(at_least)) = (self.latency_us, bound.latency_us) {
            let waits_for_cpu = us - at_least > MOST * us;
            return if waits_for_cpu { cpu } else { "transfers" };
        }
        if self.mbps() >= FULL * self.limit_mbps() {
            return "wire";
        }
        if self.mbps() >= SATURATED * bound.mbps() {
            // What the firmware asks of the engines, not what it computes.
            return if self.pci() >= CROWDED {
                "PCI bus"
            } else if self.sram() >= CROWDED {
                "SRAM port"
            } else {
                "DMA channels"
            };
        }
        if busiest >= SATURATED { cpu } else { "host" }
    }
}
