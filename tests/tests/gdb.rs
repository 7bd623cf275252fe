//! `gdb-multiarch` on the machine's stub: both CPUs, a Rust handler by name, a
//! local by name.

use host_driver::{Config, Nic};
use integration_tests::engine::tools;
use integration_tests::{Engine, Qemu, frames, stage};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use xtask::card::CardOptions;

/// The line of a source file that begins with these words.
fn line(file: &str, words: &str) -> String {
    let source = std::fs::read_to_string(xtask::paths::root().join(file)).unwrap();
    let found = source
        .lines()
        .position(|l| l.trim_start().starts_with(words));
    format!("{file}:{}", found.expect("the words are in the source") + 1)
}

/// gdb on the card's stub; it gives up by itself if a breakpoint is never hit.
fn gdb(stub: &Path, script: &[&str]) -> Child {
    let remote = format!("target remote {}", stub.display());
    let start = ["set pagination off", "set breakpoint pending off", &remote];
    let mut command = Command::new("timeout");
    command
        .args(["60", "gdb-multiarch", "-batch", "-nx"])
        .arg(tools().firmware.elf)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for step in start.iter().chain(script) {
        command.args(["-ex", step]);
    }
    command.spawn().expect("gdb-multiarch is installed")
}

#[test]
fn gdb_stops_in_a_handler_and_prints_a_local() {
    let (mut engine, transport) = Qemu::with(&CardOptions {
        gdb: true,
        ..CardOptions::default()
    });
    let mut nic = Nic::probe(transport, Config::default()).unwrap();
    nic.load(&stage::firmware()).unwrap();
    nic.open().unwrap();
    nic.wait_link(Duration::from_secs(5)).unwrap();
    let frame = frames::numbered(nic.station(), frames::PEER, 2);

    // Behind this line the handler has judged the frame.
    let judged = line(
        "firmware/src/receive/frame.rs",
        "let ring = receive.rings.get(which);",
    );
    let gdb = gdb(
        &engine.card.gdb(),
        &[
            "info threads",
            "break tigon_firmware::events::receive_complete<tigon2_hal::mmio::Mmio>",
            "continue",
            "delete",
            &format!("break {judged}"),
            "continue",
            "print length",
            "delete",
            "detach",
        ],
    );
    // Frames until gdb has seen one: it may not have its breakpoint yet.
    let output = std::thread::scope(|scope| {
        let gdb = scope.spawn(move || gdb.wait_with_output().unwrap());
        while !gdb.is_finished() {
            engine.send(&frame);
            std::thread::sleep(Duration::from_millis(100));
        }
        gdb.join().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stdout);
    let shown = format!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Thread 1.1"), "CPU A: {shown}");
    assert!(said.contains("Thread 1.2"), "CPU B: {shown}");
    assert!(
        said.contains("hit Breakpoint 1, tigon_firmware::events::receive_complete"),
        "{shown}"
    );
    let length = format!("$1 = {}\n", frame.len());
    assert!(said.contains(&length), "{length}: {shown}");

    // Without gdb the card goes on as if nothing had been.
    let end = std::time::Instant::now() + Duration::from_secs(5);
    let mut received = Vec::new();
    while received.is_empty() {
        assert!(std::time::Instant::now() < end, "the card is stuck");
        nic.wait(Duration::from_millis(20)).unwrap();
        nic.service().unwrap();
        received = nic.receive_batch(64).unwrap();
    }
    assert_eq!(received[0], frame);
}
