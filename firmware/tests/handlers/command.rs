//! Tests commands and their answers.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::command::{Command, CommandCode};
use host_interface::event::{self, EventCode};
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::mailbox::Mailbox;

fn word(code: CommandCode) -> u32 {
    Command::new(code, 0).pack()
}

#[test]
fn unknown_and_unimplemented_commands_are_reported() {
    let mut machine = Machine::up(&Setup::default());
    for (bad, code) in [
        (0xEE00_0000, event::ERROR_INVALID_COMMAND),
        (
            word(CommandCode::FdrFiltering),
            event::ERROR_UNIMPLEMENTED_COMMAND,
        ),
        (
            Command::new(CommandCode::HostState, 7).pack(),
            event::ERROR_INVALID_COMMAND,
        ),
        (
            Command::new(CommandCode::Promiscuous, 7).pack(),
            event::ERROR_INVALID_COMMAND,
        ),
        (
            word(CommandCode::AddMulticastExtended),
            event::ERROR_INVALID_COMMAND,
        ),
    ] {
        machine.command(&[bad]);
        let events = machine.events();
        assert_eq!(events.len(), 1, "{bad:#x}");
        assert_eq!(
            (events[0].event, events[0].code),
            (EventCode::Error, code),
            "{bad:#x}"
        );
    }
}

#[test]
fn the_command_ring_goes_round() {
    let mut machine = Machine::up(&Setup::default());
    for round in 1..=200 {
        machine.command(&[word(CommandCode::ClearProfile)]);
        // One command brought the stack up.
        let consumer = machine.bar(Gencom::CommandConsumer.bar_offset());
        assert_eq!(consumer, (round + 1) % 64);
    }
}

#[test]
fn a_command_producer_out_of_range_is_refused_once() {
    let mut machine = Machine::up(&Setup::default());
    machine.ring(Mailbox::CommandProducer, 1000);
    machine.settle();
    machine.pass(5000);
    assert_eq!(machine.events().len(), 1);
}

/// The interface: update writes to the information block with an event, refresh to its
/// own place without one.
#[test]
fn statistics_reach_the_host() {
    let mut machine = Machine::up(&Setup::default());
    machine.put_frame(&[&frame(PEER, MAC, 100, 1)]);
    machine.send();
    machine.arrive(&frame(MAC, PEER, 300, 1));
    machine.arrive(&frame([0xFF; 6], PEER, 60, 1));
    machine.pass(2000);
    machine.events();
    machine.command(&[word(CommandCode::UpdateStatistics)]);
    machine.settle();
    let events = machine.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event, EventCode::StatisticsUpdated);
    // Words of the block: the low halves of the 64-bit counters.
    assert_eq!(machine.statistics(37), 360, "bytes received");
    assert_eq!(machine.statistics(39), 1, "unicast received");
    assert_eq!(machine.statistics(43), 1, "broadcast received");
    assert_eq!(machine.statistics(45), 100, "bytes sent");
    assert_eq!(machine.statistics(47), 1, "unicast sent");
    assert_eq!(machine.statistics(15), 1_000_000_000, "speed");

    machine.command(&[word(CommandCode::RefreshStatistics)]);
    assert!(machine.events().is_empty());
    assert_eq!(machine.refreshed(37), 360);
    machine.command(&[
        word(CommandCode::ClearStatistics),
        word(CommandCode::RefreshStatistics),
    ]);
    assert_eq!(machine.refreshed(37), 0);
}

#[test]
fn a_new_mac_address_is_taken_by_command() {
    let mut machine = Machine::up(&Setup::default());
    let other = [0x02, 1, 2, 3, 4, 5];
    let (high, low) = host_interface::gencom::mac_words(other);
    machine.set_bar(Gencom::MacAddressHigh.bar_offset(), high);
    machine.set_bar(Gencom::MacAddressLow.bar_offset(), low);
    machine.command(&[word(CommandCode::SetMacAddress)]);
    assert_eq!(machine.bar(Register::StationAddressHigh.offset()), high);
    assert_eq!(machine.bar(Register::StationAddressLow.offset()), low);
    machine.arrive(&frame(other, PEER, 60, 1));
    machine.arrive(&frame(MAC, PEER, 60, 2));
    machine.pass(100);
    assert_eq!(machine.received().len(), 1);
}

#[test]
fn the_jumbo_ring_reset_is_answered() {
    let mut machine = Machine::up(&Setup::default());
    machine.command(&[word(CommandCode::ResetJumboRing)]);
    assert_eq!(machine.events()[0].event, EventCode::JumboRingReset);
}
