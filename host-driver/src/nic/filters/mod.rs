//! Receive filters: station address, multicast addresses, promiscuous mode.
//!
//! The driver keeps all filters, and [`Control::open`] restores them, so that a card that was
//! reset accepts the same frames as before.

use host_interface::command::{Command, CommandCode, DISABLE, ENABLE};
use host_interface::gencom::{Gencom, mac_words};

pub(super) mod list;

use super::Phase;
use super::commands::Completion;
use super::config::MulticastForm;
use super::control::Control;
use super::error::NicError;
use crate::transport::Transport;

impl<T: Transport> Control<T> {
    /// Makes the card accept every frame on the wire, or only its own. Kept across
    /// [`super::Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn set_promiscuous(&mut self, on: bool) -> Result<(), NicError> {
        self.switch("promiscuous mode", CommandCode::Promiscuous, on)?;
        self.filters.promiscuous = on;
        Ok(())
    }

    /// Makes the card accept every multicast frame, or only those of its list. Kept across
    /// [`super::Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn set_all_multicast(&mut self, on: bool) -> Result<(), NicError> {
        self.switch("all-multicast mode", CommandCode::AllMulticast, on)?;
        self.filters.all_multicast = on;
        Ok(())
    }

    fn switch(
        &mut self,
        name: &'static str,
        command: CommandCode,
        on: bool,
    ) -> Result<(), NicError> {
        let code = if on { ENABLE } else { DISABLE };
        let command = Command::new(command, code);
        self.issue(name, command, &[], Completion::Consumed)
    }

    /// Adds an address to the card's multicast list; adding it again does no harm. Kept across
    /// [`super::Nic::recover`].
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn add_multicast(&mut self, address: [u8; 6]) -> Result<(), NicError> {
        self.send_multicast("add multicast", address, true)?;
        if !self.filters.multicast.contains(&address) {
            self.filters.multicast.push(address);
        }
        Ok(())
    }

    /// Removes an address from the card's multicast list.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn delete_multicast(&mut self, address: [u8; 6]) -> Result<(), NicError> {
        self.send_multicast("delete multicast", address, false)?;
        self.filters.multicast.retain(|known| *known != address);
        Ok(())
    }

    /// The addresses on the card's multicast list.
    pub fn multicast(&self) -> &[[u8; 6]] {
        &self.filters.multicast
    }

    fn send_multicast(
        &mut self,
        name: &'static str,
        address: [u8; 6],
        add: bool,
    ) -> Result<(), NicError> {
        let (high, low) = mac_words(address);
        let extra = [high, low];
        let (command, extra): (_, &[u32]) = match (self.config.multicast, add) {
            (MulticastForm::Extended, true) => (CommandCode::AddMulticastExtended, &extra),
            (MulticastForm::Extended, false) => (CommandCode::DeleteMulticastExtended, &extra),
            (MulticastForm::Gencom, true) => (CommandCode::AddMulticast, &[]),
            (MulticastForm::Gencom, false) => (CommandCode::DeleteMulticast, &[]),
        };
        if self.config.multicast == MulticastForm::Gencom {
            for (word, value) in [(Gencom::MulticastHigh, high), (Gencom::MulticastLow, low)] {
                self.transport.write(word.bar_offset(), value)?;
            }
        }
        let command = Command::new(command, 0);
        self.issue(name, command, extra, Completion::Multicast)
    }

    /// Sets the card's station address. Kept across [`super::Nic::recover`]; the EEPROM is not
    /// changed.
    ///
    /// # Errors
    /// What the firmware or the transport says.
    pub fn set_station(&mut self, station: [u8; 6]) -> Result<(), NicError> {
        if self.phase != Phase::Halted {
            let (high, low) = mac_words(station);
            for (word, value) in [(Gencom::MacAddressHigh, high), (Gencom::MacAddressLow, low)] {
                self.transport.write(word.bar_offset(), value)?;
            }
            let command = Command::new(CommandCode::SetMacAddress, 0);
            self.issue("set MAC address", command, &[], Completion::Consumed)?;
        }
        self.station = station;
        Ok(())
    }

    /// Restores the filters of a card that was reset.
    pub(super) fn restore_filters(&mut self) -> Result<(), NicError> {
        if self.filters.promiscuous {
            self.set_promiscuous(true)?;
        }
        if self.filters.all_multicast {
            self.set_all_multicast(true)?;
        }
        for address in self.filters.multicast.clone() {
            self.send_multicast("add multicast", address, true)?;
        }
        Ok(())
    }
}
