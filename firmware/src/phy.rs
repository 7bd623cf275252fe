//! Finds out which SERDES the board has and lets it run.
//!
//! Hardware reference, section 11, step 1: in loopback the receiver must see the code
//! words that the transmitter sends; first through the chip's own SERDES, then through an
//! external one. No copper PHY is looked for.

use crate::Firmware;
use crate::log::log_warn;
use embedded_hal::delay::DelayNs;
use tigon2_chip::Register;
use tigon2_chip::bits::{MacRxState, MacTxState, MiscConfig, MiscLocalControl, mac_interface};
use tigon2_chip::mac::phy_interface;
use tigon2_hal::Bus;
use tigon2_hal::timer::Delay;

/// Tries of the loopback test through the chip's own SERDES.
const ON_CHIP_TRIES: u32 = 20;
/// Tries through an external one.
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

/// Chooses the SERDES and leaves it running.
#[inline(never)]
pub fn bring_up<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    bus.write(Register::PhyInterface, phy_interface::RESET);
    Delay(bus).delay_us(500);
    bus.write(Register::PhyInterface, phy_interface::SERDES_RESET);
    Delay(bus).delay_us(500);
    bus.write(Register::MacTxState, MacTxState::FIBRE);
    bus.write(
        Register::MacRxState,
        MacRxState::new().with_reset(true).into_bits(),
    );
    Delay(bus).delay_ms(10);
    bus.write(Register::PhyInterface, phy_interface::SERDES_LOOPBACK);
    let interface = if loops_back(bus, ON_CHIP_TRIES) {
        bus.write(Register::PhyInterface, phy_interface::SERDES_RUN);
        mac_interface::ON_CHIP_SERDES
    } else {
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
        mac_interface::EXTERNAL_SERDES
    };
    let field = MiscConfig::new().with_mac_interface(0xF).into_bits();
    let value = MiscConfig::new().with_mac_interface(interface).into_bits();
    bus.modify(Register::MiscConfig, field, value);
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
