//! The link: the requested mode, the current state, and the reports to the host.
//!
//! Hardware reference, section 11, and the link words of section 12. Housekeeping advances the
//! state machine of the board's medium once a millisecond:
//!
//! ```text
//!        .---------------- [`fibre`]: Sense, Break, Ability, Acknowledge --.
//!        |                                                                 v
//! Off -> Reset -> .                                                      Settle -> Idle -> Up
//!   ^    ^        |                                                        ^              |
//!   |    |        '------- [`copper`]: PhyReset, Negotiate ---------------'               |
//!   |    '---------------------------- lost ----------------------------------------------'
//!   '- not enabled
//! ```

mod attention;
mod copper;
mod fibre;
pub mod phy;
mod requested;

pub use attention::{MacStopped, receive_attention, transmit_attention};

use crate::io::IoA;
use crate::io::filter::Filter;
use crate::memory::layout::EUDP;
use crate::memory::shared::LINK_UP;
use crate::memory::statistics::count;
use crate::record::log::{log_debug, log_info, log_trace};
use crate::record::trace;
use embedded_hal::digital::OutputPin;
use host_interface::LinkWord;
use host_interface::event::{self, EventCode};
use host_interface::gencom::Gencom;
use host_interface::trace::Topic;
use phy::Medium;
use requested::Pause;
use tigon2_chip::Register;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_chip::phy::PhyMode;
use tigon2_hal::events::Dispatch;
use tigon2_hal::led::{Led, Which};

/// Milliseconds of each step in the reference.
const STEP: u32 = 10;

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The host does not want a link.
    Off,
    /// The MAC was reset.
    Reset,
    /// Fibre: testing for a signal.
    Sense,
    /// Fibre: sending zeros to break the link.
    Break,
    /// Fibre: sending abilities, waiting for the partner's abilities.
    Ability,
    /// Fibre: sending the acknowledge, waiting for the partner's acknowledge.
    Acknowledge,
    /// Copper: the PHY was reset.
    PhyReset,
    /// Copper: the PHY negotiates, or a forced link comes up.
    Negotiate,
    /// Agreed; both sides keep sending the same for a while.
    Settle,
    /// Sending idle; the partner must send idle as well.
    Idle,
    /// Up.
    Up,
}

/// Which link words the host wants evaluated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renew {
    /// Both.
    Both,
    /// The word of the gigabit link.
    Gigabit,
    /// The word of the 10/100 link.
    Fast,
}

/// State of the link.
#[derive(Debug)]
pub struct Link {
    phase: Phase,
    /// Milliseconds in this phase.
    time: u32,
    /// Whether frames pass.
    up: bool,
    /// The board's medium.
    medium: Medium,
    /// The gigabit link that the host requests.
    gigabit: LinkWord,
    /// The 10/100 link that the host requests.
    fast: LinkWord,
    /// The partner's abilities: its last code word, or the PHY's register 5.
    partner: u32,
    /// What was agreed or forced.
    mode: PhyMode,
    /// Which pause frames are sent and obeyed.
    pause: Pause,
    /// Whether the loopback is closed.
    loopback: bool,
    /// The signal's polarity; it is inverted while there is no sync (10.4, I).
    polarity: bool,
    /// Whether something changed that the statistics report.
    changed: bool,
}

impl Link {
    /// No link.
    pub const fn new() -> Link {
        Link {
            phase: Phase::Off,
            time: 0,
            up: false,
            medium: Medium::OnChipSerdes,
            gigabit: LinkWord::new(),
            fast: LinkWord::new(),
            partner: 0,
            mode: PhyMode::Full1000,
            pause: Pause::NONE,
            loopback: false,
            polarity: true,
            changed: false,
        }
    }

    /// Whether frames pass.
    #[inline(always)]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Speed in bits per second, and in Mb/s; 0 while there is no link.
    pub const fn speed(&self) -> (u32, u32) {
        if !self.up {
            return (0, 0);
        }
        match self.mode.megabits() {
            10 => (10_000_000, 10),
            100 => (100_000_000, 100),
            _ => (1_000_000_000, 1000),
        }
    }

    /// Sets the board's medium, which was found at start.
    pub fn set_medium(&mut self, medium: Medium) {
        self.medium = medium;
    }

    /// Whether the link went up or down since the last call.
    pub fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    fn enter(&mut self, phase: Phase) {
        log_trace!("phase {=u8} after {=u32} ms", phase as u8, self.time);
        self.phase = phase;
        self.time = 0;
    }

    /// The link word for the current speed.
    fn requested(&self) -> LinkWord {
        if self.mode.megabits() == 1000 {
            self.gigabit
        } else {
            self.fast
        }
    }

    /// Whether the host wants a link that this board supports.
    fn wanted(&self) -> bool {
        let copper = matches!(self.medium, Medium::Copper(_));
        requested::gigabit(self.gigabit) || (copper && requested::fast(self.fast))
    }

    /// The value of `R[220]` for this state, with the attentions unchanged. The register also holds
    /// the filter's promiscuous bit.
    fn receive_state(&self, filter: &Filter, enable: bool) -> u32 {
        filter
            .state()
            .with_enable(enable)
            .with_threshold(MacRxState::THRESHOLD_REVISION_6)
            .with_polarity(self.polarity)
            .with_obey_pause(self.pause.obey)
            .into_bits()
    }

    /// The value of `R[200]` for this state: 0xE0, 0x70 or 0x20 and the enable bit (10.4).
    fn transmit_state(&self, enable: bool) -> u32 {
        let copper = matches!(self.medium, Medium::Copper(_));
        let gigabit = self.mode.megabits() == 1000;
        MacTxState::new()
            .with_fibre(!copper)
            .with_gmii(copper && gigabit)
            .with_gigabit(gigabit)
            .with_full_duplex(self.mode.full_duplex())
            .with_send_pause(self.pause.send)
            .with_enable(enable)
            .into_bits()
    }

    /// The state words of both links; one of them is 0.
    fn words(&self) -> (LinkWord, LinkWord) {
        const NONE: LinkWord = LinkWord::new();
        if !self.up {
            return (NONE, NONE);
        }
        let requested = self.requested();
        let (megabits, full) = (self.mode.megabits(), self.mode.full_duplex());
        let word = LinkWord::new()
            .with_up(true)
            .with_enable(true)
            .with_autonegotiate(requested.autonegotiate())
            .with_negotiate_flow_control(requested.negotiate_flow_control())
            .with_preferred(requested.preferred())
            .with_loopback(self.loopback)
            .with_speed_1000(megabits == 1000)
            .with_speed_100(megabits == 100)
            .with_speed_10(megabits == 10)
            .with_full_duplex(full)
            .with_half_duplex(!full)
            .with_receive_flow_control(self.pause.obey)
            .with_transmit_flow_control(self.pause.send);
        if megabits == 1000 {
            (word, NONE)
        } else {
            (NONE, word)
        }
    }
}

impl Default for Link {
    fn default() -> Link {
        Link::new()
    }
}

/// Restarts with what the host requests now.
pub fn renew<B: Dispatch>(link: &mut Link, io: &mut IoA<B>, which: Renew) {
    let bus = &mut io.bus;
    if which != Renew::Fast {
        link.gigabit = LinkWord::from_bits(bus.load(Gencom::GigabitLink.nic_address()));
    }
    if which != Renew::Gigabit {
        link.fast = LinkWord::from_bits(bus.load(Gencom::FastLink.nic_address()));
    }
    restart(link, io);
}

/// Restarts the machine.
fn restart<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    log_debug!("the link restarts");
    down(link, io);
    count!(io.bus, mac_resets);
    link.mode = PhyMode::Full1000;
    link.pause = Pause::NONE;
    link.partner = 0;
    link.loopback = requested::loopback(link.gigabit, link.fast);
    let reset = MacTxState::new().with_reset(true).into_bits();
    io.set_transmitter(reset);
    let bus = &mut io.bus;
    let reset = MacRxState::new().with_reset(true).into_bits();
    bus.write(Register::MacRxState, reset);
    bus.write(Register::TxConfigWord, 0);
    bus.write(Register::RxConfigWord, 0);
    phy::set_loopback(bus, link.medium, link.loopback);
    link.enter(if link.wanted() {
        Phase::Reset
    } else {
        Phase::Off
    });
}

/// One millisecond has passed.
#[inline(never)]
pub fn tick<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    link.time += 1;
    let long_enough = link.time >= STEP;
    match link.phase {
        Phase::Off if long_enough => {
            let enabled = |word: u32| LinkWord::from_bits(word).enable();
            let bus = &mut io.bus;
            let gigabit = enabled(bus.load(Gencom::GigabitLink.nic_address()));
            link.time = 0;
            if gigabit || enabled(io.bus.load(Gencom::FastLink.nic_address())) {
                later(link, io);
            }
        }
        Phase::Reset if long_enough => match link.medium {
            Medium::Copper(_) => copper::begin(link, io),
            _ => fibre::begin(link, io),
        },
        Phase::Sense if long_enough => fibre::sense(link, io),
        Phase::Break if long_enough => fibre::advertise(link, io),
        Phase::Ability => fibre::ability(link, io),
        Phase::Acknowledge => fibre::acknowledge(link, io),
        Phase::PhyReset if long_enough => copper::after_reset(link, io),
        Phase::Negotiate => copper::negotiate(link, io),
        Phase::Settle if long_enough => {
            io.set_transmitter(link.transmit_state(true));
            let bus = &mut io.bus;
            bus.write(Register::MacRxState, link.receive_state(&io.filter, true));
            link.enter(Phase::Idle);
        }
        Phase::Idle if long_enough => idle(link, io),
        Phase::Up => watch(link, io),
        _ => {}
    }
}

/// Restarts when the host requests a link that it did not request before, without a command.
fn later<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let bus = &mut io.bus;
    link.gigabit = LinkWord::from_bits(bus.load(Gencom::GigabitLink.nic_address()));
    link.fast = LinkWord::from_bits(bus.load(Gencom::FastLink.nic_address()));
    if link.wanted() {
        restart(link, io);
    }
}

fn receive_state<B: Dispatch>(bus: &mut B) -> MacRxState {
    MacRxState::from_bits(bus.read(Register::MacRxState))
}

/// Waits until the partner has stopped sending code words while there is a signal. In loopback
/// there is no partner.
fn idle<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    let state = receive_state(&mut io.bus);
    if link.loopback || (state.synchronised() && !state.code_words()) {
        up(link, io);
    } else {
        restart(link, io);
    }
}

/// The link is lost when the signal is lost or the partner negotiates again.
fn watch<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    if link.loopback {
        return;
    }
    let state = receive_state(&mut io.bus);
    let copper = matches!(link.medium, Medium::Copper(_));
    if !state.synchronised() || state.code_words() || (copper && copper::lost(link, io)) {
        restart(link, io);
    }
}

fn up<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    link.enter(Phase::Up);
    link.up = true;
    LINK_UP.set(&io.me, &mut io.bus, 1);
    let code = if link.mode.megabits() == 1000 {
        event::LINK_GIGABIT_UP
    } else {
        event::LINK_10_100_UP
    };
    log_info!("link up, {=u32} Mb/s", link.mode.megabits());
    report(link, io, code);
}

fn down<B: Dispatch>(link: &mut Link, io: &mut IoA<B>) {
    if link.up {
        log_info!("link down");
        link.up = false;
        LINK_UP.set(&io.me, &mut io.bus, 0);
        report(link, io, event::LINK_DOWN);
    }
}

/// Updates the state words, the LED, the trace and the statistics, and posts the event.
fn report<B: Dispatch>(link: &mut Link, io: &mut IoA<B>, code: u16) {
    let (gigabit, fast) = link.words();
    let bus = &mut io.bus;
    bus.store(Gencom::GigabitLinkState.nic_address(), gigabit.into_bits());
    bus.store(Gencom::FastLinkState.nic_address(), fast.into_bits());
    // An LED cannot fail: its error type has no value.
    let _ = Led::new(bus, Which::First).set_state(link.up.into());
    let arguments = [
        gigabit.into_bits() | fast.into_bits(),
        bus.read(Register::MacTxState),
        bus.read(Register::MacRxState),
        link.partner,
    ];
    trace::record(bus, Topic::Link, code.into(), arguments);
    link.changed = true;
    if EUDP != 0 {
        // Endpoints' frames are refused while there is no link.
        io.ring_b();
    }
    count!(io.bus, event_link_state);
    io.post(EventCode::LinkState, code);
}
