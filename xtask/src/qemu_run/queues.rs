//! Linux on both sides of a card in queue mode.

use super::{Arguments, Stack, build};
use anyhow::{Result, bail};
use host_driver::knet;
use host_driver::nic::QueueSettings;
use testbed::net::namespace;
use testbed::setup::{self, Need};
use tigon_bench::{queues, report};

/// Runs it, prints the report and writes it. What must not be is an error.
pub fn run(arguments: &Arguments, number: u8) -> Result<()> {
    // First what can fail without a card.
    if arguments.stack == Stack::Smoltcp {
        bail!("--queues needs Linux' own stack, whose TAP device has queues: --stack linux");
    }
    QueueSettings::new(number).check()?;
    knet::Settings::default().cpus_of(number.into())?;
    namespace::privileged()?;
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Traffic])?;
    let tools = build(arguments)?;
    let (seconds, channels) = (arguments.seconds, arguments.dma_channels);
    let report = queues::run(&tools, number, seconds, channels)?;
    println!("{}", report.table());
    let path = report::write_json("qemu-run-queues", &report)?;
    println!("report: {}", path.display());
    let faults = report.faults();
    if !faults.is_empty() {
        bail!("{}", faults.join("; "));
    }
    Ok(())
}
