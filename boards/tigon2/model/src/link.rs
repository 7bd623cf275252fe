//! The link: fibre or copper, the loopbacks, and when frames pass.
//!
//! Hardware reference, section 11 ("minimal emulator model") and 10.4. On fibre the MAC itself
//! negotiates: with the transmitter disabled it sends 1000BASE-X configuration words from
//! `R[204]`. An ideal negotiating partner answers with its own ability, acknowledged, as soon as
//! it receives one:
//!
//! ```text
//! R[200].1 = 0   R[204] = 0       partner sends 0          R[220].19 = 1
//! R[200].1 = 0   R[204] = ability partner sends 0xA040     R[220].19 = 1
//! R[200].1 = 1                    partner sends data       R[220].19 = 0, R[224] frozen
//! ```
//!
//! On copper the [`Phy`] negotiates; there are no code words.

use crate::board::{Board, Serdes};
use crate::mdio::{MdioBus, MdioDevices, MdioLines};
use crate::partner::Partner;
use crate::phy::{Far, Phy};
use tigon2_chip::bits::mac_interface;
use tigon2_chip::mac::phy_interface;
use tigon2_chip::phy::PhyMode;

/// The management bus address at which every PHY accepts writes (9: a quirk of firmware).
const ANY_PHY: u8 = 0;

/// State of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    cable: bool,
    partner: Partner,
    /// Only on copper boards.
    phy: Option<Phy>,
    /// Only on fibre boards.
    serdes: Option<Serdes>,
    mdio: MdioBus,
    /// `R[204]`.
    tx_word: u32,
    /// `R[224]` while no code words arrive.
    rx_word: u32,
    /// `R[238]`.
    phy_interface: u32,
    /// `R[50]` bits 27:24.
    mac_interface: u8,
    /// Pin 0 of `R[44]` is high.
    pin_loopback: bool,
    /// `R[200]` bit 1.
    tx_enabled: bool,
}

impl Link {
    /// The link of a board, with the cable plugged.
    pub fn new(board: &Board) -> Self {
        Link {
            cable: true,
            partner: board.wire.partner,
            phy: board.phy.map(|part| Phy::new(part, 0)),
            serdes: board.serdes(),
            mdio: MdioBus::default(),
            tx_word: 0,
            rx_word: 0,
            phy_interface: 0,
            mac_interface: 0,
            pin_loopback: false,
            tx_enabled: false,
        }
    }

    /// Power-on: the PHY starts from its initial values.
    pub fn power_on(&mut self, now: u64) {
        if let Some(phy) = &mut self.phy {
            phy.reset(now);
        }
    }

    /// Chip reset: registers go to 0. Cable and partner stay, and so does the PHY, which is not
    /// part of the chip.
    pub fn reset(&mut self) {
        *self = Link {
            cable: self.cable,
            partner: self.partner,
            phy: self.phy.take(),
            serdes: self.serdes,
            mdio: MdioBus::default(),
            tx_word: 0,
            rx_word: 0,
            phy_interface: 0,
            mac_interface: 0,
            pin_loopback: false,
            tx_enabled: false,
        };
    }

    /// Whether the cable is plugged, so that there is a signal: `R[220]` bit 18 (11).
    pub fn cable(&self) -> bool {
        self.cable
    }

    /// Plugs or unplugs the cable; returns whether that changed anything.
    pub fn set_cable(&mut self, now: u64, plugged: bool) -> bool {
        let changed = std::mem::replace(&mut self.cable, plugged) != plugged;
        self.far_end_changed(now, changed)
    }

    /// The link partner.
    pub fn partner(&self) -> Partner {
        self.partner
    }

    /// Connects another partner; returns whether the card can see the change.
    pub fn set_partner(&mut self, now: u64, partner: Partner) -> bool {
        let changed = std::mem::replace(&mut self.partner, partner) != partner && self.cable;
        self.far_end_changed(now, changed)
    }

    fn far_end_changed(&mut self, now: u64, changed: bool) -> bool {
        if let Some(phy) = self.phy.as_mut().filter(|_| changed) {
            phy.disturb(now);
        }
        changed
    }

    fn far(&self) -> Far {
        self.cable.then_some(self.partner)
    }

    /// `R[220]` bit 19: negotiation code words arrive (11).
    pub fn code_words(&self) -> bool {
        self.phy.is_none() && self.cable && self.partner.negotiates && !self.tx_enabled
    }

    /// Whether the SERDES loopback is closed, which only the board's own control does: `R[238]` on
    /// the chip, pin 0 of `R[44]` for an external one (11, C!).
    fn serdes_loopback(&self) -> bool {
        match self.serdes {
            Some(Serdes::OnChip) => self.phy_interface == phy_interface::SERDES_LOOPBACK,
            Some(Serdes::External) => self.pin_loopback,
            None => false,
        }
    }

    /// Whether sent frames come back: by the SERDES loopback, or by the PHY's if the MAC's
    /// interface matches its speed.
    pub fn loopback(&self, now: u64) -> bool {
        let phy = self.phy.as_ref().filter(|phy| phy.loopback());
        self.serdes_loopback() || phy.is_some_and(|phy| self.suits(phy.mode(now, self.far())))
    }

    /// Whether frames pass between the card and the wire. On copper the link must be up and the
    /// MAC's interface must match its speed.
    pub fn carries_frames(&self, now: u64) -> bool {
        let up = match &self.phy {
            None => self.tx_enabled,
            Some(phy) => !phy.loopback() && self.suits(phy.mode(now, self.far())),
        };
        self.cable && up && !self.serdes_loopback()
    }

    /// Whether `R[50]` selects the interface for this mode: 7 MII for 10 and 100 Mb/s, 0xD GMII for
    /// 1000 (9, C values).
    fn suits(&self, mode: Option<PhyMode>) -> bool {
        mode.is_some_and(|mode| {
            self.mac_interface
                == match mode.megabits() {
                    1000 => mac_interface::GMII,
                    _ => mac_interface::MII,
                }
        })
    }

    /// Speed of the wire in Mb/s; without a link, the highest speed.
    pub fn megabits(&self, now: u64) -> u32 {
        let mode = self.phy.as_ref().and_then(|phy| phy.mode(now, self.far()));
        mode.map_or(1000, PhyMode::megabits)
    }

    /// The mode of a copper link that is up.
    pub fn copper_mode(&self, now: u64) -> Option<PhyMode> {
        self.phy.as_ref()?.mode(now, self.far())
    }

    /// `R[44]` bit 19: 0 on boards without a PHY (9, C).
    pub fn mdio_in(&self) -> bool {
        self.phy.is_some() && self.mdio.data_in()
    }

    /// `R[44]` bits 18:16 were written.
    pub fn set_mdio_lines(&mut self, now: u64, lines: MdioLines) {
        let far = self.far();
        if let Some(phy) = &mut self.phy {
            self.mdio.set_lines(lines, &mut OnBus { phy, now, far });
        }
    }

    /// `R[204]`.
    pub fn tx_word(&self) -> u32 {
        self.tx_word
    }

    /// A write to `R[204]`.
    pub fn set_tx_word(&mut self, word: u32) {
        self.tx_word = word;
    }

    /// `R[224]`.
    pub fn rx_word(&self) -> u32 {
        if self.serdes_loopback() {
            self.tx_word
        } else if self.code_words() {
            self.answer()
        } else {
            self.rx_word
        }
    }

    /// A write to `R[224]` (firmware clears it, 10.4, C).
    pub fn set_rx_word(&mut self, word: u32) {
        self.rx_word = word;
    }

    /// `R[238]`.
    pub fn phy_interface(&self) -> u32 {
        self.phy_interface
    }

    /// A write to `R[238]`.
    pub fn set_phy_interface(&mut self, value: u32) {
        self.phy_interface = value;
    }

    /// A write to `R[50]` bits 27:24.
    pub fn set_mac_interface(&mut self, value: u8) {
        self.mac_interface = value;
    }

    /// Pin 0 of `R[44]` changed.
    pub fn set_pin_loopback(&mut self, closed: bool) {
        self.pin_loopback = closed;
    }

    /// `R[200]` bit 1 changed. From then on `R[224]` keeps the last received word (11, C).
    pub fn set_tx_enabled(&mut self, enabled: bool) {
        if enabled && self.code_words() {
            self.rx_word = self.answer();
        }
        self.tx_enabled = enabled;
    }

    fn answer(&self) -> u32 {
        if self.tx_word == 0 {
            0
        } else {
            self.partner.config_word()
        }
    }
}

/// The PHY on its management bus.
struct OnBus<'a> {
    phy: &'a mut Phy,
    now: u64,
    far: Far,
}

impl MdioDevices for OnBus<'_> {
    fn mdio_read(&mut self, phy: u8, register: u8) -> Option<u16> {
        (phy == self.phy.address()).then(|| self.phy.read(self.now, self.far, register))
    }

    fn mdio_write(&mut self, phy: u8, register: u8, value: u16) {
        if phy == self.phy.address() || phy == ANY_PHY {
            self.phy.write(self.now, register, value);
        }
    }
}

#[cfg(test)]
mod tests;
