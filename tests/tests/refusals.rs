//! Tests refusals: one line, and before anything takes time.

use integration_tests::unprivileged::{Machine, Nobody, TAP_FOR_ALL};
use integration_tests::xtask_command::{complaint, xtask};
use std::process::{Command, Output, Stdio};

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("it starts")
}

/// What it says on a machine on which nothing can be built or installed: no Cargo, no QEMU, an
/// empty cache, no package manager.
fn refusal(words: &[&str]) -> String {
    let cache = tempfile::tempdir().unwrap();
    let output = run(xtask(words)
        .env("CARGO", "/nonexistent/cargo")
        .env("PATH", "/nonexistent")
        .env("TIGON_QEMU_SRC", "/nonexistent/qemu")
        .env("TIGON_CACHE", cache.path()));
    complaint(&output)
}

/// Machines differ in who may open the TAP device, and in whether anybody has made a
/// namespace yet; a user without privileges may make none on any.
#[test]
fn no_permission_for_tap_is_one_clear_line() {
    let nobody = Nobody::new();
    for machine in Machine::every() {
        let output = run(&mut nobody.command(machine, &["qemu-run", "--stack", "linux"]));
        let said = complaint(&output);
        assert!(said.contains("no permission"), "{machine:?}: {said}");
    }
}

/// As behind a `sudo -u` that kept root's home.
#[test]
fn no_right_to_the_cache_names_the_variable_to_set() {
    let words = ["qemu-run", "--stack", "smoltcp"];
    let output = run(Nobody::new()
        .command(TAP_FOR_ALL, &words)
        .env_remove("TIGON_CACHE")
        .env_remove("XDG_CACHE_HOME")
        .env("HOME", "/proc"));
    let said = complaint(&output);
    assert!(said.contains("/proc/.cache/tigon-rs"), "{said}");
    assert!(said.contains("TIGON_CACHE"), "{said}");
}

/// Whatever runs the card: a file that is no image costs no build and no start.
#[test]
fn a_file_that_is_no_firmware_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tg2.bin");
    let name = path.to_str().unwrap();
    for verb in [
        &["qemu-run"][..],
        &["sim-run"],
        &["guest"],
        &["soak", "--guest"],
    ] {
        let _ = std::fs::remove_file(&path);
        let said = refusal(&[verb, &["--firmware", name]].concat());
        assert!(
            said.contains("cannot read the firmware"),
            "{verb:?}: {said}"
        );
        assert!(said.contains(name), "{verb:?}: {said}");
        std::fs::write(&path, b"not an image").unwrap();
        let said = refusal(&[verb, &["--firmware", name]].concat());
        assert!(said.contains("is no firmware image"), "{verb:?}: {said}");
        assert!(said.contains(name), "{verb:?}: {said}");
    }
}

#[test]
fn what_is_not_there_is_named_before_anything_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("in.pcap");
    std::fs::write(&capture, b"no capture at all, just text in a file").unwrap();
    let capture = capture.to_str().unwrap();
    let folder = folder.path().to_str().unwrap();
    for (words, reason) in [
        (&["bench", "--profile", "nope"][..], "nope"),
        (&["trace", "--profile", "nope"], "nope"),
        (&["gdb", "--sim", "--profile", "nope"], "nope"),
        (
            &["flash", "--eeprom", "/nonexistent/card"],
            "folder /nonexistent",
        ),
        (&["flash", "--eeprom", folder], "is a folder"),
        (
            &["flash", "--socket", "/nonexistent"],
            "no card at /nonexistent",
        ),
        (&["flash", "--pci", "ffff:ff:1f.7"], "no such PCI function"),
        (&["flash", "--pci", "nonsense"], "no PCI address"),
        (
            &["flash", "--eeprom", "x", "--image", "/nonexistent"],
            "cannot read",
        ),
        (&["qemu-run", "--eeprom", "/nonexistent"], "no EEPROM file"),
        (
            &["qemu-run", "--pcap", capture, "--pcap-out", "x"],
            "in.pcap",
        ),
        (
            &["sim-run", "--pcap", capture, "--pcap-out", "x"],
            "in.pcap",
        ),
        (
            &["sim-run", "--timeline", "/nonexistent/t"],
            "folder /nonexistent",
        ),
        (&["qemu-run", "--queues", "0"], "1 to 8 queues, not 0"),
        (&["qemu-run", "--queues", "9"], "1 to 8 queues, not 9"),
        (
            &["qemu-run", "--queues", "2", "--stack", "smoltcp"],
            "--queues needs Linux' own stack",
        ),
        (
            &["qemu-run", "--interactive", "--stack", "smoltcp"],
            "--interactive",
        ),
        (&["bench", "--guest"], "--engine qemu"),
    ] {
        let said = refusal(words);
        assert!(said.contains(reason), "{words:?}: {said}");
    }
}

/// The firmware tells what it has: it is built for that, and QEMU is not.
#[test]
fn a_function_that_is_none_is_refused_before_qemu_is_built() {
    for words in [
        &["gdb", "--break", "no_such_handler"][..],
        &["gdb", "--sim", "--break", "no_such_handler"],
    ] {
        let said = complaint(&run(xtask(words).env("TIGON_QEMU_SRC", "/nonexistent/qemu")));
        assert!(said.contains("no function no_such_handler"), "{said}");
    }
}

/// Cargo alone can tell, and needs no build for it.
#[test]
fn a_package_that_is_none_is_refused_before_anything_is_built() {
    let mut command = xtask(&["test", "--package", "nope"]);
    let said = complaint(&run(command.env("TIGON_QEMU_SRC", "/nonexistent/qemu")));
    assert!(
        said.contains("no package nope") && said.contains("xtask"),
        "{said}"
    );
}

/// What cannot go together is refused before anything is built.
#[test]
fn options_of_the_guest_that_contradict_each_other_are_refused() {
    for words in [
        &["--two", "--router"][..],
        &["--two", "--cards", "2"],
        &["--router", "--peer", "linux"],
        &["--cards", "0"],
        &["--cards", "5"],
        &["--memory", "1"],
        &["--peer", "nobody"],
    ] {
        let output = run(&mut xtask(&[&["guest"], words].concat()));
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
    let output = run(&mut xtask(&["soak"]));
    assert_eq!(output.status.code(), Some(2), "a soak of what?");
}
