//! The link on copper: a PHY negotiates, and the firmware polls it over the management bus.
//!
//! Hardware reference, section 11, "Copper boards": reset, advertise, then negotiate, gigabit
//! first; the MAC's interface follows the result. Reading one PHY register takes a quarter of a
//! millisecond, so the firmware polls the PHY at intervals. It notices a lost signal at once.

use super::phy::{self, Medium, PhyKind};
use super::requested::{self, Pause, PauseAbility};
use super::{Link, Phase, restart};
use crate::io::IoA;
use crate::record::log::log_warn;
use tigon2_chip::mdio::PHY_ADDRESS;
use tigon2_chip::phy::{PhyMode, PhyRegister, ability, control, gigabit_control, status};
use tigon2_hal::events::Dispatch;
use tigon2_hal::mdio;

/// Milliseconds between two polls of a PHY that negotiates, a power of two.
const LOOK: u32 = 16;
/// Milliseconds between two polls of a link that is up, a power of two.
const WATCH: u32 = 128;
/// Milliseconds within which the PHY must finish its reset.
const RESET: u32 = 500;

/// Bits of registers 4 and 5, the best mode first. They are words because the chip's CPUs cannot
/// load unaligned data.
const MODES: &[(PhyMode, u32)] = &[
    (PhyMode::Full100, ability::FULL_100 as u32),
    (PhyMode::Half100, ability::HALF_100 as u32),
    (PhyMode::Full10, ability::FULL_10 as u32),
    (PhyMode::Half10, ability::HALF_10 as u32),
];

fn read<B: Dispatch>(bus: &mut B, register: PhyRegister) -> u16 {
    mdio::read(bus, PHY_ADDRESS, register as u8)
}

fn write<B: Dispatch>(bus: &mut B, register: PhyRegister, value: u16) {
    mdio::write(bus, PHY_ADDRESS, register as u8, value);
}

impl Link {
    /// Whether the PHY may run at gigabit and the host wants that.
    fn gigabit_wanted(&self) -> bool {
        self.medium == Medium::Copper(PhyKind::Gigabit) && requested::gigabit(self.gigabit)
    }

    /// Whether the PHY negotiates the requested link, or has it forced.
    fn negotiates(&self) -> bool {
        self.gigabit_wanted() && self.gigabit.autonegotiate()
            || requested::fast(self.fast) && self.fast.autonegotiate()
    }

    /// Whether the host wants a mode.
    fn wants(&self, mode: PhyMode) -> bool {
        let word = if mode.megabits() == 1000 {
            self.gigabit
        } else {
            self.fast
        };
        let speed = match mode.megabits() {
            1000 => self.gigabit_wanted(),
            100 => requested::fast(word) && (word.speed_100() || !word.speed_10()),
            _ => requested::fast(word) && (word.speed_10() || !word.speed_100()),
        };
        let duplex = if mode.full_duplex() {
            requested::full_duplex(word)
        } else {
            requested::half_duplex(word)
        };
        speed && duplex
    }

    /// The pause frames that the link words request.
    fn copper_pause(&self) -> Pause {
        let word = if requested::fast(self.fast) {
            self.fast
        } else {
            self.gigabit
        };
        if word.negotiate_flow_control() {
            Pause::wanted(word)
        } else {
            Pause::NONE
        }
    }

    /// Register 4.
    fn advertisement(&self) -> u16 {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let pause = self.copper_pause().ability();
        let mut word = ability::SELECTOR
            | flag(pause.symmetric, ability::PAUSE)
            | flag(pause.asymmetric, ability::ASYMMETRIC_PAUSE);
        for (mode, bit) in MODES {
            word |= flag(self.wants(*mode), *bit as u16);
        }
        word
    }

    /// Register 9.
    fn gigabit_advertisement(&self) -> u16 {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        flag(self.wants(PhyMode::Full1000), gigabit_control::FULL)
            | flag(self.wants(PhyMode::Half1000), gigabit_control::HALF)
    }

    /// The mode to force: the best mode of the link that the host prefers, or of either link.
    fn forced(&self) -> PhyMode {
        let fast_first = self.fast.enable() && self.fast.preferred() && !self.gigabit.preferred();
        let best = |gigabit: bool| {
            let fits = |mode: &&PhyMode| (mode.megabits() == 1000) == gigabit && self.wants(**mode);
            PhyMode::ALL.iter().find(fits).copied()
        };
        best(!fast_first)
            .or(best(fast_first))
            .unwrap_or(PhyMode::Half10)
    }

    /// Register 0 of a forced link.
    fn forced_control(&self) -> u16 {
        let speed = match self.mode.megabits() {
            1000 => control::SPEED_1000,
            100 => control::SPEED_100,
            _ => 0,
        };
        let duplex = if self.mode.full_duplex() {
            control::FULL_DUPLEX
        } else {
            0
        };
        let loopback = if self.loopback { control::LOOPBACK } else { 0 };
        speed | duplex | loopback
    }
}

/// The MAC has been in reset long enough; resets the PHY.
pub fn begin<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    write(&mut io.bus, PhyRegister::Control, control::RESET);
    link.enter(Phase::PhyReset);
}

/// Waits for the end of the PHY's reset, then starts negotiation or forces the link.
pub fn after_reset<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    if read(bus, PhyRegister::Control) & control::RESET != 0 {
        if link.time >= RESET {
            log_warn!("the PHY stays in reset");
            restart(link, io);
        }
        return;
    }
    if link.negotiates() && !link.loopback {
        write(bus, PhyRegister::Advertisement, link.advertisement());
        if link.medium == Medium::Copper(PhyKind::Gigabit) {
            let word = link.gigabit_advertisement();
            write(bus, PhyRegister::GigabitControl, word);
        }
        let restart = control::NEGOTIATE | control::RESTART;
        write(bus, PhyRegister::Control, restart);
        return link.enter(Phase::Negotiate);
    }
    link.mode = link.forced();
    write(bus, PhyRegister::Control, link.forced_control());
    if link.loopback {
        settle(link, io);
    } else {
        link.enter(Phase::Negotiate);
    }
}

/// Waits until the PHY reports a link.
pub fn negotiate<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    if link.time & (LOOK - 1) != 0 {
        return;
    }
    let state = read(bus, PhyRegister::Status);
    if state & status::LINK == 0 {
        return;
    }
    if !link.negotiates() {
        link.pause = Pause::wanted(link.requested());
        return settle(link, io);
    }
    if state & status::NEGOTIATED == 0 {
        return;
    }
    let word = read(bus, PhyRegister::PartnerAbility);
    let mode = if link.medium == Medium::Copper(PhyKind::Gigabit) {
        PhyMode::from_summary(read(bus, PhyRegister::Summary))
    } else {
        let common = u32::from(word & link.advertisement());
        let best = MODES.iter().find(|(_, bit)| common & bit != 0);
        best.map(|(mode, _)| *mode)
    };
    let Some(mode) = mode else {
        return;
    };
    link.mode = mode;
    link.partner = word.into();
    let partner = PauseAbility {
        symmetric: word & ability::PAUSE != 0,
        asymmetric: word & ability::ASYMMETRIC_PAUSE != 0,
    };
    link.pause = if mode.full_duplex() {
        Pause::agreed(link.requested(), partner)
    } else {
        Pause::NONE
    };
    settle(link, io);
}

/// Sets the MAC's interface to the speed: `R[50]`, then `R[200]` and `R[220]` (11, C).
fn settle<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    phy::set_copper_interface(bus, link.mode.megabits() == 1000);
    link.enter(Phase::Settle);
}

/// Whether the PHY has lost its link. The PHY latches a loss until the next read.
pub fn lost<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) -> bool {
    let bus = &mut io.bus;
    link.time & (WATCH - 1) == 0 && read(bus, PhyRegister::Status) & status::LINK == 0
}
