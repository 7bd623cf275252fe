//! Extensions' text in CPU A's scratch pad, in the place of the host's code.

use crate::answers::{is_answer, ping};
use crate::card::{self, Spine};
use host_interface::extension::Extension;
use host_interface::spine::{
    BlockWord, Command, DomainCount, DomainWord, MAILBOX, Outcome, domain_word,
};
use integration_tests::Engine;
use spine_linker::load::{Card, Guard};
use std::time::Duration;

/// Has the card answer a ping, and hand a frame of the host's to the host.
fn answers(spine: &mut Spine, number: u16) {
    let frame = spine.stage.inbound(number.into());
    spine.stage.engine.send(&frame);
    let question = ping(spine, number, b"where does it run?");
    spine.stage.engine.send(&question);
    is_answer(&spine.stage.wire(), &question);
    assert_eq!(spine.stage.receive(1), [frame]);
}

fn pad_bytes(spine: &mut Spine) -> u32 {
    word(spine, BlockWord::PadBytes as u32)
}

/// A word of the block.
fn word(spine: &mut Spine, offset: u32) -> u32 {
    let block = word_at(spine, Extension::Spine.nic_address());
    word_at(spine, block + offset)
}

fn word_at(spine: &mut Spine, address: u32) -> u32 {
    let mut word = [0];
    spine.card.read(address, &mut word).expect("the card");
    word[0]
}

/// What the firmware answers to a command that the loader would not give.
fn ask(spine: &mut Spine, command: Command, argument: u32) -> u32 {
    let block = word_at(spine, Extension::Spine.nic_address());
    let number = (word(spine, BlockWord::Command as u32) >> 16) + 1;
    let asked = number << 16 | command as u32;
    for (place, value) in [(BlockWord::Argument, argument), (BlockWord::Command, asked)] {
        let at = block + place as u32;
        spine.card.write(at, &[value]).expect("the card");
    }
    spine.card.ring(MAILBOX).expect("the card");
    for _ in 0..100 {
        if word(spine, BlockWord::Answer as u32) == asked {
            return word(spine, BlockWord::Result as u32);
        }
        spine.stage.engine.pass(Duration::from_micros(10));
    }
    panic!("no answer");
}

/// Text that finds no room in the pad runs from the arena; room comes back with the domain.
#[test]
fn text_runs_from_the_pad_as_long_as_there_is_room() {
    let mut spine = Spine::open();
    let there = pad_bytes(&mut spine);
    let echo = card::ours("echo");
    let domains: Vec<u32> = (0..4).map(|_| spine.load(&echo)).collect();
    let texts: Vec<u32> = domains
        .iter()
        .map(|domain| spine.loader.text_in_pad(*domain))
        .collect();
    let one = texts[0];
    let fit = (there / one) as usize;
    assert!((1..4).contains(&fit), "{fit} fit: {one} of {there} bytes");
    let expected: Vec<u32> = (0..4).map(|n| if n < fit { one } else { 0 }).collect();
    assert_eq!(texts, expected);
    // From the pad and from the arena.
    for (number, domain) in (0..).zip(&domains) {
        spine.guards(&[Guard::ip_protocol(*domain, 0, 1)]);
        answers(&mut spine, number);
        assert_eq!(spine.count(*domain, DomainCount::Transmitted), 1);
    }
    spine
        .loader
        .unload(&mut spine.card, domains[0])
        .expect("it was loaded");
    let again = spine.load(&echo);
    assert_eq!(spine.loader.text_in_pad(again), one);
    spine.guards(&[Guard::ip_protocol(again, 0, 1)]);
    answers(&mut spine, 9);
}

/// The host's code comes back with the last unload, and goes with the next load.
#[test]
fn the_hosts_code_and_the_extensions_take_turns() {
    let mut spine = Spine::open();
    for round in 0..6 {
        let frames: Vec<_> = (0..20)
            .map(|number| spine.stage.inbound(100 * u32::from(round) + number))
            .collect();
        for frame in &frames {
            spine.stage.engine.send(frame);
        }
        // Some arrive before the load, some behind it.
        let domain = spine.load(&card::ours("echo"));
        spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
        assert_eq!(spine.stage.receive(20), frames);
        answers(&mut spine, round);
        let unloaded = spine.loader.unload(&mut spine.card, domain);
        unloaded.expect("it was loaded");
    }
}

/// The firmware refuses text that would lie over its own code in the pad, or is copied from
/// elsewhere than the arena.
#[test]
fn text_that_lies_elsewhere_is_refused() {
    let mut spine = Spine::open();
    let (pad, bytes) = (
        word(&mut spine, BlockWord::Pad as u32),
        pad_bytes(&mut spine),
    );
    let arena = word(&mut spine, BlockWord::Arena as u32);
    let end = arena + word(&mut spine, BlockWord::ArenaBytes as u32);
    let echo = card::ours("echo");
    let domain = spine.load(&echo);
    let row = |domain, word| domain_word(domain, word);
    let text = word(&mut spine, row(domain, DomainWord::Text));
    let length = word(&mut spine, row(domain, DomainWord::TextEnd)) - text;
    let init = word(&mut spine, row(domain, DomainWord::Init)) - text;
    assert_eq!(text, pad);
    let block = word_at(&mut spine, Extension::Spine.nic_address());
    let free = domain + 1;
    for (text, copy) in [
        (pad - 4, arena),
        (pad + bytes - length + 4, arena),
        (pad + 2, arena),
        (pad, arena - 4),
        (pad, end - length + 4),
        (pad, arena + 2),
        (pad, !3),
        (pad, 0),
        (arena, arena),
    ] {
        for (place, value) in [
            (DomainWord::Text, text),
            (DomainWord::TextEnd, text.wrapping_add(length)),
            (DomainWord::Init, text + init),
            (DomainWord::Watchdog, 10),
            (DomainWord::EntryCount, 0),
            (DomainWord::TextCopy, copy),
        ] {
            let at = block + row(free, place);
            spine.card.write(at, &[value]).expect("the card");
        }
        let answer = ask(&mut spine, Command::Load, free);
        let refused = Outcome::OutsideArena as u32;
        assert_eq!(answer, refused, "text at {text:#x}, copied from {copy:#x}");
    }
    spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
    answers(&mut spine, 1);
}
