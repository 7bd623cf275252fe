//! The link: from reset to up, and down again.
//!
//! Hardware reference, section 11, fibre. Housekeeping turns the machine once a
//! millisecond:
//!
//! ```text
//! Off --enabled--> Reset --10 ms--> Sense --signal--> Break --10 ms--> Ability
//!                   ^                 |  not negotiated                   | the same twice
//!                   |                 v                                   v
//!                   '--- lost --- Up <--- Idle <--10 ms-- Settle <--- Acknowledge
//! ```

use crate::Firmware;
use crate::filter::Filter;
use crate::log::log_info;
use crate::statistics::{self, count};
use crate::{fatal, host_events};
use embedded_hal::digital::OutputPin;
use host_interface::LinkWord;
use host_interface::event::{self, EventCode};
use host_interface::extension::FatalCode;
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::config_word;
use tigon2_hal::Bus;
use tigon2_hal::led::{Led, Which};

/// The speed of a link that is up.
pub const BITS_PER_SECOND: u32 = 1_000_000_000;
/// The same in millions.
pub const MEGABITS_PER_SECOND: u32 = 1000;

/// Milliseconds that the steps of the reference last.
const STEP: u32 = 10;
/// Milliseconds without code words after which the partner is taken not to negotiate.
const PATIENCE: u32 = 500;

/// Where the machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The host does not want a link.
    Off,
    /// The MAC was reset.
    Reset,
    /// Is there a signal?
    Sense,
    /// Sending 0: break link.
    Break,
    /// Sending abilities, waiting for the partner's.
    Ability,
    /// Sending the acknowledge, waiting for the partner's.
    Acknowledge,
    /// Agreed; a while of the same.
    Settle,
    /// Sending idle; the partner must do so, too.
    Idle,
    /// Up.
    Up,
}

/// State of the link.
#[derive(Debug)]
pub struct Link {
    phase: Phase,
    /// Milliseconds in this phase.
    time: u32,
    /// Whether frames pass.
    up: bool,
    /// What the host wants.
    wish: LinkWord,
    /// The partner's last code word.
    partner: u32,
    /// Pause frames are obeyed.
    obey_pause: bool,
    /// Pause frames are sent.
    send_pause: bool,
    /// The signal's polarity; it is turned while there is no sync (10.4, I).
    polarity: bool,
    /// The address filter: its promiscuous bit shares a register with the link.
    pub(crate) filter: Filter,
}

impl Link {
    /// No link.
    pub const fn new() -> Link {
        Link {
            phase: Phase::Off,
            time: 0,
            up: false,
            wish: LinkWord::new(),
            partner: 0,
            obey_pause: false,
            send_pause: false,
            polarity: true,
            filter: Filter::new(),
        }
    }

    /// Whether frames pass.
    #[inline(always)]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.time = 0;
    }

    /// `R[220]` of this state; attentions are left as they are.
    fn receive_state(&self, enable: bool) -> u32 {
        self.filter
            .state()
            .with_enable(enable)
            .with_threshold(MacRxState::THRESHOLD_REVISION_6)
            .with_polarity(self.polarity)
            .with_obey_pause(self.obey_pause)
            .into_bits()
    }

    /// `R[200]` of this state.
    fn transmit_state(&self, enable: bool) -> u32 {
        MacTxState::from_bits(MacTxState::FIBRE)
            .with_enable(enable)
            .with_send_pause(self.send_pause)
            .into_bits()
    }

    /// The abilities to advertise (10.4, `R[204]`).
    fn abilities(&self) -> u32 {
        let pause = self.wish.receive_flow_control() || self.wish.transmit_flow_control();
        let negotiated = self.wish.negotiate_flow_control() && pause;
        config_word::FULL_DUPLEX | if negotiated { config_word::PAUSE } else { 0 }
    }
}

impl Default for Link {
    fn default() -> Link {
        Link::new()
    }
}

/// Begins anew with what the host wants now.
pub fn restart<B: Bus>(firmware: &mut Firmware<B>) {
    down(firmware);
    let wish = LinkWord::from_bits(firmware.bus.load(Gencom::GigabitLink.nic_address()));
    firmware.link.wish = wish;
    firmware.link.obey_pause = false;
    firmware.link.send_pause = false;
    count!(firmware, mac_resets);
    let bus = &mut firmware.bus;
    bus.write(
        Register::MacTxState,
        MacTxState::new().with_reset(true).into_bits(),
    );
    bus.write(
        Register::MacRxState,
        MacRxState::new().with_reset(true).into_bits(),
    );
    bus.write(Register::TxConfigWord, 0);
    bus.write(Register::RxConfigWord, 0);
    firmware.link.enter(if wish.enable() {
        Phase::Reset
    } else {
        Phase::Off
    });
}

/// One millisecond has passed.
#[inline(never)]
pub fn tick<B: Bus>(firmware: &mut Firmware<B>) {
    firmware.link.time += 1;
    let long_enough = firmware.link.time >= STEP;
    match firmware.link.phase {
        Phase::Off => {
            let wish = firmware.bus.load(Gencom::GigabitLink.nic_address());
            if LinkWord::from_bits(wish).enable() {
                restart(firmware);
            }
        }
        Phase::Reset if long_enough => {
            let Firmware { bus, link, .. } = firmware;
            bus.write(Register::MacTxState, link.transmit_state(false));
            bus.write(Register::MacRxState, link.receive_state(true));
            link.enter(Phase::Sense);
        }
        Phase::Sense if long_enough => sense(firmware),
        Phase::Break if long_enough => {
            let abilities = firmware.link.abilities();
            firmware.bus.write(Register::TxConfigWord, abilities);
            firmware.link.partner = 0;
            firmware.link.enter(Phase::Ability);
        }
        Phase::Ability => ability(firmware),
        Phase::Acknowledge => acknowledge(firmware),
        Phase::Settle if long_enough => {
            let Firmware { bus, link, .. } = firmware;
            bus.write(Register::MacTxState, link.transmit_state(true));
            bus.write(Register::MacRxState, link.receive_state(true));
            link.enter(Phase::Idle);
        }
        Phase::Idle if long_enough => idle(firmware),
        Phase::Up => watch(firmware),
        _ => {}
    }
}

fn receive_state<B: Bus>(bus: &mut B) -> MacRxState {
    MacRxState::from_bits(bus.read(Register::MacRxState))
}

/// The link-present test of the fibre path: with a signal, disabling the receiver raises
/// an attention (10.4, C!).
fn sense<B: Bus>(firmware: &mut Firmware<B>) {
    let Firmware { bus, link, .. } = firmware;
    bus.write(
        Register::MacRxState,
        link.receive_state(true) | MacRxState::ATTENTION,
    );
    bus.write(Register::MacRxState, link.receive_state(false));
    let state = receive_state(bus);
    let signal = state.link_attention() || state.sync_attention();
    if !signal {
        link.polarity = !link.polarity;
    }
    bus.write(
        Register::MacRxState,
        link.receive_state(true) | MacRxState::ATTENTION,
    );
    if !signal {
        return link.enter(Phase::Sense);
    }
    if link.wish.autonegotiate() {
        bus.write(Register::TxConfigWord, 0);
        link.enter(Phase::Break);
    } else {
        link.obey_pause = link.wish.receive_flow_control();
        link.send_pause = link.wish.transmit_flow_control();
        link.enter(Phase::Settle);
    }
}

/// Waits for the same abilities twice.
fn ability<B: Bus>(firmware: &mut Firmware<B>) {
    let Firmware { bus, link, .. } = firmware;
    let word = bus.read(Register::RxConfigWord);
    if receive_state(bus).code_words() && word != 0 {
        if word == link.partner {
            let abilities = link.abilities();
            bus.write(Register::TxConfigWord, abilities | config_word::ACKNOWLEDGE);
            return link.enter(Phase::Acknowledge);
        }
        link.partner = word;
    } else {
        link.partner = 0;
    }
    if link.time >= PATIENCE {
        // Nobody negotiates there: gigabit, full duplex, no flow control.
        link.enter(Phase::Settle);
    }
}

/// Waits for the partner's acknowledge with unchanged abilities.
fn acknowledge<B: Bus>(firmware: &mut Firmware<B>) {
    let Firmware { bus, link, .. } = firmware;
    let word = bus.read(Register::RxConfigWord);
    let same = (word ^ link.partner) & !config_word::ACKNOWLEDGE == 0;
    let acknowledged = word & config_word::ACKNOWLEDGE != 0;
    if same && acknowledged && word & config_word::FULL_DUPLEX != 0 {
        link.partner = word;
        let both = word & link.abilities() & config_word::PAUSE != 0;
        link.obey_pause = both && link.wish.receive_flow_control();
        link.send_pause = both && link.wish.transmit_flow_control();
        link.enter(Phase::Settle);
    } else if !same || link.time >= PATIENCE {
        restart(firmware);
    }
}

/// The partner must have stopped sending code words.
fn idle<B: Bus>(firmware: &mut Firmware<B>) {
    let state = receive_state(&mut firmware.bus);
    if state.synchronised() && !state.code_words() {
        up(firmware);
    } else {
        restart(firmware);
    }
}

/// A link is lost when the signal is, or when the partner negotiates again.
fn watch<B: Bus>(firmware: &mut Firmware<B>) {
    let state = receive_state(&mut firmware.bus);
    if !state.synchronised() || state.code_words() {
        restart(firmware);
    }
}

fn up<B: Bus>(firmware: &mut Firmware<B>) {
    let link = &mut firmware.link;
    link.enter(Phase::Up);
    link.up = true;
    let word = LinkWord::new()
        .with_up(true)
        .with_enable(true)
        .with_autonegotiate(link.wish.autonegotiate())
        .with_negotiate_flow_control(link.wish.negotiate_flow_control())
        .with_speed_1000(true)
        .with_full_duplex(true)
        .with_receive_flow_control(link.obey_pause)
        .with_transmit_flow_control(link.send_pause);
    log_info!("link up, {=u32:#x}", word.into_bits());
    tell(firmware, word, event::LINK_GIGABIT_UP);
}

fn down<B: Bus>(firmware: &mut Firmware<B>) {
    if firmware.link.up {
        log_info!("link down");
        firmware.link.up = false;
        tell(firmware, LinkWord::new(), event::LINK_DOWN);
    }
}

/// The state word, the LED, the statistics and the event.
fn tell<B: Bus>(firmware: &mut Firmware<B>, word: LinkWord, code: u16) {
    firmware
        .bus
        .store(Gencom::GigabitLinkState.nic_address(), word.into_bits());
    // An LED cannot fail: its error type has no value.
    let _ = Led::new(&mut firmware.bus, Which::First).set_state(word.up().into());
    statistics::describe(firmware);
    count!(firmware, event_link_state);
    host_events::post(firmware, EventCode::LinkState, code);
}

/// MAC RX attention. The attentions are cleared, which leaves nothing to recover: the MAC
/// goes on by itself when its buffer has room again. The event is then held back until
/// the next housekeeping, so that a flood of them cannot starve the packet path.
pub fn receive_attention<B: Bus>(firmware: &mut Firmware<B>) {
    let state = receive_state(&mut firmware.bus);
    if state.into_bits() & MacRxState::FATAL_ATTENTION != 0 {
        return fatal::report(firmware, FatalCode::Mac, state.into_bits());
    }
    // Reading it back as it is clears what was read (write 1 to clear).
    firmware.bus.write(Register::MacRxState, state.into_bits());
    count!(firmware, mac_receive_attentions);
    if state.link_attention() {
        count!(firmware, mac_link_attentions);
    }
    if state.sync_attention() {
        count!(firmware, mac_sync_attentions);
    }
    if state.config_attention() {
        count!(firmware, mac_config_attentions);
    }
    if state.buffer_attention() {
        count!(firmware, mac_buffer_attentions);
    }
    firmware.hold(EventBit::MacRxAttention);
}

/// MAC TX attention: counted and cleared.
pub fn transmit_attention<B: Bus>(firmware: &mut Firmware<B>) {
    let state = firmware.bus.read(Register::MacTxState);
    firmware.bus.write(Register::MacTxState, state);
    count!(firmware, mac_transmit_attentions);
    firmware.hold(EventBit::MacTxAttention);
}
