//! Tests that invalid options end QEMU with one line and an exit status.

use crate::fake::FakeCard;
use crate::pc::{self, Memory, tools_or_skip};
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use vfio_user_nic::Client;

/// The line that QEMU ends with when it is given this device.
fn refusal(qemu: &Path, device: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    let ended = pc::command(qemu, Memory::Shared, folder.path())
        .args(["-device", device, "-qtest", "stdio", "-qtest-log", "none"])
        .stdin(Stdio::null())
        .output()
        .expect("QEMU starts");
    assert!(!ended.status.success(), "{device}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_device_wants_a_socket_and_a_library() {
    let (qemu, _) = tools_or_skip!();
    let said = refusal(&qemu, "tigon2-vfio-user");
    assert!(said.contains("give socket=PATH and library=FILE"), "{said}");
}

#[test]
fn a_socket_must_be_there() {
    let (qemu, client) = tools_or_skip!();
    let device = pc::device(&client, Path::new("/nowhere/card"), 0);
    let said = refusal(&qemu, &device);
    assert!(said.contains("cannot connect to /nowhere/card"), "{said}");
}

#[test]
fn a_library_must_be_a_client() {
    let (qemu, _) = tools_or_skip!();
    let absent = pc::device(Path::new("/nowhere/client.so"), Path::new("/a"), 0);
    let said = refusal(&qemu, &absent);
    assert!(said.contains("/nowhere/client.so"), "{said}");
    let other = pc::device(Path::new("libm.so.6"), Path::new("/a"), 0);
    let said = refusal(&qemu, &other);
    assert!(said.contains("is not a vfio-user client"), "{said}");
}

#[test]
fn a_card_has_one_user_at_a_time() {
    let (qemu, client) = tools_or_skip!();
    let card = FakeCard::new();
    let user = Client::connect(&card.socket, std::time::Duration::from_secs(5));
    let mut user = user.expect("a card");
    user.device_info().expect("it answers, and has a user now");
    let said = refusal(&qemu, &pc::device(&client, &card.socket, 0));
    assert!(said.contains("busy with another client"), "{said}");
}
