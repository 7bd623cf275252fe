//! Records a window of frames that the card sorts into queues.

use super::flows::Version;
use super::sorting::{self, FLOWS, Outbound, Traffic};
use crate::timeline::capture::{Subject, Window};
use crate::timeline::number::of_datagram;
use crate::timeline::{Recorder, Timeline};
use crate::workload::WorkloadError;
use crate::workload::experiment::{Duration, Experiment};
use crate::workload::testbench::Setup;
use host_driver::nic::QueueSettings;

/// Records a window of frames of many flows that the card sorts into queues, towards the host or,
/// if the subject is both ways, beside frames of one flow that leave. Without a rate of its own the
/// subject's is the wire's, or both ways the highest that the card carries.
///
/// # Errors
/// [`WorkloadError`] of the card, the driver or the traffic.
pub fn capture_sorted(
    setup: &Setup<'_>,
    settings: &QueueSettings,
    subject: Subject,
    window: Window,
) -> Result<Timeline, WorkloadError> {
    let traffic = Traffic {
        version: Version::Four,
        datagram: subject.datagram,
        out: match subject.experiment {
            Experiment::Bidirectional => Outbound::Equal,
            _ => Outbound::Nothing,
        },
        flows: FLOWS,
    };
    let rate = match subject.rate {
        Some(rate) => rate,
        None if traffic.out == Outbound::Equal => {
            sorting::measure(setup, Some(settings), traffic, Duration::QUICK)?.rate
        }
        None => traffic.wire_limit(),
    };
    let recorder = Recorder::new(subject.limit, of_datagram);
    sorting::capture(setup, settings, traffic, rate, recorder, window)
}
