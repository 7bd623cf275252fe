//! Control of a card: commands, events, statistics, link, settings, log.
//!
//! It covers everything except frames. [`super::Nic::split`] gives it to one thread while others
//! serve the queues; an unsplit [`super::Nic`] offers all of it as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use host_interface::bar;
use host_interface::extension::Extension;
use host_interface::gencom::Gencom;

use super::config::{Config, Notice};
use super::counters::{Counts, DriverCounters};
use super::drops::{DropCounts, DropReason};
use super::error::NicError;
use super::events::{EventLog, Link};
use super::filters::list::Filters;
use super::line::{POLL_PAUSE, Waiter};
use super::log::state::Log;
use super::memory::ControlMemory;
use super::queues::QueueMode;
use super::receive_path::ReceivePath;
use super::{Identity, LOOK, Phase, window};
use crate::live::Readers;
use crate::transport::{Port, Transport, TransportError, Vector};

/// Control of a card on a transport.
pub struct Control<T: Transport> {
    pub(super) transport: T,
    pub(super) config: Config,
    pub(super) identity: Identity,
    pub(super) memory: ControlMemory,
    pub(super) phase: Phase,
    pub(super) events: EventLog,
    pub(super) command_producer: u32,
    pub(super) last_command: u8,
    pub(super) counts: Arc<Counts>,
    /// How it reaches NIC memory.
    pub(super) memory_access: window::MemoryAccess,
    /// The firmware file, kept for [`super::Nic::recover`].
    pub(super) image: Vec<u8>,
    /// Whether the card has booted its own firmware, which recovery makes it do again.
    pub(super) own: bool,
    /// Whether the firmware is this project's, so that the extension words are valid.
    pub(super) ours: bool,
    /// The card's station address: the EEPROM's, unless it was changed.
    pub(super) station: [u8; 6],
    pub(super) filters: Filters,
    pub(super) log: Log,
    pub(super) readers: Readers,
    /// Queue mode.
    pub(super) queues: QueueMode,
    /// The receive path of classic mode, while the card is in queue mode.
    pub(super) classic: Option<ReceivePath>,
    /// How it waits beside separate queues; None while the driver is not split.
    pub(super) wake: Option<(Waiter, Box<dyn Port>)>,
}

impl<T: Transport> Control<T> {
    /// The card's identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The station address in use.
    pub fn station(&self) -> [u8; 6] {
        self.station
    }

    /// The readers of this card's frames, beside its user.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The transport, for accesses that this interface lacks.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Reads a word of BAR 0 below the memory window; these reads have no side effect.
    ///
    /// # Errors
    /// [`TransportError::BadOffset`] for the window and later offsets; the transport's errors.
    pub fn peek_register(&mut self, offset: u32) -> Result<u32, NicError> {
        if offset >= bar::WINDOW || !offset.is_multiple_of(4) {
            return Err(TransportError::BadOffset(offset).into());
        }
        Ok(self.transport.read(offset)?)
    }

    /// Reads words of NIC memory.
    ///
    /// # Errors
    /// What the transport says.
    pub fn peek_memory(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        self.memory_access.read(&mut self.transport, address, out)
    }

    /// Whether the firmware is this project's, with its extension words.
    pub fn has_extension(&self) -> bool {
        self.ours
    }

    /// The driver's counters, for all queues.
    pub fn counters(&self) -> DriverCounters {
        self.counts.snapshot()
    }

    /// Frames that were dropped, by reason, in all queues.
    pub fn drops(&self) -> DropCounts {
        self.counts.drops()
    }

    /// Counts frames that the driver's user could not take or send.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.counts.drop_frames(reason, frames);
    }

    /// Checks an idle card: the transport works, and the firmware has reported no fatal error.
    ///
    /// # Errors
    /// [`NicError::FirmwareFatal`] or what the transport says.
    pub fn look_alive(&mut self) -> Result<(), NicError> {
        if self.ours {
            self.check_fatal()?;
        }
        Ok(())
    }

    /// The link as last reported.
    pub fn link(&self) -> Link {
        self.events.link
    }

    pub(super) fn extension(&mut self, word: Extension) -> Result<u32, TransportError> {
        self.transport.read(word.bar_offset())
    }

    /// Waits until the card may have an event, at most for `timeout`. True if it may: an interrupt
    /// came, acknowledged by the thread that took it, or polling found an event.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        self.wait_for(timeout, || Ok(false))
    }

    /// Waits for an event, or, when polling, until `has_frames` returns true.
    pub(super) fn wait_for(
        &mut self,
        timeout: Duration,
        has_frames: impl Fn() -> Result<bool, NicError>,
    ) -> Result<bool, NicError> {
        self.transport.flush()?;
        let (events, memory) = (&self.events, &self.memory);
        let has_work = || Ok(has_frames()? || events.pending(memory)?);
        if let Some((waiter, port)) = &mut self.wake {
            return waiter.wait(&mut **port, timeout, has_work);
        }
        match self.config.notice {
            Notice::Interrupt => {
                let came = self.transport.wait(Vector::INTERRUPT, timeout)?;
                if came {
                    self.counts.interrupt();
                    self.acknowledge()?;
                }
                Ok(came)
            }
            Notice::Polling => {
                let start = Instant::now();
                loop {
                    if has_work()? {
                        return Ok(true);
                    }
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    // An in-process engine runs during this wait.
                    let pause = left.min(POLL_PAUSE);
                    self.transport.wait(Vector::INTERRUPT, pause)?;
                }
            }
        }
    }

    /// Deasserts the interrupt on the card and unmasks the next one, before the indices are read.
    pub(super) fn acknowledge(&mut self) -> Result<(), NicError> {
        if self.config.notice == Notice::Interrupt {
            self.transport.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
            self.transport.unmask(Vector::INTERRUPT)?;
            // The write may be posted. Until it has arrived, the firmware raises no interrupt for
            // its further work, and a driver that reads the indices before that would miss it.
            // Reading the mailbox back waits for the write.
            self.transport.read(bar::MAILBOX_HOST_INTERRUPT)?;
        }
        Ok(())
    }

    /// Handles pending events. Bounded: it reads the index once.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an invalid index; the transport's errors.
    pub fn take_events(&mut self) -> Result<(), NicError> {
        if let Some(consumer) = self.events.take(&self.memory)? {
            self.transport
                .write(Gencom::EventConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    /// Judges sent BDs that have not returned for `waiting` ([`super::SendQueue::waiting_for`]);
    /// while there is a link, they must. False if they may take longer; true if they are late
    /// because there is no link, so that the clock restarts when it is back.
    ///
    /// # Errors
    /// [`NicError::Stuck`] or [`NicError::FirmwareFatal`]; what the transport says.
    pub fn watch(&mut self, waiting: Duration) -> Result<bool, NicError> {
        if waiting.is_zero() || waiting < self.config.watchdog {
            return Ok(false);
        }
        self.check_fatal()?;
        if self.events.link == Link::Down {
            return Ok(true);
        }
        Err(NicError::Stuck {
            what: "sent BDs do not come back",
            after: waiting,
            state: self.card_state()?,
        })
    }

    /// Waits for events, at most for `timeout`, until the card has a link.
    ///
    /// # Errors
    /// [`NicError::NoLink`] after `timeout`; what the card or the transport says.
    pub fn wait_link(&mut self, timeout: Duration) -> Result<Link, NicError> {
        let start = Instant::now();
        loop {
            self.take_events()?;
            if self.events.link != Link::Down {
                return Ok(self.events.link);
            }
            if start.elapsed() >= timeout {
                self.check_fatal()?;
                return Err(NicError::NoLink {
                    after: timeout,
                    state: self.card_state()?,
                });
            }
            self.wait(LOOK)?;
        }
    }

    pub(super) fn need(&self, phase: Phase) -> Result<(), NicError> {
        if self.phase == phase {
            return Ok(());
        }
        Err(NicError::WrongState {
            is: self.phase.name(),
            needs: phase.name(),
        })
    }
}
