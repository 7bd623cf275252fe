//! The beats of a transfer: over the bus, through the FIFO, and over the SRAM port.

use super::{DmaEngine, Phase};
use crate::timing::fine::Fine;
use crate::timing::parameters::Parameters;
use crate::timing::port::{Client, Port};
use tigon2_model::Direction;
use tigon2_model::dma::Transfer;

/// Bytes of a data beat.
const BEAT_BYTES: u32 = 8;

/// A transfer under way, in beats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timing) struct Live {
    /// Left on the bus.
    pub(in crate::timing) bus: u32,
    /// Left at the SRAM port.
    pub(in crate::timing) sram: u32,
    /// In the FIFO.
    pub(in crate::timing) fifo: u32,
}

impl DmaEngine {
    /// Bytes of the read channel's transfer of `length` bytes that are in NIC memory.
    #[inline]
    pub fn arrived(&self, transfer: &Transfer) -> u32 {
        match self.phases[Direction::Read.index()] {
            Phase::Live(live) => {
                let moved = (beats(transfer) - live.sram) * BEAT_BYTES;
                moved.saturating_sub(offset(transfer)).min(transfer.length)
            }
            Phase::End(_) => transfer.length,
            _ => 0,
        }
    }

    /// The beats that are due on the bus in `cycle`, and the FIFO's requests.
    #[inline]
    pub(super) fn move_on(
        &mut self,
        cycle: u64,
        direction: Direction,
        mut live: Live,
        parameters: &Parameters,
        port: &mut Port,
    ) {
        let now = Fine::cycle(cycle);
        if let Some(transaction) = &mut self.bus
            && transaction.owner == direction
        {
            while transaction.beats != 0 && transaction.next <= now {
                let due = transaction.next;
                transaction.next = due.plus(self.beat);
                let moves = match direction {
                    Direction::Read => live.fifo < parameters.fifo,
                    Direction::Write => live.fifo > 0,
                };
                // Otherwise the bus waits.
                if moves {
                    match direction {
                        Direction::Read => live.fifo += 1,
                        Direction::Write => live.fifo -= 1,
                    }
                    live.bus -= 1;
                    transaction.beats -= 1;
                    transaction.stall_if_due();
                }
            }
            if transaction.beats == 0 {
                self.bus_free = transaction.next;
                self.share.used(transaction.next);
                self.bus = None;
            }
        }
        let client = Client::dma(direction);
        let done = match direction {
            Direction::Read => {
                set_request(port, client, live.fifo != 0, true);
                live.bus == 0 && live.fifo == 0
            }
            Direction::Write => {
                set_request(
                    port,
                    client,
                    live.sram != 0 && live.fifo < parameters.fifo,
                    false,
                );
                live.bus == 0
            }
        };
        self.phases[direction.index()] = if done {
            port.withdraw(client);
            Phase::End(cycle + parameters.dma_end)
        } else {
            Phase::Live(live)
        };
    }

    /// The SRAM port was given to a channel in `cycle`.
    #[inline]
    pub fn granted(
        &mut self,
        cycle: u64,
        direction: Direction,
        parameters: &Parameters,
        port: &mut Port,
    ) {
        let client = Client::dma(direction);
        match &mut self.phases[direction.index()] {
            Phase::Descriptor(left) => {
                *left -= 1;
                if *left == 0 {
                    port.withdraw(client);
                    let at = cycle + parameters.dma_start;
                    self.phases[direction.index()] = Phase::Start(at);
                    self.wake = self.wake.min(at);
                }
            }
            Phase::Live(live) => {
                // As many beats as the port is wide.
                let wide = parameters.port_bytes / 8;
                let drained = match direction {
                    Direction::Read => {
                        let beats = live.fifo.min(wide);
                        live.sram -= beats;
                        live.fifo -= beats;
                        set_request(port, client, live.fifo != 0, true);
                        live.fifo == 0 && live.bus == 0
                    }
                    Direction::Write => {
                        let beats = live.sram.min(parameters.fifo - live.fifo).min(wide);
                        live.sram -= beats;
                        live.fifo += beats;
                        let more = live.sram != 0 && live.fifo < parameters.fifo;
                        set_request(port, client, more, false);
                        false
                    }
                };
                if drained || self.bus.is_none() {
                    self.wake = self.wake.min(cycle + 1);
                }
            }
            _ => port.withdraw(client),
        }
    }
}

#[inline]
fn set_request(port: &mut Port, client: Client, wants: bool, write: bool) {
    if wants {
        port.request(client, write);
    } else {
        port.withdraw(client);
    }
}

/// Beats of 8 bytes of a transfer, the same on both sides.
#[inline]
pub(super) fn beats(transfer: &Transfer) -> u32 {
    if transfer.length == 0 {
        return 0;
    }
    (offset(transfer) + transfer.length).div_ceil(BEAT_BYTES)
}

/// Bytes of the first beat that are none of the transfer's.
fn offset(transfer: &Transfer) -> u32 {
    (transfer.local % BEAT_BYTES).max((transfer.host % u64::from(BEAT_BYTES)) as u32)
}
