//! The firmware's log, taken out of the card's memory by the engine: no driver is asked, and
//! no time passes on the card.
//!
//! For a driver that knows nothing of the log, such as another system's, and for a card that
//! nobody drives.

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
