//! Commands: one word each, host to NIC, in a ring of 64 words.
//!
//! Host/NIC software interface, "Commands". Bits 31:24 command, 23:12 code, 11:0 index.
//! The extended multicast commands take the two ring entries after their own as well.

tigon2_chip::table! {
    /// A command, bits 31:24.
    pub enum CommandCode: u8 {
        /// 0x01 the host's stack is up or down: [`STACK_UP`], [`STACK_DOWN`].
        HostState = 0x01,
        /// 0x02 software address filter (Tigon I only).
        FdrFiltering = 0x02,
        /// 0x03 set the standard producer (obsolete: mailbox).
        SetStandardProducer = 0x03,
        /// 0x04 write the statistics to the host and report it.
        UpdateStatistics = 0x04,
        /// 0x05 give all jumbo buffers back; the event of that name answers.
        ResetJumboRing = 0x05,
        /// 0x06 set the partial receive count.
        SetPartialReceiveCount = 0x06,
        /// 0x08 add the multicast address in gencom (obsolete).
        AddMulticast = 0x08,
        /// 0x09 delete the multicast address in gencom (obsolete).
        DeleteMulticast = 0x09,
        /// 0x0A promiscuous mode: [`ENABLE`], [`DISABLE`].
        Promiscuous = 0x0A,
        /// 0x0B negotiate: [`NEGOTIATE_BOTH`], [`NEGOTIATE_GIGABIT`], [`NEGOTIATE_10_100`].
        LinkNegotiation = 0x0B,
        /// 0x0C take the MAC address from gencom.
        SetMacAddress = 0x0C,
        /// 0x0D clear the profile.
        ClearProfile = 0x0D,
        /// 0x0E accept all multicast: [`ENABLE`], [`DISABLE`].
        AllMulticast = 0x0E,
        /// 0x0F clear the statistics.
        ClearStatistics = 0x0F,
        /// 0x10 set the jumbo producer (obsolete: mailbox).
        SetJumboProducer = 0x10,
        /// 0x11 write the statistics to the host without an event.
        RefreshStatistics = 0x11,
        /// 0x12 add a multicast address; it follows in two entries.
        AddMulticastExtended = 0x12,
        /// 0x13 delete a multicast address; it follows in two entries.
        DeleteMulticastExtended = 0x13,
    }
}

/// Code of [`CommandCode::HostState`]: the stack is up.
pub const STACK_UP: u16 = 1;
/// Code of [`CommandCode::HostState`]: the stack is down.
pub const STACK_DOWN: u16 = 2;
/// Code that switches a mode on.
pub const ENABLE: u16 = 1;
/// Code that switches a mode off.
pub const DISABLE: u16 = 2;
/// Code of [`CommandCode::LinkNegotiation`]: both links.
pub const NEGOTIATE_BOTH: u16 = 0;
/// Code of [`CommandCode::LinkNegotiation`]: the gigabit link.
pub const NEGOTIATE_GIGABIT: u16 = 1;
/// Code of [`CommandCode::LinkNegotiation`]: the 10/100 link.
pub const NEGOTIATE_10_100: u16 = 2;

impl CommandCode {
    /// How many ring entries the command takes after its own.
    pub const fn extra_entries(self) -> u32 {
        match self {
            CommandCode::AddMulticastExtended | CommandCode::DeleteMulticastExtended => 2,
            _ => 0,
        }
    }
}

/// A command with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub command: CommandCode,
    /// 12 bits that depend on the command.
    pub code: u16,
    /// 12 bits that depend on the command.
    pub index: u16,
}

impl Command {
    /// A command with a code and index 0.
    pub const fn new(command: CommandCode, code: u16) -> Self {
        Command {
            command,
            code,
            index: 0,
        }
    }

    /// The word in the ring; `code` and `index` are truncated to 12 bits.
    pub const fn pack(self) -> u32 {
        (self.command as u32) << 24 | (self.code as u32 & 0xFFF) << 12 | self.index as u32 & 0xFFF
    }

    /// The command in a word of the ring.
    ///
    /// # Errors
    /// [`UnknownCommand`] if bits 31:24 name no command.
    pub const fn unpack(word: u32) -> Result<Command, UnknownCommand> {
        match CommandCode::from_number(word >> 24) {
            Some(command) => Ok(Command {
                command,
                code: (word >> 12 & 0xFFF) as u16,
                index: (word & 0xFFF) as u16,
            }),
            None => Err(UnknownCommand(word)),
        }
    }
}

/// A command word that names no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("command word {0:#010x} names no command")]
pub struct UnknownCommand(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// "one word: command:8 code:12 index:12".
    #[test]
    fn a_command_word_has_three_fields() {
        let up = Command::new(CommandCode::HostState, STACK_UP);
        assert_eq!(up.pack(), 0x0100_1000);
        let any = Command {
            command: CommandCode::SetJumboProducer,
            code: 0xFFF,
            index: 0x0AB,
        };
        assert_eq!(any.pack(), 0x10FF_F0AB);
        assert_eq!(Command::unpack(any.pack()), Ok(any));
    }

    #[test]
    fn every_number_is_either_a_command_or_refused() {
        let mut known = Vec::new();
        for number in 0..=255u8 {
            let word = u32::from(number) << 24;
            match Command::unpack(word) {
                Ok(command) => known.push(command.command),
                Err(error) => assert_eq!(error, UnknownCommand(word)),
            }
        }
        assert_eq!(known, CommandCode::ALL);
        for command in CommandCode::ALL {
            assert_eq!(CommandCode::from_number(command.number()), Some(*command));
        }
    }

    /// "12/13 extended add/delete multicast (the address follows in the next two entries)".
    #[test]
    fn only_extended_commands_take_more_entries() {
        for command in CommandCode::ALL {
            let expected = if command.number() >= 0x12 { 2 } else { 0 };
            assert_eq!(command.extra_entries(), expected);
        }
    }
}
