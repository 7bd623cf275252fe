//! Tests that QEMU refuses invalid options with one clear line.

use crate::card::{Card, model, qemu};
use std::fs;
use tempfile::TempDir;

/// Runs QEMU with these machine options and returns its only line.
fn refused(machine: &str) -> String {
    let output = qemu(machine, &[]).output().expect("QEMU starts");
    assert!(!output.status.success(), "QEMU has refused {machine}");
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "one line: {text}");
    lines[0].to_owned()
}

fn assert_says(line: &str, expected: &str) {
    assert!(line.contains(expected), "{line:?} says {expected:?}");
}

#[test]
fn a_model_is_needed() {
    assert_says(
        &refused(""),
        "tigon2: no hardware model, give -M tigon2,model=FILE",
    );
    assert_says(&refused(",model=/nowhere.so"), "/nowhere.so");
    let folder = TempDir::new().expect("a temporary folder");
    let text = folder.path().join("text.so");
    fs::write(&text, "no library").expect("it can be written");
    assert_says(
        &refused(&format!(",model={}", text.display())),
        "hardware model:",
    );
}

#[test]
fn a_bad_board_is_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    let board = folder.path().join("board.toml");
    let with_board = |text: &str| {
        fs::write(&board, text).expect("it can be written");
        refused(&format!("{},board={}", model(), board.display()))
    };
    assert_says(&with_board("sram = "), "board.toml");
    let text = include_str!("../../../boards/tigon2/tigon2.toml");
    let odd = text.replace("sram_bytes = 0x10_0000", "sram_bytes = 0x18_0000");
    assert_says(&with_board(&odd), "memory.sram_bytes");
    let absent = refused(&format!("{},board=/nowhere.toml", model()));
    assert_says(&absent, "/nowhere.toml: No such file");
}

#[test]
fn a_socket_that_cannot_be_made_is_refused() {
    let line = refused(&format!("{},socket=/nowhere/card.sock", model()));
    assert_says(&line, "/nowhere/card.sock");
    let mut first = Card::start();
    let socket = first.folder.path().join("card.sock");
    let line = refused(&format!("{},socket={}", model(), socket.display()));
    assert_says(&line, "card.sock");
    assert_eq!(first.read(0x40) >> 28, 6, "the first card is still there");
}

#[test]
fn an_eeprom_of_another_size_is_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    let eeprom = folder.path().join("eeprom.bin");
    fs::write(&eeprom, [0; 100]).expect("it can be written");
    let line = refused(&format!("{},eeprom={}", model(), eeprom.display()));
    assert_says(&line, "100 bytes");
}

/// The socket goes away and the EEPROM's file is written when QEMU is told to end.
#[test]
fn qemu_ends_tidily() {
    let folder = TempDir::new().expect("a temporary folder");
    let eeprom = folder.path().join("eeprom.bin");
    let options = format!(",eeprom={}", eeprom.display());
    let mut card = Card::start_with(&options, |_| {
        vec!["-global".into(), "tigon2-card.mac=02:11:22:33:44:55".into()]
    });
    let socket = card.folder.path().join("card.sock");
    assert!(socket.exists());
    let id = card.qemu.id().to_string();
    let killed = std::process::Command::new("kill").arg(&id).status();
    assert!(killed.expect("kill runs").success());
    let status = card.qemu.wait().expect("QEMU ends");
    assert!(status.success(), "{status}");
    assert!(!socket.exists());
    let contents = fs::read(&eeprom).expect("it was written");
    assert_eq!(
        contents[0x8C..0x94],
        [0, 0, 2, 0x11, 0x22, 0x33, 0x44, 0x55]
    );
}
