//! From reset to a link, and configurations that cannot work.

use crate::machine::{Machine, Setup};
use host_interface::LinkWord;
use host_interface::event::{self, EventCode};
use host_interface::extension::{self, Extension, State};
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
        ..tigon2_model::Partner::default()
    };
    machine
        .bench()
        .with(|card, env| card.set_partner(env, silent));
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
