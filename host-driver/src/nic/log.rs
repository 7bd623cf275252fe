//! The firmware's log and what it records.
//!
//! [`Control::poll_log`] takes messages off the card into a backlog, from which everybody who
//! wants them takes them with a place of his own; [`Control::drain_log`] is the driver's.

use host_interface::log::{Level, RING_COUNT};

use super::control::Control;
use super::error::NicError;
use super::window;
use crate::log::{Backlog, LogBlock, LogCounts, LogFrame, LogReadError, LogReader, NicMemory};
use crate::transport::{Transport, TransportError};

/// What the driver knows of its card's log.
#[derive(Debug, Default)]
pub(super) struct Log {
    reader: LogReader,
    backlog: Backlog,
    /// Where [`Control::drain_log`] is in the backlog.
    drained: u64,
    /// Lost before the firmware was started last, and since then.
    lost: [(u64, u32); RING_COUNT],
    /// Levels that were set, for the firmware that is started next.
    levels: Vec<(usize, Level)>,
}

impl Log {
    /// The firmware is started anew.
    pub fn restart(&mut self) {
        self.reader = LogReader::new();
        for (before, since) in &mut self.lost {
            *before += u64::from(std::mem::take(since));
        }
    }
}

/// A card's memory through its window.
pub struct CardMemory<'a, T: ?Sized>(pub &'a mut T);

impl<T: Transport> NicMemory for CardMemory<'_, T> {
    type Error = TransportError;

    fn load(&mut self, address: u32, out: &mut [u32]) -> Result<(), TransportError> {
        window::read(self.0, address, out)
    }

    fn store(&mut self, address: u32, value: u32) -> Result<bool, TransportError> {
        window::write(self.0, address, &[value])?;
        Ok(true)
    }
}

impl From<LogReadError<TransportError>> for NicError {
    fn from(error: LogReadError<TransportError>) -> Self {
        match error {
            LogReadError::Memory(error) => error.into(),
            LogReadError::Nonsense { what, value } => NicError::BadIndex {
                what,
                value,
                allowed: "inside a log in NIC memory".to_owned(),
            },
        }
    }
}

impl<T: Transport> Control<T> {
    /// What the card says of its log; none if the firmware has none. Also when the firmware
    /// died before it was operational.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the log's description cannot be; what the transport says.
    pub fn log_block(&mut self) -> Result<Option<LogBlock>, NicError> {
        Ok(LogBlock::find(&mut CardMemory(&mut self.transport))?)
    }

    /// Takes what is new in the firmware's log into the backlog.
    ///
    /// # Errors
    /// As [`Control::log_block`].
    pub fn poll_log(&mut self) -> Result<(), NicError> {
        let Some(block) = self.log_block()? else {
            return Ok(());
        };
        let mut memory = CardMemory(&mut self.transport);
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

    /// Takes what is new since the last call, and says how many messages were not kept that
    /// long.
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

    /// Messages of CPU A and CPU B that found no room on the card, since the driver came.
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

    /// Has the firmware record what is as detailed as a level, in some modules by their
    /// numbers among [`host_interface::log::MODULE_NAMES`]. It takes effect at once and is
    /// kept across [`super::Nic::recover`].
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

    /// Sets the levels again that were set before.
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
                window::write(&mut self.transport, address, &[*level as u32])?;
            }
        }
        Ok(self.transport.flush()?)
    }
}
