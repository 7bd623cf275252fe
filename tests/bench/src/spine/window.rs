//! A host's way to a simulated card, for the loader.

use host_interface::extension::Extension;
use spine_linker::access::{self, AccessError, Bar};
use spine_linker::load::Card;
use std::convert::Infallible;
use tigon2_chip::Register;
use tigon2_chip::mailbox::{BAR_BASE, BYTES};
use tigon2_sim::transport::SharedMachine;

/// BAR offset and bytes of the window to NIC memory.
const WINDOW: u32 = 0x800;
/// Nanoseconds between two looks for an answer, and how many looks there are.
const LOOK: u64 = 10_000;
const LOOKS: u32 = 1000;

/// The host's view of NIC memory: through the window, or by requests while that is a peer's.
#[derive(Clone)]
pub struct Window {
    /// The card.
    pub machine: SharedMachine,
    /// Nanoseconds between two looks for an answer.
    pub look: u64,
    is_leased: bool,
}

impl Window {
    /// Through the window.
    pub fn new(machine: SharedMachine) -> Window {
        Window {
            machine,
            look: LOOK,
            is_leased: false,
        }
    }

    fn at(&self, address: u32) -> u32 {
        let base = address & !(WINDOW - 1);
        let mut machine = self.machine.lock();
        machine.bar_write(Register::WindowBase.offset(), base);
        WINDOW + (address - base)
    }

    /// A word of NIC memory; the simulator's, if the window is leased.
    pub fn word(&self, address: u32) -> u32 {
        if self.is_leased {
            return self.machine.lock().word(address);
        }
        let offset = self.at(address);
        self.machine.lock().bar_read(offset)
    }

    /// NIC address of the SPINE block.
    pub fn block(&self) -> u32 {
        self.word(Extension::Spine.nic_address())
    }
}

/// What goes wrong on a host's way to a simulated card.
pub type CardError = AccessError<Infallible>;

/// BAR 0 below the window, and the time between two looks.
struct Direct<'a>(&'a SharedMachine, u64);

impl Bar for Direct<'_> {
    type Error = Infallible;

    fn read(&mut self, offset: u32) -> Result<u32, Infallible> {
        Ok(self.0.lock().bar_read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), Infallible> {
        self.0.lock().bar_write(offset, value);
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Infallible> {
        self.write(BAR_BASE + BYTES * mailbox + 4, 1)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.0.pass(self.1);
        turns < LOOKS
    }
}

impl Card for Window {
    type Error = CardError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error> {
        if self.is_leased {
            return access::read(&mut Direct(&self.machine, self.look), address, out);
        }
        for (at, word) in (address..).step_by(4).zip(out) {
            *word = self.word(at);
        }
        Ok(())
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Self::Error> {
        if self.is_leased {
            return access::write(&mut Direct(&self.machine, self.look), address, words);
        }
        for (at, word) in (address..).step_by(4).zip(words) {
            let offset = self.at(at);
            self.machine.lock().bar_write(offset, *word);
        }
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Self::Error> {
        Direct(&self.machine, self.look)
            .ring(mailbox)
            .map_err(AccessError::Card)
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Self::Error> {
        let at = BAR_BASE + BYTES * mailbox;
        let mut machine = self.machine.lock();
        machine.bar_write(at, high);
        machine.bar_write(at + 4, low);
        Ok(())
    }

    fn wait(&mut self, turns: u32) -> bool {
        Direct(&self.machine, self.look).wait(turns)
    }

    fn lease_window(&mut self, address: u32) -> Result<(), Self::Error> {
        if !self.is_leased {
            self.at(address);
            self.is_leased = true;
        }
        Ok(())
    }

    fn take_back_window(&mut self) {
        self.is_leased = false;
    }
}
