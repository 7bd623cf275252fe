//! Tests what gdb reads from the firmware's ELF file without a card.

use integration_tests::engine::tools;
use std::process::{Command, Stdio};

/// What gdb says to a command, on both outputs.
fn gdb(command: &str) -> String {
    let output = Command::new("gdb-multiarch")
        .args(["-batch", "-nx", "-ex", command])
        .arg(tools().firmware.elf)
        .stdin(Stdio::null())
        .output()
        .expect("gdb-multiarch is installed");
    let [out, err] = [output.stdout, output.stderr];
    String::from_utf8_lossy(&out).into_owned() + &String::from_utf8_lossy(&err)
}

/// A CPU that was never started is at address 0: no text of the log and no function that the
/// linker left out may seem to be there.
#[test]
fn nothing_is_at_address_0() {
    let said = gdb("info line *0");
    assert!(!said.contains("warning"), "{said}");
    assert!(said.contains("No line number information"), "{said}");
    let said = gdb("info line tigon_firmware::events::receive_complete<tigon2_hal::mmio::Mmio>");
    assert!(said.contains("firmware/src/events.rs"), "{said}");
}
