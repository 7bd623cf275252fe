//! The link on fibre: the firmware negotiates with 1000BASE-X code words.
//!
//! Hardware reference, section 11, steps 2 and 3. Words are in the byte order of `R[204]`
//! and `R[224]`.

use super::requested::{self, Pause, PauseAbility};
use super::{Link, Phase, receive_state, restart};
use crate::io::IoA;
use tigon2_chip::Register;
use tigon2_chip::bits::MacRxState;
use tigon2_chip::mac::config_word;
use tigon2_chip::phy::PhyMode;
use tigon2_hal::events::Dispatch;

/// Milliseconds without code words after which the partner counts as not negotiating.
const PATIENCE: u32 = 500;

impl Link {
    /// The word to advertise.
    fn code_word(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let pause = if self.gigabit.negotiate_flow_control() {
            Pause::wanted(self.gigabit).ability()
        } else {
            Pause::NONE.ability()
        };
        flag(
            requested::full_duplex(self.gigabit),
            config_word::FULL_DUPLEX,
        ) | flag(
            requested::half_duplex(self.gigabit),
            config_word::HALF_DUPLEX,
        ) | flag(pause.symmetric, config_word::PAUSE)
            | flag(pause.asymmetric, config_word::ASYMMETRIC_PAUSE)
    }

    /// Forces the requested link without a partner's abilities.
    fn force(&mut self) {
        self.mode = if requested::full_duplex(self.gigabit) {
            PhyMode::Full1000
        } else {
            PhyMode::Half1000
        };
        self.enter(Phase::Settle);
    }
}

/// The MAC has been in reset long enough.
pub fn begin<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    io.set_transmitter(link.transmit_state(false));
    let bus = &mut io.bus;
    bus.write(Register::MacRxState, link.receive_state(&io.filter, true));
    if link.loopback {
        link.force();
    } else {
        link.enter(Phase::Sense);
    }
}

/// Tests for a link partner: with a signal, disabling the receiver raises an attention (10.4, C!).
pub fn sense<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    bus.write(
        Register::MacRxState,
        link.receive_state(&io.filter, true) | MacRxState::ATTENTION,
    );
    bus.write(Register::MacRxState, link.receive_state(&io.filter, false));
    let state = receive_state(bus);
    let signal = state.link_attention() || state.sync_attention();
    if !signal {
        link.polarity = !link.polarity;
    }
    bus.write(
        Register::MacRxState,
        link.receive_state(&io.filter, true) | MacRxState::ATTENTION,
    );
    if !signal {
        return link.enter(Phase::Sense);
    }
    if link.gigabit.autonegotiate() {
        bus.write(Register::TxConfigWord, 0);
        link.enter(Phase::Break);
    } else {
        link.pause = Pause::wanted(link.gigabit);
        link.force();
    }
}

/// The link has been broken long enough.
pub fn advertise<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    bus.write(Register::TxConfigWord, link.code_word());
    link.partner = 0;
    link.enter(Phase::Ability);
}

/// Waits until the partner sends the same abilities twice.
pub fn ability<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    let word = bus.read(Register::RxConfigWord);
    if receive_state(bus).code_words() && word != 0 {
        if word == link.partner {
            let mine = link.code_word();
            bus.write(Register::TxConfigWord, mine | config_word::ACKNOWLEDGE);
            return link.enter(Phase::Acknowledge);
        }
        link.partner = word;
    } else {
        link.partner = 0;
    }
    if link.time >= PATIENCE {
        // The partner does not negotiate: gigabit, and flow control only if it is forced.
        if !link.gigabit.negotiate_flow_control() {
            link.pause = Pause::wanted(link.gigabit);
        }
        link.force();
    }
}

/// Waits for the partner's acknowledge with unchanged abilities.
pub fn acknowledge<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    let word = bus.read(Register::RxConfigWord);
    let same = (word ^ link.partner) & !config_word::ACKNOWLEDGE == 0;
    let acknowledged = word & config_word::ACKNOWLEDGE != 0;
    let common = word & link.code_word();
    let duplex = common & (config_word::FULL_DUPLEX | config_word::HALF_DUPLEX);
    if same && acknowledged && duplex != 0 {
        link.partner = word;
        link.mode = if common & config_word::FULL_DUPLEX != 0 {
            PhyMode::Full1000
        } else {
            PhyMode::Half1000
        };
        let partner = PauseAbility {
            symmetric: word & config_word::PAUSE != 0,
            asymmetric: word & config_word::ASYMMETRIC_PAUSE != 0,
        };
        link.pause = Pause::agreed(link.gigabit, partner);
        link.enter(Phase::Settle);
    } else if !same || link.time >= PATIENCE {
        restart(link, io);
    }
}
