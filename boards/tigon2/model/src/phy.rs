//! The copper PHY: a 10/100/1000 transceiver that negotiates with the partner.
//!
//! Hardware reference, section 11, "Copper boards"; registers 0 to 15 as in IEEE 802.3
//! clause 22. Whenever something that matters to the link changes (cable, partner, mode,
//! reset, a restart) the link goes down, and after the board's negotiation time it comes
//! up with what both sides can do:
//!
//! ```text
//! partner      PHY           link
//! negotiates   negotiates    the best mode of both
//! negotiates   forced        the forced mode; the partner sees only its speed
//! silent       negotiates    the partner's speed, half duplex
//! silent       forced        the forced mode, if the speeds agree
//! ```
//!
//! Without negotiation on both sides there is no 1000BASE-T, unless both are forced to it.

use crate::board::PhyPart;
use crate::partner::{ABILITY_BITS, GIGABIT_STATUS_BITS, Modes, Partner};
use tigon2_chip::phy::{
    PhyMode, PhyRegister, ability, control, expansion, extended_status, gigabit_control,
    gigabit_status, status, summary,
};

/// Register 0 after a reset: negotiate; forced, it would be 1000 Mb/s full duplex.
const CONTROL_RESET: u16 = control::NEGOTIATE | control::FULL_DUPLEX | control::SPEED_1000;

/// Where register 9 has the modes.
const GIGABIT_CONTROL_BITS: [(PhyMode, u16); 2] = [
    (PhyMode::Half1000, gigabit_control::HALF),
    (PhyMode::Full1000, gigabit_control::FULL),
];

/// What the PHY sees of the cable: the partner, if it is plugged in.
pub type Far = Option<Partner>;

/// The registers and the negotiation of a PHY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phy {
    part: PhyPart,
    control: u16,
    /// Registers that only store, by number; among them 4 and 9.
    stored: [u16; 32],
    /// What is offered to the partner since negotiation began.
    offered: Modes,
    /// When the link settles.
    settled_at: u64,
    /// The link has been down since register 1 was last read.
    link_lost: bool,
}

impl Phy {
    /// A PHY that was switched on at `now`.
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

    /// Reset: all registers to their first values, negotiation from the start.
    pub fn reset(&mut self, now: u64) {
        self.control = CONTROL_RESET;
        self.stored = [0; 32];
        *self.slot(PhyRegister::Advertisement) = ability::SELECTOR | ability::SPEEDS;
        *self.slot(PhyRegister::GigabitControl) = gigabit_control::FULL | gigabit_control::HALF;
        self.disturb(now);
    }

    /// Something changed: the link is down and settles anew.
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

    /// The PHY returns what the MAC sends.
    pub fn loopback(&self) -> bool {
        self.control & control::LOOPBACK != 0
    }

    /// What the link runs at; in the loop, what register 0 says.
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
                // Parallel detection knows 10 and 100 Mb/s and takes half duplex.
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

    /// A write to a register. What is advertised counts from the next negotiation on.
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

    /// The mode of register 0; both speed bits together mean nothing.
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

/// The register of a number, if it is one that has a name.
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
mod tests {
    use super::*;

    const NEGOTIATION: u64 = 2_000_000;

    fn phy() -> Phy {
        let part = PhyPart {
            address: 1,
            id: tigon2_chip::phy::ID,
            negotiation_us: 2000,
        };
        Phy::new(part, 0)
    }

    fn partner(words: &str) -> Far {
        Some(words.parse().expect("good words"))
    }

    fn read(phy: &mut Phy, now: u64, far: Far, register: PhyRegister) -> u16 {
        phy.read(now, far, register as u8)
    }

    /// Writes register 0 and lets the link settle; the mode of register 0x19.
    fn settled(phy: &mut Phy, control: u16, far: Far) -> Option<PhyMode> {
        phy.write(0, 0, control);
        PhyMode::from_summary(read(phy, NEGOTIATION, far, PhyRegister::Summary))
    }

    /// Reference 11: registers 2 and 3 read 0x0020, 0x604x (C).
    #[test]
    fn the_identifier_is_the_one_that_firmware_knows() {
        let mut phy = phy();
        assert_eq!(phy.read(0, None, 2), 0x0020);
        assert_eq!(phy.read(0, None, 3) & 0xFFF0, 0x6040);
    }

    /// Reference 11: reset, advertisement, 0x200 in register 9, 0x1200; after negotiation
    /// 0x19 has the result and status bit 2 the link (C).
    #[test]
    fn gigabit_is_negotiated_as_the_vendor_does() {
        let mut phy = phy();
        let far = Some(Partner::default());
        phy.write(0, 0, 0x8000);
        assert_eq!(phy.read(0, far, 0) & 0x8000, 0, "reset clears itself");
        phy.write(0, 4, 0x05E1);
        phy.write(0, 9, 0x0200);
        phy.write(1_000, 0, 0x1200);
        assert_eq!(phy.read(1_000, far, 0), 0x1000, "the restart clears itself");
        assert_eq!(
            phy.read(1_000, far, 1) & (status::LINK | status::NEGOTIATED),
            0
        );
        assert_eq!(phy.read(1_000, far, 0x19), 0);
        let later = 1_000 + NEGOTIATION;
        assert_eq!(phy.read(later - 1, far, 0x19), 0);
        assert_eq!(phy.read(later, far, 0x19) & summary::MODE_MASK, 0x0700);
        phy.read(later, far, 1);
        assert_eq!(phy.read(later, far, 1), 0x792D);
        assert_eq!(
            phy.read(later, far, 5),
            0x45E1,
            "all speeds, pause, acknowledged"
        );
        assert_eq!(phy.read(later, far, 10), 0x3C00);
        assert_eq!(phy.read(later, far, 6), 3);
    }

    /// Reference 11: the codes of register 0x19 (C), by the best of what both offer.
    #[test]
    fn the_result_is_the_best_of_both() {
        for (theirs, offered, gigabit, expected) in [
            ("1000-full 100-full", 0x1E1, 0x300, Some(PhyMode::Full1000)),
            ("1000-half 100-full", 0x1E1, 0x300, Some(PhyMode::Half1000)),
            ("1000-full 100-full", 0x1E1, 0x000, Some(PhyMode::Full100)),
            ("100-half 10-full", 0x1E1, 0x300, Some(PhyMode::Half100)),
            ("100-half 10-full", 0x061, 0x300, Some(PhyMode::Full10)),
            ("10-half", 0x1E1, 0x300, Some(PhyMode::Half10)),
            ("1000-full", 0x1E1, 0x000, None),
        ] {
            let mut phy = phy();
            phy.write(0, 4, offered);
            phy.write(0, 9, gigabit);
            assert_eq!(
                settled(&mut phy, 0x1200, partner(theirs)),
                expected,
                "{theirs}"
            );
        }
    }

    #[test]
    fn sides_that_do_not_negotiate_meet_by_speed() {
        for (control, theirs, expected) in [
            // Parallel detection: half duplex, never gigabit.
            (0x1200, "100-full silent", Some(PhyMode::Half100)),
            (0x1200, "10-half silent", Some(PhyMode::Half10)),
            (0x1200, "1000-full silent", None),
            // Forced against a partner that negotiates.
            (0x2100, "1000-full 100-half pause", Some(PhyMode::Full100)),
            (0x0000, "10-full 100-half", Some(PhyMode::Half10)),
            (0x0140, "1000-full 100-half", None),
            (0x2100, "10-full", None),
            // Both forced.
            (0x0140, "1000-full silent", Some(PhyMode::Full1000)),
            (0x2100, "1000-full 100-full silent", None),
            (0x2140, "1000-full silent", None),
        ] {
            let mut phy = phy();
            let found = settled(&mut phy, control, partner(theirs));
            assert_eq!(found, expected, "{control:#06x} with {theirs}");
            let link = phy.read(NEGOTIATION, partner(theirs), 0x19) & summary::LINK != 0;
            assert_eq!(link, expected.is_some());
        }
    }

    /// IEEE 802.3 22.2.4.2.13: link status stays 0 until read once after a loss.
    #[test]
    fn a_lost_link_is_seen_once() {
        let mut phy = phy();
        let far = Some(Partner::default());
        let link = |phy: &mut Phy, now, far| phy.read(now, far, 1) & status::LINK != 0;
        assert!(!link(&mut phy, NEGOTIATION, far), "it was down before");
        assert!(link(&mut phy, NEGOTIATION, far));
        phy.disturb(NEGOTIATION);
        assert!(!link(&mut phy, 3 * NEGOTIATION, far), "out and in again");
        assert!(link(&mut phy, 3 * NEGOTIATION, far));
        phy.disturb(3 * NEGOTIATION);
        assert!(!link(&mut phy, 9 * NEGOTIATION, None));
        assert_eq!(phy.read(9 * NEGOTIATION, None, 0x19), 0);
        assert_eq!(phy.read(9 * NEGOTIATION, None, 5), 0);
    }

    #[test]
    fn power_down_isolation_and_the_loop() {
        let far = Some(Partner::default());
        let mut phy = phy();
        assert_eq!(settled(&mut phy, 0x1A00, far), None, "power down");
        assert_eq!(settled(&mut phy, 0x1600, far), None, "isolated");
        assert_eq!(settled(&mut phy, 0x1200, far), Some(PhyMode::Full1000));
        assert!(!phy.loopback());
        assert_eq!(settled(&mut phy, 0x4140, None), Some(PhyMode::Full1000));
        assert!(phy.loopback());
    }

    #[test]
    fn other_registers_store_and_read_only_ones_do_not() {
        let mut phy = phy();
        for register in 0..=0xFF {
            let before = phy.read(0, None, register);
            phy.write(0, register, 0x2AAA);
            let stores = match register & 31 {
                0 => continue,
                1 | 2 | 3 | 5 | 6 | 10 | 15 | 0x19 => before,
                _ => 0x2AAA,
            };
            assert_eq!(phy.read(0, None, register), stores, "register {register}");
        }
        phy.write(0, 0, 0x8000);
        assert_eq!(
            (phy.read(0, None, 4), phy.read(0, None, 0)),
            (0x01E1, 0x1140)
        );
        assert_eq!(phy.read(0, None, 0x1C), 0);
    }
}
