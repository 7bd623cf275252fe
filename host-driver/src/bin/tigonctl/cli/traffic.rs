//! The command lines of commands that move frames.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use host_driver::live;
use host_driver::nic::MAX_MTU;
use smoltcp::wire::Ipv4Cidr;

use super::queues::QueueOptions;
use super::run::RunOptions;

pub const CAPTURE_EXAMPLE: &str = "Examples:\n  \
    tigonctl --attach tigon0.status capture -w out.pcap\n  \
    tigonctl --attach tigon0.status capture - | tcpdump -n -r -\n  \
    tigonctl --attach tigon0.status capture - | wireshark -k -i -\n  \
    tigonctl --socket card.sock capture --firmware tg2.bin --promiscuous out.pcap";

/// Options of `bridge`.
#[derive(Debug, Args)]
pub struct BridgeOptions {
    /// Name of the TAP device; it is created, and removed at the end.
    #[arg(long, value_name = "NAME")]
    pub tap: String,
    /// Bring the TAP device up at once.
    #[arg(long)]
    pub up: bool,
    /// Answer requests of `tigonctl --attach` about the card at this socket.
    #[arg(long, value_name = "PATH")]
    pub status: Option<PathBuf>,
    /// Load extensions that this policy accepts (`tigonctl spine`).
    #[arg(long, value_name = "POLICY", requires = "status")]
    pub extensions: Option<PathBuf>,
    /// How to open receive queues.
    #[command(flatten)]
    pub queues: QueueOptions,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `replay`.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// The capture (pcap or pcapng, Ethernet).
    pub capture: PathBuf,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct CaptureOptions {
    /// The destination.
    #[command(flatten)]
    pub target: CaptureTarget,
    /// Stop after this many frames.
    #[arg(long, short)]
    pub count: Option<u64>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Only frames of this direction; by default both, beside a driver.
    #[arg(long, short = 'Q', value_enum)]
    pub direction: Option<Direction>,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// The destination of a capture.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct CaptureTarget {
    /// The capture to write (pcap); `-` is standard output.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, in tcpdump's form.
    #[arg(long, short, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl CaptureTarget {
    /// The file, however it was named.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref().or(self.write.as_deref())
    }
}

/// An address and its network, such as 10.84.0.1/24.
#[derive(Debug, Clone, Copy)]
pub struct Network(pub Ipv4Cidr);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no address with a network, such as 10.84.0.1/24");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if prefix > 32 {
            return Err(wrong());
        }
        Ok(Self(Ipv4Cidr::new(address, prefix)))
    }
}

/// Options of `ping`.
#[derive(Debug, Args)]
pub struct PingOptions {
    /// The host to ping.
    pub target: Ipv4Addr,
    /// This host's own address and network.
    #[arg(long, default_value = "10.84.0.1/24")]
    pub address: Network,
    /// Requests to send.
    #[arg(long, default_value_t = 10)]
    pub count: u16,
    /// Bytes of payload; 1472 fill a frame, 8972 a jumbo frame.
    #[arg(long, default_value_t = 56, value_parser = clap::value_parser!(u16).range(0..=8972))]
    pub size: u16,
    /// Time between requests in milliseconds; 0 sends the next when the answer has arrived.
    #[arg(long, default_value_t = 0)]
    pub interval: u64,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// The protocol of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// One connection.
    Tcp,
    /// Datagrams at a given rate.
    Udp,
}

/// The direction of frames, seen from the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Out of the card.
    Out,
    /// Into the card.
    In,
}

impl From<Direction> for live::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::Out,
            Direction::In => Self::In,
        }
    }
}

/// Options of `throughput`.
#[derive(Debug, Args)]
pub struct ThroughputOptions {
    /// The peer (`tigonctl peer`).
    pub target: Ipv4Addr,
    /// This host's own address and network.
    #[arg(long, default_value = "10.84.0.1/24")]
    pub address: Network,
    /// Protocol.
    #[arg(long, value_enum, default_value_t = Protocol::Tcp)]
    pub protocol: Protocol,
    /// Direction; by default both, one after the other.
    #[arg(long, value_enum)]
    pub direction: Option<Direction>,
    /// Seconds in each direction.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// UDP: payload in megabits per second.
    #[arg(long, default_value_t = 20.0)]
    pub rate: f64,
    /// UDP: bytes of each datagram.
    #[arg(long, default_value_t = 1472, value_parser = clap::value_parser!(u16).range(24..=8972))]
    pub size: u16,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `peer`.
#[derive(Debug, Args)]
pub struct PeerOptions {
    /// This end's socket; it is created.
    #[arg(long, value_name = "PATH")]
    pub local: PathBuf,
    /// The card's end, as given to its netdev.
    #[arg(long, value_name = "PATH")]
    pub remote: PathBuf,
    /// The host's address and network.
    #[arg(long, default_value = "10.84.0.2/24")]
    pub address: Network,
    /// Largest packet, in bytes.
    #[arg(long, default_value_t = 1500, value_name = "BYTES",
          value_parser = clap::value_parser!(u16).range(68..=MAX_MTU as i64))]
    pub mtu: u16,
    /// Do not answer; write every frame to a capture (pcap).
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_or_refused() {
        let network: Network = "10.1.2.3/16".parse().expect("a network");
        assert_eq!(network.0, Ipv4Cidr::new(Ipv4Addr::new(10, 1, 2, 3), 16));
        for wrong in ["10.1.2.3", "10.1.2/8", "10.1.2.3/33", "a/b", ""] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
