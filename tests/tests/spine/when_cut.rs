//! A domain says what becomes of the frames and messages of runs that are cut off.

use crate::card::{self, Spine};
use crate::rings::{Messages, SIZES};
use crate::tigonctl::Story;
use host_interface::spine::rings::{Dropped, ITSELF};
use host_interface::spine::{DomainCount, HandlerCount, Outcome};
use integration_tests::Engine;
use integration_tests::tigonctl::{objects, said};
use spine_linker::endpoint::RingSizes;
use spine_linker::load::{Guard, LoadError};

/// Frames of this EtherType go to the handler that never returns.
const OURS: u16 = 0x88B5;
/// The number of the driver's endpoint, and of an application's.
const OF_DRIVER: u32 = 0;
const APPLICATION: u32 = 5;

#[test]
fn frames_are_dropped_and_counted() {
    let mut spine = Spine::open();
    let domain = spine.load_patiently(&card::of_tests("cutting"));
    spine.guards(&[Guard::ether_type(domain, 0, OURS)]);
    for number in 0..10 {
        let frame = spine.stage.inbound(number);
        spine.stage.engine.send(&frame);
    }
    let mut plain = spine.stage.inbound(10);
    plain[13] += 1;
    spine.stage.engine.send(&plain);
    assert_eq!(spine.stage.receive_until_quiet(), [plain]);
    let counts = spine.counts(domain);
    assert_eq!(counts.of(HandlerCount::Overruns), 10);
    assert_eq!(counts.of_handler(0, HandlerCount::Overruns), 10);
    assert_eq!(counts.of(DomainCount::Dropped), 10);
    assert_eq!(counts.of(DomainCount::Transmitted), 0);
    assert_eq!(counts.counters(), [0; 8]);
}

fn open(driver: RingSizes) -> Messages {
    let mut spine = Spine::open();
    let domain = spine.load_patiently(&card::of_tests("cutting"));
    let mut messages = Messages::of_domain(spine, domain, &[APPLICATION]);
    messages.add(OF_DRIVER, driver, 0);
    messages
}

/// With who has sent them; nothing that the run asked for is among them.
#[test]
fn messages_are_passed_to_the_driver() {
    let mut messages = open(SIZES);
    for round in 1..20 {
        let arguments: Vec<u32> = (0..round * 3).map(|word| word ^ round << 8).collect();
        messages.send(APPLICATION, 0, &arguments);
        let passed = messages.next(OF_DRIVER).expect("a message");
        messages.ring(OF_DRIVER);
        assert_eq!(passed.cut_from, Some(APPLICATION + 1));
        assert_eq!(passed.from, messages.handler(0));
        assert_eq!(passed.arguments, arguments);
    }
    // The firmware counts behind the message.
    messages.run(20_000);
    let counts = messages.counts(APPLICATION);
    assert_eq!((counts.delivered, counts.dropped), (19, [0; 5]));
    // A message of the domain's own.
    messages.send(APPLICATION, 1, &[7, 8]);
    let passed = messages.next(OF_DRIVER).expect("a message");
    assert_eq!(passed.cut_from, Some(ITSELF));
    assert_eq!(passed.from, messages.handler(0));
    assert_eq!(passed.arguments, [7, 8]);
    messages.run(20_000);
    let domain = messages.domain;
    let counts = messages.spine.counts(domain);
    assert_eq!(counts.of(DomainCount::Dropped), 0);
    assert_eq!(counts.of_handler(0, HandlerCount::Overruns), 20);
    assert_eq!(counts.of_handler(1, HandlerCount::Overruns), 0);
    assert_eq!(counts.of_handler(1, HandlerCount::Runs), 1);
    // One of the driver's own is not sent back to it.
    let Spine { card, loader, .. } = &mut messages.spine;
    let sent = loader.send(card, domain, 0, &[9]);
    let is_cut = matches!(sent, Err(LoadError::Refused(Outcome::Cut)));
    assert!(is_cut, "{sent:?}");
    assert_eq!(messages.next(OF_DRIVER), None);
}

/// The driver takes none: four have room, and the others are dropped and counted.
#[test]
fn what_the_driver_has_no_room_for_is_dropped() {
    let mut messages = open(RingSizes { slots: 4, bulk: 0 });
    for word in 0..7 {
        messages.send(APPLICATION, 0, &[word]);
        messages.run(20_000);
    }
    let counts = messages.counts(APPLICATION);
    assert_eq!(counts.delivered, 4);
    assert_eq!(counts.dropped[Dropped::Cut as usize], 3);
    for word in 0..4 {
        assert_eq!(messages.arguments(OF_DRIVER), [word]);
    }
    // What it takes makes room.
    messages.ring(OF_DRIVER);
    messages.send(APPLICATION, 0, &[7]);
    assert_eq!(messages.arguments(OF_DRIVER), [7]);
}

#[test]
fn the_log_names_who_has_sent_a_message_whose_run_was_cut_off() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("cutting"), &[]));
    said(&story.driver.run(&["spine", "send", "0", "1", "17", "0xFF"]));
    said(&story.driver.run(&["spine", "send", "0", "1"]));
    let text = said(&story.driver.run(&["spine", "log"]));
    let line = "cutting, domain 0, handler 0 was cut off with a message of its domain:";
    let expected = format!("{line} 0x11 0xff\n{line}");
    assert_eq!(text.trim_end(), expected);
    let lines = objects(&story.driver.run(&["--json", "spine", "log"]));
    assert_eq!(lines[0]["cut_from"], ITSELF);
    let text = said(&story.driver.run(&["spine", "stats"]));
    let line = text.lines().find(|line| line.contains("handler 0"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("2 runs") && line.ends_with("2 too long"),
        "{text}"
    );
}
