//! `tigonctl spine` beside the process that drives the card.

use crate::answers::is_answer;
use crate::card;
use etherparse::PacketBuilder;
use host_driver::status::Application;
use integration_tests::tigonctl::{Driver, complaint, objects, said};
use integration_tests::xtask_command::xtask;
use integration_tests::{Engine, Sim, frames};
use spine_linker::endpoint::{HandlerOf, RingSizes};
use spine_linker::policy::Policy;
use spine_linker::sign::Signer;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A driver of a card that loads extensions, and a folder for their files.
pub struct Story {
    pub driver: Driver<Sim>,
    folder: TempDir,
}

impl Story {
    pub fn with(policy: Policy) -> Story {
        Story {
            driver: Driver::of(card::stage(card::variant())).with_extensions(policy),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("room");
        path
    }

    /// `tigonctl spine load`, of a container with guards.
    pub fn load(&mut self, container: &[u8], guards: &[&str]) -> std::process::Output {
        let file = self.file("container", container).display().to_string();
        let mut words = vec!["spine", "load", &file];
        for guard in guards {
            words.extend(["--guard", guard]);
        }
        self.driver.run(&words)
    }

    fn ping(&mut self, number: u16) -> Vec<u8> {
        let packet = PacketBuilder::ethernet2(frames::PEER, self.driver.stage.nic.station())
            .ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
            .icmpv4_echo_request(0x5449, number);
        let mut frame = Vec::new();
        packet.write(&mut frame, &[5; 60]).expect("a frame");
        self.driver.stage.engine.send(&frame);
        frame
    }
}

#[test]
fn an_extension_comes_and_goes_by_command() {
    let mut story = Story::with(card::policy());
    let empty = said(&story.driver.run(&["spine", "list"]));
    let answer = story.load(&card::ours("echo"), &["ip:1"]);
    let text = said(&answer);
    assert!(text.starts_with("domain 0: spine-echo, "), "{text}");
    for number in 0..3 {
        let question = story.ping(number);
        is_answer(&story.driver.stage.wire(), &question);
    }
    let list = said(&story.driver.run(&["spine", "list"]));
    let row = list.lines().nth(1).expect("a row");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        (row[0], row[1], row[5], row[6]),
        ("0", "spine-echo", "3", "runs")
    );
    let lines = objects(&story.driver.run(&["--json", "spine", "stats", "0"]));
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(
        (&line["consumed"], &line["transmitted"]),
        (&3.into(), &3.into())
    );
    assert_eq!(line["counters"][0], 3);
    let gone = said(&story.driver.run(&["spine", "unload", "0"]));
    assert_eq!(gone, "domain 0 is unloaded\n");
    // The guard is gone too: the frame is the host's.
    let question = story.ping(9);
    assert_eq!(story.driver.stage.receive(1), [question]);
    assert_eq!(said(&story.driver.run(&["spine", "list"])), empty);
}

/// From the crate to the card and off it by `cargo xtask` alone.
#[test]
fn a_crate_is_loaded_by_one_command() {
    let mut story = Story::with(card::policy());
    let echo = testbed::paths::root().join("firmware/spine/extensions/echo");
    let text = extension(
        &mut story,
        &["load", &echo.display().to_string(), "--guard", "ip:1"],
    );
    assert!(text.contains("\ndomain 0: spine-echo, "), "{text}");
    let question = story.ping(1);
    is_answer(&story.driver.stage.wire(), &question);
    let text = extension(&mut story, &["unload", "0"]);
    assert_eq!(text, "domain 0 is unloaded\n");
}

/// What `cargo xtask extension` says, beside the driver.
fn extension(story: &mut Story, words: &[&str]) -> String {
    let mut command = xtask(&["extension"]);
    command.args(words).args(story.driver.arguments());
    said(&beside(story, move || command.output().expect("it starts")))
}

#[test]
fn the_guards_of_several_stay_in_order() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("empty"), &["udp:9"]));
    said(&story.load(&card::ours("echo"), &["ip:1", "udp:7=0"]));
    said(&story.driver.run(&["spine", "unload", "0"]));
    // The second one's guards are still there.
    let question = story.ping(1);
    is_answer(&story.driver.stage.wire(), &question);
    said(&story.load(&card::of_tests("empty"), &["any"]));
    let question = story.ping(2);
    is_answer(&story.driver.stage.wire(), &question);
}

/// A guard of a signer of a higher priority is asked first, whatever was loaded first.
#[test]
fn the_guards_of_a_higher_priority_come_first() {
    let other = Signer::from_text(&"05".repeat(32)).expect("a key");
    let echo = card::ours_signed_by("echo", &other);
    for (priority, is_first) in [(4, false), (5, false), (6, true)] {
        let policy = card::policy_with_priorities([(card::signer(), 5), (&other, priority)]);
        let mut story = Story::with(policy);
        // It consumes all that it gets.
        said(&story.load(&card::of_tests("empty"), &["any"]));
        said(&story.load(&echo, &["ip:1"]));
        let question = story.ping(1);
        if is_first {
            is_answer(&story.driver.stage.wire(), &question);
        } else {
            assert!(story.driver.stage.receive_until_quiet().is_empty());
            assert_eq!(story.driver.stage.wire_now(), None, "priority {priority}");
        }
    }
}

#[test]
fn what_is_refused_leaves_nothing_on_the_card() {
    let mut story = Story::with(card::policy());
    let empty = said(&story.driver.run(&["spine", "list"]));
    let mut changed = card::ours("echo");
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let text = complaint(&story.load(&changed, &["ip:1"]));
    assert!(text.contains("is not signed by the signer"), "{text}");
    // It is loaded, its guard is refused, it is unloaded.
    let text = complaint(&story.load(&card::ours("echo"), &["ip:1=7"]));
    assert!(text.contains("NoHandler"), "{text}");
    let text = complaint(&story.driver.run(&["spine", "unload", "0"]));
    assert!(text.contains("domain 0 is not loaded"), "{text}");
    assert_eq!(said(&story.driver.run(&["spine", "list"])), empty);
    let question = story.ping(1);
    assert_eq!(story.driver.stage.receive(1), [question]);
}

/// Runs `what` on a thread of its own, as another process would, while the card is driven.
pub fn beside<R: Send + 'static>(
    story: &mut Story,
    what: impl FnOnce() -> R + Send + 'static,
) -> R {
    let other = std::thread::spawn(what);
    while !other.is_finished() {
        story.driver.turn();
    }
    other.join().expect("no panic")
}

#[test]
fn another_process_exchanges_messages_with_an_extension() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("messages"), &[]));
    let answer = story
        .driver
        .run(&["spine", "message", "0", "0", "17", "0xFF"]);
    assert_eq!(said(&answer), "domain 0, handler 0: 0x11 0xff\n");
    // Its endpoint went with it; the driver's own is there.
    let ends = |story: &mut Story| said(&story.driver.run(&["spine", "endpoints"]));
    assert_eq!(ends(&mut story).lines().count(), 2);
    let sent = story.driver.run(&["spine", "send", "0", "7", "1"]);
    assert_eq!(said(&sent), "handler 7 of domain 0 has run\n");
    let text = complaint(&story.driver.run(&["spine", "send", "0", "3"]));
    assert!(text.contains("NoHandler"), "{text}");
    let ledger = said(&story.driver.run(&["spine", "ledger"]));
    assert!(
        ledger.ends_with("12 slots of the pool are free\n"),
        "{ledger}"
    );

    // Two at once, and more messages than a ring has slots.
    let path = story.driver.arguments()[1].clone();
    let sizes = RingSizes { slots: 4, bulk: 0 };
    let to = HandlerOf {
        domain: 0,
        handler: 0,
    };
    let two = beside(&mut story, move || {
        let open = || Application::open(path.as_ref(), sizes, &[0], false);
        let mut two = [open(), open()].map(|opened| opened.expect("an endpoint"));
        assert_eq!([two[0].number(), two[1].number()], [2, 3]);
        for round in 0..20 {
            for application in &mut two {
                let words = [round, application.number()];
                application.send(to, &words).expect("there is room");
            }
            for application in &mut two {
                let answer = application.receive(Duration::from_secs(20));
                let answer = answer.expect("the driver is there").expect("an answer");
                assert_eq!(answer.arguments, [round, application.number()]);
            }
        }
        two
    });
    let list = ends(&mut story);
    let row = list.lines().nth(2).expect("a row");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row, ["2", "20", "20", "20", "0", "0", "0", "0", "0"]);
    // What is unloaded gets none of their messages, and neither does what has its number next.
    said(&story.driver.run(&["spine", "unload", "0"]));
    said(&story.load(&card::of_tests("messages"), &[]));
    let [mut first, second] = two;
    drop(second);
    let none = beside(&mut story, move || {
        first.send(to, &[1]).expect("there is room");
        first.receive(Duration::from_millis(200)).expect("there")
    });
    assert_eq!(none, None);
    assert_eq!(ends(&mut story).lines().count(), 2, "both are gone");
}

#[test]
fn an_application_takes_its_extensions_with_it_if_it_wants() {
    let mut story = Story::with(card::policy());
    let empty = said(&story.driver.run(&["spine", "list"]));
    said(&story.load(&card::of_tests("messages"), &[]));
    let path = story.driver.arguments()[1].clone();
    let sizes = RingSizes { slots: 4, bulk: 64 };
    let wanted = [
        (3, 0, vec![]),
        (4, 7, vec![]),
        (4, 1 << 21, vec![]),
        (4, 0, vec![4]),
    ];
    let other = path.clone();
    beside(&mut story, move || {
        for (slots, bulk, domains) in wanted {
            let sizes = RingSizes { slots, bulk };
            let refused = Application::open(other.as_ref(), sizes, &domains, false);
            assert!(refused.is_err(), "{sizes:?}");
        }
    });
    let open = move || Application::open(path.as_ref(), sizes, &[0], true);
    let application = beside(&mut story, open).expect("an endpoint");
    // A recovery forgets endpoints as it forgets domains, and says so.
    drop(application);
    for _ in 0..20 {
        story.driver.turn();
    }
    assert_eq!(said(&story.driver.run(&["spine", "list"])), empty);
    said(&story.load(&card::of_tests("messages"), &[]));
    let path = story.driver.arguments()[1].clone();
    let open = move || Application::open(path.as_ref(), sizes, &[0], true);
    let mut application = beside(&mut story, open).expect("an endpoint");
    story.driver.stage.nic.recover().expect("it starts again");
    let gone = beside(&mut story, move || {
        application.receive(Duration::from_secs(20))
    });
    assert!(gone.is_err(), "{gone:?}");
}

#[test]
fn a_guard_that_the_policy_does_not_name_is_refused() {
    let mut story = Story::with(card::policy_with_guards(&["udp:4000-4999", "ip:1"]));
    let empty = said(&story.driver.run(&["spine", "list"]));
    for guard in ["any", "udp:53", "ether:0x800", "message"] {
        let text = complaint(&story.load(&card::ours("echo"), &["ip:1", guard]));
        let expected = format!("does not grant the signer the guard {guard}");
        assert!(text.contains(&expected), "{text}");
    }
    assert_eq!(said(&story.driver.run(&["spine", "list"])), empty);
    said(&story.load(&card::ours("echo"), &["udp:4711", "ip:1=0"]));
    let question = story.ping(1);
    is_answer(&story.driver.stage.wire(), &question);
}

#[test]
fn a_policy_without_a_build_lets_nothing_in() {
    let mut story = Story::with(Policy::default());
    let text = complaint(&story.load(&card::ours("echo"), &[]));
    assert!(text.contains("names no build"), "{text}");
}

#[test]
fn a_driver_without_a_policy_loads_nothing() {
    let mut driver = Driver::of(card::stage(card::variant()));
    let text = complaint(&driver.run(&["spine", "list"]));
    assert!(text.contains("bridge --extensions POLICY"), "{text}");
}

/// The card is reset and its firmware loaded again: nothing is loaded, and all is free.
#[test]
fn a_recovery_forgets_what_was_loaded() {
    let mut story = Story::with(card::policy());
    let empty = said(&story.driver.run(&["spine", "list"]));
    said(&story.load(&card::ours("echo"), &["ip:1"]));
    story.driver.stage.nic.recover().expect("it starts again");
    assert_eq!(said(&story.driver.run(&["spine", "list"])), empty);
    let link = story.driver.stage.nic.wait_link(Duration::from_secs(5));
    link.expect("a link");
    let question = story.ping(1);
    assert_eq!(story.driver.stage.receive(1), [question]);
    let text = said(&story.load(&card::ours("echo"), &["ip:1"]));
    assert!(text.starts_with("domain 0: spine-echo, "), "{text}");
    let question = story.ping(2);
    is_answer(&story.driver.stage.wire(), &question);
}
