//! The cost of classification, as a table: classifiers, protocols, sizes and numbers of queues
//! beside classic mode.

use super::flows::Version;
use super::sorting::{FLOWS, Outbound, Sorted, Traffic, measure};
use crate::workload::WorkloadError;
use crate::workload::experiment::Duration;
use crate::workload::testbench::{BSD, Setup};
use host_driver::nic::QueueSettings;
use host_driver::rss::{ClassifierKind, HashTypes, Key};

/// The host takes frames by dozens, so a shorter window counts too many or too few.
pub const LOOK: Duration = Duration {
    window: 60_000_000,
    ..Duration::QUICK
};

/// What selects the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorter {
    /// All frames go to queue 0.
    Single,
    /// The lowest bits of the source address.
    SourceAddress,
    /// The hash of addresses and ports with the published key.
    Toeplitz,
    /// The same with a key that repeats after two bytes.
    Folded,
    /// Each datagram goes to the next queue.
    RoundRobin,
}

impl Sorter {
    /// All of them.
    pub const ALL: [Sorter; 5] = [
        Sorter::Single,
        Sorter::SourceAddress,
        Sorter::Toeplitz,
        Sorter::Folded,
        Sorter::RoundRobin,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Sorter::Single => "single",
            Sorter::SourceAddress => "source-address",
            Sorter::Toeplitz => "toeplitz",
            Sorter::Folded => "folded",
            Sorter::RoundRobin => "round-robin",
        }
    }

    /// Queues with this classifier: each is reported after 64 frames, or 170 us times their number.
    pub fn settings(self, queues: u8) -> QueueSettings {
        let mut settings = QueueSettings::new(queues).with_classifier(match self {
            Sorter::Single => ClassifierKind::Single,
            Sorter::SourceAddress => ClassifierKind::SourceAddress,
            Sorter::Toeplitz | Sorter::Folded => ClassifierKind::Toeplitz,
            Sorter::RoundRobin => ClassifierKind::RoundRobin,
        });
        settings.entries = 512;
        settings.coalescing_ticks = BSD.receive_ticks * u32::from(queues);
        settings.coalescing_frames = BSD.max_receive_bds;
        settings.classification.hash_types = HashTypes::ALL;
        if self == Sorter::Folded {
            settings.classification.key = Key::SYMMETRIC;
        }
        settings
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What selects the queue.
    pub sorter: Sorter,
    /// Queues.
    pub queues: u8,
    /// What arrives.
    pub traffic: Traffic,
    /// The share of classic mode's rate, or of the wire's if that is less, that the design asks
    /// for.
    pub least: Option<f64>,
}

impl Case {
    /// Its first cells: classifier, IP, bytes, queues, flows, directions.
    pub fn cells(&self) -> [String; 6] {
        let traffic = &self.traffic;
        [
            format!("`{}`", self.sorter.name()),
            traffic.version.name().to_owned(),
            traffic.datagram.to_string(),
            self.queues.to_string(),
            traffic.flows.to_string(),
            traffic.out.name().to_owned(),
        ]
    }
}

const fn case(sorter: Sorter, version: Version, datagram: usize, least: Option<f64>) -> Case {
    Case {
        sorter,
        queues: 4,
        traffic: Traffic {
            version,
            datagram,
            out: Outbound::Nothing,
            flows: FLOWS,
        },
        least,
    }
}

const fn both(sorter: Sorter, datagram: usize, least: Option<f64>) -> Case {
    let mut case = case(sorter, Version::Four, datagram, least);
    case.traffic.out = Outbound::Equal;
    case
}

/// Beside a host that sends as much as it can.
const fn full(datagram: usize) -> Case {
    let mut case = case(Sorter::Toeplitz, Version::Four, datagram, None);
    case.traffic.out = Outbound::Most;
    case
}

const fn eight(version: Version) -> Case {
    let mut case = case(Sorter::Toeplitz, version, 18, None);
    case.queues = 8;
    case
}

const fn many_flows() -> Case {
    let mut case = case(Sorter::Toeplitz, Version::Four, 18, None);
    case.traffic.flows = 8192;
    case
}

/// All rows.
pub const CASES: [Case; 22] = {
    use Sorter::{Folded, RoundRobin, SourceAddress, Toeplitz};
    use Version::{Four, Six};
    [
        case(SourceAddress, Four, 18, Some(0.70)),
        case(SourceAddress, Six, 18, None),
        case(Toeplitz, Four, 18, Some(0.60)),
        case(Folded, Four, 18, None),
        case(Toeplitz, Six, 18, Some(0.45)),
        eight(Four),
        eight(Six),
        many_flows(),
        case(RoundRobin, Four, 18, None),
        case(Toeplitz, Four, 400, None),
        case(Toeplitz, Six, 400, Some(0.85)),
        case(Toeplitz, Four, 800, Some(0.98)),
        case(Toeplitz, Six, 800, Some(0.98)),
        case(Toeplitz, Four, 1472, Some(0.98)),
        both(SourceAddress, 18, Some(0.70)),
        both(Toeplitz, 18, Some(0.70)),
        both(SourceAddress, 400, Some(0.85)),
        both(Toeplitz, 400, Some(0.85)),
        both(SourceAddress, 1472, Some(0.98)),
        both(Toeplitz, 1472, Some(0.98)),
        full(18),
        full(400),
    ]
};

/// A row's figures.
#[derive(Clone, Debug)]
pub struct Cost {
    /// With queues.
    pub sorted: Sorted,
    /// The share of what classic mode does with the same frames.
    pub of_classic: f64,
}

/// Measures a row, beside classic mode.
///
/// # Errors
/// As [`measure`].
pub fn cost(setup: &Setup<'_>, case: &Case) -> Result<Cost, WorkloadError> {
    let classic = measure(setup, None, case.traffic, LOOK)?;
    let settings = case.sorter.settings(case.queues);
    let sorted = measure(setup, Some(&settings), case.traffic, LOOK)?;
    let of_classic = sorted.rate / classic.rate;
    Ok(Cost { sorted, of_classic })
}
