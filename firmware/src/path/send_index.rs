//! Reports the send consumer index to the host, for CPU B.
//!
//! A driver that reads the index by MMIO finds it without this: CPU B stores it where the
//! driver looks, as in the paper. For a host with an address for it, and for the interrupt,
//! CPU B leaves word here: the write channel and the interrupt are CPU A's.

use crate::io::IoA;
use crate::io::note::{WriteKind, WriteNote};
use crate::memory::config::Config;
use crate::memory::shared::{SEND_INDEX, SEND_INTERRUPTS};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;

/// What the host was told.
#[derive(Debug)]
pub struct SendIndex {
    /// Where the host wants the index, or none.
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

    /// Whether CPU B wants the host told something that it was not.
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

/// Write send consumer. The interrupt follows the index: it is raised when that has been
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
