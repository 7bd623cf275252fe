//! The engine reads the firmware's log from the card's memory: this needs no driver and takes no
//! time on the card.
//!
//! This serves drivers without support for the log, such as those of other systems, and cards
//! without a driver.

use crate::transport::SharedMachine;
use host_driver::log::NicMemory;
use std::convert::Infallible;

/// The memory of a simulated card, from beside it.
pub struct BesideTheCard<'a>(pub &'a SharedMachine);

impl NicMemory for BesideTheCard<'_> {
    type Error = Infallible;

    fn load(&mut self, address: u32, out: &mut [u32]) -> Result<(), Infallible> {
        let machine = self.0.lock();
        for (address, word) in (address..).step_by(4).zip(out) {
            *word = machine.word(address);
        }
        Ok(())
    }

    fn store(&mut self, address: u32, value: u32) -> Result<bool, Infallible> {
        self.0.lock().set_word(address, value);
        Ok(true)
    }
}
