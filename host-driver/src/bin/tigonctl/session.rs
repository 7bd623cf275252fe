//! A session with a running card, from loading its firmware to its final counts.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use host_driver::Config;
use host_driver::flash::signature::TrustedKey;

use super::cli::{Arguments, RunOptions};
use super::connect::{AnyNic, connect, needs_the_card};
use super::messages;
use super::output::Output;
use super::stats::printer;

/// Reads a firmware file.
pub fn read_firmware(path: &Path) -> Result<Vec<u8>> {
    let file = std::fs::read(path).with_context(|| format!("firmware {}", path.display()))?;
    host_interface::image::Image::parse(&file)
        .with_context(|| format!("firmware {} is refused", path.display()))?;
    Ok(file)
}

/// Connects, loads, opens and waits for the link.
pub fn bring_up(arguments: &Arguments, options: &RunOptions) -> Result<AnyNic> {
    let mut nic = start(arguments, options)?;
    nic.open()?;
    nic.set_all_multicast(true)?;
    if options.promiscuous {
        nic.set_promiscuous(true)?;
    }
    nic.wait_link(Duration::from_secs(options.link_timeout))?;
    Ok(nic)
}

/// Connects, and gets the firmware going.
pub fn start(arguments: &Arguments, options: &RunOptions) -> Result<AnyNic> {
    // Errors that need no card come first.
    needs_the_card(arguments)?;
    if options.firmware.is_none() && !options.own {
        bail!("which firmware? Name a file with --firmware FILE or take the card's --own");
    }
    let firmware = options.firmware.as_deref().map(read_firmware).transpose()?;
    let elf = options.elf.as_deref();
    let texts = elf.map(messages::read_texts).transpose()?;
    let mut config = Config::default();
    options.apply(&mut config);
    let key = options.require_key.as_deref();
    config.required_key = key.map(TrustedKey::required).transpose()?;
    let mut nic = connect(arguments, config)?;
    match &firmware {
        Some(firmware) => nic.load(firmware)?,
        None => {
            nic.boot()?;
        }
    }
    // Not at the end of the work.
    if let (Some(elf), Some(texts), Some(block)) = (elf, &texts, nic.log_block()?) {
        let named = || format!("ELF file {}", elf.display());
        texts.check(block.build).with_context(named)?;
    }
    Ok(nic)
}

/// Prints the log if there are texts, prints all counts, and halts the card.
pub fn finish(mut nic: AnyNic, options: &RunOptions, output: &Output) -> Result<()> {
    if let Some(elf) = &options.elf {
        messages::print_rest(&mut nic, elf, output)?;
    }
    let statistics = nic.statistics()?;
    printer::print(&statistics, output)?;
    nic.shut_down()?;
    Ok(())
}
