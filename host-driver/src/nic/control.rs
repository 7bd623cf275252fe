//! Control of a card: commands, events, statistics, link, settings, log.
//!
//! Everything but the frames. [`super::Nic::split`] gives it to one thread while others serve
//! the queues; a [`super::Nic`] that is whole offers all of it, too.

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
use super::filters::Filters;
use super::line::{POLL_PAUSE, Waiter};
use super::log::Log;
use super::memory::ControlMemory;
use super::{Identity, LOOK, Phase, window};
use crate::live::Readers;
use crate::transport::{Port, Transport, TransportError, Vector};

/// Control of a card behind a transport.
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
    /// The firmware file, kept for [`super::Nic::recover`].
    pub(super) image: Vec<u8>,
    /// The card has booted its own firmware, which recovery lets it do again.
    pub(super) own: bool,
    /// The firmware is this project's: the extension words are valid.
    pub(super) ours: bool,
    /// The address that the card answers to: the EEPROM's, unless it was changed.
    pub(super) station: [u8; 6],
    pub(super) filters: Filters,
    pub(super) log: Log,
    pub(super) readers: Readers,
    /// How it waits beside queues of their own; None while the driver is whole.
    pub(super) wake: Option<(Waiter, Box<dyn Port>)>,
}

impl<T: Transport> Control<T> {
    /// What the card is.
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

    /// Whoever reads the frames of this card beside its user.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The transport, for what this interface does not offer.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Reads a word of BAR 0 below the memory window; nothing there changes by being read.
    ///
    /// # Errors
    /// [`TransportError::BadOffset`] for the window and beyond; what the transport says.
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
        Ok(window::read(&mut self.transport, address, out)?)
    }

    /// True if the firmware is this project's, with its extension words.
    pub fn has_extension(&self) -> bool {
        self.ours
    }

    /// What the driver has counted, all queues together.
    pub fn counters(&self) -> DriverCounters {
        self.counts.snapshot()
    }

    /// Frames that were dropped, by reason, in all queues.
    pub fn drops(&self) -> DropCounts {
        self.counts.drops()
    }

    /// Counts frames that the user of this driver could not take or give.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.counts.drop_frames(reason, frames);
    }

    /// Asks an idle card whether it is still well: the way to it holds and the
    /// firmware has left no report of its end.
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

    /// Waits until the card may have an event, at most for `timeout`. True if it may: an
    /// interrupt, acknowledged by whoever took it, or, when polling, an event that is there.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        self.wait_for(timeout, || Ok(false))
    }

    /// Waits for an event, or, when polling, for what `has_frames` finds.
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
                    // An in-process engine gets its time in here.
                    let pause = left.min(POLL_PAUSE);
                    self.transport.wait(Vector::INTERRUPT, pause)?;
                }
            }
        }
    }

    /// Takes the interrupt away on the card and lets the next one through, before the
    /// indices are looked at.
    pub(super) fn acknowledge(&mut self) -> Result<(), NicError> {
        if self.config.notice == Notice::Interrupt {
            self.transport.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
            self.transport.unmask(Vector::INTERRUPT)?;
            // The write may be posted. Until it has arrived the firmware keeps quiet
            // about what it does meanwhile, and whoever looked at the indices before
            // that would sleep through it. Reading the mailbox back waits for it.
            self.transport.read(bar::MAILBOX_HOST_INTERRUPT)?;
        }
        Ok(())
    }

    /// Handles the events that have come. Bounded: it looks at the index once.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an index that cannot be; what the
    /// transport says.
    pub fn take_events(&mut self) -> Result<(), NicError> {
        if let Some(consumer) = self.events.take(&self.memory)? {
            self.transport
                .write(Gencom::EventConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    /// Judges sent BDs that have not come back for `waiting`
    /// ([`super::SendQueue::waiting_for`]): they must while there is a link. False if they
    /// may take longer; true if they are late because there is no link, and the clock is to
    /// start again when it is back.
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
