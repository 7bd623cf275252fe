//! Runs that Spin has found, on the simulated card.

use crate::promela::{Cpu, Machines};
use crate::property::{Bounds, Property};
use crate::spin::Trail;
use tigon2_sim::explore::trail::{self, Diverged, Finding};

/// Follows a run of the transmitting side; `None` for one of the receiving side, whose frames the
/// card's model stores before anybody sees them.
///
/// # Errors
/// [`Diverged`] where the card cannot do what the run does.
pub fn replay(
    property: &Property,
    machines: &Machines,
    bounds: Bounds,
    trail: &Trail,
) -> Option<Result<Vec<Finding>, Diverged>> {
    if property.cpus != [Cpu::Transmit] {
        return None;
    }
    let parts = property.bounds(bounds).parts;
    let tables = [machines.tables[0], machines.tables[1]];
    Some(trail::replay(tables, &trail.steps, parts.into()))
}
