//! Detects the board's medium and brings it up.
//!
//! Hardware reference, section 11, step 1. A copper PHY answers on the management bus with an
//! identifier. If none does, the board has fibre: in loopback the receiver must see the code words
//! that the transmitter sends, first through the chip's own SERDES, then through an external one.

use crate::record::log::{log_info, log_warn};
use embedded_hal::delay::DelayNs;
use tigon2_chip::Register;
use tigon2_chip::bits::{MacRxState, MacTxState, MiscConfig, MiscLocalControl, mac_interface};
use tigon2_chip::mac::phy_interface;
use tigon2_chip::mdio::PHY_ADDRESS;
use tigon2_chip::phy::PhyRegister;
use tigon2_hal::timer::Delay;
use tigon2_hal::{Bus, mdio};

/// Attempts of the loopback test through the chip's own SERDES.
const ON_CHIP_TRIES: u32 = 20;
/// Attempts through an external SERDES.
const EXTERNAL_TRIES: u32 = 100;

/// `R[44]`'s pins towards an external SERDES: normal operation.
const PINS: MiscLocalControl = MiscLocalControl::new()
    .with_phy_reset_n(true)
    .with_pin1_drive(true)
    .with_pin1(true);
/// The same in loopback.
const PINS_LOOPBACK: MiscLocalControl = PINS.with_pin0_drive(true).with_pin0(true);
/// All bits of `R[44]` that are pins, and the interrupt strobe, which is never written back.
const PINS_MASK: u32 = PINS_LOOPBACK.with_raise_interrupt(true).into_bits();

/// The medium behind the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Fibre, through the chip's own SERDES.
    OnChipSerdes,
    /// Fibre, through an external SERDES.
    ExternalSerdes,
    /// Copper, through a PHY.
    Copper(PhyKind),
}

/// The speeds of a PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhyKind {
    /// 10, 100 and 1000 Mb/s.
    Gigabit,
    /// 10 and 100 Mb/s.
    Fast,
}

impl PhyKind {
    /// The PHY with these identifier registers, if vendor firmware knows it (11, C). That the other
    /// PHYs of the list run at 10 and 100 Mb/s is inferred.
    pub const fn identify(high: u16, low: u16) -> Option<PhyKind> {
        match (high, low & 0xFFF0) {
            (0x0020, 0x6040) => Some(PhyKind::Gigabit),
            (0x7810, 0x0000) | (0x0015, 0xF420 | 0xF430) | (0x7830, 0x0010) => Some(PhyKind::Fast),
            _ => None,
        }
    }
}

/// Detects the board's medium and leaves it running.
#[inline(never)]
pub fn bring_up<B: Bus>(bus: &mut B) -> Medium {
    bus.modify(Register::MiscLocalControl, PINS_MASK, PINS.into_bits());
    bus.write(Register::PhyInterface, phy_interface::RESET);
    Delay(bus).delay_us(500);
    let high = mdio::read(bus, PHY_ADDRESS, PhyRegister::IdHigh as u8);
    let low = mdio::read(bus, PHY_ADDRESS, PhyRegister::IdLow as u8);
    let medium = match PhyKind::identify(high, low) {
        Some(kind) => {
            bus.write(Register::PhyInterface, phy_interface::RESET_END);
            Delay(bus).delay_us(500);
            bus.write(Register::PhyInterface, phy_interface::COPPER);
            set_copper_interface(bus, kind == PhyKind::Gigabit);
            Medium::Copper(kind)
        }
        None => serdes(bus),
    };
    log_info!("PHY {=u16:#x} {=u16:#x}", high, low);
    medium
}

/// Which SERDES the board has.
fn serdes<B: Bus>(bus: &mut B) -> Medium {
    bus.write(Register::PhyInterface, phy_interface::SERDES_RESET);
    Delay(bus).delay_us(500);
    bus.write(Register::MacTxState, MacTxState::FIBRE);
    bus.write(
        Register::MacRxState,
        MacRxState::new().with_reset(true).into_bits(),
    );
    Delay(bus).delay_ms(10);
    bus.write(Register::PhyInterface, phy_interface::SERDES_LOOPBACK);
    if loops_back(bus, ON_CHIP_TRIES) {
        bus.write(Register::PhyInterface, phy_interface::SERDES_RUN);
        set_interface(bus, mac_interface::ON_CHIP_SERDES);
        return Medium::OnChipSerdes;
    }
    bus.write(Register::PhyInterface, phy_interface::RESET);
    bus.modify(
        Register::MiscLocalControl,
        PINS_MASK,
        PINS_LOOPBACK.into_bits(),
    );
    if !loops_back(bus, EXTERNAL_TRIES) {
        log_warn!("no SERDES loops back");
    }
    bus.modify(Register::MiscLocalControl, PINS_MASK, PINS.into_bits());
    set_interface(bus, mac_interface::EXTERNAL_SERDES);
    Medium::ExternalSerdes
}

/// `R[50]` bits 27:24.
fn set_interface<B: Bus>(bus: &mut B, interface: u8) {
    let field = MiscConfig::new().with_mac_interface(0xF).into_bits();
    let value = MiscConfig::new().with_mac_interface(interface).into_bits();
    bus.modify(Register::MiscConfig, field, value);
}

/// Selects GMII or MII, by the speed of a copper link (11, C).
pub fn set_copper_interface<B: Bus>(bus: &mut B, gigabit: bool) {
    let interface = if gigabit {
        mac_interface::GMII
    } else {
        mac_interface::MII
    };
    set_interface(bus, interface);
}

/// Closes or opens the loopback of a SERDES. A copper PHY has its own loopback, see
/// [`link`](crate::control::link).
pub fn set_loopback<B: Bus>(bus: &mut B, medium: Medium, closed: bool) {
    match medium {
        Medium::OnChipSerdes => bus.write(
            Register::PhyInterface,
            if closed {
                phy_interface::SERDES_LOOPBACK
            } else {
                phy_interface::SERDES_RUN
            },
        ),
        Medium::ExternalSerdes => {
            let pins = if closed { PINS_LOOPBACK } else { PINS };
            bus.modify(Register::MiscLocalControl, PINS_MASK, pins.into_bits());
        }
        Medium::Copper(_) => {}
    }
}

/// Whether each of the 16 bits of a code word comes back.
fn loops_back<B: Bus>(bus: &mut B, tries: u32) -> bool {
    let enable = MacRxState::new().with_enable(true).into_bits();
    bus.modify(Register::MacRxState, enable | MacRxState::ATTENTION, enable);
    let mut passed = false;
    for _ in 0..tries {
        passed = (0..16).all(|bit| {
            bus.write(Register::TxConfigWord, 1 << bit);
            Delay(&mut *bus).delay_us(1);
            bus.read(Register::RxConfigWord) == 1 << bit
        });
        if passed {
            break;
        }
    }
    bus.write(Register::TxConfigWord, 0);
    bus.write(Register::RxConfigWord, 0);
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 11: the identifiers that firmware recognises (C).
    #[test]
    fn phys_are_known_by_their_identifiers() {
        for revision in 0..16 {
            let gigabit = PhyKind::identify(0x0020, 0x6040 | revision);
            assert_eq!(gigabit, Some(PhyKind::Gigabit));
            for (high, low) in [(0x7810, 0), (0x15, 0xF420), (0x15, 0xF430), (0x7830, 0x10)] {
                let fast = PhyKind::identify(high, low | revision);
                assert_eq!(fast, Some(PhyKind::Fast));
            }
        }
        for (high, low) in [(0, 0), (0xFFFF, 0xFFFF), (0x0020, 0x6050)] {
            assert_eq!(PhyKind::identify(high, low), None);
        }
    }
}
