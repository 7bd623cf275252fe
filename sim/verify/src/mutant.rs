//! Machines with one fault each, which the compiler takes and Spin has to refute.
//!
//! A model that lets any table pass proves nothing. Each mutant is what a mistake in the firmware
//! would be: a deadline that is ignored, a check that is left out, an event that is served too early.

use crate::promela::{Cpu, Machines};
use crate::property::{Claim, PROPERTIES, Property};
use frame_pipeline::table::{Pair, Row};
use frame_pipeline::trace::Entry;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The row of this number among those of its state and event does another action and leads
    /// to another state.
    Row {
        at: (&'static str, &'static str),
        number: usize,
        action: &'static str,
        to: &'static str,
    },
    /// The event is served at once where it had to wait, and the state stays.
    Served {
        at: (&'static str, &'static str),
        action: &'static str,
    },
    /// The least urgent event is served first.
    Reversed,
    /// A doorbell is cleared behind the look at what was posted.
    ClearedLast,
}

/// Machines with one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// What is wrong.
    pub name: &'static str,
    machine: &'static str,
    change: Change,
}

const fn row(
    machine: &'static str,
    name: &'static str,
    at: (&'static str, &'static str),
    number: usize,
    action: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant {
        name,
        machine,
        change: Change::Row {
            at,
            number,
            action,
            to,
        },
    }
}

const fn served(
    machine: &'static str,
    name: &'static str,
    at: (&'static str, &'static str),
    action: &'static str,
) -> Mutant {
    Mutant {
        name,
        machine,
        change: Change::Served { at, action },
    }
}

/// All mutants.
#[rustfmt::skip]
pub const MUTANTS: [Mutant; 39] = [
    row("SEND", "the deadline is ignored", ("Watched", "Deadline"), 0, "Nothing", "Watched"),
    row("SEND", "no deadline is set", ("Idle", "OfferedEarly"), 0, "Queue", "Watched"),
    row("SEND", "a late part is certified", ("Watched", "PartArrived"), 1, "Certify", "Watched"),
    row("SEND", "a late last part is certified", ("Watched", "LastArrived"), 1, "CertifyLast", "FineGrainedSend"),
    row("SEND", "a part that failed is certified", ("Watched", "PartFailed"), 0, "Certify", "Watched"),
    row("SEND", "an abort does not reset the transmitter", ("Watched", "PartArrived"), 1, "Nothing", "Aborted"),
    row("SEND", "the transmitter goes on before the rest is there", ("Aborted", "PartArrived"), 0, "Resume", "Aborted"),
    row("SEND", "the transmitter stays stopped", ("Aborted", "LastArrived"), 0, "Nothing", "CoarseGrainedSend"),
    row("SEND", "frames behind the sent one are forgotten", ("CoarseGrainedSend", "Sent"), 0, "Free", "Idle"),
    row("SEND", "the end of a frame that was cut through is missed", ("FineGrainedSend", "Sent"), 1, "Free", "CoarseGrainedSend"),
    row("SDMA", "a frame is cut through behind another", ("SdmaFirst", "Arrived"), 1, "OfferEarly", "SdmaRest"),
    row("SDMA", "a frame is offered with each of its parts", ("Sdma", "Arrived"), 0, "Offer", "Sdma"),
    row("SDMA", "the frame leaves before its sum is there", ("Sdma", "Arrived"), 1, "Offer", "HeldForSum"),
    row("SDMA", "the second part is taken for the last", ("SdmaRest", "Arrived"), 0, "PassLast", "Idle"),
    row("SDMA", "a part is kept from SEND", ("SdmaRest", "Arrived"), 0, "Nothing", "SdmaRest"),
    row("SDMA", "a part that failed passes for one that is there", ("SdmaRest", "Failed"), 0, "Pass", "SdmaRest"),
    row("SDMA", "a frame that failed is forgotten", ("Sdma", "Failed"), 0, "Nothing", "Idle"),
    served("SDMA", "the endpoint closes while its frame leaves", ("SdmaRest", "Closed"), "Close"),
    Mutant { name: "a doorbell is cleared behind the look", machine: "SDMA", change: Change::ClearedLast },
    row("RECV", "a damaged frame is delivered", ("Recv", "Ended"), 1, "QueueWhole", "Idle"),
    row("RECV", "the CRC of a frame cut through is not looked at", ("RecvThrough", "Ended"), 1, "TellLast", "Idle"),
    row("RECV", "a frame that was given up is taken for whole", ("RecvThrough", "GaveUp"), 0, "TellLast", "Idle"),
    Mutant { name: "a frame that was given up is looked at last", machine: "RECV", change: Change::Reversed },
    row("RDMA", "a frame that is none is completed", ("FineGrainedRdmaDone", "Gone"), 0, "Complete", "Idle"),
    row("RDMA", "a frame that is none is left while it is written", ("FineGrainedRdma", "Gone"), 0, "Forget", "Vanished"),
    row("RDMA", "a frame that is none is counted as refused", ("FineGrainedRdmaDone", "Gone"), 0, "Leave", "Idle"),
    row("RDMA", "a frame with a wrong sum is not counted", ("RdmaLastFragment", "Written"), 2, "Forget", "Idle"),
    row("RDMA", "the sum of a frame cut through is not looked at", ("RdmaLastFragment", "Written"), 2, "Complete", "Idle"),
    row("RDMA", "a frame whose writing failed is completed", ("RdmaLastFragment", "Failed"), 0, "Complete", "Idle"),
    row("RDMA", "a frame is written without a buffer", ("Idle", "Waiting"), 2, "WriteWhole", "CoarseGrainedRdma"),
    row("RDMA", "the sum of the first of two frames is not looked at", ("CoarseGrainedRdma", "Written"), 4, "Complete", "CoarseGrainedRdma"),
    row("RDMA", "the second of two frames is forgotten", ("CoarseGrainedRdma", "Written"), 2, "Complete", "Idle"),
    row("RDMA", "the first of two frames is completed though its writing failed", ("CoarseGrainedRdma", "Failed"), 0, "Complete", "CoarseGrainedRdma"),
    row("RDMA", "a frame with a sum is completed with its data", ("Idle", "Waiting"), 1, "WriteWholeAndComplete", "CoarseGrainedRdma"),
    row("RDMA", "a frame with a sum is completed with its rest", ("FineGrainedRdmaDone", "LastGood"), 1, "WriteRestAndComplete", "RdmaLastFragment"),
    row("RDMA", "a frame is completed twice", ("CoarseGrainedRdma", "Written"), 1, "Complete", "Idle"),
    row("RDMA", "the buffer of a frame whose writing failed stays posted", ("CoarseGrainedRdma", "Failed"), 1, "Leave", "Idle"),
    Mutant { name: "a failed frame is looked at before the written one in front of it", machine: "RDMA", change: Change::Reversed },
    served("RDMA", "the endpoint closes while its buffer is written", ("FineGrainedRdma", "Closed"), "Close"),
];

impl Mutant {
    /// The CPU whose machines it changes.
    pub fn cpu(&self) -> Cpu {
        if matches!(self.machine, "SDMA" | "SEND") {
            Cpu::Transmit
        } else {
            Cpu::Receive
        }
    }

    /// The property that refutes it.
    pub fn property(&self) -> Option<&'static Property> {
        let doorbells = self.change == Change::ClearedLast;
        PROPERTIES.iter().find(|it| {
            it.claim == Claim::Safety && it.cpus == [self.cpu()] && it.doorbells == doorbells
        })
    }

    /// The machines with its fault, and the row that makes it; `None` if the tables have not what
    /// it changes.
    pub fn machines(&self) -> Option<(Machines, Option<Entry>)> {
        let mut machines = Machines::default();
        let index = machines
            .tables
            .iter()
            .position(|it| it.name == self.machine)?;
        let table = &mut machines.tables[index];
        let place = |names: &[frame_pipeline::table::Named], name: &str| {
            let at = names.iter().position(|it| it.name == name)?;
            u8::try_from(at).ok()
        };
        let number = match self.change {
            Change::Row {
                at: (from, event),
                number,
                action,
                to,
            } => {
                let from = place(table.states, from)?;
                let (first, count) = table.span(from, place(table.events, event)?);
                let mut rows = table.rows.to_vec();
                let row = rows.get_mut(first + number).filter(|_| number < count)?;
                row.action = place(table.actions, action)?;
                row.to = place(table.states, to)?;
                // Tables are const: a mutant is one for as long as the program runs.
                table.rows = rows.leak();
                Some(first + number)
            }
            Change::Served {
                at: (from, event),
                action,
            } => {
                let from = place(table.states, from)?;
                let event = place(table.events, event)?;
                let pair = Pair { state: from, event };
                let mut deferred = table.deferred.to_vec();
                let kept = deferred.len();
                deferred.retain(|it| *it != pair);
                if deferred.len() == kept {
                    return None;
                }
                table.deferred = deferred.leak();
                let mut rows = table.rows.to_vec();
                rows.push(Row {
                    from,
                    event,
                    mask: 0,
                    value: 0,
                    action: place(table.actions, action)?,
                    to: from,
                });
                table.rows = rows.leak();
                Some(table.rows.len() - 1)
            }
            Change::Reversed => {
                machines.reversed = Some(self.machine);
                None
            }
            Change::ClearedLast => {
                machines.clears_last = true;
                None
            }
        };
        let row = number.map(|number| Entry::new(index, number as u8));
        Some((machines, row))
    }
}
