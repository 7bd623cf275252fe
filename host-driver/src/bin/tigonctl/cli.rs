//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use host_driver::transport::vfio::PciAddress;

mod flash;
mod look;
mod run;
mod traffic;

pub use flash::{FlashAction, FlashOptions};
pub use look::{LogOptions, StatsOptions, TraceOptions};
pub use run::{RunOptions, number};
pub use traffic::{
    BridgeOptions, CaptureOptions, Direction, PeerOptions, PingOptions, Protocol, ReplayOptions,
    ThroughputOptions,
};

const EXAMPLE: &str = "Example:\n  \
    tigonctl --socket /tmp/card.sock info\n  \
    tigonctl --socket /tmp/card.sock bridge --tap tigon0 --firmware tg2.bin\n  \
    tigonctl --pci 0000:00:03.0 ping 10.84.0.2 --firmware tg2.bin --jumbo --size 8000";

/// Works with a Tigon II card from user space.
#[derive(Debug, Parser)]
#[command(name = "tigonctl", version, about, after_help = EXAMPLE)]
pub struct Arguments {
    /// Socket of the emulated card (vfio-user).
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "pci")]
    pub socket: Option<PathBuf>,
    /// PCI address of a card in this machine, bound to vfio-pci.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub pci: Option<PciAddress>,
    /// Status socket of the process that drives the card (`bridge --status`).
    #[arg(long, global = true, value_name = "PATH", env = "TIGON_ATTACH",
          conflicts_with_all = ["socket", "pci"])]
    pub attach: Option<PathBuf>,
    /// Print JSON, one object a line.
    #[arg(long, global = true)]
    pub json: bool,
    /// Read the send consumer index from the card instead of host memory.
    #[arg(long, global = true)]
    pub consumer_by_register: bool,
    /// Look at the rings all the time instead of waiting for interrupts.
    #[arg(long, global = true)]
    pub polling: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do with the card.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Identify the card: ids, chip revision, bus, station address.
    Info,
    /// Load firmware, wait until it is operational and report what it is.
    Load {
        /// The firmware (tg2.bin).
        firmware: PathBuf,
    },
    /// Run the card for a time and print all counts.
    Stats(StatsOptions),
    /// Print the firmware's trace ring: of a card as it is, of one that another process
    /// drives, or, with firmware named, after running it for a time.
    Trace(TraceOptions),
    /// Print the firmware's log: of a card as it is, of one that another process drives, or,
    /// with firmware named, while running it.
    #[command(after_help = look::LOG_EXAMPLE)]
    Log(LogOptions),
    /// Join the card to a TAP device until Ctrl-C.
    Bridge(BridgeOptions),
    /// Send all frames of a capture out of the card, in order.
    Replay(ReplayOptions),
    /// Write frames to a capture: those that the card receives, or beside its driver those
    /// of both ways.
    #[command(after_help = traffic::CAPTURE_EXAMPLE)]
    Capture(CaptureOptions),
    /// Ping a host on the wire, with a stack in this process.
    Ping(PingOptions),
    /// Measure TCP or UDP against a peer, with a stack in this process.
    Throughput(ThroughputOptions),
    /// Be the host at the far end of the wire (a unix datagram socket).
    Peer(PeerOptions),
    /// Print registers as they are, by the units of the chip, without a reset.
    Regs {
        /// Only those with this in their names, or those of the unit that is called so.
        name: Option<String>,
    },
    /// Print words as they are, without a reset.
    Peek {
        /// A register, a word of gencom by its name, or a NIC address.
        place: String,
        /// How many words.
        #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=512))]
        words: u32,
    },
    /// Write a word, without a reset.
    Poke {
        /// A register, a word of gencom by its name, or a NIC address.
        place: String,
        /// The value.
        #[arg(value_parser = number)]
        value: u32,
    },
    /// Print producer, consumer and fill of the card's rings as they are, without a reset.
    Rings {
        /// Print where the entries lie in the card's memory, too.
        #[arg(long)]
        addresses: bool,
    },
    /// Print what the link is, or have the driver take it up or down.
    Link {
        /// What it is to be.
        #[arg(value_enum)]
        wanted: Option<LinkWanted>,
    },
    /// Reset the card and leave it halted.
    Reset,
    /// Watch a card that another process drives: load, rings, rates, drops.
    Top {
        /// Seconds between two looks.
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        interval: f64,
        /// The firmware's ELF file: shows each handler's part of its CPU's time.
        #[arg(long, value_name = "FILE", env = "TIGON_ELF")]
        elf: Option<PathBuf>,
    },
    /// Install firmware in the card's own EEPROM, or look at what is there.
    #[command(after_help = flash::EXAMPLE)]
    Flash(FlashOptions),
    /// Print the completions of this command for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of this command, one for each verb.
    #[command(after_help = "Example: tigonctl man /usr/local/share/man/man1")]
    Man {
        /// The folder for them, which is made if it is not there.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// What a link is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkWanted {
    /// There.
    Up,
    /// Not there.
    Down,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
