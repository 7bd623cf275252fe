//! Searches for the highest rate that a card sustains.
//!
//! ```text
//!   surplus  \
//!             \          what was sent or received beyond the rate, by the rate:
//!   0 ─────────\──────   the search closes in on the crossing from both sides
//!               \
//! ```

use super::WorkloadError;
use super::traffic::Duration;

/// Rates are tried no nearer than this part of the bracket to one of its ends.
const MARGIN: f64 = 0.08;

/// How many more rates are tried, each a quarter below the one before, as long as none was
/// kept up with.
const FURTHER: u32 = 8;

/// What was seen at a rate.
#[derive(Debug)]
pub(super) struct Look<M> {
    /// How much better than needed it went, as a part of the rate; below 0 the card did
    /// not keep up.
    pub surplus: f64,
    /// Frames a second that were carried a way, on average.
    pub carried: f64,
    /// The measurement.
    pub measured: M,
}

/// Looks at rates up to `limit` for the highest one at which the surplus is not negative.
///
/// # Errors
/// What a look reports; [`WorkloadError::Hopeless`] if no rate was kept up with.
pub(super) fn highest<M>(
    limit: f64,
    duration: Duration,
    mut look: impl FnMut(f64) -> Result<Look<M>, WorkloadError>,
) -> Result<M, WorkloadError> {
    // A card that is up to the wire needs no search.
    let first = look(limit)?;
    if first.surplus >= 0.0 {
        return Ok(first.measured);
    }
    let mut high = (limit, first.surplus * limit);
    let mut low: Option<(f64, f64, M)> = None;
    let mut next = first.carried * 0.85;
    for step in 0..duration.steps + FURTHER {
        if step >= duration.steps && low.is_some() {
            break;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate that is found on a card that keeps up with so many frames a second, each way,
    /// and carries half a million on average, and how many looks that took.
    fn search(keeps_up_with: f64, steps: u32) -> (Option<f64>, u32) {
        let duration = Duration {
            steps,
            ..Duration::QUICK
        };
        let mut looks = 0;
        let found = highest(1e6, duration, |rate| {
            looks += 1;
            Ok(Look {
                surplus: keeps_up_with / rate - 1.0,
                carried: 5e5,
                measured: rate,
            })
        });
        (found.ok(), looks)
    }

    #[test]
    fn the_highest_rate_is_found_in_few_looks() {
        let (rate, looks) = search(4e5, 8);
        assert!((3.96e5..=4e5).contains(&rate.expect("a rate")), "{rate:?}");
        assert!(looks <= 9, "{looks} looks");
        assert_eq!(search(2e6, 8), (Some(1e6), 1), "the wire");
    }

    /// A card that gives one way all of its time when there is too much: no rate of the first
    /// looks is one that it keeps up with.
    #[test]
    fn a_search_that_has_found_nothing_goes_on() {
        let (rate, looks) = search(1e5, 3);
        assert!((7.5e4..=1e5).contains(&rate.expect("a rate")), "{rate:?}");
        assert!(looks <= 8, "{looks} looks");
        assert_eq!(search(1.0, 3), (None, 12), "hopeless");
    }
}
