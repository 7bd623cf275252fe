//! Commands to the firmware and their completion.
//!
//! A command is a word in the command ring on the card, announced by mailbox 1. The firmware
//! advances the consumer index in gencom when it has taken the command. Some commands are also
//! answered by an event, which is then their completion.

use std::time::Instant;

use host_interface::bar;
use host_interface::command::{Command, CommandCode, STACK_DOWN, STACK_UP};
use host_interface::gencom::Gencom;
use host_interface::queue::QueueEvent;
use host_interface::ring;
use std::time::Duration;

use super::LOOK;
use super::control::Control;
use super::error::NicError;
use crate::transport::Transport;

/// How a command completes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    /// Its ring entry was consumed.
    Consumed,
    /// An event of updated statistics.
    Statistics,
    /// An event of a changed multicast list.
    Multicast,
    /// An event of a jumbo ring that was reset.
    JumboReset,
    /// The event that answers a command of queue mode, whatever its result.
    Queues(QueueEvent),
}

impl<T: Transport> Control<T> {
    /// Issues a command and waits until it is complete.
    pub(super) fn issue(
        &mut self,
        name: &'static str,
        command: Command,
        extra: &[u32],
        completion: Completion,
    ) -> Result<(), NicError> {
        self.issue_word(name, command.pack(), extra, completion)
    }

    /// As [`issue`](Self::issue), for any word.
    pub(super) fn issue_word(
        &mut self,
        name: &'static str,
        word: u32,
        extra: &[u32],
        completion: Completion,
    ) -> Result<(), NicError> {
        let before = self.completions(completion);
        let (errors, refusals) = (self.events.errors, self.events.refusals);
        let needed = 1 + extra.len() as u32;
        let consumer = self.command_consumer()?;
        if ring::free(self.command_producer, consumer, ring::COMMAND_ENTRIES) < needed {
            return Err(NicError::CommandTimeout {
                command: name,
                after: Duration::ZERO,
                state: self.card_state()?,
            });
        }
        for entry in std::iter::once(&word).chain(extra) {
            let place = bar::COMMAND_RING + ring::COMMAND_BYTES * self.command_producer;
            self.transport.write(place, *entry)?;
            self.command_producer = ring::advance(self.command_producer, 1, ring::COMMAND_ENTRIES);
        }
        self.last_command = (word >> 24) as u8;
        self.transport
            .write(bar::MAILBOX_COMMAND_PRODUCER, self.command_producer)?;

        let start = Instant::now();
        loop {
            let consumed = self.command_consumer()? == self.command_producer;
            self.take_events()?;
            if self.events.refusals != refusals {
                return Err(self.refused());
            }
            let done = completion == Completion::Consumed || self.completions(completion) != before;
            if consumed && done {
                return Ok(());
            }
            if start.elapsed() >= self.config.command_timeout {
                self.check_fatal()?;
                if self.events.errors != errors {
                    return Err(self.refused());
                }
                return Err(NicError::CommandTimeout {
                    command: name,
                    after: self.config.command_timeout,
                    state: self.card_state()?,
                });
            }
            self.wait(if consumed { LOOK } else { LOOK / 20 })?;
        }
    }

    fn completions(&self, completion: Completion) -> u64 {
        match completion {
            Completion::Consumed => 0,
            Completion::Statistics => self.events.statistics,
            Completion::Multicast => self.events.multicast,
            Completion::JumboReset => self.events.jumbo_resets,
            Completion::Queues(event) => self.events.answers_of(event),
        }
    }

    fn command_consumer(&mut self) -> Result<u32, NicError> {
        let consumer = self.transport.read(Gencom::CommandConsumer.bar_offset())?;
        if consumer >= ring::COMMAND_ENTRIES {
            return Err(NicError::BadIndex {
                what: "command consumer index",
                value: consumer,
                allowed: format!("below {}", ring::COMMAND_ENTRIES),
            });
        }
        Ok(consumer)
    }

    /// Issues a command of one entry without an answering event.
    pub(super) fn plain(
        &mut self,
        name: &'static str,
        command: CommandCode,
        code: u16,
    ) -> Result<(), NicError> {
        self.issue(name, Command::new(command, code), &[], Completion::Consumed)
    }

    pub(super) fn set_stack(&mut self, up: bool) -> Result<(), NicError> {
        let code = if up { STACK_UP } else { STACK_DOWN };
        let name = if up { "stack up" } else { "stack down" };
        self.plain(name, CommandCode::HostState, code)
    }
}
