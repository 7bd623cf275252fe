//! From reset to a link, and configurations that cannot work.

use crate::machine::{Machine, Setup};
use host_interface::LinkWord;
use host_interface::event::{self, EventCode};
use host_interface::extension::{self, Extension, FatalCode, State};
use host_interface::info::{HostAddress, RcbFlags, RingControlBlock};
use tigon2_chip::Register;

/// Reference 19: FIRMWARE_UP by DMA, then the interrupt.
#[test]
fn boot_announces_the_firmware_by_event_and_interrupt() {
    let mut machine = Machine::boot(&Setup::default());
    assert_eq!(machine.interrupts, 1);
    let events = machine.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event, EventCode::FirmwareOperational);
    assert_eq!(machine.extension(Extension::Magic), extension::MAGIC);
    assert_eq!(machine.extension(Extension::Version), extension::VERSION);
    assert_eq!(machine.extension(Extension::State), State::Running as u32);
    assert_eq!(machine.extension(Extension::SramBytes), 0x10_0000);
}

/// Reference 2.2, 6.3, 18: the layout that makes every rule for the ring base agree.
#[test]
fn the_registers_name_the_layout_of_the_reference() {
    let machine = Machine::boot(&Setup::default());
    let k = 0x12_F000;
    assert_eq!(machine.bar(Register::SpillBaseA.offset()), 0x00BF_F000 - k);
    assert_eq!(machine.bar(Register::SpillBaseB.offset()), 0x00BF_E000 - k);
    assert_eq!(machine.bar(Register::TxBase.offset()), k + 0x5000);
    assert_eq!(
        machine.bar(Register::AssistReadConsumer.offset()) & !0x7FF,
        k + 0x4000
    );
    assert_eq!(
        machine.bar(Register::AssistWriteConsumer.offset()) & !0x7FF,
        k + 0x4800
    );
    assert_eq!(machine.bar(Register::MiscConfig.offset()) & 0x7F, 0x55);
}

/// Reference 11: break link, ability, acknowledge, idle; then the event and the word.
#[test]
fn the_link_comes_up_with_a_negotiating_partner() {
    let mut machine = Machine::boot(&Setup::default());
    machine.events();
    machine.pass(200_000);
    let events = machine.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event, EventCode::LinkState);
    assert_eq!(events[0].code, event::LINK_GIGABIT_UP);
    let word = machine.bar(host_interface::gencom::Gencom::GigabitLinkState.bar_offset());
    let word = LinkWord::from_bits(word);
    assert!(word.up() && word.speed_1000() && word.full_duplex());
    assert!(word.receive_flow_control() && !word.transmit_flow_control());
}

/// Reference 11, step 3: without code words it falls back to forced gigabit.
#[test]
fn the_link_comes_up_with_a_partner_that_does_not_negotiate() {
    let mut machine = Machine::boot(&Setup::default());
    let silent = tigon2_model::Partner {
        negotiates: false,
        ability: 0,
    };
    machine.bench().card.set_partner(silent);
    machine.pass(900_000);
    assert!(machine.firmware_link_is_up());
}

#[test]
fn the_link_goes_down_and_up_with_the_cable() {
    let mut machine = Machine::up(&Setup::default());
    assert!(machine.firmware_link_is_up());
    machine.bench().with(|card, env| card.set_cable(env, false));
    machine.pass(50_000);
    assert!(!machine.firmware_link_is_up());
    let events = machine.events();
    assert_eq!(
        (events[0].event, events[0].code),
        (EventCode::LinkState, event::LINK_DOWN)
    );
    machine.bench().with(|card, env| card.set_cable(env, true));
    machine.pass(300_000);
    assert!(machine.firmware_link_is_up());
}

#[test]
fn a_link_that_the_host_does_not_want_stays_down() {
    let setup = Setup {
        link: LinkWord::new(),
        ..Setup::default()
    };
    let mut machine = Machine::boot(&setup);
    machine.pass(300_000);
    assert!(!machine.firmware_link_is_up());
}

/// What the firmware could not work with stops it, with a code that the driver can read.
#[test]
fn configurations_that_cannot_work_are_fatal() {
    let good = Setup::default().information;
    let host_ring = RcbFlags::new().with_host_ring(true);
    let cases = [
        ("no event ring", {
            let mut bad = good;
            bad.event.address = HostAddress::default();
            bad
        }),
        ("odd send ring", {
            let mut bad = good;
            bad.send = RingControlBlock::new(0x1_0000_2000, 100, host_ring);
            bad
        }),
        ("no standard ring", {
            let mut bad = good;
            bad.standard.address = HostAddress::default();
            bad
        }),
        ("odd return ring", {
            let mut bad = good;
            bad.receive_return = RingControlBlock::new(0x1_0001_0000, 17, RcbFlags::new());
            bad
        }),
    ];
    for (name, information) in cases {
        let machine = Machine::boot(&Setup {
            information,
            ..Setup::default()
        });
        assert!(
            machine.firmware.is_stopped() && machine.is_halted(),
            "{name}"
        );
        assert_eq!(
            machine.extension(Extension::State),
            State::Fatal as u32,
            "{name}"
        );
        let code = machine.extension(Extension::FatalCode);
        assert_eq!(code, FatalCode::Configuration as u32, "{name}");
        assert_ne!(machine.extension(Extension::FatalArgument), 0, "{name}");
    }
}

/// Offloads and rings that are not there yet are reported, not silently ignored.
#[test]
fn what_is_not_implemented_is_reported() {
    let mut setup = Setup::default();
    setup.information.standard.max_len_and_flags |= 1;
    let mut machine = Machine::boot(&setup);
    let codes: Vec<_> = machine.events().iter().map(|e| (e.event, e.code)).collect();
    let error = (EventCode::Error, event::ERROR_BAD_CONFIGURATION);
    assert_eq!(codes, [(EventCode::FirmwareOperational, 0), error]);
}
