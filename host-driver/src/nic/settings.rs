//! Settings that can change while the card runs: MTU, coalescing, link, statistics.

use std::time::Duration;

use host_interface::LinkWord;
use host_interface::bar;
use host_interface::command::{
    Command, CommandCode, NEGOTIATE_10_100, NEGOTIATE_BOTH, NEGOTIATE_GIGABIT,
};
use host_interface::gencom::Gencom;

use super::commands::Completion;
use super::config::{Coalescing, Config, LinkSettings, MIN_MTU, STANDARD_MTU};
use super::control::Control;
use super::error::NicError;
use super::sizes::{FRAME_OVERHEAD, largest_frame};
use super::{Nic, Phase, Ring};
use crate::transport::Transport;

/// The links to negotiate again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Negotiate {
    /// Both.
    #[default]
    Both,
    /// The gigabit link.
    Gigabit,
    /// The 10/100 link.
    Fast,
}

/// The state of the links, from gencom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// The gigabit link.
    pub gigabit: LinkWord,
    /// The 10/100 link.
    pub fast: LinkWord,
}

impl LinkState {
    /// The word of the link that is up, if any.
    #[must_use]
    pub fn up(&self) -> Option<LinkWord> {
        [self.gigabit, self.fast].into_iter().find(|word| word.up())
    }
}

impl<T: Transport> Nic<T> {
    /// Changes the largest packet that is sent and received. With a jumbo ring it adds or removes
    /// that ring's buffers. The firmware may take a moment to read the new value. Kept across
    /// [`Nic::recover`].
    ///
    /// # Errors
    /// [`NicError::BadSetting`] if the rings of this configuration do not hold such packets; errors
    /// of the firmware or the transport.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), NicError> {
        let largest = self.config.largest_mtu();
        if !(MIN_MTU..=largest).contains(&mtu) {
            return Err(NicError::BadSetting {
                what: "MTU",
                value: u32::from(mtu),
                allowed: format!("{MIN_MTU} to {largest} with these rings"),
            });
        }
        self.control.config.mtu = mtu;
        self.send.ring.set_largest(largest_frame(mtu));
        if self.phase == Phase::Halted {
            return Ok(());
        }
        let frame = u32::from(mtu) + u32::from(FRAME_OVERHEAD);
        self.transport
            .write(Gencom::InterfaceMtu.bar_offset(), frame)?;
        if self.phase == Phase::Open {
            if wants_jumbo_buffers(&self.config) {
                self.fill_jumbo()?;
            } else if self.receive.rings.outstanding_in(Ring::Jumbo) > 0 {
                self.reset_jumbo_ring()?;
            }
        }
        self.transport.flush()?;
        Ok(())
    }

    fn fill_jumbo(&mut self) -> Result<(), NicError> {
        self.receive.rings.fill(|ring| ring == Ring::Jumbo)?;
        self.publish_buffers(true)
    }

    /// Takes all buffers of the jumbo ring back: the command "reset jumbo ring" and its event.
    /// Frames in buffers that the card had filled but not reported are lost.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn reset_jumbo_ring(&mut self) -> Result<(), NicError> {
        let command = Command::new(CommandCode::ResetJumboRing, 0);
        self.issue("reset jumbo ring", command, &[], Completion::JumboReset)?;
        self.receive.rings.forget(Ring::Jumbo);
        self.transport.write(bar::MAILBOX_JUMBO_PRODUCER, 0)?;
        self.transport.flush()?;
        Ok(())
    }

    /// Waits for events, at most for `timeout`, until the driver has seen this many
    /// changes of the link. True if it has.
    ///
    /// # Errors
    /// What the card or the transport says.
    pub fn wait_link_changes(&mut self, count: u64, timeout: Duration) -> Result<bool, NicError> {
        let start = std::time::Instant::now();
        loop {
            self.service()?;
            if self.events.link_changes >= count {
                return Ok(true);
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            self.wait(left.min(super::LOOK))?;
        }
    }
}

impl<T: Transport> Control<T> {
    /// Changes the coalescing of interrupts and updates. Kept across
    /// [`super::Nic::recover`].
    ///
    /// # Errors
    /// What the transport says.
    pub fn set_coalescing(&mut self, coalescing: Coalescing) -> Result<(), NicError> {
        self.config.coalescing = coalescing;
        if self.phase != Phase::Halted {
            for (word, value) in coalescing.words() {
                self.transport.write(word.bar_offset(), value)?;
            }
            self.transport.flush()?;
        }
        Ok(())
    }

    /// Changes the requested link and negotiates again. The link goes down meanwhile;
    /// [`super::Nic::wait_link`] waits for it. Kept across [`super::Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn set_link(&mut self, link: LinkSettings, which: Negotiate) -> Result<(), NicError> {
        self.config.link = link;
        if self.phase == Phase::Halted {
            return Ok(());
        }
        for (word, value) in link.words() {
            self.transport.write(word.bar_offset(), value)?;
        }
        let code = match which {
            Negotiate::Both => NEGOTIATE_BOTH,
            Negotiate::Gigabit => NEGOTIATE_GIGABIT,
            Negotiate::Fast => NEGOTIATE_10_100,
        };
        let command = Command::new(CommandCode::LinkNegotiation, code);
        self.issue("negotiate the link", command, &[], Completion::Consumed)
    }

    /// The state of the links, from the firmware: speed, duplex, flow control.
    ///
    /// # Errors
    /// What the transport says.
    pub fn link_state(&mut self) -> Result<LinkState, NicError> {
        let mut word = |word: Gencom| self.transport.read(word.bar_offset());
        Ok(LinkState {
            gigabit: LinkWord::from_bits(word(Gencom::GigabitLinkState)?),
            fast: LinkWord::from_bits(word(Gencom::FastLinkState)?),
        })
    }

    /// Sets the card's statistics to zero.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn clear_statistics(&mut self) -> Result<(), NicError> {
        self.plain("clear statistics", CommandCode::ClearStatistics, 0)
    }

    /// Sets the profile counters in the statistics to zero.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn clear_profile(&mut self) -> Result<(), NicError> {
        self.plain("clear profile", CommandCode::ClearProfile, 0)
    }

    /// Requests fresh statistics in host memory, without an event that reports them.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn refresh_statistics(&mut self) -> Result<(), NicError> {
        self.plain("refresh statistics", CommandCode::RefreshStatistics, 0)
    }

    /// Requests fresh statistics and waits for the event that reports them.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn update_statistics(&mut self) -> Result<(), NicError> {
        let command = Command::new(CommandCode::UpdateStatistics, 0);
        self.issue("update statistics", command, &[], Completion::Statistics)
    }

    /// Issues any command without further entries, and waits until the firmware has taken it. For
    /// commands that no other call issues: the driver does not track what they change.
    ///
    /// # Errors
    /// [`NicError::BadSetting`] for a command with further entries; what the firmware
    /// or the transport says.
    pub fn raw_command(&mut self, command: CommandCode, code: u16) -> Result<(), NicError> {
        if command.extra_entries() > 0 {
            return Err(NicError::BadSetting {
                what: "command",
                value: u32::from(command as u8),
                allowed: "one of a single entry".to_owned(),
            });
        }
        self.plain("of the user", command, code)
    }

    /// How often the link has changed since the firmware was loaded.
    pub fn link_changes(&self) -> u64 {
        self.events.link_changes
    }
}

/// Whether packets may arrive that only the jumbo ring can hold.
pub(super) fn wants_jumbo_buffers(config: &Config) -> bool {
    config.has_jumbo() && config.mtu > STANDARD_MTU
}
