//! Reports the send consumer index to the host, for CPU B.
//!
//! A driver that reads the index by MMIO needs none of this: CPU B stores the index where the
//! driver looks, as in the paper. For a host with an address for the index, and for the interrupt,
//! CPU B leaves its requests in shared words: the write channel and the interrupt belong to CPU A.

use crate::io::IoA;
use crate::io::note::{WriteKind, WriteNote};
use crate::memory::config::Config;
use crate::memory::shared::{SEND_INDEX, SEND_INTERRUPTS};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;

/// The last report.
#[derive(Debug)]
pub struct SendIndex {
    /// The host address of the index, or 0.
    place: HostAddress,
    reported: u32,
    interrupts: u32,
}

impl SendIndex {
    /// Nothing.
    pub const fn new() -> SendIndex {
        SendIndex {
            place: HostAddress::NULL,
            reported: 0,
            interrupts: 0,
        }
    }

    /// Takes the configuration.
    pub const fn configure(&mut self, config: &Config) {
        self.place = config.send_consumer;
    }

    /// Whether CPU B has requested a report that was not made.
    #[inline(always)]
    pub fn is_behind<B: Dispatch>(&self, io: &mut IoA<B>) -> bool {
        SEND_INTERRUPTS.get(&mut io.bus) != self.interrupts
            || SEND_INDEX.get(&mut io.bus) != self.reported
    }
}

impl Default for SendIndex {
    fn default() -> SendIndex {
        SendIndex::new()
    }
}

/// Write Send Consumer. The interrupt follows the index: it is raised when the index has been
/// written.
#[inline(always)]
pub fn write<B: Dispatch>(index: &mut SendIndex, io: &mut IoA<B>) {
    // In this order: CPU B writes the index first.
    let interrupts = SEND_INTERRUPTS.get(&mut io.bus);
    let consumer = SEND_INDEX.get(&mut io.bus);
    let silent = interrupts == index.interrupts;
    let place = index.place;
    if !place.is_null() {
        let note = if silent {
            WriteNote::QUIET
        } else {
            WriteNote::of(WriteKind::SendIndex)
        };
        if io.write_words(place, &[consumer, 0], note).is_err() {
            return io.wait_for_descriptor(EventBit::WriteSendConsumer);
        }
    } else if !silent {
        io.raise_interrupt();
    }
    index.reported = consumer;
    index.interrupts = interrupts;
    io.bus.clear(EventBit::WriteSendConsumer);
}
