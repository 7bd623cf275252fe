//! The firmware's log and its levels.
//!
//! [`Control::poll_log`] moves messages from the card into a backlog, from which each client reads
//! at its own position; [`Control::drain_log`] is the driver's client.

use host_interface::log::{Level, RING_COUNT};

pub(super) mod state;

use super::control::Control;
use super::error::NicError;
use super::window::MemoryAccess;
use crate::log::{Backlog, LogBlock, LogCounts, LogFrame, LogReadError, NicMemory};
use crate::transport::Transport;

/// A card's memory.
pub struct CardMemory<'a, T> {
    access: MemoryAccess,
    transport: &'a mut T,
}

impl<'a, T: Transport> CardMemory<'a, T> {
    /// Through the window, for a card that no driver has.
    pub fn by_window(transport: &'a mut T) -> Self {
        Self {
            access: MemoryAccess::Window,
            transport,
        }
    }
}

impl<T: Transport> NicMemory for CardMemory<'_, T> {
    type Error = NicError;

    fn load(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        self.access.read(self.transport, address, out)
    }

    fn store(&mut self, address: u32, value: u32) -> Result<bool, NicError> {
        self.access.write(self.transport, address, &[value])?;
        Ok(true)
    }
}

impl From<LogReadError<NicError>> for NicError {
    fn from(error: LogReadError<NicError>) -> Self {
        match error {
            LogReadError::Memory(error) => error,
            LogReadError::Nonsense { what, value } => NicError::BadIndex {
                what,
                value,
                allowed: "inside a log in NIC memory".to_owned(),
            },
        }
    }
}

impl<T: Transport> Control<T> {
    /// The card's log block; None if the firmware has no log. It also works if the firmware stopped
    /// before it was operational.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the log's description is invalid; the transport's errors.
    pub fn log_block(&mut self) -> Result<Option<LogBlock>, NicError> {
        let mut memory = CardMemory {
            access: self.memory_access,
            transport: &mut self.transport,
        };
        Ok(LogBlock::find(&mut memory)?)
    }

    /// Moves new messages of the firmware's log into the backlog.
    ///
    /// # Errors
    /// As [`Control::log_block`].
    pub fn poll_log(&mut self) -> Result<(), NicError> {
        let Some(block) = self.log_block()? else {
            return Ok(());
        };
        let mut memory = CardMemory {
            access: self.memory_access,
            transport: &mut self.transport,
        };
        let frames = self.log.reader.read(&mut memory, &block)?;
        self.log.backlog.extend(frames);
        for ((_, since), counts) in self.log.lost.iter_mut().zip(block.counts) {
            *since = counts.lost;
        }
        Ok(())
    }

    /// The newest messages.
    pub fn log_backlog(&self) -> &Backlog {
        &self.log.backlog
    }

    /// Takes the messages since the last call, and returns how many were discarded meanwhile.
    ///
    /// # Errors
    /// As [`Control::log_block`].
    pub fn drain_log(&mut self) -> Result<(Vec<LogFrame>, u64), NicError> {
        self.poll_log()?;
        let log = &mut self.log;
        let (first, frames) = log.backlog.from(log.drained);
        let missed = first - log.drained;
        let frames = frames.cloned().collect();
        log.drained = log.backlog.end();
        Ok((frames, missed))
    }

    /// Messages of CPU A and CPU B that were dropped on the card, since the driver started.
    pub fn log_lost(&self) -> [u64; RING_COUNT] {
        self.log
            .lost
            .map(|(before, since)| before + u64::from(since))
    }

    /// Messages that CPU A and CPU B have recorded and lost since the firmware started.
    ///
    /// # Errors
    /// As [`Control::log_block`].
    pub fn log_counts(&mut self) -> Result<[LogCounts; RING_COUNT], NicError> {
        let block = self.log_block()?;
        Ok(block.map(|block| block.counts).unwrap_or_default())
    }

    /// Sets the levels that the firmware records, for modules by their numbers among
    /// [`host_interface::log::MODULE_NAMES`]. It takes effect at once and is kept across
    /// [`super::Nic::recover`].
    ///
    /// # Errors
    /// As [`Control::log_block`].
    pub fn set_log_levels(&mut self, levels: &[(usize, Level)]) -> Result<(), NicError> {
        for (module, level) in levels {
            self.log.levels.retain(|(other, _)| other != module);
            self.log.levels.push((*module, *level));
        }
        self.restore_log_levels()
    }

    /// Restores the requested levels.
    pub(super) fn restore_log_levels(&mut self) -> Result<(), NicError> {
        if self.log.levels.is_empty() {
            return Ok(());
        }
        let Some(block) = self.log_block()? else {
            return Ok(());
        };
        for (module, level) in &self.log.levels {
            if *module < block.levels.len() {
                let address = block.level_address(*module);
                self.memory_access
                    .write(&mut self.transport, address, &[*level as u32])?;
            }
        }
        Ok(self.transport.flush()?)
    }
}
