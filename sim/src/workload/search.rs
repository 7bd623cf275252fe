//! The highest rate that a card keeps up with.
//!
//! ```text
//!   surplus  \
//!             \          what was sent or received beyond the rate, by the rate:
//!   0 ─────────\──────   the search closes in on the crossing from both sides
//!               \
//! ```

use super::WorkloadError;
use super::experiment::{Duration, Measured};

/// Rates are tried no nearer than this part of the bracket to one of its ends.
const MARGIN: f64 = 0.08;

/// What was seen at a rate.
#[derive(Debug)]
pub(super) struct Look {
    /// How much better than needed it went, as a part of the rate; below 0 the card did
    /// not keep up.
    pub surplus: f64,
    /// Frames a second that were carried a way, on average.
    pub carried: f64,
    /// The measurement.
    pub measured: Measured,
}

/// Looks at rates up to `limit` for the highest one at which the surplus is not negative.
///
/// # Errors
/// What a look reports; [`WorkloadError::Hopeless`] if no rate was kept up with.
pub(super) fn highest(
    limit: f64,
    duration: Duration,
    mut look: impl FnMut(f64) -> Result<Look, WorkloadError>,
) -> Result<Measured, WorkloadError> {
    // A card that is up to the wire needs no search.
    let first = look(limit)?;
    if first.surplus >= 0.0 {
        return Ok(first.measured);
    }
    let mut high = (limit, first.surplus * limit);
    let mut low: Option<(f64, f64, Measured)> = None;
    let mut next = first.carried * 0.85;
    for _ in 0..duration.steps {
        let seen = look(next)?;
        if seen.surplus >= 0.0 {
            low = Some((next, seen.surplus * next, seen.measured));
        } else {
            high = (next, seen.surplus * next);
        }
        next = match &low {
            None => high.0 * 0.75,
            Some((rate, _, _)) if high.0 <= rate * (1.0 + duration.nearness) => break,
            Some((rate, excess, _)) => {
                let part = excess / (excess - high.1);
                rate + (high.0 - rate) * part.clamp(MARGIN, 1.0 - MARGIN)
            }
        };
    }
    low.map(|(_, _, measured)| measured)
        .ok_or(WorkloadError::Hopeless)
}
