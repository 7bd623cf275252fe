//! The command line.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use boot_slots::{BoardId, Slot};
use clap::{Args, Parser, Subcommand, ValueEnum};
use host_driver::Config;
use host_driver::nic::{ChecksumOffload, MAX_MTU, SendRingPlace};
use host_driver::transport::vfio::PciAddress;
use smoltcp::wire::Ipv4Cidr;

use super::flash::board;

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
    #[command(after_help = LOG_EXAMPLE)]
    Log(LogOptions),
    /// Join the card to a TAP device until Ctrl-C.
    Bridge(BridgeOptions),
    /// Send all frames of a capture out of the card, in order.
    Replay(ReplayOptions),
    /// Write the frames that the card receives to a capture.
    Capture(CaptureOptions),
    /// Ping a host on the wire, with a stack in this process.
    Ping(PingOptions),
    /// Measure TCP or UDP against a peer, with a stack in this process.
    Throughput(ThroughputOptions),
    /// Be the host at the far end of the wire (a unix datagram socket).
    Peer(PeerOptions),
    /// Print registers as they are, without a reset.
    Regs {
        /// Only those with this in their names.
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
    /// Print the fill levels of the card's rings as they are, without a reset.
    Rings,
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
    #[command(after_help = FLASH_EXAMPLE)]
    Flash(FlashOptions),
    /// Print the completions of this command for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
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

const LOG_EXAMPLE: &str = "Examples:\n  \
    tigonctl --attach tigon0.status log --elf parallel --follow\n  \
    tigonctl --attach tigon0.status log --elf parallel --level warn --module link=trace\n\n\
    Levels: off, error, warn, info, debug, trace. They are set on the card, without a reset,\n\
    and stay until others are set.";

const FLASH_EXAMPLE: &str = "Examples:\n  \
    tigonctl --socket card.sock flash install parallel.12ae-0001.flash.bin\n  \
    tigonctl flash --eeprom card.eeprom info";

/// Options of `flash`.
#[derive(Debug, Args)]
pub struct FlashOptions {
    /// The file that keeps the EEPROM of an emulated board, in place of a card's; it is
    /// made if it is not there.
    #[arg(long, value_name = "FILE")]
    pub eeprom: Option<PathBuf>,
    /// The board that the file belongs to, by its PCI ids.
    #[arg(long, value_name = "IDS", value_parser = board, default_value = "12ae:0001")]
    pub board: BoardId,
    /// What to do.
    #[command(subcommand)]
    pub action: FlashAction,
}

/// What to do with an EEPROM.
#[derive(Debug, Subcommand)]
pub enum FlashAction {
    /// Say what is in both slots.
    Info,
    /// Install an image; it is started on trial until it is confirmed.
    Install {
        /// The image, as the build makes it to be flashed.
        image: PathBuf,
        /// The slot; else the one that is not started now.
        #[arg(long, value_name = "SLOT", value_parser = slot)]
        slot: Option<Slot>,
        /// Confirm it at once, without trial boots.
        #[arg(long)]
        confirmed: bool,
    },
    /// Read images and judge them: header, CRC-32, signature.
    Verify {
        /// The slot; both, if not given.
        #[arg(long, value_name = "SLOT", value_parser = slot)]
        slot: Option<Slot>,
    },
    /// Write everything in the EEPROM to a file.
    Backup {
        /// The file.
        file: PathBuf,
    },
    /// Put a backup back, but for the manufacturing data.
    Restore {
        /// The file.
        file: PathBuf,
    },
    /// Confirm an image by hand.
    Confirm {
        /// The slot.
        #[arg(value_parser = slot)]
        slot: Slot,
    },
    /// Let another slot be tried first.
    Prefer {
        /// The slot.
        #[arg(value_parser = slot)]
        slot: Slot,
    },
}

fn slot(text: &str) -> Result<Slot, String> {
    let slot = text.parse().ok().and_then(Slot::from_index);
    slot.ok_or_else(|| format!("{text} is no slot: there are 0 and 1"))
}

/// What every command needs that runs traffic.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The firmware (tg2.bin).
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Let the card boot the firmware in its own EEPROM.
    #[arg(long, conflicts_with = "firmware")]
    pub own: bool,
    /// The firmware's ELF file: its log is printed at the end.
    #[arg(long, value_name = "FILE", env = "TIGON_ELF")]
    pub elf: Option<PathBuf>,
    /// Take all frames on the wire, not only the card's own.
    #[arg(long)]
    pub promiscuous: bool,
    /// How long to wait for the link, in seconds.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub link_timeout: u64,
    /// Frames of up to 9000 bytes, with the jumbo ring.
    #[arg(long)]
    pub jumbo: bool,
    /// Largest packet, in bytes; above 2030 with the jumbo ring.
    #[arg(long, value_name = "BYTES", conflicts_with = "jumbo",
          value_parser = clap::value_parser!(u16).range(68..=MAX_MTU as i64))]
    pub mtu: Option<u16>,
    /// Receive frames of up to so many bytes in the mini ring.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "128",
          value_parser = clap::value_parser!(u16).range(60..=1024))]
    pub mini: Option<u16>,
    /// Send with this VLAN tag, which the card inserts, and receive what carries it.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub vlan: Option<u16>,
    /// Let the card make the checksums of both directions.
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1,
          default_missing_value = "linux")]
    pub offload: Option<Offload>,
    /// Keep the send ring in the card's memory.
    #[arg(long)]
    pub card_send_ring: bool,
    /// Loop frames back at the card's end of the cable.
    #[arg(long)]
    pub loopback: bool,
    /// What the firmware shall trace: the mask of gencom word 644.
    #[arg(long, value_name = "MASK", value_parser = number, default_value = "0")]
    pub trace_mask: u32,
}

/// Which checksums the card makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Offload {
    /// TCP and UDP without the pseudo-header, as Linux asks for.
    Linux,
    /// TCP, UDP and IPv4, with the pseudo-header.
    Full,
}

/// A number, hexadecimal with `0x`.
pub fn number(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{text} is no number of 32 bits"))
}

impl RunOptions {
    /// Puts the choices into a configuration.
    pub fn apply(&self, config: &mut Config) {
        if self.jumbo {
            config.mtu = MAX_MTU;
        }
        if let Some(mtu) = self.mtu {
            config.mtu = mtu;
        }
        config.mini = self.mini;
        config.vlan = self.vlan.is_some();
        let offload = match self.offload {
            None => ChecksumOffload::NONE,
            Some(Offload::Linux) => ChecksumOffload::LINUX,
            Some(Offload::Full) => ChecksumOffload::FULL,
        };
        config.send_checksums = offload;
        config.receive_checksums = offload;
        if self.card_send_ring {
            config.send_ring_place = SendRingPlace::Card;
        }
        config.link = config.link.with_loopback(self.loopback);
        config.trace_mask = self.trace_mask;
    }
}

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// For how long.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// What to trace from now on: the mask of gencom word 644.
    #[arg(long, value_name = "MASK", value_parser = number)]
    pub mask: Option<u32>,
    /// Print what comes, until Ctrl-C.
    #[arg(long)]
    pub follow: bool,
}

/// Options of `stats`.
#[derive(Debug, Args)]
pub struct StatsOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// For how long.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// Print the counts again and again, so many seconds apart, until Ctrl-C.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    pub watch: Option<f64>,
    /// Print every word of the statistics block and the MAC's counters, zeros too.
    #[arg(long)]
    pub all: bool,
}

/// Options of `log`.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// Print what comes for so long.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Print what comes, until Ctrl-C.
    #[arg(long)]
    pub follow: bool,
    /// Only messages of this level and worse, of all modules.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Another level for a module.
    #[arg(long, value_name = "MODULE=LEVEL")]
    pub module: Vec<String>,
    /// Leave the levels on the card as they are: only filter what is printed.
    #[arg(long)]
    pub leave: bool,
}

/// Options of `bridge`.
#[derive(Debug, Args)]
pub struct BridgeOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// Name of the TAP device; it is made, and goes away at the end.
    #[arg(long, value_name = "NAME")]
    pub tap: String,
    /// Bring the TAP device up at once.
    #[arg(long)]
    pub up: bool,
    /// Answer at this socket what `tigonctl --attach` asks about the card.
    #[arg(long, value_name = "PATH")]
    pub status: Option<PathBuf>,
}

/// Options of `replay`.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// The capture (pcap or pcapng, Ethernet).
    pub capture: PathBuf,
}

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct CaptureOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// The capture to write (pcap).
    pub capture: PathBuf,
    /// Stop after so many frames.
    #[arg(long)]
    pub count: Option<u64>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
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
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
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
    /// Time between requests in milliseconds; 0 sends the next when the answer is there.
    #[arg(long, default_value_t = 0)]
    pub interval: u64,
}

/// What to measure with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// One connection.
    Tcp,
    /// Datagrams at a given rate.
    Udp,
}

/// Which way the payload goes, as seen from the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Out of the card.
    Out,
    /// Into the card.
    In,
}

/// Options of `throughput`.
#[derive(Debug, Args)]
pub struct ThroughputOptions {
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
    /// The peer (`tigonctl peer`).
    pub target: Ipv4Addr,
    /// This host's own address and network.
    #[arg(long, default_value = "10.84.0.1/24")]
    pub address: Network,
    /// Protocol.
    #[arg(long, value_enum, default_value_t = Protocol::Tcp)]
    pub protocol: Protocol,
    /// Direction; both, one after the other, if not given.
    #[arg(long, value_enum)]
    pub direction: Option<Direction>,
    /// For how long each way.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// UDP: payload in megabits per second.
    #[arg(long, default_value_t = 20.0)]
    pub rate: f64,
    /// UDP: bytes of each datagram.
    #[arg(long, default_value_t = 1472, value_parser = clap::value_parser!(u16).range(24..=8972))]
    pub size: u16,
}

/// Options of `peer`.
#[derive(Debug, Args)]
pub struct PeerOptions {
    /// This end's socket; it is made.
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
    /// Do not answer, but write every frame to a capture (pcap).
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn choices_become_a_configuration() {
        let words = "tigonctl --pci 00:03.0 stats --firmware x --jumbo --mini --vlan 5 \
                     --offload --card-send-ring --loopback --trace-mask 0x10";
        let arguments = Arguments::try_parse_from(words.split_whitespace()).expect("good words");
        let Command::Stats(options) = &arguments.command else {
            panic!("another command");
        };
        let mut config = Config::default();
        options.run.apply(&mut config);
        assert_eq!(
            (config.mtu, config.mini, config.vlan),
            (9000, Some(128), true)
        );
        assert_eq!(config.send_checksums, ChecksumOffload::LINUX);
        assert_eq!(config.send_ring_place, SendRingPlace::Card);
        assert!(config.link.gigabit.loopback());
        assert_eq!(config.trace_mask, 16);
        for wrong in [
            "tigonctl --pci 3 info",
            "tigonctl stats --own --firmware x",
            "tigonctl flash --eeprom x install y --slot 2",
            "tigonctl flash --board 12ae info",
            "tigonctl --pci 00:03.0 --socket s info",
            "tigonctl stats --firmware x --mtu 9001",
            "tigonctl stats --firmware x --vlan 0",
            "tigonctl stats --firmware x --trace-mask 0x1ffffffff",
        ] {
            assert!(
                Arguments::try_parse_from(wrong.split_whitespace()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn networks_are_read_or_refused() {
        let network: Network = "10.1.2.3/16".parse().expect("a network");
        assert_eq!(network.0, Ipv4Cidr::new(Ipv4Addr::new(10, 1, 2, 3), 16));
        for wrong in ["10.1.2.3", "10.1.2/8", "10.1.2.3/33", "a/b", ""] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
