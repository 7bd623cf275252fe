//! `cargo xtask qemu-run`: runs the card under QEMU with real traffic.

pub mod linux;
pub mod queues;
pub mod replay;
pub mod shell;
pub mod smoltcp;

use anyhow::{Result, bail};
use clap::ValueEnum;
use std::path::PathBuf;
use testbed::conditions::DmaChannels;
use testbed::net::namespace;
use testbed::setup::{self, Need};
use testbed::tools::Tools;
use testbed::{firmware, judge};

/// The traffic and its amount.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Network stacks that communicate through the card
    #[arg(long, value_enum, default_value_t = Stack::Auto)]
    pub stack: Stack,
    /// Echo requests of each size
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    pub count: u16,
    /// Seconds of each throughput run
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Open this many receive queues, each with a thread on a CPU of its own, and run TCP and
    /// UDP with checked bytes over them
    #[arg(long, value_name = "NUMBER",
          conflicts_with_all = ["interactive", "pcap", "pcap_out", "eeprom", "count"])]
    pub queues: Option<u8>,
    /// Leave the card running and open a shell in the namespace behind it
    #[arg(long, conflicts_with_all = ["pcap", "pcap_out"])]
    pub interactive: bool,
    /// Open the card's gdb stub beside the shell, and print how to attach to it
    #[arg(long, requires = "interactive")]
    pub gdb: bool,
    /// Let the driver load extensions that this policy accepts (tigonctl spine)
    #[arg(long, value_name = "POLICY", requires = "interactive")]
    pub extensions: Option<PathBuf>,
    /// Use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// DMA channels that move data at a time
    #[arg(long, value_enum, default_value_t = DmaChannels::Both)]
    pub dma_channels: DmaChannels,
    /// Let the card boot from its own EEPROM, in this file of cargo xtask flash
    #[arg(long, value_name = "FILE", conflicts_with_all = ["firmware", "pcap", "dma_channels"])]
    pub eeprom: Option<PathBuf>,
    /// Send the frames of this capture out of the card, instead of other traffic
    #[arg(long, value_name = "IN", requires = "pcap_out")]
    pub pcap: Option<PathBuf>,
    /// Write the frames from the card's wire to this file
    #[arg(long, value_name = "OUT", requires = "pcap")]
    pub pcap_out: Option<PathBuf>,
}

/// The network stacks at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stack {
    /// Linux where that is permitted, else smoltcp
    Auto,
    /// Linux, in two network namespaces (needs root)
    Linux,
    /// smoltcp in this process, on both sides (needs no privilege)
    Smoltcp,
}

impl Stack {
    /// What this machine permits. A fallback is reported in one line.
    fn choose(self) -> Result<Stack> {
        match (self, namespace::permitted()) {
            (Stack::Smoltcp, _) => Ok(Stack::Smoltcp),
            (_, Ok(())) => Ok(Stack::Linux),
            (Stack::Auto, Err(why)) => {
                println!("{why:#}: smoltcp talks on both sides instead of Linux");
                Ok(Stack::Smoltcp)
            }
            (Stack::Linux, Err(why)) => Err(why),
        }
    }
}

/// Runs it, prints the report and writes it.
pub fn run(arguments: &Arguments) -> Result<()> {
    firmware::file::judge(arguments.firmware.as_ref())?;
    if let Some(file) = arguments.eeprom.as_ref().filter(|file| !file.is_file()) {
        // QEMU would make one, and nothing in it boots.
        let name = file.display();
        bail!("there is no EEPROM file {name}: cargo xtask flash --eeprom {name} makes one");
    }
    if let (Some(input), Some(output)) = (&arguments.pcap, &arguments.pcap_out) {
        judge::captures(input, output)?;
        setup::ensure(&[Need::Firmware, Need::Qemu])?;
        let tools = build(arguments)?;
        return replay::run(&tools, input, output, arguments.dma_channels);
    }
    if let Some(queues) = arguments.queues {
        return queues::run(arguments, queues);
    }
    let only_linux = arguments.interactive || arguments.stack == Stack::Linux;
    if arguments.interactive && arguments.stack == Stack::Smoltcp {
        bail!("--interactive opens a shell on Linux' own stack: --stack smoltcp has none");
    }
    if only_linux {
        namespace::privileged()?;
    }
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Traffic])?;
    let stack = match only_linux {
        true => Stack::Linux,
        false => arguments.stack,
    };
    let stack = stack.choose()?;
    let tools = build(arguments)?;
    if arguments.interactive {
        return linux::interactive(&tools, arguments);
    }
    let report = match stack {
        Stack::Smoltcp => smoltcp::run(&tools, arguments)?,
        Stack::Auto | Stack::Linux => linux::run(&tools, arguments)?,
    };
    println!("{}", report.table());
    println!("report: {}", report.write()?.display());
    Ok(())
}

/// The tools, with the user's firmware if there is one.
fn build(arguments: &Arguments) -> Result<Tools> {
    let mut tools = Tools::build()?;
    tools.firmware = tools.firmware.or_file(arguments.firmware.as_ref());
    Ok(tools)
}
