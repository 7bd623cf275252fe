//! `cargo xtask build`: builds, checks and measures the firmware.

use anyhow::Result;
use testbed::firmware::{self, FirmwareOptions};
use testbed::progress;
use testbed::setup::{self, Need};

/// Builds the firmware that the user chose; the sizes, one line a memory, are its output.
pub fn run() -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    // Here it is no preparation but what was asked for.
    progress::tell_everything();
    let built = firmware::build(FirmwareOptions::default())?;
    let boot = firmware::boot::build(false)?;
    println!("{}", boot.binary.display());
    println!("{}", built.elf.display());
    println!("{}", built.tg2.display());
    Ok(())
}
