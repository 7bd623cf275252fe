//! The host's way to a card through which datagrams go meanwhile.

use super::window::{CardError, Window};
use spine_linker::load::Card;
use thiserror::Error;
use tigon2_sim::workload::WorkloadError;
use tigon2_sim::workload::testbench::{Load, Testbench};

/// Nanoseconds for a word that the host writes, and for a look for an answer.
const WORD: u64 = 150;
const ANSWER: u64 = 10_000;
/// Looks for an answer.
const ANSWERS: u32 = 10_000;

/// What goes wrong on the way to such a card.
#[derive(Debug, Error)]
pub enum LoadedError {
    /// Of what is written and read.
    #[error(transparent)]
    Card(#[from] CardError),
    /// Of the datagrams.
    #[error(transparent)]
    Datagrams(#[from] WorkloadError),
}

/// The card while datagrams go through it.
pub struct Loaded<'a> {
    /// Card, driver and both ends.
    pub testbench: &'a mut Testbench,
    load: &'a mut Load,
    window: Window,
}

impl<'a> Loaded<'a> {
    /// The card of a testbench under a load.
    pub fn new(testbench: &'a mut Testbench, load: &'a mut Load) -> Self {
        Loaded {
            window: Window::new(testbench.machine().clone()),
            testbench,
            load,
        }
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// As [`Testbench::run`].
    pub fn pass(&mut self, nanoseconds: u64) -> Result<(), WorkloadError> {
        self.testbench.run(self.load, nanoseconds)
    }
}

impl Card for Loaded<'_> {
    type Error = LoadedError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), LoadedError> {
        Ok(self.window.read(address, out)?)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), LoadedError> {
        // A piece at a time: frames arrive between two of them.
        for (at, piece) in (address..).step_by(64).zip(words.chunks(16)) {
            self.window.write(at, piece)?;
            self.pass(WORD * piece.len() as u64)?;
        }
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), LoadedError> {
        Ok(self.window.ring(mailbox)?)
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), LoadedError> {
        Ok(self.window.post(mailbox, high, low)?)
    }

    fn wait(&mut self, turns: u32) -> bool {
        turns < ANSWERS && self.pass(ANSWER).is_ok()
    }

    fn lease_window(&mut self, address: u32) -> Result<(), LoadedError> {
        Ok(self.window.lease_window(address)?)
    }

    fn take_back_window(&mut self) {
        self.window.take_back_window();
    }
}
