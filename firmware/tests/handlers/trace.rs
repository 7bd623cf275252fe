//! Tests the trace ring, as the host reads it.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use host_interface::command::{Command, CommandCode};
use host_interface::event;
use host_interface::extension::{DropReason, Extension};
use host_interface::gencom::Gencom;
use host_interface::trace::Topic;

fn traced(mask: u32) -> Setup {
    Setup {
        trace_mask: mask,
        ..Setup::default()
    }
}

/// Reference 12: {label8, code, time, 4 args}, written downwards (C): what the host asked
/// for, in order.
#[test]
fn the_trace_tells_what_happened() {
    let mut machine = Machine::boot(&traced(u32::MAX));
    assert!(machine.wait_for_link(300));
    let promiscuous = Command::new(CommandCode::Promiscuous, 1).pack();
    machine.command(&[promiscuous]);
    machine.arrive(&frame(MAC, PEER, 100, 1));
    machine.arrive(&frame(MAC, PEER, 100, 2));
    machine.pass(11_000);
    machine.command(&[0xEE00_0000]);
    let entries = machine.trace();
    let reported: Vec<_> = entries.iter().map(|e| (e.label, e.code)).collect();
    let expected = [
        (Topic::Boot, 0),
        (Topic::Event, 1),
        (Topic::Link, u32::from(event::LINK_GIGABIT_UP)),
        (Topic::Event, 6),
        (Topic::Command, 0x0A),
        (Topic::Drop, DropReason::StackDown as u32),
        (Topic::Event, 7),
    ]
    .map(|(topic, code)| (topic.label(), code));
    assert_eq!(reported, expected);
    assert!(entries.is_sorted_by_key(|entry| entry.time));
    let sram = machine.extension(Extension::SramBytes);
    assert_eq!(entries[0].arguments[1..3], [sram, 0x12_F000]);
    let (word, _) = machine.link_words();
    assert_eq!(entries[2].arguments[0], word.into_bits());
    assert_eq!(entries[4].arguments[0], promiscuous);
    assert_eq!(entries[5].arguments[..2], [0, 2]);
}

/// Gencom's trace mask chooses; the start is always there.
#[test]
fn only_what_the_host_asked_for_is_traced() {
    let mut machine = Machine::up(&traced(0));
    machine.command(&[Command::new(CommandCode::ClearProfile, 0).pack()]);
    let labels = |machine: &mut Machine| {
        let entries = machine.trace();
        entries.iter().map(|e| e.label).collect::<Vec<_>>()
    };
    assert_eq!(labels(&mut machine), [Topic::Boot.label()]);
    let mask = Gencom::TraceMask.bar_offset();
    machine.set_bar(mask, Topic::Command.mask());
    machine.command(&[Command::new(CommandCode::ClearProfile, 0).pack()]);
    let expected = [Topic::Boot.label(), Topic::Command.label()];
    assert_eq!(labels(&mut machine), expected);
}

/// The pointer is in memory that the host can write: whatever stands there, entries stay
/// in the ring, and it goes round.
#[test]
fn the_trace_stays_in_its_ring() {
    let mut machine = Machine::up(&traced(Topic::Command.mask()));
    let start = machine.bar(Gencom::TraceStart.bar_offset());
    let length = machine.bar(Gencom::TraceLength.bar_offset());
    let around = |machine: &Machine| {
        let bench = machine.bench();
        [bench.bytes(start - 64, 64), bench.bytes(start + length, 8)]
    };
    let before = around(&machine);
    let pointer = Gencom::TracePointer.bar_offset();
    for wild in [
        0,
        1,
        start - 32,
        start + length,
        start + 33,
        u32::MAX,
        0x300,
    ] {
        machine.set_bar(pointer, wild);
        machine.command(&[Command::new(CommandCode::ClearProfile, 0).pack()]);
        let now = machine.bar(pointer);
        assert!((start..start + length).contains(&now) && now % 32 == start % 32);
    }
    for _ in 0..300 {
        machine.command(&[Command::new(CommandCode::ClearProfile, 0).pack()]);
    }
    assert_eq!(around(&machine), before);
    assert_eq!(machine.trace().len(), 128);
}
