//! Tests the multicast list: commands in both forms, exact matches, and overflow.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::command::{Command, CommandCode, DISABLE, ENABLE};
use host_interface::event::{self, EventCode};
use host_interface::gencom::{Gencom, mac_words};
use tigon2_chip::Register;
use tigon2_chip::mac::multicast_hash_bit;

const ADD: CommandCode = CommandCode::AddMulticastExtended;
const DELETE: CommandCode = CommandCode::DeleteMulticastExtended;
/// Addresses that the list holds.
const CAPACITY: u16 = 64;

fn group(number: u16) -> [u8; 6] {
    let [a, b] = number.to_be_bytes();
    [0x01, 0x00, 0x5E, 0x01, a, b]
}

/// Commands the address and checks the event.
fn command(machine: &mut Machine, code: CommandCode, address: [u8; 6]) {
    let (high, low) = mac_words(address);
    machine.command(&[Command::new(code, 0).pack(), high, low]);
    reported(machine, code == ADD);
}

fn reported(machine: &mut Machine, added: bool) {
    let events: Vec<_> = machine.events().iter().map(|e| (e.event, e.code)).collect();
    let code = if added {
        event::MULTICAST_ADDED
    } else {
        event::MULTICAST_DELETED
    };
    assert_eq!(events, [(EventCode::MulticastUpdated, code)]);
}

fn takes(machine: &mut Machine, address: [u8; 6]) -> bool {
    machine.arrive(&frame(address, PEER, 60, 1));
    machine.pass(100);
    let received = machine.received();
    machine.give_buffers(received.len() as u32);
    !received.is_empty()
}

fn hash(machine: &Machine) -> [u32; 4] {
    [
        Register::MulticastHash0,
        Register::MulticastHash1,
        Register::MulticastHash2,
        Register::MulticastHash3,
    ]
    .map(|register| machine.bar(register.offset()))
}

/// Deleting an address leaves another one with the same hash bit.
#[test]
fn twins_in_the_hash_are_distinguished() {
    let wanted = group(1);
    let twin = (2..=u16::MAX)
        .map(group)
        .find(|address| multicast_hash_bit(address) == multicast_hash_bit(&wanted))
        .expect("one in 128");
    let mut machine = Machine::up(&Setup::default());
    command(&mut machine, ADD, wanted);
    assert!(takes(&mut machine, wanted) && !takes(&mut machine, twin));
    command(&mut machine, ADD, twin);
    assert!(takes(&mut machine, wanted) && takes(&mut machine, twin));
    command(&mut machine, DELETE, wanted);
    assert!(!takes(&mut machine, wanted) && takes(&mut machine, twin));
    command(&mut machine, DELETE, twin);
    assert!(!takes(&mut machine, twin));
    assert_eq!(hash(&machine), [0; 4]);
}

/// Twice the same counts once; what is not there can be deleted.
#[test]
fn an_address_is_in_the_list_once() {
    let mut machine = Machine::up(&Setup::default());
    command(&mut machine, DELETE, group(9));
    for _ in 0..3 {
        command(&mut machine, ADD, group(9));
    }
    command(&mut machine, DELETE, group(9));
    assert!(!takes(&mut machine, group(9)));
}

/// More addresses than the list holds: every multicast is taken until they are gone.
#[test]
fn a_list_that_is_full_takes_every_multicast() {
    let mut machine = Machine::up(&Setup::default());
    for number in 0..CAPACITY {
        command(&mut machine, ADD, group(number));
    }
    let stranger = group(1000);
    assert!(takes(&mut machine, group(0)) && !takes(&mut machine, stranger));
    for number in CAPACITY..CAPACITY + 3 {
        command(&mut machine, ADD, group(number));
        assert!(takes(&mut machine, group(number)) && takes(&mut machine, stranger));
    }
    // Room in the list does not bring back what never was in it.
    command(&mut machine, DELETE, group(0));
    assert!(takes(&mut machine, group(CAPACITY)));
    for number in CAPACITY..CAPACITY + 3 {
        assert!(takes(&mut machine, stranger));
        command(&mut machine, DELETE, group(number));
    }
    assert!(!takes(&mut machine, stranger) && !takes(&mut machine, group(0)));
    assert!(takes(&mut machine, group(1)) && takes(&mut machine, group(CAPACITY - 1)));
    // All-multicast goes on and off above all of this.
    let all = |how| Command::new(CommandCode::AllMulticast, how).pack();
    machine.command(&[all(ENABLE)]);
    assert!(takes(&mut machine, stranger));
    assert_eq!(hash(&machine), [u32::MAX; 4]);
    machine.command(&[all(DISABLE)]);
    assert!(!takes(&mut machine, stranger) && takes(&mut machine, group(1)));
}

/// Commands 08 and 09: the address is in gencom.
#[test]
fn the_obsolete_form_takes_the_address_from_gencom() {
    let mut machine = Machine::up(&Setup::default());
    let (high, low) = mac_words(group(3));
    for (word, value) in [(Gencom::MulticastHigh, high), (Gencom::MulticastLow, low)] {
        machine.set_bar(word.bar_offset(), value);
    }
    for (code, added) in [
        (CommandCode::AddMulticast, true),
        (CommandCode::DeleteMulticast, false),
    ] {
        machine.command(&[Command::new(code, 0).pack()]);
        reported(&mut machine, added);
        assert_eq!(takes(&mut machine, group(3)), added);
    }
}

/// A bad argument: an address that is no group's.
#[test]
fn a_station_address_is_refused() {
    let mut machine = Machine::up(&Setup::default());
    for code in [ADD, DELETE] {
        let (high, low) = mac_words(MAC);
        machine.command(&[Command::new(code, 0).pack(), high, low]);
        let events: Vec<_> = machine.events().iter().map(|e| (e.event, e.code)).collect();
        let invalid = (EventCode::Error, event::ERROR_INVALID_COMMAND);
        assert_eq!(events, [invalid]);
    }
    assert_eq!(hash(&machine), [0; 4]);
}
