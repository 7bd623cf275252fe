//! Telling the host how far its send ring was read, for CPU B.
//!
//! A driver that reads the index by MMIO finds it without this: CPU B stores it where the
//! driver looks, as in the paper. For a host with an address for it, and for the interrupt,
//! CPU B leaves word here: the write channel and the interrupt are CPU A's.

use crate::SideA;
use crate::dma::{write, write_words};
use crate::interrupt;
use crate::shared::{SEND_INDEX, SEND_INTERRUPTS};
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// What the host was told.
#[derive(Debug)]
pub struct SendIndex {
    reported: u32,
    interrupts: u32,
}

impl SendIndex {
    /// Nothing.
    pub const fn new() -> SendIndex {
        SendIndex {
            reported: 0,
            interrupts: 0,
        }
    }
}

impl Default for SendIndex {
    fn default() -> SendIndex {
        SendIndex::new()
    }
}

/// Whether CPU B wants the host told something that it was not.
#[inline(always)]
pub fn is_behind<B: Dispatch>(a: &mut SideA<B>) -> bool {
    SEND_INTERRUPTS.get(&mut a.bus) != a.send_index.interrupts
        || SEND_INDEX.get(&mut a.bus) != a.send_index.reported
}

/// Write send consumer. The interrupt follows the index: it is raised when that has been
/// written.
#[inline(always)]
pub fn write<B: Dispatch>(a: &mut SideA<B>) {
    // In this order: CPU B writes the index first.
    let interrupts = SEND_INTERRUPTS.get(&mut a.bus);
    let index = SEND_INDEX.get(&mut a.bus);
    let silent = interrupts == a.send_index.interrupts;
    let place = a.config.send_consumer;
    if !place.is_none() {
        let kind = if silent {
            write::QUIET
        } else {
            write::SEND_INDEX
        };
        if write_words(a, place, &[index, 0], kind).is_err() {
            return a.wait_for_descriptor(EventBit::WriteSendConsumer);
        }
    } else if !silent {
        interrupt::raise(a);
    }
    a.send_index = SendIndex {
        reported: index,
        interrupts,
    };
    a.bus.clear(EventBit::WriteSendConsumer);
}
