//! Tests status queries to a card: through the process that drives it, never past it.

mod support;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use host_driver::status::{Request, StatusServer, ask, words};
use host_driver::{Config, Nic};
use host_interface::extension::{self, Extension};
use support::{ScriptedCard, open_card};
use tempfile::TempDir;

/// Runs `tigonctl --attach` while the driver serves its card.
fn attached(server: &StatusServer, nic: &mut Nic<ScriptedCard>, words: &[&str]) -> Output {
    let path = server.path().to_owned();
    let mut child = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
        .arg("--attach")
        .arg(path)
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    while child.try_wait().expect("it runs").is_none() {
        server.serve(nic);
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().expect("it has ended")
}

fn server(folder: &TempDir) -> StatusServer {
    StatusServer::bind(&folder.path().join("status")).expect("a socket")
}

fn says(output: Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_card_that_is_driven_can_be_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    nic.transport().bench.set_word(0x5000, 0x1234_5678);

    let magic = says(attached(&server, &mut nic, &["peek", "magic"]));
    assert!(
        magic.contains(&format!("{:08x}", extension::MAGIC)),
        "{magic}"
    );
    let memory = says(attached(&server, &mut nic, &["peek", "0x5000", "2"]));
    assert_eq!(memory, "005000  12345678 00000000\n");
    let regs = says(attached(&server, &mut nic, &["regs", "cpuastate"]));
    assert!(
        regs.starts_with("CPU A (sections 2, 3.4):\n     140 RW  CpuAState "),
        "{regs}"
    );
    let rings = says(attached(&server, &mut nic, &["rings"]));
    assert!(
        rings.contains("mac receive") && !rings.contains("0x"),
        "{rings}"
    );
    let rings = says(attached(&server, &mut nic, &["rings", "--addresses"]));
    assert!(rings.contains("0x"), "{rings}");
    let stats = says(attached(&server, &mut nic, &["--json", "stats"]));
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("an object");
    assert_eq!(stats["kind"], "statistics");
    assert!(stats["driver"]["frames_sent"].is_u64(), "{stats}");
    nic.service().expect("the card goes on");
}

/// A newcomer's first command in the shell beside the driver.
#[test]
fn what_a_driven_card_is_the_driver_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    let text = says(attached(&server, &mut nic, &["info"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("card 12ae:0001, Tigon II revision 6, station 00:60:cf:20:12:34"),
        "{text}"
    );
    let driver = format!("driven by process {}: firmware ", std::process::id());
    assert!(lines[1].starts_with(&driver), "{text}");
    let info = says(attached(&server, &mut nic, &["--json", "info"]));
    let info: serde_json::Value = serde_json::from_str(&info).expect("an object");
    assert_eq!(info["driver"], std::process::id());
    assert_eq!(info["station"], "00:60:cf:20:12:34");
    nic.service().expect("nothing was reset");
}

/// One name a line, in groups; every word of the card's block, too, if it is asked for.
#[test]
fn counts_of_a_driven_card_stand_one_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    let frame = support::frame(1, 100);
    nic.queue(&[std::io::IoSlice::new(&frame)]).expect("room");
    nic.submit().expect("the card");
    let text = says(attached(&server, &mut nic, &["stats"]));
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("firmware "))
    );
    for line in lines {
        let name = line.strip_prefix("     ").unwrap_or(line);
        let words: Vec<&str> = name.split_whitespace().collect();
        let is_heading = line.ends_with(':') && !line.starts_with(' ');
        assert!(is_heading || words.len() == 2, "{line}");
        assert!(is_heading || words[0] == words[0].to_lowercase(), "{line}");
    }
    assert!(text.contains("\ndriver:\n"), "{text}");
    let sent = text.lines().find(|line| line.contains("frames_sent:"));
    assert!(sent.is_some_and(|line| line.ends_with(" 1")), "{text}");
    let all = says(attached(&server, &mut nic, &["stats", "--all"]));
    assert!(all.contains("accepted_unicast:"), "{all}");
    assert!(all.contains("in_octets:"), "{all}");
}

#[test]
fn a_card_that_is_driven_cannot_be_changed_from_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    for words in [&["poke", "0x5000", "1"][..], &["reset"]] {
        let output = attached(&server, &mut nic, words);
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text.contains("only be looked at"), "{words:?}: {text}");
    }
}

/// An asker that has to wait for a CPU takes its answer later than the driver has it: all of
/// it waits in the socket.
#[test]
fn an_answer_is_whole_for_whoever_takes_it_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    let longest = Request::Memory {
        address: 0,
        words: 512,
    };
    for request in [Request::Statistics, longest] {
        let mut asker = UnixStream::connect(server.path()).expect("a connection");
        let request = serde_json::to_string(&request).expect("text");
        asker
            .write_all(format!("{request}\n").as_bytes())
            .expect("room");
        server.serve(&mut nic);
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut asker, &mut answer).expect("an answer");
        let read = serde_json::from_str::<serde_json::Value>(&answer);
        assert!(read.is_ok(), "{request}: {} bytes: {read:?}", answer.len());
    }
}

#[test]
fn what_cannot_be_answered_is_said_and_nobody_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    // Somebody who says nothing, and somebody who talks nonsense.
    let _silent = UnixStream::connect(server.path()).expect("a connection");
    let mut nonsense = UnixStream::connect(server.path()).expect("a connection");
    nonsense.write_all(b"{\"poke\": 1}\n").expect("room");
    server.serve(&mut nic);
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut nonsense, &mut answer).expect("an answer");
    assert!(answer.contains("error"), "{answer}");

    let path = server.path().to_owned();
    let asker = std::thread::spawn(move || {
        let window = Request::Registers {
            offsets: vec![0x800],
        };
        let long = Request::Memory {
            address: 0,
            words: 513,
        };
        let word = Request::Registers {
            offsets: vec![Extension::Magic.bar_offset()],
        };
        (ask(&path, &window), ask(&path, &long), ask(&path, &word))
    });
    while !asker.is_finished() {
        server.serve(&mut nic);
        std::thread::sleep(Duration::from_millis(1));
    }
    let (window, long, word) = asker.join().expect("no panic");
    assert!(
        window
            .expect_err("not the window")
            .to_string()
            .contains("0x800")
    );
    assert!(
        long.expect_err("too many")
            .to_string()
            .contains("512 words")
    );
    let word = words(&word.expect("an answer")).expect("words");
    assert_eq!(word, [extension::MAGIC]);
}

/// A socket that a killed process left is taken over, one in use and a file are not.
#[test]
fn the_socket_is_nobody_elses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    assert!(Path::exists(&path), "left behind");
    let server = StatusServer::bind(&path).expect("nobody listens");
    assert!(StatusServer::bind(&path).is_err(), "somebody listens");
    drop(server);
    assert!(!Path::exists(&path), "and taken away at the end");
    std::fs::write(&path, "a file").expect("room");
    assert!(StatusServer::bind(&path).is_err());
    assert_eq!(
        std::fs::read_to_string(&path).expect("still there"),
        "a file"
    );
}

#[test]
fn a_card_in_classic_mode_says_that_it_has_no_queues() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut nic = open_card(Config::default());
    for words in [&["queues"][..], &["rss", "show"], &["rss", "set", "equal"]] {
        let output = attached(&server, &mut nic, words);
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("bridge --queues opens them"), "{text}");
    }
}
