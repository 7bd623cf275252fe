//! The latency of a frame that arrives alone: what sorting adds to classic mode.
//!
//! From the frame's first byte on the wire until the driver's service routine has it. The host asks
//! for a report of each frame at once, in both modes, and waits for the interrupt.

use super::cost::Sorter;
use super::flows::Version;
use super::sorting::{Bench, Outbound, Traffic};
use crate::timeline::{self, Recorder, Timeline, number};
use crate::workload::WorkloadError;
use crate::workload::ping::AT_ONCE;
use crate::workload::testbench::Setup;
use host_driver::nic::QueueSettings;

/// Frames of a measurement. The first ones of each flow are not in a cache of flows yet.
const FRAMES: u32 = 200;
/// Flows that they are of.
const FLOWS: usize = 4;
/// From one frame to the next, in nanoseconds: other times within the period of what the card does
/// regularly.
const DISTANCE: u64 = 203_337;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What selects the queue; none for classic mode.
    pub sorter: Option<Sorter>,
    /// Which IP.
    pub version: Version,
    /// Bytes of each datagram.
    pub datagram: usize,
}

const fn case(sorter: Option<Sorter>, version: Version, datagram: usize) -> Case {
    Case {
        sorter,
        version,
        datagram,
    }
}

/// Queues of all rows in queue mode.
pub const QUEUES: u8 = 4;

/// All rows; those of classic mode come before those that are compared with them.
pub const CASES: [Case; 9] = {
    use Sorter::{SourceAddress, Toeplitz};
    use Version::{Four, Six};
    [
        case(None, Four, 18),
        case(Some(SourceAddress), Four, 18),
        case(Some(Toeplitz), Four, 18),
        case(None, Six, 18),
        case(Some(SourceAddress), Six, 18),
        case(Some(Toeplitz), Six, 18),
        case(None, Four, 1472),
        case(Some(SourceAddress), Four, 1472),
        case(Some(Toeplitz), Four, 1472),
    ]
};

impl Case {
    /// The same frames in classic mode.
    #[must_use]
    pub const fn classic(self) -> Case {
        case(None, self.version, self.datagram)
    }

    /// Its first cells: classifier, IP, bytes.
    pub fn cells(&self) -> [String; 3] {
        let sorter = self.sorter.map(|sorter| format!("`{}`", sorter.name()));
        [
            sorter.unwrap_or_else(|| "classic mode".to_owned()),
            self.version.name().to_owned(),
            self.datagram.to_string(),
        ]
    }
}

/// Measures a row: microseconds of a frame.
///
/// # Errors
/// [`WorkloadError`] of the driver, or a frame that is not what was sent.
pub fn latency(setup: &Setup<'_>, case: &Case) -> Result<f64, WorkloadError> {
    let mut bench = bench(setup, case)?;
    let mut total = 0;
    for _ in 0..FRAMES {
        bench.rest(DISTANCE)?;
        total += bench.one()?;
    }
    Ok(total as f64 / f64::from(FRAMES) / 1000.0)
}

/// Records a frame whose flow is known, and what follows it.
///
/// # Errors
/// As [`latency`].
pub fn record(setup: &Setup<'_>, case: &Case) -> Result<Timeline, WorkloadError> {
    let mut bench = bench(setup, case)?;
    for _ in 0..4 * FLOWS {
        bench.rest(DISTANCE)?;
        bench.one()?;
    }
    bench.rest(DISTANCE)?;
    let machine = bench.machine();
    machine
        .lock()
        .record(Recorder::new(timeline::LIMIT, number::of_datagram));
    bench.one()?;
    let recorded = machine.lock().recorded();
    recorded.ok_or(WorkloadError::NotRecorded)
}

fn bench(setup: &Setup<'_>, case: &Case) -> Result<Bench, WorkloadError> {
    let setup = Setup {
        coalescing: AT_ONCE,
        ..setup.clone()
    };
    let settings = case.sorter.map(|sorter| QueueSettings {
        coalescing_frames: AT_ONCE.max_receive_bds,
        coalescing_ticks: AT_ONCE.receive_ticks,
        ..sorter.settings(QUEUES)
    });
    let traffic = Traffic {
        version: case.version,
        datagram: case.datagram,
        out: Outbound::Nothing,
        flows: FLOWS,
    };
    Bench::start(&setup, settings.as_ref(), traffic)
}
