//! Tests the link: the host's settings, link partners, fibre and copper.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::LinkWord;
use host_interface::command::{
    Command, CommandCode, NEGOTIATE_10_100, NEGOTIATE_BOTH, NEGOTIATE_GIGABIT,
};
use host_interface::event::{self, EventCode};
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_model::Board;

/// What Linux asks for (reference, second section 19).
const LINUX: LinkWord = LinkWord::from_bits(0x70AF_0000);
/// All speeds and duplexes, negotiated.
const ALL: LinkWord = LinkWord::from_bits(0x70BF_0000);
/// Milliseconds that the slowest link needs.
const PATIENCE: u64 = 6000;

fn fibre(link: LinkWord) -> Setup {
    Setup {
        link,
        ..Setup::default()
    }
}

fn copper(link: LinkWord, fast_link: LinkWord) -> Setup {
    Setup {
        link,
        fast_link,
        board: Board::copper(),
        ..Setup::default()
    }
}

/// Boots with a partner, drops the events and waits for the link.
fn linked(setup: &Setup, partner: &str) -> Machine {
    let mut machine = Machine::boot(setup);
    machine.set_partner(partner);
    machine.events();
    assert!(machine.wait_for_link(PATIENCE), "{partner}");
    machine
}

fn link_events(machine: &mut Machine) -> Vec<u16> {
    let mut codes = Vec::new();
    for event in machine.events() {
        assert_eq!(event.event, EventCode::LinkState);
        codes.push(event.code);
    }
    codes
}

fn states(machine: &Machine) -> (MacTxState, MacRxState) {
    (
        MacTxState::from_bits(machine.bar(Register::MacTxState.offset())),
        MacRxState::from_bits(machine.bar(Register::MacRxState.offset())),
    )
}

/// Reference 11: break link, ability, acknowledge, idle; then the event and the word.
/// Second section 19: Linux prints "Full Duplex, Flow Control: TX RX".
#[test]
fn the_link_comes_up_with_a_negotiating_partner() {
    let mut machine = linked(&fibre(LINUX), "1000-full pause");
    assert_eq!(link_events(&mut machine), [event::LINK_GIGABIT_UP]);
    let (gigabit, fast) = machine.link_words();
    let expected = LINUX
        .with_up(true)
        .with_speed_10(false)
        .with_speed_100(false);
    assert_eq!((gigabit, fast), (expected, LinkWord::new()));
    let (transmit, receive) = states(&machine);
    assert_eq!(transmit.into_bits(), 0x1E2, "0xE2 and pause frames");
    assert!(receive.obey_pause() && receive.enable());
}

/// Reference, second section 19: 103 ms from boot to link with Linux' word.
#[test]
fn the_link_comes_up_quickly() {
    let mut machine = Machine::boot(&fibre(LINUX));
    assert!(machine.wait_for_link(103));
}

/// Reference 10.4, R[204]: pause and asymmetric pause; IEEE 802.3, annex 28B.
#[test]
fn flow_control_is_negotiated() {
    let both = LINUX;
    let receive_only = LINUX.with_transmit_flow_control(false);
    let send_only = LINUX.with_receive_flow_control(false);
    let neither = receive_only.with_receive_flow_control(false);
    let forced = LINUX.with_negotiate_flow_control(false);
    for (requested, partner, send, obey) in [
        (both, "1000-full pause", true, true),
        (both, "1000-full", false, false),
        (receive_only, "1000-full pause", false, true),
        (receive_only, "1000-full asymmetric-pause", false, true),
        (send_only, "1000-full pause asymmetric-pause", true, false),
        (send_only, "1000-full", false, false),
        (neither, "1000-full pause", false, false),
        (forced, "1000-full", true, true),
        (forced, "1000-full silent", true, true),
        (both, "1000-full pause silent", false, false),
    ] {
        let machine = linked(&fibre(requested), partner);
        let (word, _) = machine.link_words();
        let (transmit, receive) = states(&machine);
        let reported = (word.transmit_flow_control(), word.receive_flow_control());
        assert_eq!(reported, (send, obey), "{requested:?} {partner}");
        let done = (transmit.send_pause(), receive.obey_pause());
        assert_eq!(done, (send, obey), "{requested:?} {partner}");
    }
}

/// Reference 11, step 3: without code words it falls back to forced gigabit.
#[test]
fn the_link_comes_up_with_a_partner_that_does_not_negotiate() {
    let machine = linked(&fibre(LINUX), "1000-full silent");
    assert!(machine.link_words().0.full_duplex());
}

/// A word without the bit "autonegotiate": at once, as it says.
#[test]
fn a_link_can_be_forced() {
    let forced = LinkWord::new()
        .with_enable(true)
        .with_speed_1000(true)
        .with_half_duplex(true)
        .with_transmit_flow_control(true);
    let machine = linked(&fibre(forced), "1000-half silent");
    let (word, _) = machine.link_words();
    assert_eq!(word, forced.with_up(true));
    assert_eq!(states(&machine).0.into_bits(), 0x1C2, "no full duplex");
}

/// Reference 11, step 3, "checks full duplex": a partner without a common duplex.
#[test]
fn duplex_is_negotiated() {
    let machine = linked(&fibre(ALL), "1000-half");
    let (word, _) = machine.link_words();
    assert!(word.half_duplex() && !word.full_duplex());
    let mut machine = Machine::boot(&fibre(LINUX));
    machine.set_partner("1000-half");
    assert!(!machine.wait_for_link(2000), "full duplex only");
}

#[test]
fn the_link_goes_down_and_up_with_the_cable() {
    for setup in [fibre(LINUX), copper(LINUX, LINUX)] {
        let mut machine = linked(&setup, "1000-full pause");
        machine.events();
        machine.set_cable(false);
        machine.pass(200_000);
        assert!(!machine.firmware_link_is_up());
        assert_eq!(link_events(&mut machine), [event::LINK_DOWN]);
        assert_eq!(machine.link_words(), (LinkWord::new(), LinkWord::new()));
        machine.set_cable(true);
        assert!(machine.wait_for_link(PATIENCE));
        assert_eq!(link_events(&mut machine), [event::LINK_GIGABIT_UP]);
    }
}

/// The enable bit, and words that ask for what the board cannot do.
#[test]
fn a_link_that_the_host_does_not_want_stays_down() {
    let hundred = LINUX.with_speed_1000(false);
    for link in [LinkWord::new(), LINUX.with_enable(false), hundred] {
        let mut machine = Machine::boot(&fibre(link));
        assert!(!machine.wait_for_link(300), "{link:?}");
        // The host thinks better of it, without a command.
        let word = Gencom::GigabitLink.bar_offset();
        machine.set_bar(word, LINUX.into_bits());
        assert!(machine.wait_for_link(300), "{link:?}");
    }
}

/// The interface's link negotiation command: 0 both, 1 gigabit, 2 10/100.
#[test]
fn the_host_has_the_link_negotiated_anew() {
    let mut machine = linked(&fibre(LINUX), "1000-full pause");
    machine.events();
    for code in [NEGOTIATE_BOTH, NEGOTIATE_GIGABIT, NEGOTIATE_10_100] {
        let command = Command::new(CommandCode::LinkNegotiation, code);
        machine.command(&[command.pack()]);
        assert!(machine.wait_for_link(300));
        let codes = [event::LINK_DOWN, event::LINK_GIGABIT_UP];
        assert_eq!(link_events(&mut machine), codes);
    }
    // A new wish counts from the command on.
    let word = Gencom::GigabitLink.bar_offset();
    let requested = LINUX.with_transmit_flow_control(false);
    machine.set_bar(word, requested.into_bits());
    machine.pass(5000);
    assert!(machine.link_words().0.transmit_flow_control());
    let command = Command::new(CommandCode::LinkNegotiation, NEGOTIATE_BOTH);
    machine.command(&[command.pack()]);
    assert!(machine.wait_for_link(300));
    assert!(!machine.link_words().0.transmit_flow_control());
    // Disabled by the word.
    machine.set_bar(word, 0);
    machine.command(&[command.pack()]);
    assert!(!machine.wait_for_link(300));
    machine.events();
    let bad = Command::new(CommandCode::LinkNegotiation, 3);
    machine.command(&[bad.pack()]);
    let events = machine.events();
    let reported = (events[0].event, events[0].code);
    assert_eq!(reported, (EventCode::Error, event::ERROR_INVALID_COMMAND));
}

/// Link bit 0x4000: frames come back, with or without a cable.
#[test]
fn in_loopback_frames_come_back() {
    let boards = [
        fibre(LINUX.with_loopback(true)),
        copper(LINUX.with_loopback(true), LinkWord::new()),
        copper(LinkWord::new(), LINUX.with_loopback(true)),
    ];
    for setup in boards {
        let mut machine = Machine::up(&setup);
        assert!(machine.firmware_link_is_up());
        machine.set_cable(false);
        machine.pass(300_000);
        assert!(machine.firmware_link_is_up());
        let (gigabit, fast) = machine.link_words();
        assert!(gigabit.loopback() || fast.loopback());
        let sent = frame(MAC, PEER, 300, 5);
        machine.put_frame(&[&sent]);
        machine.send();
        machine.pass(500);
        assert!(machine.wire.is_empty());
        let received = machine.received();
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].1, sent);
        // And back to a link.
        machine.set_cable(true);
        for word in [Gencom::GigabitLink, Gencom::FastLink] {
            let link = if word == Gencom::GigabitLink {
                LINUX
            } else {
                setup.fast_link.with_loopback(false)
            };
            let offset = word.bar_offset();
            machine.set_bar(offset, link.into_bits());
        }
        let command = Command::new(CommandCode::LinkNegotiation, NEGOTIATE_BOTH);
        machine.command(&[command.pack()]);
        assert!(machine.wait_for_link(PATIENCE));
        machine.put_frame(&[&sent]);
        machine.send();
        machine.pass(500);
        assert_eq!(machine.wire, [sent]);
    }
}

/// Reference 11, "Copper boards": final values of the registers, and the events (C).
#[test]
fn copper_links_come_up_at_what_both_sides_can_do() {
    const FAST: u16 = event::LINK_10_100_UP;
    const GIGABIT: u16 = event::LINK_GIGABIT_UP;
    let cases = [
        ("1000-full 100-full", 0x0D00_0055, 0x72, GIGABIT, 1000, true),
        ("1000-half", 0x0D00_0055, 0x52, GIGABIT, 1000, false),
        (
            "100-full 100-half 10-full",
            0x0700_0055,
            0x22,
            FAST,
            100,
            true,
        ),
        (
            "100-half 10-full 10-half",
            0x0700_0055,
            0x02,
            FAST,
            100,
            false,
        ),
        ("10-full 10-half", 0x0700_0055, 0x22, FAST, 10, true),
        ("10-half", 0x0700_0055, 0x02, FAST, 10, false),
    ];
    for (partner, config, transmit, code, megabits, full) in cases {
        let setup = Setup { ..copper(ALL, ALL) };
        let mut machine = linked(&setup, partner);
        assert_eq!(link_events(&mut machine), [code], "{partner}");
        let read = |register: Register| machine.bar(register.offset());
        assert_eq!(
            read(Register::MiscConfig) & 0x0F00_007F,
            config,
            "{partner}"
        );
        assert_eq!(read(Register::PhyInterface), 1, "{partner}");
        assert_eq!(read(Register::MacTxState), transmit, "{partner}");
        let (gigabit, fast) = machine.link_words();
        let (word, other) = if megabits == 1000 {
            (gigabit, fast)
        } else {
            (fast, gigabit)
        };
        assert_eq!(other, LinkWord::new(), "{partner}");
        assert!(word.up() && word.enable(), "{partner}");
        let speeds = (word.speed_1000(), word.speed_100(), word.speed_10());
        let expected = (megabits == 1000, megabits == 100, megabits == 10);
        assert_eq!(speeds, expected, "{partner}");
        assert_eq!((word.full_duplex(), word.half_duplex()), (full, !full));
        // Frames pass.
        let sent = frame(PEER, MAC, 100, 3);
        machine.put_frame(&[&sent]);
        machine.send();
        machine.pass(2000);
        assert_eq!(machine.wire, [sent], "{partner}");
    }
}

/// Both words count: speeds and duplexes that the host does not want are not advertised.
#[test]
fn copper_requests_are_honoured() {
    const EVERYTHING: &str = "1000-full 1000-half 100-full 100-half 10-full 10-half pause";
    let none = LinkWord::new();
    let ten = ALL.with_speed_1000(false).with_speed_100(false);
    let hundred = ALL.with_speed_1000(false).with_speed_10(false);
    let half = ALL.with_full_duplex(false);
    for (link, fast, megabits, full) in [
        (ALL, ALL, 1000, true),
        (none, ALL, 100, true),
        (none, ten, 10, true),
        (none, hundred, 100, true),
        (none, half, 100, false),
        (half, none, 1000, false),
        (half, half, 1000, false),
    ] {
        let machine = linked(&copper(link, fast), EVERYTHING);
        let (one, other) = machine.link_words();
        let word = if one.up() { one } else { other };
        assert_eq!(word.speed_1000(), megabits == 1000, "{link:?} {fast:?}");
        assert_eq!(word.speed_100(), megabits == 100, "{link:?} {fast:?}");
        assert_eq!(word.full_duplex(), full, "{link:?} {fast:?}");
        let pause = (word.transmit_flow_control(), word.receive_flow_control());
        assert_eq!(pause, (full, full), "{link:?} {fast:?}");
    }
    let machine = linked(&copper(LINUX, LINUX), "100-full");
    assert!(!machine.link_words().1.receive_flow_control());
}

/// Words without "autonegotiate" force the PHY, the preferred link first.
#[test]
fn copper_links_can_be_forced() {
    let gigabit = LinkWord::new().with_enable(true).with_speed_1000(true);
    let hundred = LinkWord::new().with_enable(true).with_speed_100(true);
    for (link, fast, partner, megabits, full) in [
        (gigabit, LinkWord::new(), "1000-full silent", 1000, true),
        (
            gigabit,
            hundred.with_preferred(true),
            "100-full silent",
            100,
            true,
        ),
        (
            LinkWord::new(),
            hundred.with_half_duplex(true),
            "100-half silent",
            100,
            false,
        ),
        (
            LinkWord::new(),
            LinkWord::new().with_enable(true).with_speed_10(true),
            "10-full silent",
            10,
            true,
        ),
    ] {
        let machine = linked(&copper(link, fast), partner);
        let (one, other) = machine.link_words();
        let word = if one.up() { one } else { other };
        assert!(!word.autonegotiate());
        assert_eq!(word.speed_1000(), megabits == 1000, "{partner}");
        assert_eq!(word.speed_100(), megabits == 100, "{partner}");
        assert_eq!(word.full_duplex(), full, "{partner}");
    }
}
