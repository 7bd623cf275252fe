//! The transitions of the firmware's machines, held against the tables.

use crate::explore::{EndpointFault, ExploreError};
use crate::transport::SharedMachine;
use frame_pipeline::trace::{Checker, Entry};
use host_interface::eudp::{BlockWord, TRACE, TRACE_BYTES};
use host_interface::extension::Extension;

/// What the firmware's machines have done.
#[derive(Default)]
pub(super) struct Followed {
    pub(super) steps: u32,
    pub(super) checker: Checker,
}

impl Followed {
    /// Follows what the firmware has done since the last look, which takes no time.
    pub(super) fn follow(&mut self, machine: &SharedMachine) -> Result<(), ExploreError> {
        let machine = machine.lock();
        let block = machine.word(Extension::Eudp.nic_address());
        let steps = machine.word(block + BlockWord::Steps as u32);
        if steps.wrapping_sub(self.steps) > TRACE_BYTES {
            return Err(ExploreError::Endpoint(EndpointFault::Forgotten));
        }
        while self.steps != steps {
            let at = block + TRACE + (self.steps & (TRACE_BYTES - 1));
            let byte = machine.word(at & !3).to_be_bytes()[(at & 3) as usize];
            let followed = self.checker.follow(Entry::from_byte(byte));
            followed.map_err(|fault| ExploreError::Endpoint(EndpointFault::Row(fault)))?;
            self.steps = self.steps.wrapping_add(1);
        }
        Ok(())
    }
}
