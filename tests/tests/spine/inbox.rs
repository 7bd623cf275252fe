//! The endpoint of the process that drives the card: `tigonctl spine log`.

use crate::card;
use crate::tigonctl::{Story, beside};
use host_driver::status::{Request, ask};
use host_interface::extension::Extension;
use host_interface::spine::endpoint_word;
use host_interface::spine::rings::EndpointWord;
use integration_tests::tigonctl::{objects, said};
use std::path::PathBuf;

/// The handler of `messages` that sends its arguments to the driver.
const TO_DRIVER: u8 = 6;

fn log(story: &mut Story) -> String {
    said(&story.driver.run(&["spine", "log"]))
}

/// Words of the driver's row in `tigonctl spine endpoints`, while its endpoint is open.
fn row(story: &mut Story) -> Option<Vec<String>> {
    let list = said(&story.driver.run(&["spine", "endpoints"]));
    let mut rows = list.lines().skip(1).map(str::split_whitespace);
    let row = rows.find_map(|mut row| (row.next() == Some("1")).then_some(row));
    row.map(|row| row.map(str::to_owned).collect())
}

#[test]
fn what_handlers_send_to_the_driver_is_in_the_log() {
    let mut story = Story::with(card::policy());
    assert_eq!(log(&mut story), "");
    assert_eq!(row(&mut story), None, "nothing is loaded");
    said(&story.load(&card::of_tests("empty"), &[]));
    said(&story.load(&card::of_tests("messages"), &[]));
    said(&story.driver.run(&["spine", "send", "1", "6", "17", "0xFF"]));
    said(&story.driver.run(&["spine", "send", "1", "6"]));
    // Its last run sends.
    said(&story.driver.run(&["spine", "send", "1", "1", "0", "1"]));
    let text = log(&mut story);
    let lines: Vec<&str> = text.lines().collect();
    let [first, second, third] = lines[..] else {
        panic!("{text}");
    };
    assert_eq!(first, "messages, domain 1, handler 6: 0x11 0xff");
    assert_eq!(second, "messages, domain 1, handler 6:");
    assert!(
        third.starts_with("messages, domain 1, handler 1: 0x"),
        "{text}"
    );
    let of_driver = row(&mut story).expect("it is open");
    assert_eq!(of_driver[..3], ["0", "0", "3"]);
    // What has the number of the extension next does not get its words.
    said(&story.driver.run(&["spine", "unload", "1"]));
    said(&story.load(&card::of_tests("empty"), &[]));
    assert_eq!(log(&mut story), text);
    let lines = objects(&story.driver.run(&["--json", "spine", "log"]));
    assert_eq!(lines[0]["extension"], "messages");
    assert_eq!(
        (&lines[0]["domain"], &lines[0]["handler"]),
        (&1.into(), &6.into())
    );
    assert_eq!(lines[0]["arguments"], serde_json::json!([17, 255]));
    assert_eq!(lines[2]["number"], 2);
    for domain in ["0", "1"] {
        said(&story.driver.run(&["spine", "unload", domain]));
    }
    assert_eq!(row(&mut story), None, "nothing is loaded any more");
    assert_eq!(log(&mut story), text);
}

/// More than the ring holds, and more than the driver keeps.
#[test]
fn the_driver_takes_all_and_keeps_the_newest() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("messages"), &[]));
    let path = PathBuf::from(&story.driver.arguments()[1]);
    beside(&mut story, move || {
        for number in 0..300 {
            let request = Request::SendMessage {
                domain: 0,
                handler: TO_DRIVER,
                arguments: vec![number],
            };
            ask(&path, &request).expect("it runs");
        }
    });
    let text = log(&mut story);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("44 messages are not kept any more"));
    let expected = (44..300).map(|number| format!("messages, domain 0, handler 6: {number:#x}"));
    assert!(lines.eq(expected), "{text}");
    assert_eq!(row(&mut story).expect("it is open")[2], "300");
}

/// Firmware that is started anew knows no endpoint: the driver opens its own again.
#[test]
fn a_recovery_opens_the_endpoint_anew() {
    let mut story = Story::with(card::policy());
    for word in ["1", "2"] {
        said(&story.load(&card::of_tests("messages"), &[]));
        said(&story.driver.run(&["spine", "send", "0", "6", word]));
        let text = log(&mut story);
        let last = format!("messages, domain 0, handler 6: 0x{word}");
        assert_eq!(text.lines().last(), Some(last.as_str()));
        story.driver.stage.nic.recover().expect("it starts again");
        assert_eq!(row(&mut story), None);
    }
    assert_eq!(log(&mut story).lines().count(), 2);
}

#[test]
fn the_endpoint_is_closed_when_the_driver_ends() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("messages"), &[]));
    let is_open = |nic: &mut host_driver::nic::Control<_>| {
        let [mut block, mut open] = [[0]; 2];
        let at = Extension::Spine.nic_address();
        nic.peek_memory(at, &mut block).expect("the card is there");
        let at = block[0] + endpoint_word(0, EndpointWord::Open);
        nic.peek_memory(at, &mut open).expect("the card is there");
        open == [1]
    };
    assert!(is_open(&mut story.driver.stage.nic));
    let mut stage = story.driver.end();
    assert!(!is_open(&mut stage.nic));
}
