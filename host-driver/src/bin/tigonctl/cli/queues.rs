//! The command lines of the verbs for receive queues.

use std::net::SocketAddr;

use clap::{Args, Subcommand, ValueEnum};
use host_driver::rss;

pub const RSS_EXAMPLE: &str = "Examples:\n  \
    tigonctl --attach tigon0.status rss show\n  \
    tigonctl --attach tigon0.status rss set weights 3,1\n  \
    tigonctl --attach tigon0.status rss set fields ipv4,tcp-ipv4,udp-ipv4\n  \
    tigonctl --attach tigon0.status rss explain 10.84.0.2:40000 10.84.0.1:80\n  \
    tigonctl rss explain 10.84.0.2:40000 10.84.0.1:80 --queues 4 --to 3";

/// How a bridge opens receive queues.
#[derive(Debug, Args)]
#[command(next_help_heading = "Receive queues")]
pub struct QueueOptions {
    /// Open this many receive queues, 1 to 8, each with a thread on a CPU of its own and a queue
    /// of the TAP device.
    #[arg(long, value_name = "NUMBER")]
    pub queues: Option<u8>,
    /// What selects a frame's queue: single, source-address, toeplitz, round-robin.
    #[arg(
        long,
        value_name = "NAME",
        requires = "queues",
        default_value = "toeplitz"
    )]
    pub classifier: String,
    /// Entries of each queue's rings: 64, 128, 256 or 512.
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "queues",
        default_value_t = 256
    )]
    pub queue_entries: u32,
    /// The CPU of each queue's thread; the first ones if none are named.
    #[arg(long, value_name = "LIST", requires = "queues", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Most frames that a thread takes at a time; the budget follows the load up to it.
    #[arg(long, value_name = "FRAMES", requires = "queues", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..=512))]
    pub budget: u32,
    /// Arm an empty queue's interrupt only after this many further empty polls.
    #[arg(long, value_name = "NUMBER", requires = "queues", default_value_t = 0)]
    pub defer_polls: u32,
    /// Arm an empty queue's interrupt only after this time, in microseconds.
    #[arg(long, value_name = "US", requires = "queues")]
    pub defer_us: Option<u64>,
    /// Poll the queues all the time: no interrupts, and a busy CPU for each.
    #[arg(long, requires = "queues", conflicts_with_all = ["defer_polls", "defer_us"])]
    pub busy_poll: bool,
}

/// Options of `queues`.
#[derive(Debug, Args)]
pub struct QueuesOptions {
    /// Seconds between the two readings from which rates are computed.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub interval: f64,
    /// Print them repeatedly, this many seconds apart, until Ctrl-C.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    pub watch: Option<f64>,
}

/// What to do with the choice of queues.
#[derive(Debug, Subcommand)]
pub enum RssAction {
    /// Print what selects the queue, on a card that another process drives.
    Show,
    /// Change what selects the queue, at once: flows that move may be reordered.
    #[command(subcommand)]
    Set(RssSetting),
    /// Say which queue a flow belongs to, and why; of a card that another process drives, or
    /// with the settings named here.
    Explain(ExplainOptions),
}

/// What is set.
#[derive(Debug, Subcommand)]
pub enum RssSetting {
    /// The classifier.
    Classifier {
        /// single, source-address, toeplitz or round-robin.
        name: String,
    },
    /// The key of the hash.
    Key {
        /// published, symmetric, or 40 bytes in hexadecimal digits.
        key: String,
    },
    /// The indirection table.
    Table {
        /// 128 queues, or fewer that are repeated: 0,1,2,3.
        entries: String,
    },
    /// The types of hash that are made.
    Fields {
        /// Of ipv4, tcp-ipv4, udp-ipv4, ipv6, tcp-ipv6, udp-ipv6; none for no hash.
        names: String,
    },
    /// Give each queue the same number of table entries.
    Equal,
    /// Give each queue table entries by its weight.
    Weights {
        /// One for each queue: 3,1.
        weights: String,
    },
}

/// Options of `rss explain`.
#[derive(Debug, Args)]
pub struct ExplainOptions {
    /// Who sends: address and port.
    #[arg(value_name = "SRC:PORT")]
    pub source: SocketAddr,
    /// Who receives, behind the card: address and port.
    #[arg(value_name = "DST:PORT")]
    pub destination: SocketAddr,
    /// What the datagrams carry.
    #[arg(long, value_enum, default_value_t = FlowProtocol::Tcp)]
    pub protocol: FlowProtocol,
    /// Find a source port, from the given one on, that leads to this queue.
    #[arg(long, value_name = "QUEUE")]
    pub to: Option<u32>,
    /// How many queues are open.
    #[arg(long, value_name = "NUMBER")]
    pub queues: Option<u8>,
    /// The classifier: single, source-address, toeplitz, round-robin.
    #[arg(long, value_name = "NAME")]
    pub classifier: Option<String>,
    /// The key: published, symmetric, or 40 bytes in hexadecimal digits.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// The indirection table: 128 queues, or fewer that are repeated.
    #[arg(long, value_name = "ENTRIES")]
    pub table: Option<String>,
    /// The types of hash that are made; none for no hash.
    #[arg(long, value_name = "NAMES")]
    pub fields: Option<String>,
}

/// What a flow's datagrams carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FlowProtocol {
    /// TCP segments.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// Anything else, and fragments.
    Other,
}

impl From<FlowProtocol> for rss::Protocol {
    fn from(protocol: FlowProtocol) -> Self {
        match protocol {
            FlowProtocol::Tcp => Self::Tcp,
            FlowProtocol::Udp => Self::Udp,
            FlowProtocol::Other => Self::Other,
        }
    }
}
