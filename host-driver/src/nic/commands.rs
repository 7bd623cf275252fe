//! Commands to the firmware and their completion.
//!
//! A command is a word in the command ring on the card, announced by mailbox 1. The
//! firmware moves the consumer index in gencom when it has taken it; some commands
//! are answered by an event as well, and then that is the completion.

use std::time::Instant;

use host_interface::bar;
use host_interface::command::{Command, CommandCode, DISABLE, ENABLE, STACK_DOWN, STACK_UP};
use host_interface::gencom::{Gencom, mac_words};
use host_interface::ring;
use std::time::Duration;

use super::error::NicError;
use super::{LOOK, Nic};
use crate::transport::Transport;

/// How a command shows that it has been carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completion {
    /// Its ring entry was consumed.
    Consumed,
    /// An event of updated statistics.
    Statistics,
    /// An event of a changed multicast list.
    Multicast,
}

impl<T: Transport> Nic<T> {
    fn command(
        &mut self,
        name: &'static str,
        command: Command,
        extra: &[u32],
        completion: Completion,
    ) -> Result<(), NicError> {
        let before = self.completions(completion);
        let errors = self.events.errors;
        let needed = 1 + extra.len() as u32;
        let consumer = self.command_consumer()?;
        if ring::free(self.command_producer, consumer, ring::COMMAND_ENTRIES) < needed {
            return Err(NicError::CommandTimeout {
                command: name,
                after: Duration::ZERO,
                state: self.card_state()?,
            });
        }
        for word in std::iter::once(&command.pack()).chain(extra) {
            let place = bar::COMMAND_RING + ring::COMMAND_BYTES * self.command_producer;
            self.transport.write(place, *word)?;
            self.command_producer = ring::advance(self.command_producer, 1, ring::COMMAND_ENTRIES);
        }
        self.last_command = command.command as u8;
        self.transport
            .write(bar::MAILBOX_COMMAND_PRODUCER, self.command_producer)?;

        let start = Instant::now();
        loop {
            let consumed = self.command_consumer()? == self.command_producer;
            self.take_events()?;
            if self.events.errors != errors {
                return Err(self.refused());
            }
            let done = completion == Completion::Consumed || self.completions(completion) != before;
            if consumed && done {
                return Ok(());
            }
            if start.elapsed() >= self.config.command_timeout {
                self.check_fatal()?;
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

    pub(super) fn set_stack(&mut self, up: bool) -> Result<(), NicError> {
        let code = if up { STACK_UP } else { STACK_DOWN };
        let name = if up { "stack up" } else { "stack down" };
        let command = Command::new(CommandCode::HostState, code);
        self.command(name, command, &[], Completion::Consumed)
    }

    pub(super) fn clear_statistics(&mut self) -> Result<(), NicError> {
        let command = Command::new(CommandCode::ClearStatistics, 0);
        self.command("clear statistics", command, &[], Completion::Consumed)
    }

    /// Asks for fresh statistics and waits for them.
    pub(super) fn update_statistics(&mut self) -> Result<(), NicError> {
        let command = Command::new(CommandCode::UpdateStatistics, 0);
        self.command("update statistics", command, &[], Completion::Statistics)
    }

    /// Lets the card take every frame on the wire, or only its own. Kept across
    /// [`Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn set_promiscuous(&mut self, on: bool) -> Result<(), NicError> {
        let code = if on { ENABLE } else { DISABLE };
        let command = Command::new(CommandCode::Promiscuous, code);
        self.command("promiscuous mode", command, &[], Completion::Consumed)?;
        self.promiscuous = on;
        Ok(())
    }

    /// Lets the card take every multicast frame, or only those of its list. Kept
    /// across [`Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn set_all_multicast(&mut self, on: bool) -> Result<(), NicError> {
        let code = if on { ENABLE } else { DISABLE };
        let command = Command::new(CommandCode::AllMulticast, code);
        self.command("all-multicast mode", command, &[], Completion::Consumed)?;
        self.all_multicast = on;
        Ok(())
    }

    /// Adds an address to the card's multicast list. Not kept across
    /// [`Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn add_multicast(&mut self, address: [u8; 6]) -> Result<(), NicError> {
        let (high, low) = mac_words(address);
        let command = Command::new(CommandCode::AddMulticastExtended, 0);
        self.command(
            "add multicast",
            command,
            &[high, low],
            Completion::Multicast,
        )
    }

    /// Takes an address off the card's multicast list.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn delete_multicast(&mut self, address: [u8; 6]) -> Result<(), NicError> {
        let (high, low) = mac_words(address);
        let command = Command::new(CommandCode::DeleteMulticastExtended, 0);
        self.command(
            "delete multicast",
            command,
            &[high, low],
            Completion::Multicast,
        )
    }
}
