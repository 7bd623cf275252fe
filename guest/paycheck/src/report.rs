//! The report that is printed at the end.

use serde::Serialize;

use crate::account::Flow;

/// The figures of both directions together, and of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `udp` or `tcp`.
    pub protocol: &'static str,
    /// Both directions together.
    #[serde(flatten)]
    pub total: Flow,
    /// What this side has sent, as the other side received it; without its word only
    /// the number that was sent is known.
    pub out: Option<Flow>,
    /// What the other side has sent, as this side received it.
    #[serde(rename = "in")]
    pub into: Option<Flow>,
    /// Both sides came to their end and know each other's figures.
    pub complete: bool,
    /// From the first to the last message, in seconds.
    pub seconds: f64,
    /// Payload in megabits per second, both directions together.
    pub mbps: f64,
}

impl Report {
    /// Puts the figures together; directions in which nothing was to be sent are left
    /// out.
    #[must_use]
    pub fn new(
        protocol: &'static str,
        out: Flow,
        into: Flow,
        complete: bool,
        seconds: f64,
    ) -> Self {
        let total = out.plus(into);
        let used = |flow: Flow| (flow != Flow::default()).then_some(flow);
        Self {
            protocol,
            total,
            out: used(out),
            into: used(into),
            complete,
            seconds,
            mbps: if seconds > 0.0 {
                total.bytes as f64 * 8.0 / seconds / 1e6
            } else {
                0.0
            },
        }
    }
}
