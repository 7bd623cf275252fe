//! Runs that Spin has found, on the simulated card.

use crate::promela::{Cpu, Machines};
use crate::property::{Bounds, Property};
use crate::spin::Trail;
use tigon2_sim::explore::trail::{Diverged, Finding, receiving, sending};

/// Follows a run of one direction; `None` for one of both, whose order between them the card does not
/// have.
///
/// # Errors
/// [`Diverged`] where the card cannot do what the run does.
pub fn replay(
    property: &Property,
    machines: &Machines,
    bounds: Bounds,
    trail: &Trail,
) -> Option<Result<Vec<Finding>, Diverged>> {
    let [sdma, send, recv, rdma] = machines.tables;
    match property.cpus {
        [Cpu::Transmit] => {
            let parts = property.bounds(bounds).parts;
            Some(sending::replay([sdma, send], &trail.steps, parts.into()))
        }
        [Cpu::Receive] => {
            let tables = [recv, rdma];
            let reversed = machines.reversed;
            let reversed = reversed.and_then(|name| tables.iter().position(|it| it.name == name));
            Some(receiving::replay(tables, reversed, &trail.steps))
        }
        _ => None,
    }
}
