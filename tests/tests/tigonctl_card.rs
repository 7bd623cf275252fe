//! Tests each command of `tigonctl` on a separate card, under QEMU.

use host_driver::capture::FrameReader;
use host_driver::peer::DatagramWire;
use integration_tests::engine::tools;
use integration_tests::frames;
use integration_tests::stage::elf_of_another_build;
use integration_tests::tigonctl::{complaint, objects, program, said};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};

/// A card that waits for commands.
struct Desk {
    card: Card,
    wire: DatagramWire,
}

impl Desk {
    fn new() -> Desk {
        let card = Card::start(&tools(), &CardOptions::default());
        let card = card.unwrap_or_else(|error| panic!("{error:#}"));
        let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card()).expect("a socket");
        Desk { card, wire }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.arg("--socket").arg(self.card.socket()).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("tigonctl runs")
    }

    fn object(&self, words: &[&str]) -> Value {
        let words = [&["--json"], words].concat();
        let mut objects = objects(&self.run(&words));
        assert!(!objects.is_empty(), "{words:?} says nothing");
        objects.remove(0)
    }
}

fn firmware() -> String {
    tools().firmware.tg2.display().to_string()
}

fn elf() -> String {
    tools().firmware.elf.display().to_string()
}

#[test]
fn a_card_is_identified_loaded_and_reset() {
    let desk = Desk::new();
    assert!(said(&desk.run(&["info"])).starts_with("card 12ae:0001, Tigon II revision 6"));
    let info = desk.object(&["info"]);
    assert_eq!(
        (&info["vendor"], &info["bus_bits"]),
        (&Value::from(0x12AE), &Value::from(64))
    );
    let load = desk.object(&["load", &firmware()]);
    assert_eq!(
        (&load["kind"], &load["extension"]),
        (&Value::from("load"), &Value::from(true))
    );
    assert_eq!(desk.object(&["reset"])["kind"], "reset");
}

#[test]
fn words_are_read_and_written_by_name_and_address() {
    let desk = Desk::new();
    let regs = desk.object(&["regs", "cpuastate"]);
    assert!(regs["CpuAState"].is_u64(), "{regs}");
    let rings = desk.object(&["rings"]);
    assert_eq!(rings["rings"][0]["name"], "send");
    // Within one life of the card: who leaves it resets it.
    let poked = desk.object(&["poke", "0x5000", "0x12345678"]);
    assert_eq!(poked["value"], 0x1234_5678);
    let peeked = desk.object(&["peek", "0x5000", "4"]);
    assert_eq!(
        peeked["words"].as_array().map(Vec::len),
        Some(4),
        "{peeked}"
    );
    let named = desk.object(&["peek", "TraceMask"]);
    assert_eq!(named["first"], 0x644);
    let text = complaint(&desk.run(&["peek", "NoSuchWord"]));
    assert!(text.contains("neither a register"), "{text}");
    let text = complaint(&desk.run(&["link", "down"]));
    assert!(text.contains("--attach"), "{text}");
    assert_eq!(desk.object(&["link"])["up"], false);
}

#[test]
fn counts_trace_and_log_of_a_run() {
    let desk = Desk::new();
    let firmware = firmware();
    let words = [
        "--json",
        "stats",
        "--all",
        "--firmware",
        &firmware,
        "--seconds",
        "0.2",
    ];
    let lines = objects(&desk.run(&words));
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["statistics-block", "statistics"]);
    assert!(lines[0]["mac"].is_object() && lines[1]["handlers"].is_object());

    let mask = ["--trace-mask", "0xffffffff", "--seconds", "0.2"];
    let words = [&["--json", "trace", "--firmware", &firmware][..], &mask].concat();
    let lines = objects(&desk.run(&words));
    assert!(
        lines.iter().any(|line| line["label"] == "LINK"),
        "{lines:?}"
    );

    let elf = elf();
    let words = [
        "--json",
        "log",
        "--firmware",
        &firmware,
        "--elf",
        &elf,
        "--seconds",
        "0.3",
    ];
    let lines = objects(&desk.run(&words));
    let up = lines
        .iter()
        .find(|line| line["text"].as_str().is_some_and(|t| t.contains("link up")));
    assert_eq!(up.unwrap_or_else(|| panic!("{lines:?}"))["cpu"], "A");
    // What a firmware has said can be read when its driver has gone.
    let lines = objects(&desk.run(&["--json", "log", "--elf", &elf]));
    assert!(lines.iter().all(|line| line["kind"] == "log"), "{lines:?}");
    // A card at which nobody has loaded anything has no log to print.
    let text = complaint(&Desk::new().run(&["log", "--elf", &elf]));
    assert!(text.contains("has no log"), "{text}");
}

/// A card gives its messages away once: not to somebody who cannot read them.
#[test]
fn another_builds_elf_file_takes_no_message_away() {
    let desk = Desk::new();
    let (firmware, elf) = (firmware(), elf());
    let folder = tempfile::tempdir().expect("a folder");
    let (path, [build, _]) = elf_of_another_build(folder.path(), 0);
    let another = path.display().to_string();

    assert_eq!(desk.object(&["load", &firmware])["kind"], "load");
    let text = complaint(&desk.run(&["log", "--elf", &another]));
    assert!(
        text.contains(&format!("the card runs build {build}")),
        "{text}"
    );
    let lines = objects(&desk.run(&["--json", "log", "--elf", &elf]));
    assert!(lines.iter().any(|line| line["kind"] == "log"), "{lines:?}");
    // Nor does a run begin whose log could not be read at its end.
    let words = ["stats", "--firmware", &firmware, "--elf", &another];
    let output = desk.run(&words);
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = complaint(&output);
    assert!(
        text.contains(&format!("the card runs build {build}")),
        "{text}"
    );
}

#[test]
fn frames_are_captured() {
    let mut desk = Desk::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("out.pcap");
    let (firmware, path) = (firmware(), file.display().to_string());
    let words = [
        "--json",
        "capture",
        "--firmware",
        &firmware,
        "--promiscuous",
        "--count",
        "3",
        "--seconds",
        "20",
        &path,
    ];
    let mut child = desk
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tigonctl starts");
    // Until it has seen enough: what is sent before the link is up is lost.
    let end = Instant::now() + Duration::from_secs(30);
    let mut number = 0;
    while child.try_wait().expect("it runs").is_none() {
        assert!(Instant::now() < end, "it does not end");
        let frame = frames::numbered([0x02, 0, 0, 0, 0, 0x77], frames::PEER, number);
        let _ = desk.wire.send_frame(&frame);
        number += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("it has ended");
    let lines = objects(&output);
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["frames"]),
        (&Value::from("capture"), &Value::from(3))
    );
    let mut reader = FrameReader::open(&file).expect("a capture");
    let mut captured = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a whole capture") {
        captured.push(frame.bytes);
    }
    assert_eq!(captured.len(), 3);
    let sent = |bytes: &Vec<u8>| {
        (0..number).any(|n| *bytes == frames::numbered([0x02, 0, 0, 0, 0, 0x77], frames::PEER, n))
    };
    assert!(captured.iter().all(sent), "byte for byte");
}
