//! The copper PHY: a 10/100/1000 transceiver that negotiates with the partner.
//!
//! Hardware reference, section 11, "Copper boards"; registers 0 to 15 as in IEEE 802.3 clause 22.
//! When something that matters to the link changes (cable, partner, mode, reset, a restart), the
//! link goes down; after the board's negotiation time it comes up with the best mode of both
//! sides:
//!
//! ```text
//! partner      PHY           link
//! negotiates   negotiates    the best mode of both
//! negotiates   forced        the forced mode; the partner sees only its speed
//! silent       negotiates    the partner's speed, half duplex
//! silent       forced        the forced mode, if the speeds agree
//! ```
//!
//! 1000BASE-T requires negotiation by both sides, or forcing by both.

use crate::board::PhyPart;
use crate::partner::{ABILITY_BITS, GIGABIT_STATUS_BITS, Modes, Partner};
use tigon2_chip::phy::{
    PhyMode, PhyRegister, ability, control, expansion, extended_status, gigabit_control,
    gigabit_status, status, summary,
};

/// Register 0 after a reset: negotiate; if forced, it would be 1000 Mb/s full duplex.
const CONTROL_RESET: u16 = control::NEGOTIATE | control::FULL_DUPLEX | control::SPEED_1000;

/// Bits of the modes in register 9.
const GIGABIT_CONTROL_BITS: [(PhyMode, u16); 2] = [
    (PhyMode::Half1000, gigabit_control::HALF),
    (PhyMode::Full1000, gigabit_control::FULL),
];

/// The partner at the other end, if the cable is plugged.
pub type Far = Option<Partner>;

/// The registers and the negotiation of a PHY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phy {
    part: PhyPart,
    control: u16,
    /// Registers that only store, by number; among them 4 and 9.
    stored: [u16; 32],
    /// The modes advertised since negotiation began.
    offered: Modes,
    /// When the link settles.
    settled_at: u64,
    /// Whether the link has been down since register 1 was last read.
    link_lost: bool,
}

impl Phy {
    /// A PHY that was powered on at `now`.
    pub fn new(part: PhyPart, now: u64) -> Self {
        let mut phy = Phy {
            part,
            control: 0,
            stored: [0; 32],
            offered: Modes::default(),
            settled_at: 0,
            link_lost: true,
        };
        phy.reset(now);
        phy
    }

    /// Reset: all registers to their initial values; negotiation restarts.
    pub fn reset(&mut self, now: u64) {
        self.control = CONTROL_RESET;
        self.stored = [0; 32];
        *self.slot(PhyRegister::Advertisement) = ability::SELECTOR | ability::SPEEDS;
        *self.slot(PhyRegister::GigabitControl) = gigabit_control::FULL | gigabit_control::HALF;
        self.disturb(now);
    }

    /// Takes the link down and lets it settle again.
    pub fn disturb(&mut self, now: u64) {
        let negotiation = u64::from(self.part.negotiation_us) * 1000;
        self.settled_at = now.saturating_add(negotiation);
        self.link_lost = true;
        let advertised = self.stored[PhyRegister::Advertisement as usize];
        let gigabit = self.stored[PhyRegister::GigabitControl as usize];
        self.offered = Modes::from_bits(advertised, &ABILITY_BITS)
            .or(Modes::from_bits(gigabit, &GIGABIT_CONTROL_BITS));
    }

    /// The MDIO address.
    pub fn address(&self) -> u8 {
        self.part.address
    }

    /// Whether the PHY loops the MAC's frames back.
    pub fn loopback(&self) -> bool {
        self.control & control::LOOPBACK != 0
    }

    /// The mode of the link; in loopback, the mode of register 0.
    pub fn mode(&self, now: u64, far: Far) -> Option<PhyMode> {
        if self.loopback() {
            return self.forced();
        }
        let off = control::POWER_DOWN | control::ISOLATE;
        if self.control & off != 0 || now < self.settled_at {
            return None;
        }
        let partner = far?;
        match (self.negotiates(), partner.negotiates) {
            (true, true) => self.offered.and(partner.modes).best(),
            (true, false) => {
                // Parallel detection supports 10 and 100 Mb/s and half duplex.
                let half = match partner.modes.best()?.megabits() {
                    10 => PhyMode::Half10,
                    100 => PhyMode::Half100,
                    _ => return None,
                };
                self.offered.has(half).then_some(half)
            }
            (false, true) => self.forced().filter(|mode| {
                let speed = mode.megabits();
                speed != 1000 && partner.modes.best_at(speed).is_some()
            }),
            (false, false) => {
                let speed = partner.modes.best()?.megabits();
                self.forced().filter(|mode| mode.megabits() == speed)
            }
        }
    }

    /// A read of a register.
    pub fn read(&mut self, now: u64, far: Far, register: u8) -> u16 {
        let mode = self.mode(now, far);
        let negotiated = far.filter(|partner| {
            let done = now >= self.settled_at && self.control & control::POWER_DOWN == 0;
            self.negotiates() && partner.negotiates && done
        });
        let negotiated_or = |bit: u16| if negotiated.is_some() { bit } else { 0 };
        let link_or = |bit: u16| if mode.is_some() { bit } else { 0 };
        match named(register) {
            Some(PhyRegister::Control) => self.control,
            Some(PhyRegister::Status) => {
                let lost = std::mem::replace(&mut self.link_lost, mode.is_none());
                status::ABILITIES
                    | status::EXTENDED
                    | status::CAN_NEGOTIATE
                    | status::EXTENDED_REGISTERS
                    | negotiated_or(status::NEGOTIATED)
                    | if lost { 0 } else { link_or(status::LINK) }
            }
            Some(PhyRegister::IdHigh) => (self.part.id >> 16) as u16,
            Some(PhyRegister::IdLow) => self.part.id as u16,
            Some(PhyRegister::PartnerAbility) => match negotiated {
                Some(partner) => partner.copper_ability(),
                None if self.negotiates() => {
                    let heard = mode.map(|mode| Modes::default().with(mode));
                    heard.map_or(0, |modes| modes.bits(&ABILITY_BITS))
                }
                None => 0,
            },
            Some(PhyRegister::Expansion) => {
                negotiated_or(expansion::PAGE_RECEIVED | expansion::PARTNER_NEGOTIATES)
            }
            Some(PhyRegister::GigabitStatus) => {
                let well = gigabit_status::LOCAL_OK | gigabit_status::REMOTE_OK;
                let gigabit = mode.is_some_and(|mode| mode.megabits() == 1000);
                let theirs = negotiated.map(|partner| partner.modes.bits(&GIGABIT_STATUS_BITS));
                theirs.unwrap_or(0) | if gigabit { well } else { 0 }
            }
            Some(PhyRegister::ExtendedStatus) => extended_status::FULL | extended_status::HALF,
            Some(PhyRegister::Summary) => {
                let code = mode.map_or(0, |mode| (mode as u16) << summary::MODE_SHIFT);
                code | negotiated_or(summary::NEGOTIATED) | link_or(summary::LINK)
            }
            Some(PhyRegister::Advertisement | PhyRegister::GigabitControl) | None => {
                self.stored[usize::from(register & 31)]
            }
        }
    }

    /// A write to a register. A new advertisement applies to the next negotiation.
    pub fn write(&mut self, now: u64, register: u8, value: u16) {
        match named(register) {
            Some(PhyRegister::Control) => self.write_control(now, value),
            Some(PhyRegister::Advertisement | PhyRegister::GigabitControl) | None => {
                self.stored[usize::from(register & 31)] = value;
            }
            // The others are read-only.
            Some(_) => {}
        }
    }

    fn write_control(&mut self, now: u64, value: u16) {
        if value & control::RESET != 0 {
            return self.reset(now);
        }
        let before = std::mem::replace(&mut self.control, value & control::STORED);
        let changed = (before ^ self.control) & !control::COLLISION_TEST != 0;
        if changed || self.negotiates() && value & control::RESTART != 0 {
            self.disturb(now);
        }
    }

    fn negotiates(&self) -> bool {
        self.control & control::NEGOTIATE != 0
    }

    /// The mode of register 0; both speed bits together are invalid.
    fn forced(&self) -> Option<PhyMode> {
        let full = self.control & control::FULL_DUPLEX != 0;
        match self.control & (control::SPEED_100 | control::SPEED_1000) {
            0 if full => Some(PhyMode::Full10),
            0 => Some(PhyMode::Half10),
            control::SPEED_100 if full => Some(PhyMode::Full100),
            control::SPEED_100 => Some(PhyMode::Half100),
            control::SPEED_1000 if full => Some(PhyMode::Full1000),
            control::SPEED_1000 => Some(PhyMode::Half1000),
            _ => None,
        }
    }

    fn slot(&mut self, register: PhyRegister) -> &mut u16 {
        &mut self.stored[register as usize]
    }
}

/// The register with a number, if it has a name.
fn named(number: u8) -> Option<PhyRegister> {
    Some(match number & 31 {
        0 => PhyRegister::Control,
        1 => PhyRegister::Status,
        2 => PhyRegister::IdHigh,
        3 => PhyRegister::IdLow,
        4 => PhyRegister::Advertisement,
        5 => PhyRegister::PartnerAbility,
        6 => PhyRegister::Expansion,
        9 => PhyRegister::GigabitControl,
        10 => PhyRegister::GigabitStatus,
        15 => PhyRegister::ExtendedStatus,
        0x19 => PhyRegister::Summary,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
