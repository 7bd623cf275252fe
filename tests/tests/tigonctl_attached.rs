//! Tests `tigonctl` beside the process that drives a card: log, trace, link, counts, registers.

use host_driver::Transport;
use host_driver::capture::FrameReader;
use host_driver::nic::Link;
use host_interface::bar;
use host_interface::command::{Command, CommandCode};
use host_interface::gencom::Gencom;
use host_interface::log::{Level, module_named};
use host_interface::ring::COMMAND_ENTRIES;
use integration_tests::stage::{elf, elf_of_another_build, in_time};
use integration_tests::tigonctl::{Driver, complaint, objects, said};
use integration_tests::{Engine, Sim};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// How long a card's link may take, by this computer's clock.
const PATIENCE: Duration = Duration::from_secs(30);

fn elf_file() -> String {
    elf().display().to_string()
}

fn texts(lines: &[Value]) -> Vec<&str> {
    let texts = lines.iter().filter_map(|line| line["text"].as_str());
    texts.collect()
}

fn until<E: Engine>(driver: &mut Driver<E>, link: Link) {
    let end = Instant::now() + PATIENCE;
    while driver.stage.nic.link() != link {
        let nic = &mut driver.stage.nic;
        in_time(end, nic, &format!("the link stays {:?}", nic.link()));
        driver.turn();
    }
}

/// A command that was to go on for a while failed, as every program does that Ctrl-C ends; one
/// without an end of its own has done what it was asked for.
#[test]
fn ctrl_c_ends_a_command_with_the_status_that_shells_know() {
    let elf = elf_file();
    for (words, signal, status) in [
        (&["--seconds", "600"][..], Signal::INT, 130),
        (&["--seconds", "600"], Signal::TERM, 143),
        (&["--follow"], Signal::INT, 0),
    ] {
        let mut driver = Driver::<Sim>::open();
        let mut child = driver.start(&[&["log", "--elf", &elf], words].concat());
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        // When it prints, it has heard of signals.
        let mut printed = Some(std::thread::spawn(|| lines.lines().next()));
        while printed.as_ref().is_some_and(|thread| !thread.is_finished()) {
            driver.turn();
        }
        let line = printed
            .take()
            .map(|thread| thread.join().expect("no panic"));
        assert!(line.flatten().is_some(), "it ended by itself");
        kill_process(Pid::from_child(&child), signal).expect("it is ours");
        let output = driver.finish(child);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {text}");
        let said = if status == 0 {
            ""
        } else {
            "tigonctl: interrupted\n"
        };
        assert_eq!(text, said, "{words:?}");
    }
}

#[test]
fn the_log_of_a_card_that_somebody_drives() {
    let mut driver = Driver::<Sim>::open();
    let elf = elf_file();
    let text = said(&driver.run(&["log", "--elf", &elf]));
    let up = text
        .lines()
        .find(|line| line.contains("link up, 1000 Mb/s"));
    let up = up.unwrap_or_else(|| panic!("{text}"));
    assert!(
        up.contains(" A INFO ") && up.contains("firmware/src/control/link/mod.rs:"),
        "{up}"
    );

    // A second one sees the same; levels change without a reset, and for each module.
    let filter = ["--level", "off", "--module", "command=debug"];
    let words = [&["--json", "log", "--elf", &elf][..], &filter].concat();
    let lines = objects(&driver.run(&words));
    let none = |part: &str| texts(&lines).iter().all(|text| !text.contains(part));
    assert!(none("command 0x") && none("link"), "{lines:?}");
    driver.stage.nic.set_promiscuous(true).expect("it is taken");
    let of_command = |line: &Value| {
        let module = line["module"].as_str().unwrap_or_default();
        module.starts_with("tigon_firmware::sides::command::")
    };
    let lines = objects(&driver.run(&words));
    assert!(
        texts(&lines)
            .iter()
            .any(|text| text.starts_with("command 0xa")),
        "{lines:?}"
    );
    assert!(lines.iter().all(of_command), "{lines:?}");
    assert_eq!(driver.stage.nic.link(), Link::Gigabit, "nothing was reset");
    // Only what is printed is filtered: the card keeps its levels.
    let leave = ["log", "--elf", &elf, "--leave", "--level", "off"];
    assert_eq!(said(&driver.run(&leave)), "");
    let block = driver
        .stage
        .nic
        .log_block()
        .expect("the card")
        .expect("a log");
    let command = module_named("command").expect("a module");
    assert_eq!(block.levels[command], Level::Debug);
}

/// The ELF file of another build, told by its build id alone, changes no level; a file that
/// was cut is none.
#[test]
fn the_log_of_another_build_is_refused_and_changes_nothing() {
    let mut driver = Driver::<Sim>::open();
    let block = driver.stage.nic.log_block().expect("the card");
    let (levels, card) = block.map(|b| (b.levels, b.build)).expect("a log");
    let folder = tempfile::tempdir().expect("a folder");
    let (path, [_, another]) = elf_of_another_build(folder.path(), 19);
    let name = path.display().to_string();
    let words = ["log", "--elf", &name, "--level", "trace"];
    let text = complaint(&driver.run(&words));
    let reported = format!("the file is of build {another}, but the card runs build {card}");
    assert!(text.contains(&name) && text.contains(&reported), "{text}");
    let block = driver.stage.nic.log_block().expect("the card");
    assert_eq!(block.expect("a log").levels, levels);

    let file = std::fs::read(&path).expect("the ELF");
    for length in [0, 100, file.len() / 2, file.len() - 1] {
        std::fs::write(&path, &file[..length]).expect("room");
        let text = complaint(&driver.run(&words));
        assert!(text.contains("no whole ELF file"), "{length}: {text}");
    }
}

/// Messages come while they are followed; both CPUs' in the parallel firmware.
#[test]
fn the_log_is_followed() {
    let mut driver = Driver::<Sim>::open();
    let elf = elf_file();
    let child = driver.start(&[
        "--json",
        "log",
        "--elf",
        &elf,
        "--follow",
        "--level",
        "debug",
        "--seconds",
        "2",
    ]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1000) {
        driver.turn();
    }
    driver.stage.nic.clear_statistics().expect("it is taken");
    let output = driver.finish(child);
    let lines = objects(&output);
    let line = |part: &str| {
        let found = lines
            .iter()
            .find(|line| line["text"].as_str().is_some_and(|t| t.contains(part)));
        found.unwrap_or_else(|| panic!("nobody says {part}: {lines:#?}"))
    };
    assert_eq!(line("command 0xf")["cpu"], "A");
    let parallel = testbed::firmware::choice::chosen().0.is_parallel();
    let cpu = if parallel { "B" } else { "A" };
    assert_eq!(line("call 2 of CPU A is done")["cpu"], cpu);
    assert!(line("call 2")["line"].as_u64().is_some_and(|line| line > 0));
}

/// What the card had no room for is said.
#[test]
fn lost_messages_are_reported() {
    const ROUNDS: usize = 8;
    const COMMANDS: u32 = 60;
    let mut driver = Driver::<Sim>::open();
    let command = module_named("command").expect("a module");
    let nic = &mut driver.stage.nic;
    nic.set_log_levels(&[(command, Level::Debug)])
        .expect("a log");
    let word = Command::new(CommandCode::Promiscuous, 1).pack();
    for _ in 0..ROUNDS {
        // Nobody fetches the log meanwhile.
        let card = driver.stage.nic.transport();
        let at = card.read(bar::MAILBOX_COMMAND_PRODUCER).expect("a word");
        let end = (at + COMMANDS) % COMMAND_ENTRIES;
        for index in (at..at + COMMANDS).map(|index| index % COMMAND_ENTRIES) {
            card.write(bar::COMMAND_RING + 4 * index, word)
                .expect("a command");
        }
        card.write(bar::MAILBOX_COMMAND_PRODUCER, end)
            .expect("a doorbell");
        driver.stage.engine.pass(Duration::from_millis(5));
        let card = driver.stage.nic.transport();
        let consumer = card.read(Gencom::CommandConsumer.bar_offset());
        assert_eq!(consumer.expect("a word"), end, "all are done");
    }
    let lines = objects(&driver.run(&["--json", "log", "--elf", &elf_file()]));
    let lost = lines.iter().find(|line| line["kind"] == "log-lost");
    let lost = lost.expect("some were lost");
    let count = lost["cpu_a"].as_u64().expect("a count");
    let texts = texts(&lines);
    let reported = texts
        .iter()
        .filter(|text| text.starts_with("command 0xa"))
        .count();
    assert!(count > 0);
    assert_eq!(
        reported as u64 + count,
        ROUNDS as u64 * u64::from(COMMANDS),
        "{lost}"
    );
}

#[test]
fn another_elf_file_is_refused() {
    let mut driver = Driver::<Sim>::open();
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = std::fs::read(elf()).expect("the ELF");
    let build = driver
        .stage
        .nic
        .log_block()
        .expect("the card")
        .expect("a log")
        .build;
    let at = bytes
        .windows(20)
        .position(|id| id == build.0)
        .expect("its id");
    bytes[at] ^= 1;
    let other = folder.path().join("other.elf");
    std::fs::write(&other, &bytes).expect("room");
    let text = complaint(&driver.run(&["log", "--elf", &other.display().to_string()]));
    assert!(
        text.contains("of build") && text.contains(&build.to_string()),
        "{text}"
    );
    std::fs::write(&other, &bytes[..bytes.len() / 2]).expect("room");
    let text = complaint(&driver.run(&["log", "--elf", &other.display().to_string()]));
    assert!(text.contains("no whole ELF file"), "{text}");
    let text = complaint(&driver.run(&["log", "--elf", &elf_file(), "--module", "cable=info"]));
    assert!(text.contains("no module cable"), "{text}");
}

#[test]
fn the_trace_is_chosen_and_read_without_a_reset() {
    let mut driver = Driver::<Sim>::open();
    let labels = |lines: &[Value]| -> Vec<String> {
        let labels = lines
            .iter()
            .map(|line| line["label"].as_str().unwrap_or_default());
        labels.map(str::to_owned).collect()
    };
    let before = labels(&objects(&driver.run(&["--json", "trace"])));
    assert!(before.contains(&"BOOT".to_owned()), "{before:?}");
    assert!(!before.contains(&"COMMAND".to_owned()), "{before:?}");
    objects(&driver.run(&["--json", "trace", "--mask", "0xffffffff"]));
    driver.stage.nic.set_promiscuous(true).expect("it is taken");
    let after = labels(&objects(&driver.run(&["--json", "trace"])));
    assert!(after.contains(&"COMMAND".to_owned()), "{after:?}");
    assert!(after.starts_with(&before), "nothing was reset: {after:?}");
}

#[test]
fn the_link_goes_down_and_up() {
    let mut driver = Driver::<Sim>::open();
    let text = said(&driver.run(&["link"]));
    assert!(
        text.starts_with("link up, 1000 Mb/s, full duplex"),
        "{text}"
    );
    assert_eq!(said(&driver.run(&["link", "down"])), "no link wanted\n");
    until(&mut driver, Link::Down);
    assert_eq!(said(&driver.run(&["link"])), "link down\n");
    objects(&driver.run(&["--json", "link", "up"]));
    until(&mut driver, Link::Gigabit);
    let link = &objects(&driver.run(&["--json", "link"]))[0];
    assert_eq!(
        (&link["up"], &link["megabits"]),
        (&Value::from(true), &Value::from(1000))
    );
    let frame = driver.stage.inbound(1);
    driver.stage.engine.send(&frame);
    assert_eq!(driver.stage.receive(1), [frame]);
}

/// Each reading command has its object.
#[test]
fn what_is_read_is_there_for_programs_too() {
    let mut driver = Driver::<Sim>::open();
    let frame = driver.stage.inbound(1);
    driver.stage.engine.send(&frame);
    driver.stage.receive(1);
    let mut one = |words: &[&str]| {
        let words = [&["--json"], words].concat();
        let mut objects = objects(&driver.run(&words));
        assert_eq!(objects.len(), 1, "{words:?}");
        objects.remove(0)
    };
    // The firmware copies its counts each hundredth of a second of the card's time.
    let start = Instant::now();
    let stats = loop {
        let stats = one(&["stats"]);
        if stats["handlers"]["receive_complete"].as_u64() >= Some(1) {
            break stats;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{stats}");
    };
    assert_eq!(stats["driver"]["frames_received"], 1, "{stats}");
    let rings = one(&["rings"]);
    let names: Vec<&Value> = rings["rings"]
        .as_array()
        .expect("rings")
        .iter()
        .map(|r| &r["name"])
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    let regs = one(&["regs", "event"]);
    assert!(regs["EventA"].is_u64() && regs["EventB"].is_u64(), "{regs}");
    let words = one(&["peek", "Magic", "2"]);
    assert_eq!(words["words"][0], host_interface::extension::MAGIC);
    let text = complaint(&driver.run(&["poke", "0x5000", "1"]));
    assert!(text.contains("only be looked at"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("out.pcap");
    let words = ["--json", "capture", "-w", &capture.display().to_string()];
    let report = &objects(&driver.run(&[&words[..], &["--seconds", "0.2"]].concat()))[0];
    assert_eq!(
        (&report["frames"], &report["dropped"]),
        (&0.into(), &0.into())
    );
    let mut frames = FrameReader::open(&capture).expect("a capture");
    assert_eq!(frames.next_frame().expect("whole"), None, "nothing passed");
}

#[test]
fn stats_are_watched() {
    let mut driver = Driver::<Sim>::open();
    let child = driver.start(&["--json", "stats", "--watch", "0.1"]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        driver.turn();
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it is ours");
    let lines = objects(&driver.finish(child));
    assert!(lines.len() > 2, "{}", lines.len());
    assert!(lines.iter().all(|line| line["kind"] == "statistics"));
    // From the second look on: what came since the one before, and by the second.
    assert!(lines[0]["deltas"].is_null(), "{}", lines[0]);
    for line in &lines[1..] {
        let timers = line["deltas"]["handlers"]["timer"].as_u64();
        let rate = line["rates"]["handlers"]["timer"].as_f64();
        let seconds = line["seconds"].as_f64();
        let (timers, rate, seconds) = (timers.unwrap(), rate.unwrap(), seconds.unwrap());
        assert!(timers > 0 && seconds >= 0.1, "{line}");
        assert!((rate * seconds - timers as f64).abs() < 0.5, "{line}");
    }
}
