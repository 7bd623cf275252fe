//! The command lines of endpoints.

use std::net::Ipv4Addr;

use clap::{Args, Subcommand, ValueEnum};
use eudp::Checksum;

use super::run::RunOptions;
use super::traffic::Network;

pub const EXAMPLE: &str = "Examples:\n  \
    tigonctl --socket card.sock eudp ping 10.84.0.2 --tap tigon0 --firmware eudp.tg2.bin\n  \
    tigonctl --socket card.sock eudp ping 10.84.0.2 --tap tigon0 --size 1 --size 65507 \
    --firmware eudp.tg2.bin\n  \
    tigonctl --socket card.sock eudp throughput 10.84.0.2 --tap tigon0 --firmware eudp.tg2.bin\n\
    The peer needs a server that sends datagrams back (ping), or takes them (throughput).";

/// What to do with an endpoint.
#[derive(Debug, Subcommand)]
pub enum EudpAction {
    /// Send datagrams to an echo server, and compare every byte.
    Ping(EudpPingOptions),
    /// Send datagrams as fast as the card takes them.
    Throughput(EudpThroughputOptions),
}

/// The checksum of what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChecksumChoice {
    /// None: frames may leave while they are fetched.
    None,
    /// By the card's DMA engine: of a datagram in fragments, the one with the UDP header leaves last.
    Full,
    /// The same, but that fragment leaves first, as receivers expect it.
    Leading,
}

impl From<ChecksumChoice> for Checksum {
    fn from(choice: ChecksumChoice) -> Checksum {
        match choice {
            ChecksumChoice::None => Checksum::None,
            ChecksumChoice::Full => Checksum::Full,
            ChecksumChoice::Leading => Checksum::Leading,
        }
    }
}

/// Both ends.
#[derive(Debug, Args)]
pub struct EudpOptions {
    /// The peer.
    pub target: Ipv4Addr,
    /// Its port.
    #[arg(long, default_value_t = 7)]
    pub port: u16,
    /// This host's own address and network: the TAP device gets it.
    #[arg(long, default_value = "10.84.0.1/24")]
    pub address: Network,
    /// The endpoint's port.
    #[arg(long, default_value_t = 4711)]
    pub local_port: u16,
    /// Name of the TAP device for the kernel's share; it is created, and removed at the end.
    #[arg(long, value_name = "NAME")]
    pub tap: String,
    /// The checksum of what is sent.
    #[arg(long, value_enum, default_value_t = ChecksumChoice::Full)]
    pub checksum: ChecksumChoice,
    /// Let frames leave while they are fetched. An emulated card whose frames take no time must not.
    #[arg(long)]
    pub cut_through: bool,
}

/// Options of `eudp ping`.
#[derive(Debug, Args)]
pub struct EudpPingOptions {
    /// Both ends.
    #[command(flatten)]
    pub ends: EudpOptions,
    /// Bytes of a datagram; repeat the option for several sizes.
    #[arg(long, default_values_t = [56], value_parser = clap::value_parser!(u16).range(1..=65507))]
    pub size: Vec<u16>,
    /// Datagrams of each size.
    #[arg(long, default_value_t = 10)]
    pub count: u32,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `eudp throughput`.
#[derive(Debug, Args)]
pub struct EudpThroughputOptions {
    /// Both ends.
    #[command(flatten)]
    pub ends: EudpOptions,
    /// Bytes of a datagram.
    #[arg(long, default_value_t = 1472, value_parser = clap::value_parser!(u16).range(1..=65507))]
    pub size: u16,
    /// How long, in seconds.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}
