//! Tests the command's errors: one clear line and exit status 1, before a card is needed.

use std::path::Path;
use std::process::{Command, Output};

use host_driver::capture::FrameWriter;

fn tigonctl(arguments: &[&str]) -> Output {
    Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
        .args(arguments)
        .output()
        .expect("the command runs")
}

/// The one line on standard error of a command that must fail.
fn failure(arguments: &[&str]) -> String {
    let output = tigonctl(arguments);
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    assert!(text.starts_with("tigonctl: "), "{text}");
    text
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path.display().to_string()
}

/// A file with start and load address and a few words of code.
fn image(start: u32, load: u32) -> Vec<u8> {
    let mut file = vec![0, 1, 0, 0];
    file.extend(start.to_be_bytes());
    file.extend(load.to_be_bytes());
    file.extend([0; 64]);
    file
}

#[test]
fn the_card_must_be_named_and_there() {
    assert!(failure(&["info"]).contains("--socket"));
    assert!(failure(&["--socket", "/nonexistent/card", "info"]).contains("/nonexistent/card"));
    let nowhere = failure(&["--pci", "ffff:ff:1f.7", "info"]);
    assert!(nowhere.contains("ffff:ff:1f.7") && nowhere.contains("no such PCI function"));
}

#[test]
fn firmware_is_judged_before_the_card_is_looked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let load = |name: &str, bytes: &[u8]| {
        let file = write(folder.path(), name, bytes);
        failure(&["--socket", "/nonexistent/card", "load", &file])
    };
    assert!(load("cut", &image(0x4000, 0x4000)[..30]).contains("no multiple of 4"));
    assert!(load("header", b"12").contains("too short"));
    assert!(load("outside", &image(0x4000, 0x9_0000)).contains("load address 0x90000"));
    assert!(load("start", &image(0x8000, 0x4000)).contains("start address 0x8000"));
    let text = failure(&[
        "--socket",
        "/nonexistent/card",
        "load",
        "/nonexistent/tg2.bin",
    ]);
    assert!(text.contains("/nonexistent/tg2.bin"), "{text}");
    let text = failure(&["--socket", "/nonexistent/card", "stats"]);
    assert!(
        text.contains("--firmware") && text.contains("--own"),
        "{text}"
    );
    // A good file comes as far as the card.
    assert!(load("good", &image(0x4000, 0x4000)).contains("cannot reach a card"));
}

#[test]
fn a_capture_is_judged_before_the_card_is_looked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let firmware = write(folder.path(), "tg2.bin", &image(0x4000, 0x4000));
    let replay = |capture: &str| {
        failure(&[
            "--socket",
            "/nonexistent/card",
            "replay",
            "--firmware",
            &firmware,
            capture,
        ])
    };
    let text = write(
        folder.path(),
        "text",
        b"no capture at all, just text in a file",
    );
    assert!(replay(&text).contains("not a usable capture"));
    let good = folder.path().join("good.pcap");
    FrameWriter::create(&good)
        .expect("a file")
        .finish()
        .expect("room");
    assert!(replay(&good.display().to_string()).contains("cannot reach a card"));
}

#[test]
fn json_carries_the_error_too() {
    let output = tigonctl(&["--json", "--socket", "/nonexistent/card", "info"]);
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(line["kind"], "error");
    let error = line["error"].as_str().expect("a text");
    assert!(error.contains("/nonexistent/card"), "{error}");
    assert_eq!(output.status.code(), Some(1));
}

/// As behind `| head`: whoever reads may have enough.
#[test]
fn completions_that_nobody_reads_to_their_end_are_no_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the command runs");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(text, "");
    let whole = tigonctl(&["completions", "bash"]).stdout;
    assert!(String::from_utf8_lossy(&whole).contains("complete -F _tigonctl"));
}

#[test]
fn the_peer_ends_cleanly_when_it_is_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = folder.path().join("peer");
    let remote = folder.path().join("card");
    let mut child = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
        .args(["peer", "--local"])
        .arg(&local)
        .arg("--remote")
        .arg(&remote)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the command runs");
    let patience = std::time::Instant::now();
    while !local.exists() && patience.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(local.exists(), "it has made its socket");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
    assert!(child.wait().expect("it ends").success());
    assert!(!local.exists(), "and taken its socket away");
}

/// What Bash makes of Tab: verbs, and of each verb the options that it takes.
#[test]
fn bash_completes_commands_and_their_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = tigonctl(&["completions", "bash"]);
    assert!(script.status.success());
    let path = folder.path().join("completions");
    std::fs::write(&path, script.stdout).expect("room");
    let complete = |words: &str| {
        let last = words.split(' ').next_back().unwrap_or_default();
        let count = words.split(' ').count() - 1;
        let ask = format!(
            "complete() {{ :; }}; . {}; COMP_WORDS=({words}); COMP_CWORD={count}; \
             _tigonctl tigonctl '{last}' x; echo ${{COMPREPLY[@]}}",
            path.display()
        );
        let output = Command::new("bash").args(["-c", &ask]).output();
        let output = output.expect("bash is here");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("tigonctl sta"), "stats\n");
    assert_eq!(complete("tigonctl stats --wa"), "--watch\n");
    assert_eq!(complete("tigonctl rings --a"), "--addresses --attach\n");
    assert_eq!(complete("tigonctl top --js"), "\n", "top prints no JSON");
}

#[test]
fn queues_are_judged_before_the_card_is_looked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let firmware = write(folder.path(), "good", &image(0x4000, 0x4000));
    let bridge = |words: &[&str]| {
        let mut line = vec!["--socket", "/nonexistent/card", "bridge", "--tap", "t0"];
        line.extend(["--firmware", &firmware]);
        line.extend(words);
        failure(&line)
    };
    for (words, said) in [
        (&["--queues", "0"][..], "there are 1 to 8 queues, not 0"),
        (&["--queues", "9"], "there are 1 to 8 queues, not 9"),
        (
            &["--queues", "3", "--classifier", "source-address"],
            "3 queues: source-address needs a power of two",
        ),
        (
            &["--queues", "1", "--classifier", "rss"],
            "rss is no classifier",
        ),
        (
            &["--queues", "1", "--queue-entries", "100"],
            "a power of two, 64 to 512",
        ),
        (
            &["--queues", "1", "--cpus", "4095"],
            "CPU 4095 is not one of",
        ),
        (
            &["--queues", "2", "--cpus", "0"],
            "2 queues want a CPU each, and 0 were named",
        ),
        // Good ones come as far as the card.
        (&["--queues", "1"], "cannot reach a card"),
    ] {
        let text = bridge(words);
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

#[test]
fn questions_about_queues_are_judged() {
    let explain = |words: &[&str]| {
        let mut line = vec!["rss", "explain", "10.84.0.2:40000", "10.84.0.1:80"];
        line.extend(words);
        failure(&line)
    };
    for (words, said) in [
        (&[][..], "how many queues?"),
        (&["--queues", "9"], "there are 1 to 8 queues, not 9"),
        (&["--queues", "0"], "there are 1 to 8 queues, not 0"),
        (
            &["--queues", "4", "--key", "6d5a"],
            "a key has 40 bytes, not 2",
        ),
        (
            &["--queues", "4", "--table", "0,1,2"],
            "a table has 128 entries",
        ),
        (
            &["--queues", "4", "--table", "0,4"],
            "table entry 1 names a queue that is not open",
        ),
        (
            &["--queues", "4", "--fields", "tcp"],
            "tcp is no type of hash",
        ),
        (
            &["--queues", "4", "--protocol", "udp", "--to", "9"],
            "no source port from 40000 on leads to queue 9",
        ),
    ] {
        let text = explain(words);
        assert!(text.contains(said), "{words:?}: {text}");
    }
    let other = failure(&["rss", "explain", "10.0.0.1:1", "[::1]:2", "--queues", "2"]);
    assert!(other.contains("have different versions of IP"), "{other}");
    for words in [&["queues"][..], &["rss", "show"], &["rss", "set", "equal"]] {
        let text = failure(words);
        assert!(text.contains("--attach"), "{words:?}: {text}");
    }
    let nobody = failure(&["--attach", "/nonexistent/status", "queues"]);
    assert!(nobody.contains("/nonexistent/status"), "{nobody}");
}

#[test]
fn a_flow_is_explained_without_a_card() {
    let explain = |words: &[&str]| {
        let mut line = vec!["rss", "explain", "10.84.0.2:40000", "10.84.0.1:80"];
        line.extend(["--queues", "4"]);
        line.extend(words);
        let output = tigonctl(&line);
        assert!(output.status.success(), "{line:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = explain(&[]);
    assert!(text.contains("queue ") && text.contains("entry "), "{text}");
    for queue in ["0", "1", "2", "3"] {
        let text = explain(&["--to", queue]);
        assert!(text.contains(&format!(": queue {queue}: hash ")), "{text}");
    }
    let text = explain(&["--classifier", "source-address"]);
    assert!(
        text.contains("queue 2: the source address ends in 2"),
        "{text}"
    );
    let all = ["--json", "--to", "3"];
    let value: serde_json::Value = serde_json::from_str(&explain(&all)).expect("an object");
    assert_eq!(value["kind"], "explanation");
    assert_eq!(value["queue"], 3);
}
