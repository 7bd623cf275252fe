//! The transitions of the firmware's machines, held against the tables.
//!
//! CPU B records those of SDMA and SEND in any firmware, CPU A those of RECV and RDMA in firmware that
//! is built for this. Each machine is one CPU's, so the traces may be followed one after the other.

use crate::explore::{EndpointFault, ExploreError};
use crate::machine::Machine;
use crate::transport::SharedMachine;
use frame_pipeline::trace::{Checker, Entry};
use host_interface::eudp::{BlockWord, TRACE, TRACE_BYTES, arrivals};
use host_interface::extension::Extension;

const _: () = assert!(arrivals::TRACE_BYTES == TRACE_BYTES);

/// What the firmware's machines have done.
#[derive(Default)]
pub(super) struct Followed {
    /// Transitions of CPU A and of CPU B that were followed.
    steps: [u32; 2],
    pub(super) checker: Checker,
    /// Whether CPU A records its own.
    pub(super) has_arrivals: bool,
}

impl Followed {
    /// Follows what the firmware has done since the last look, which takes no time.
    pub(super) fn follow(&mut self, machine: &SharedMachine) -> Result<(), ExploreError> {
        let machine = machine.lock();
        let block = machine.word(Extension::Eudp.nic_address());
        self.follow_one(&machine, 1, block + BlockWord::Steps as u32, block + TRACE)?;
        let arrivals = machine.word(block + BlockWord::Arrivals as u32);
        self.has_arrivals = arrivals != 0;
        if self.has_arrivals {
            let trace = arrivals + arrivals::TRACE;
            self.follow_one(&machine, 0, arrivals + arrivals::STEPS, trace)?;
        }
        Ok(())
    }

    /// The same of one trace, whose word at `count` says how many there are.
    fn follow_one(
        &mut self,
        machine: &Machine,
        cpu: usize,
        count: u32,
        trace: u32,
    ) -> Result<(), ExploreError> {
        let steps = machine.word(count);
        if steps.wrapping_sub(self.steps[cpu]) > TRACE_BYTES {
            return Err(ExploreError::Endpoint(EndpointFault::Forgotten));
        }
        while self.steps[cpu] != steps {
            let at = trace + (self.steps[cpu] & (TRACE_BYTES - 1));
            let byte = machine.word(at & !3).to_be_bytes()[(at & 3) as usize];
            let followed = self.checker.follow(Entry::from_byte(byte));
            followed.map_err(|fault| ExploreError::Endpoint(EndpointFault::Row(fault)))?;
            self.steps[cpu] = self.steps[cpu].wrapping_add(1);
        }
        Ok(())
    }

    /// Transitions that were followed.
    pub(super) fn steps(&self) -> u64 {
        self.steps.iter().map(|steps| u64::from(*steps)).sum()
    }
}
