//! Tests the driver's reading of the log's rings, valid and invalid ones.

mod support;

use host_driver::log::LogFrame;
use host_driver::{Nic, NicError};
use host_interface::extension::Extension;
use host_interface::log::{
    BUILD_ID, Level, MODULE_NAMES, MODULES, RINGS, RingWord, level_word, module_named, ring_word,
};
use support::{ScriptedCard, open_card, quick};

const BLOCK: u32 = 0x5000;
const RING_A: u32 = 0x6000;
const RING_B: u32 = 0x6100;

/// A card whose firmware has two rings of 64 bytes, empty.
fn card() -> Nic<ScriptedCard> {
    let mut nic = open_card(quick());
    let mut set = |offset: u32, value| nic.transport().bench.set_word(BLOCK + offset, value);
    set(RINGS, 2);
    set(MODULES, MODULE_NAMES.len() as u32);
    set(BUILD_ID, 0x0123_4567);
    for (cpu, address) in [(0, RING_A), (1, RING_B)] {
        set(ring_word(cpu, RingWord::Address), address);
        set(ring_word(cpu, RingWord::Bytes), 64);
    }
    let word = Extension::LogBlock.nic_address();
    nic.transport().bench.set_word(word, BLOCK);
    nic
}

fn set(nic: &mut Nic<ScriptedCard>, cpu: u32, word: RingWord, value: u32) {
    let address = BLOCK + ring_word(cpu, word);
    nic.transport().bench.set_word(address, value);
}

fn frame(cpu: u8, bytes: &[u8]) -> LogFrame {
    LogFrame {
        cpu,
        bytes: bytes.to_vec(),
    }
}

#[test]
fn a_log_that_cannot_be_is_refused() {
    let wrong = [
        (RINGS, 3),
        (MODULES, 1000),
        (ring_word(0, RingWord::Bytes), 0),
        (ring_word(0, RingWord::Bytes), 1000),
        (ring_word(0, RingWord::Bytes), 0x8000_0000),
        (ring_word(1, RingWord::Address), 0x6002),
        (ring_word(1, RingWord::Address), 0xFFFF_FF00),
        (ring_word(1, RingWord::Producer), 64),
        (ring_word(0, RingWord::Consumer), u32::MAX),
    ];
    for (offset, value) in wrong {
        let mut nic = card();
        assert!(nic.drain_log().expect("a good log").0.is_empty());
        nic.transport().bench.set_word(BLOCK + offset, value);
        let refused = nic.drain_log();
        let bad = matches!(refused, Err(NicError::BadIndex { .. }));
        assert!(bad, "{offset:#x} {value:#x}: {refused:?}");
    }
    let mut nic = card();
    let word = Extension::LogBlock.nic_address();
    nic.transport().bench.set_word(word, 0xFFFF_FFF0);
    assert!(matches!(nic.drain_log(), Err(NicError::BadIndex { .. })));
}

/// Messages go round the end of a ring; each CPU's come from its own; the consumer follows.
#[test]
fn both_rings_are_drained_round_their_ends() {
    let mut nic = card();
    let mut ring = [0; 64];
    ring[57..64].copy_from_slice(&[1, 2, 0, 3, 4, 5, 6]);
    ring[..5].copy_from_slice(&[7, 0, 0, 8, 0]);
    nic.transport().bench.set_bytes(RING_A, &ring);
    nic.transport().bench.set_bytes(RING_B, &[9, 9, 0]);
    set(&mut nic, 0, RingWord::Consumer, 57);
    set(&mut nic, 0, RingWord::Producer, 5);
    set(&mut nic, 1, RingWord::Producer, 3);
    let (frames, missed) = nic.drain_log().expect("good rings");
    let expected = [
        frame(0, &[1, 2]),
        frame(0, &[3, 4, 5, 6, 7]),
        frame(0, &[8]),
        frame(1, &[9, 9]),
    ];
    assert_eq!((frames.as_slice(), missed), (&expected[..], 0));
    for (cpu, consumer) in [(0, 5), (1, 3)] {
        let word = BLOCK + ring_word(cpu, RingWord::Consumer);
        assert_eq!(nic.transport().bench.word(word), consumer);
    }
    assert!(nic.drain_log().expect("good rings").0.is_empty());
    // Whoever else looks has his own place.
    assert_eq!(nic.log_backlog().from(2).1.count(), 2);
}

/// A firmware that is started anew counts from 0 again; the driver does not forget.
#[test]
fn what_was_lost_is_counted_beyond_a_reset() {
    let mut nic = card();
    set(&mut nic, 0, RingWord::Lost, 3);
    set(&mut nic, 1, RingWord::Lost, 1);
    nic.poll_log().expect("good rings");
    assert_eq!(nic.log_lost(), [3, 1]);
    set(&mut nic, 0, RingWord::Lost, 4);
    nic.recover().expect("the same firmware");
    assert_eq!(nic.log_lost(), [4, 1], "what was lost at the end, too");
    nic.poll_log().expect("no log yet");
    assert_eq!(nic.log_lost(), [4, 1]);
}

#[test]
fn levels_are_set_by_module() {
    let mut nic = card();
    let link = module_named("link").expect("a module");
    let set = nic.set_log_levels(&[(link, Level::Trace), (0, Level::Off)]);
    set.expect("a log");
    let word = |nic: &mut Nic<ScriptedCard>, module| {
        nic.transport().bench.word(BLOCK + level_word(module))
    };
    assert_eq!(word(&mut nic, link), Level::Trace as u32);
    assert_eq!(word(&mut nic, link + 1), 0, "another one's");
    let block = nic.log_block().expect("a log").expect("a log");
    assert_eq!(block.levels[link], Level::Trace);
    assert_eq!(
        block.build.to_string(),
        format!("01234567{}", "0".repeat(32))
    );
    // A number that is no module of this firmware is nobody's word.
    nic.set_log_levels(&[(MODULE_NAMES.len(), Level::Trace)])
        .expect("nothing to do");
    assert_eq!(word(&mut nic, MODULE_NAMES.len()), 0);
}
