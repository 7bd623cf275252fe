//! Tests fatal errors: the host is notified of each.

use crate::machine::{Machine, Setup};
use host_interface::command::{Command, CommandCode};
use host_interface::event::{self, EventCode};
use host_interface::extension::{Extension, FatalCode, State};
use host_interface::gencom::Gencom;
use tigon_firmware::sides::fatal;
use tigon2_chip::Register;
use tigon2_chip::bits::{AssistState, MacRxState};

/// Reference 3.4: DMA is paused, the receiver stopped, the CPU halted (C); the words, the
/// event and the interrupt tell why.
#[test]
fn a_fatal_error_is_told_by_words_event_and_interrupt() {
    let mut machine = Machine::up(&Setup::default());
    // Events before it arrive before it.
    machine.command(&[Command::new(CommandCode::FdrFiltering, 0).pack()]);
    let before = machine.interrupts;
    machine.acknowledge();
    fatal::report(machine.a(), FatalCode::Mac, 0x1234);
    machine.settle();
    assert!(machine.is_stopped() && machine.is_halted());
    assert_eq!(machine.interrupts, before + 1);
    for (word, value) in [
        (Extension::State, State::Fatal as u32),
        (Extension::FatalCode, FatalCode::Mac as u32),
        (Extension::FatalArgument, 0x1234),
    ] {
        assert_eq!(machine.extension(word), value, "{word:?}");
    }
    let assist = AssistState::from_bits(machine.bar(Register::AssistState.offset()));
    let receiver = MacRxState::from_bits(machine.bar(Register::MacRxState.offset()));
    assert!(assist.pause() && receiver.stop());
    let reported: Vec<_> = machine
        .events()
        .iter()
        .map(|e| (e.event, e.code, e.index))
        .collect();
    let error = EventCode::Error;
    let expected = [
        (error, event::ERROR_UNIMPLEMENTED_COMMAND, 0),
        (error, event::ERROR_FATAL, FatalCode::Mac as u16),
    ];
    assert_eq!(reported, expected);
}

/// A full event ring is not overrun.
#[test]
fn the_last_event_needs_room() {
    let mut machine = Machine::up(&Setup::default());
    let consumer = machine.event_consumer();
    let full = Gencom::EventConsumer.bar_offset();
    machine.set_bar(full, (consumer + 1) % 256);
    fatal::report(machine.a(), FatalCode::Mac, 0);
    machine.settle();
    assert!(machine.events().is_empty());
    assert_eq!(machine.extension(Extension::State), State::Fatal as u32);
}
