//! What handlers log: `tigonctl spine log` prints lines.

use crate::card;
use crate::tigonctl::Story;
use integration_tests::tigonctl::{complaint, objects, said};
use spine_text::{MARK, number};

/// The handlers of `logging`.
const LOGS: &str = "0";
const LOGS_MUCH: &str = "1";
const NEVER_RETURNS: &str = "2";
const PANICS: &str = "3";
/// The handler of `messages` that sends its arguments to the driver.
const TO_DRIVER: &str = "6";

fn send(story: &mut Story, domain: &str, handler: &str, words: &[&str]) {
    let command = [&["spine", "send", domain, handler], words].concat();
    said(&story.driver.run(&command));
}

fn log(story: &mut Story) -> Vec<String> {
    let text = said(&story.driver.run(&["spine", "log"]));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn what_a_handler_logs_is_printed_as_a_line() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("logging"), &[]));
    send(&mut story, "0", LOGS, &["0xA000001", "17"]);
    send(&mut story, "0", LOGS, &[]);
    let eight = ["1", "2", "3", "4", "5", "6", "255", "255"];
    send(&mut story, "0", LOGS, &eight);
    let expected = [
        "logging: no route for a000001, 17 in all",
        "logging: nothing was said in {braces}",
        "logging: 1 2 3 4 5 6 ff 0xff",
    ];
    assert_eq!(log(&mut story), expected);
    let lines = objects(&story.driver.run(&["--json", "spine", "log"]));
    assert_eq!(lines[0]["line"], "no route for a000001, 17 in all");
    let text = number("no route for {:x}, {} in all");
    let words = serde_json::json!([MARK, text, 0xA00_0001, 17]);
    assert_eq!(lines[0]["arguments"], words);
    // What is loaded in its place has other texts; what was logged stays.
    said(&story.driver.run(&["spine", "unload", "0"]));
    said(&story.load(&card::of_tests("empty"), &[]));
    assert_eq!(log(&mut story), expected);
}

#[test]
fn a_run_that_is_cut_off_logs_nothing() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("logging"), &[]));
    for handler in [NEVER_RETURNS, PANICS] {
        let words = complaint(&story.driver.run(&["spine", "send", "0", handler]));
        assert!(words.contains("Cut"), "{words}");
    }
    assert!(log(&mut story).is_empty());
    send(&mut story, "0", LOGS, &["1"]);
    assert_eq!(log(&mut story), ["logging: 1 words"]);
}

/// A line is one of the four messages that a run may send.
#[test]
fn a_handler_is_told_of_lines_that_have_no_room() {
    let mut story = Story::with(card::policy_with_time(100));
    said(&story.load(&card::of_tests("logging"), &[]));
    send(&mut story, "0", LOGS_MUCH, &["6"]);
    let expected = (0..4).map(|line| format!("logging: line {line} of 6"));
    assert!(log(&mut story).into_iter().eq(expected));
    let stats = objects(&story.driver.run(&["--json", "spine", "stats", "0"]));
    assert_eq!(stats[0]["counters"][0], 2);
}

/// Whatever a handler sends, the log is printed.
#[test]
fn a_line_whose_text_is_not_known_is_printed_as_words() {
    let mut story = Story::with(card::policy());
    said(&story.load(&card::of_tests("messages"), &[]));
    said(&story.load(&card::of_tests("logging"), &[]));
    let mark = MARK.to_string();
    let text = number("{} words").to_string();
    let from = "messages, domain 0, handler 6";
    let note = "(a line of a log whose text is not known)";
    let mut expected = Vec::new();
    // A number of nothing, and the text of another extension.
    for text in ["1", &text] {
        send(&mut story, "0", TO_DRIVER, &[&mark, text, "17"]);
        let text: u32 = text.parse().expect("a number");
        expected.push(format!("{from}: {MARK:#x} {text:#x} 0x11 {note}"));
    }
    // No line: the mark alone, and the mark elsewhere.
    send(&mut story, "0", TO_DRIVER, &[&mark]);
    expected.push(format!("{from}: {MARK:#x}"));
    send(&mut story, "0", TO_DRIVER, &["0", &mark, &text]);
    expected.push(format!("{from}: 0x0 {MARK:#x} {:#x}", number("{} words")));
    assert_eq!(log(&mut story), expected);
}
