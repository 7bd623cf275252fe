//! What an experiment carries, which way and for how long.

use super::arrivals::{Mix, Pattern};
use super::datagram::HEADERS;
use serde::Serialize;
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME};

/// Preamble, start delimiter and gap, in bytes.
const BETWEEN: usize = 20;
/// The wire's bits a second.
const WIRE_BPS: f64 = 1e9;

/// The direction of the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Experiment {
    /// Out of the host.
    Send,
    /// Into the host.
    Receive,
    /// Both, at equal rates.
    Bidirectional,
    /// One there, one back, one at a time.
    Ping,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Experiment; 4] = [
        Experiment::Send,
        Experiment::Receive,
        Experiment::Bidirectional,
        Experiment::Ping,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Experiment::Send => "send",
            Experiment::Receive => "receive",
            Experiment::Bidirectional => "bidirectional",
            Experiment::Ping => "ping",
        }
    }
}

/// What the datagrams are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Their sizes.
    pub mix: Mix,
    /// When they come from the wire; the host sends as fast as it can.
    pub pattern: Pattern,
}

impl Traffic {
    /// The paper's: all of one size, at equal distances.
    pub fn of(datagram: usize) -> Traffic {
        Traffic {
            mix: Mix::only(datagram),
            pattern: Pattern::Constant,
        }
    }

    /// Frames a second that a direction of the wire carries.
    pub fn wire_limit(&self) -> f64 {
        1.0 / self.mix.mean(|size| 1.0 / wire_limit(size))
    }

    /// Mean bytes of a datagram.
    pub fn datagram(&self) -> f64 {
        self.mix.mean(|size| size as f64)
    }
}

/// How long to look, in nanoseconds of the card's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duration {
    /// Before the measurement.
    pub warm_up: u64,
    /// The measurement.
    pub window: u64,
    /// Most steps of a search for a rate.
    pub steps: u32,
    /// How near a search comes to the highest rate, as a part of it.
    pub nearness: f64,
}

impl Duration {
    /// As in the calibration of the timing model.
    pub const FULL: Duration = Duration {
        warm_up: 8_000_000,
        window: 20_000_000,
        steps: 12,
        nearness: 0.004,
    };
    /// For a first look.
    pub const QUICK: Duration = Duration {
        warm_up: 3_000_000,
        window: 6_000_000,
        steps: 8,
        nearness: 0.01,
    };
}

/// Frames a second that a direction of the wire carries.
pub fn wire_limit(datagram: usize) -> f64 {
    let bytes = (datagram + HEADERS).max(MIN_FRAME) + CRC_BYTES + BETWEEN;
    WIRE_BPS / 8.0 / bytes as f64
}
