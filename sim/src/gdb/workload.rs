//! The traffic during a session: single frames, or the workload of a seed.

use super::Workload;
use crate::explore;
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::transport::{SharedMachine, SimTransport};
use crate::workload::talk;
use crate::workload::testbench::Setup;
use std::sync::Arc;
use std::time::Duration;
use tigon2_model::Board;

/// Longer than any stop at a breakpoint.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A card under the cycle model that carries [single frames](talk), with the timing of a
/// profile.
pub fn frames(board: Board, parameters: Parameters, firmware: Vec<u8>) -> Workload {
    Arc::new(move |probe| {
        let setup = Setup {
            patience: PATIENCE,
            ..Setup::new(board.clone(), parameters.clone(), &firmware)
        };
        let mut machine = Machine::timed(board.clone(), parameters.clone(), setup.seed);
        machine.set_probe(probe);
        let machine = SharedMachine::new(machine);
        let result = talk::talk(SimTransport::to(&machine), &setup, u64::MAX);
        let how = match result {
            Ok(()) => "all rounds are over".to_owned(),
            Err(error) => error.to_string(),
        };
        machine.lock().end_probe(&how);
    })
}

/// The [story of a seed](explore), under its schedule.
pub fn story(firmware: Vec<u8>, seed: u64) -> Workload {
    Arc::new(move |probe| {
        let mut machine = Machine::new(Board::default());
        machine.set_probe(probe);
        let machine = SharedMachine::new(machine);
        let transport = SimTransport::to(&machine);
        let result = explore::run_on(transport, &firmware, seed, PATIENCE, None);
        let how = match result {
            Ok(outcome) => format!("{} frames came out right", outcome.frames),
            Err(error) => error.to_string(),
        };
        machine.lock().end_probe(&how);
    })
}
