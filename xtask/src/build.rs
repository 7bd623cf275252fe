//! `cargo xtask build`: the firmware, checked and measured.

use crate::firmware::{self, FirmwareOptions};
use crate::setup::{self, Need};
use anyhow::Result;

/// What to build.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which firmware
    #[arg(long, value_enum, default_value_t)]
    pub variant: firmware::Variant,
}

/// Builds the firmware; the sizes, one line a memory, are its output.
pub fn run(arguments: &Arguments) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    let built = firmware::build(FirmwareOptions {
        variant: arguments.variant,
        quiet: false,
    })?;
    let boot = firmware::boot::build(false)?;
    println!("{}", boot.binary.display());
    println!("{}", built.elf.display());
    println!("{}", built.tg2.display());
    Ok(())
}
