//! `tigonctl spine route`: the routes of a router on the running card.

use crate::card;
use crate::tigonctl::Story;
use integration_tests::tigonctl::{complaint, objects, said};
use integration_tests::{Engine, frames};
use tigon_bench::spine::router;

/// A card with the router, to which all IPv4 packets go.
fn story() -> Story {
    let mut story = Story::with(card::policy_with_router());
    said(&story.load(&card::ours("router"), &["ether:0x800"]));
    story
}

fn route(story: &mut Story, words: &[&str]) -> String {
    said(&story.driver.run(&[&["spine", "route"], words].concat()))
}

fn refused(story: &mut Story, words: &[&str]) -> String {
    complaint(&story.driver.run(&[&["spine", "route"], words].concat()))
}

/// Where a packet to 10.77.0.5 goes: an Ethernet address, or `None` for the host.
fn goes(story: &mut Story, number: u16) -> Option<[u8; 6]> {
    let stage = &mut story.driver.stage;
    let packet = router::packet(stage.nic.station(), 60, number);
    stage.engine.send(&packet);
    for _ in 0..1000 {
        let machine = stage.engine.machine();
        machine.lock().run(1000);
        let left = machine.lock().take_frame();
        if let Some(frame) = left {
            assert_eq!(frame.bytes[18..20], number.to_be_bytes());
            return frame.bytes.first_chunk().copied();
        }
        stage.nic.service().expect("the card is well");
        let received = stage.nic.receive_batch(1).expect("the card is well");
        if let Some(frame) = received.into_iter().next() {
            assert_eq!(frame, packet);
            return None;
        }
    }
    panic!("packet {number} is lost");
}

#[test]
fn routes_come_and_go_by_command() {
    let mut story = story();
    assert_eq!(goes(&mut story, 0), None, "there is no table");
    assert_eq!(
        route(&mut story, &["show"]),
        "domain 0: 0 routes, 3 of 4095 words\n"
    );
    route(&mut story, &["add", "10.0.0.0/8", "02:00:00:00:00:05"]);
    assert_eq!(goes(&mut story, 1), Some([2, 0, 0, 0, 0, 5]));
    // The longer prefix wins; its next hop changes; it is the host's; it goes.
    let to = ["02:00:00:00:00:06", "02:00:00:00:00:07"];
    for (number, (address, last)) in (2..).zip(to.into_iter().zip([6, 7])) {
        route(&mut story, &["add", "10.77.0.0/24", address]);
        assert_eq!(goes(&mut story, number), Some([2, 0, 0, 0, 0, last]));
    }
    route(&mut story, &["add", "10.77.0.0/24", "host"]);
    assert_eq!(goes(&mut story, 4), None);
    let shown = route(&mut story, &["--domain", "0", "show"]);
    let lines: Vec<&str> = shown.lines().collect();
    let [first, second, sum] = lines.as_slice() else {
        panic!("{shown}");
    };
    assert_eq!(*first, "10.0.0.0/8 02:00:00:00:00:05");
    assert_eq!(*second, "10.77.0.0/24 host");
    assert!(sum.starts_with("domain 0: 2 routes, "), "{sum}");
    route(&mut story, &["del", "10.77.0.0/24"]);
    assert_eq!(goes(&mut story, 5), Some([2, 0, 0, 0, 0, 5]));

    // A file's, in place of all others, a thousand of them.
    let mut text = "# of a test\n0.0.0.0/0 peer 02:00:00:00:00:01 # by the other card\n".to_owned();
    for route in router::routes(1000, 0).expect("routes") {
        text += &format!("{route}\n");
    }
    let file = story.file("routes", text.as_bytes()).display().to_string();
    let told = objects(
        &story
            .driver
            .run(&["--json", "spine", "route", "load", &file]),
    );
    let [told] = told.as_slice() else {
        panic!("{told:?}");
    };
    let routes = told["routes"].as_array().expect("routes");
    assert!(routes.len() > 900, "{}", routes.len());
    assert_eq!(routes[0], "0.0.0.0/0 peer 02:00:00:00:00:01");
    assert_eq!((&told["domain"], &told["room"]), (&0.into(), &4095.into()));
    assert_eq!(goes(&mut story, 6), Some([2, 0, 0, 0, 0, 1]));
    // A restarted card has none of them.
    story.driver.stage.nic.recover().expect("it starts again");
    let text = refused(&mut story, &["show"]);
    assert!(text.contains("no router is loaded"), "{text}");
}

#[test]
fn routes_that_cannot_be_are_refused_and_the_others_stay() {
    let mut story = Story::with(card::policy_with_router());
    let text = refused(&mut story, &["add", "10.0.0.0/8", "host"]);
    assert!(text.contains("no router is loaded"), "{text}");
    said(&story.load(&card::ours("echo"), &["ip:1"]));
    let text = refused(&mut story, &["--domain", "0", "show"]);
    assert!(
        text.contains("domain 0 is spine-echo, which is no router"),
        "{text}"
    );
    let text = refused(&mut story, &["--domain", "3", "show"]);
    assert!(text.contains("domain 3 is not loaded"), "{text}");
    said(&story.load(&card::ours("router"), &["ether:0x800"]));
    let before = route(&mut story, &["add", "10.0.0.0/8", "02:00:00:00:00:05"]);
    assert!(before.starts_with("domain 1: 1 routes, "), "{before}");

    let text = refused(&mut story, &["add", "10.0.0.0/8", "there"]);
    assert!(text.contains("\"there\" is no next hop"), "{text}");
    let text = refused(&mut story, &["del", "10.1.0.0/16"]);
    assert!(text.contains("there is no route to 10.1.0.0/16"), "{text}");
    for prefix in ["10.0.0.1/8", "10.0.0.0/33", "10.0.0.0"] {
        let output = story.driver.run(&["spine", "route", "add", prefix, "host"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("{prefix} is no prefix")), "{text}");
    }
    let wrong = story.file("wrong", b"10.0.0.0/8 host\n10.0.0.0/8 nowhere\n");
    let text = refused(&mut story, &["load", &wrong.display().to_string()]);
    assert!(text.contains("line 2"), "{text}");
    // More than the region holds.
    let mut large = String::new();
    for route in router::routes(2000, 0).expect("routes") {
        large += &format!("{route}\n");
    }
    let large = story.file("large", large.as_bytes());
    let text = refused(&mut story, &["load", &large.display().to_string()]);
    assert!(text.contains("the router has room for 4095"), "{text}");

    let shown = route(&mut story, &["show"]);
    assert!(
        shown.starts_with("10.0.0.0/8 02:00:00:00:00:05\ndomain 1: 1 "),
        "{shown}"
    );
    assert_eq!(goes(&mut story, 1), Some([2, 0, 0, 0, 0, 5]));
    assert_ne!(frames::PEER, [2, 0, 0, 0, 0, 5]);
}
