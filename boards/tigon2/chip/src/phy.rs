//! Registers of the 10/100/1000 copper PHY behind MDIO.
//!
//! Hardware reference, section 11, "Copper boards". Registers 0 to 15 are those of IEEE 802.3
//! clause 22; register 0x19 is the PHY's own and holds the result of negotiation.

/// Registers 2 and 3 of the PHY of the copper AceNIC: 0x0020, 0x6041 (C; the last digit is
/// a revision).
pub const ID: u32 = 0x0020_6041;
/// Bits of [`ID`] that name the PHY; the others are its revision.
pub const ID_MASK: u32 = 0xFFFF_FFF0;

/// A register of the PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PhyRegister {
    /// 0 control (BMCR): [`control`].
    Control = 0,
    /// 1 status (BMSR): [`status`].
    Status = 1,
    /// 2 identifier, upper half.
    IdHigh = 2,
    /// 3 identifier, lower half.
    IdLow = 3,
    /// 4 advertised abilities: [`ability`].
    Advertisement = 4,
    /// 5 the partner's abilities: [`ability`].
    PartnerAbility = 5,
    /// 6 expansion: [`expansion`].
    Expansion = 6,
    /// 9 1000BASE-T control: [`gigabit_control`].
    GigabitControl = 9,
    /// 10 1000BASE-T status: [`gigabit_status`].
    GigabitStatus = 10,
    /// 15 extended status: [`extended_status`].
    ExtendedStatus = 15,
    /// 0x19 result of negotiation: [`summary`].
    Summary = 0x19,
}

/// Register 0, control.
pub mod control {
    /// Bit 15: reset, clears itself.
    pub const RESET: u16 = 0x8000;
    /// Bit 14: loops the MAC's frames back.
    pub const LOOPBACK: u16 = 0x4000;
    /// Bit 13: 100 Mb/s, if negotiation is off.
    pub const SPEED_100: u16 = 0x2000;
    /// Bit 12: negotiate.
    pub const NEGOTIATE: u16 = 0x1000;
    /// Bit 11: power down.
    pub const POWER_DOWN: u16 = 0x0800;
    /// Bit 10: isolate from the MAC's interface.
    pub const ISOLATE: u16 = 0x0400;
    /// Bit 9: restart negotiation, clears itself.
    pub const RESTART: u16 = 0x0200;
    /// Bit 8: full duplex, if negotiation is off.
    pub const FULL_DUPLEX: u16 = 0x0100;
    /// Bit 7: collision test.
    pub const COLLISION_TEST: u16 = 0x0080;
    /// Bit 6: 1000 Mb/s, if negotiation is off.
    pub const SPEED_1000: u16 = 0x0040;
    /// The bits that can be written and are kept.
    pub const STORED: u16 = LOOPBACK
        | SPEED_100
        | NEGOTIATE
        | POWER_DOWN
        | ISOLATE
        | FULL_DUPLEX
        | COLLISION_TEST
        | SPEED_1000;
}

/// Register 1, status.
pub mod status {
    /// Bits 14:11: 100 full and half, 10 full and half are supported.
    pub const ABILITIES: u16 = 0x7800;
    /// Bit 8: register 15 exists.
    pub const EXTENDED: u16 = 0x0100;
    /// Bit 5: negotiation is complete.
    pub const NEGOTIATED: u16 = 0x0020;
    /// Bit 3: the PHY can negotiate.
    pub const CAN_NEGOTIATE: u16 = 0x0008;
    /// Bit 2: link; after a loss it reads 0 once, even if the link is up again.
    pub const LINK: u16 = 0x0004;
    /// Bit 0: registers after 1 exist.
    pub const EXTENDED_REGISTERS: u16 = 0x0001;
}

/// Registers 4 and 5, abilities below 1000 Mb/s and pause.
pub mod ability {
    /// Bits 4:0: the selector of IEEE 802.3.
    pub const SELECTOR: u16 = 0x0001;
    /// Bit 5: 10BASE-T.
    pub const HALF_10: u16 = 0x0020;
    /// Bit 6: 10BASE-T full duplex.
    pub const FULL_10: u16 = 0x0040;
    /// Bit 7: 100BASE-TX.
    pub const HALF_100: u16 = 0x0080;
    /// Bit 8: 100BASE-TX full duplex.
    pub const FULL_100: u16 = 0x0100;
    /// Bit 10: symmetric pause.
    pub const PAUSE: u16 = 0x0400;
    /// Bit 11: asymmetric pause.
    pub const ASYMMETRIC_PAUSE: u16 = 0x0800;
    /// Bit 14: acknowledge.
    pub const ACKNOWLEDGE: u16 = 0x4000;
    /// All speeds.
    pub const SPEEDS: u16 = HALF_10 | FULL_10 | HALF_100 | FULL_100;
}

/// Register 6, expansion.
pub mod expansion {
    /// Bit 1: a page has been received.
    pub const PAGE_RECEIVED: u16 = 0x0002;
    /// Bit 0: the partner negotiates.
    pub const PARTNER_NEGOTIATES: u16 = 0x0001;
}

/// Register 9, 1000BASE-T control.
pub mod gigabit_control {
    /// Bit 9: advertise 1000BASE-T full duplex (C).
    pub const FULL: u16 = 0x0200;
    /// Bit 8: advertise 1000BASE-T half duplex.
    pub const HALF: u16 = 0x0100;
}

/// Register 10, 1000BASE-T status.
pub mod gigabit_status {
    /// Bit 13: the local receiver is ok.
    pub const LOCAL_OK: u16 = 0x2000;
    /// Bit 12: the partner's receiver is ok.
    pub const REMOTE_OK: u16 = 0x1000;
    /// Bit 11: the partner supports full duplex.
    pub const FULL: u16 = 0x0800;
    /// Bit 10: the partner supports half duplex.
    pub const HALF: u16 = 0x0400;
}

/// Register 15, extended status.
pub mod extended_status {
    /// Bit 13: 1000BASE-T full duplex is supported.
    pub const FULL: u16 = 0x2000;
    /// Bit 12: 1000BASE-T half duplex is supported.
    pub const HALF: u16 = 0x1000;
}

/// Register 0x19: bits 10:8 are a [`PhyMode`] (C).
pub mod summary {
    /// Bit 15: negotiation is complete (I).
    pub const NEGOTIATED: u16 = 0x8000;
    /// Lowest bit of the mode.
    pub const MODE_SHIFT: u32 = 8;
    /// Bits 10:8: the mode.
    pub const MODE_MASK: u16 = 0x0700;
    /// Bit 2: link (I).
    pub const LINK: u16 = 0x0004;
}

/// The mode of a copper link; the value is bits 10:8 of register 0x19 (11, C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PhyMode {
    /// 1: 10BASE-T half duplex.
    Half10 = 1,
    /// 2: 10BASE-T full duplex.
    Full10 = 2,
    /// 3: 100BASE-TX half duplex.
    Half100 = 3,
    /// 5: 100BASE-TX full duplex.
    Full100 = 5,
    /// 6: 1000BASE-T half duplex.
    Half1000 = 6,
    /// 7: 1000BASE-T full duplex.
    Full1000 = 7,
}

impl PhyMode {
    /// All of them, the best first: the order in which negotiation prefers them.
    pub const ALL: [PhyMode; 6] = [
        PhyMode::Full1000,
        PhyMode::Half1000,
        PhyMode::Full100,
        PhyMode::Half100,
        PhyMode::Full10,
        PhyMode::Half10,
    ];

    /// The mode in a value of register 0x19; `None` while there is none.
    pub const fn from_summary(value: u16) -> Option<PhyMode> {
        match (value & summary::MODE_MASK) >> summary::MODE_SHIFT {
            1 => Some(PhyMode::Half10),
            2 => Some(PhyMode::Full10),
            3 => Some(PhyMode::Half100),
            5 => Some(PhyMode::Full100),
            6 => Some(PhyMode::Half1000),
            7 => Some(PhyMode::Full1000),
            _ => None,
        }
    }

    /// Megabits per second.
    pub const fn megabits(self) -> u32 {
        match self {
            PhyMode::Half10 | PhyMode::Full10 => 10,
            PhyMode::Half100 | PhyMode::Full100 => 100,
            PhyMode::Half1000 | PhyMode::Full1000 => 1000,
        }
    }

    /// Whether both sides may send at once.
    pub const fn full_duplex(self) -> bool {
        matches!(self, PhyMode::Full10 | PhyMode::Full100 | PhyMode::Full1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 11: bits 10:8 of register 0x19: 7 = 1000 full, 6 = 1000 half, 5 = 100 full,
    /// 3 = 100 half, 2 = 10 full, 1 = 10 half (C).
    #[test]
    fn the_summary_names_the_mode() {
        let modes = [0, 0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x8700]
            .map(|value| PhyMode::from_summary(value).map(|m| (m.megabits(), m.full_duplex())));
        let expected = [
            None,
            Some((10, false)),
            Some((10, true)),
            Some((100, false)),
            None,
            Some((100, true)),
            Some((1000, false)),
            Some((1000, true)),
        ];
        assert_eq!(modes, expected);
        assert!(
            PhyMode::ALL.is_sorted_by_key(|mode| {
                std::cmp::Reverse((mode.megabits(), mode.full_duplex()))
            })
        );
    }

    /// Reference 11: the vendor firmware's writes: 0x8000, 0x200 in register 9, 0x1200 (C).
    #[test]
    fn the_values_of_the_vendor_have_their_names() {
        assert_eq!(control::NEGOTIATE | control::RESTART, 0x1200);
        assert_eq!(control::RESET, 0x8000);
        assert_eq!(gigabit_control::FULL, 0x200);
        assert_eq!(ID & ID_MASK, 0x0020_6040);
    }
}
