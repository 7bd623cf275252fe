//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use host_driver::transport::vfio::PciAddress;
use verbs::Use;

mod eudp;
mod flash;
mod look;
mod queues;
mod run;
mod spine;
mod traffic;
mod video;

pub use eudp::{EudpAction, EudpOptions, EudpPingOptions, EudpThroughputOptions};
pub use flash::{BoardChoice, FlashAction, FlashOptions};
pub use look::{LogOptions, StatsOptions, TraceOptions};
pub use queues::{ExplainOptions, QueueOptions, QueuesOptions, RssAction, RssSetting};
pub use run::{RunOptions, number};
pub use spine::{RouteAction, SpineAction};
pub use traffic::{
    BridgeOptions, CaptureOptions, Direction, PeerOptions, PingOptions, Protocol, ReplayOptions,
    ThroughputOptions,
};
pub use video::{ServeOptions, ShowOptions, VideoAction};

const EXAMPLE: &str = "Example:\n  \
    tigonctl --socket /tmp/card.sock info\n  \
    tigonctl --socket /tmp/card.sock bridge --tap tigon0 --firmware tg2.bin\n  \
    tigonctl --pci 0000:00:03.0 ping 10.84.0.2 --firmware tg2.bin --jumbo --size 8000";

const CARD: &str = "The card";
const OUTPUT: &str = "Output";

/// Controls a Tigon II card from user space.
///
/// The options here can precede or follow the command; the help of a command lists those that it
/// accepts.
#[derive(Debug, Parser)]
#[command(name = "tigonctl", version, about, long_about, after_help = EXAMPLE)]
pub struct Arguments {
    /// Socket of the emulated card (vfio-user).
    #[arg(long, value_name = "PATH", group = "which", help_heading = CARD)]
    pub socket: Option<PathBuf>,
    /// PCI address of a card in this machine, bound to vfio-pci.
    #[arg(long, value_name = "ADDRESS", group = "which", help_heading = CARD)]
    pub pci: Option<PciAddress>,
    /// Status socket of the process that drives the card (`bridge --status`).
    #[arg(long, value_name = "PATH", env = "TIGON_ATTACH", group = "which", help_heading = CARD)]
    pub attach: Option<PathBuf>,
    /// Print JSON, one object a line.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Read the send consumer index from the card instead of host memory.
    #[arg(long, help_heading = run::HEADING)]
    pub consumer_by_register: bool,
    /// Poll the rings instead of waiting for interrupts.
    #[arg(long, help_heading = run::HEADING)]
    pub polling: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Which common options a command accepts: those for a card, for a card that another process
/// drives, and for traffic.
fn use_of(command: &str, option: &str) -> Use {
    let on_a_card = !matches!(
        command,
        "top" | "queues" | "rss" | "spine" | "peer" | "completions"
    );
    let beside = matches!(
        command,
        "info"
            | "stats"
            | "trace"
            | "log"
            | "capture"
            | "regs"
            | "peek"
            | "rings"
            | "link"
            | "top"
            | "queues"
            | "rss"
            | "spine"
    );
    let runs = matches!(
        command,
        "stats"
            | "trace"
            | "log"
            | "bridge"
            | "replay"
            | "capture"
            | "ping"
            | "throughput"
            | "eudp"
    );
    let takes = match option {
        "socket" | "pci" => on_a_card,
        "attach" if on_a_card && !beside => return Use::Explains,
        "attach" => beside,
        "json" => !matches!(command, "top" | "completions"),
        "consumer_by_register" | "polling" => runs,
        _ => false,
    };
    if takes { Use::Takes } else { Use::Refuses }
}

impl Arguments {
    /// The command line's description, for parsing and for completions.
    pub fn description() -> clap::Command {
        verbs::spread(Self::command(), use_of)
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// The error in it, or clap's output: help, the version.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let description = Self::description();
        let words = verbs::behind_the_verb(&description, words);
        let matches = description.try_get_matches_from(words)?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        if let Some((_, command)) = matches.subcommand() {
            arguments.socket = verbs::value(command, "socket");
            arguments.pci = verbs::value(command, "pci");
            arguments.attach = verbs::value(command, "attach");
            arguments.json = verbs::value(command, "json").unwrap_or_default();
            let by_register = verbs::value(command, "consumer_by_register");
            arguments.consumer_by_register = by_register.unwrap_or_default();
            arguments.polling = verbs::value(command, "polling").unwrap_or_default();
        }
        Ok(arguments)
    }
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Identify the card: ids, chip revision, bus, station address.
    Info,
    /// Load firmware, wait until it is operational and report its version.
    Load {
        /// The firmware (tg2.bin).
        firmware: PathBuf,
    },
    /// Run the card for a time and print all counts.
    Stats(StatsOptions),
    /// Print the firmware's trace ring: of a card without a reset, of a card that another process
    /// drives, or, with a firmware, after running it for a time.
    Trace(TraceOptions),
    /// Print the firmware's log: of a card without a reset, of a card that another process drives,
    /// or, with a firmware, while running it.
    #[command(after_help = look::LOG_EXAMPLE)]
    Log(LogOptions),
    /// Connect the card to a TAP device until Ctrl-C.
    Bridge(BridgeOptions),
    /// Send all frames of a capture through the card, in order.
    Replay(ReplayOptions),
    /// Write frames to a capture: those that the card receives or, beside its driver, those of both
    /// directions.
    #[command(after_help = traffic::CAPTURE_EXAMPLE)]
    Capture(CaptureOptions),
    /// Ping a host on the wire, with an in-process network stack.
    Ping(PingOptions),
    /// Measure TCP or UDP against a peer, with an in-process network stack.
    Throughput(ThroughputOptions),
    /// Send and receive datagrams by an endpoint of this process, beside the kernel's share of the
    /// card (firmware `eudp`).
    #[command(after_help = eudp::EXAMPLE)]
    Eudp {
        /// What.
        #[command(subcommand)]
        action: EudpAction,
    },
    /// Act as the host at the far end of the wire (a unix datagram socket).
    Peer(PeerOptions),
    /// Print registers, by unit of the chip, without a reset.
    Regs {
        /// Only registers with this in their names, or those of the unit with this name.
        name: Option<String>,
    },
    /// Print words without a reset.
    Peek {
        /// A register, a word of gencom by its name, or a NIC address.
        place: String,
        /// The number of words.
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
    /// Print producer, consumer and fill level of the card's rings, without a reset.
    Rings {
        /// Also print the NIC addresses of the entries.
        #[arg(long)]
        addresses: bool,
    },
    /// Print rate, fill, drops and interrupts of each receive queue of a card that another
    /// process drives.
    Queues(QueuesOptions),
    /// Print or change how receive queues are chosen, or explain where a flow goes.
    #[command(after_help = queues::RSS_EXAMPLE)]
    Rss {
        /// What.
        #[command(subcommand)]
        action: RssAction,
    },
    /// Load extensions into the running card of a driver (`bridge --extensions`), list them, unload
    /// them.
    #[command(after_help = spine::EXAMPLE)]
    Spine {
        /// What.
        #[command(subcommand)]
        action: SpineAction,
    },
    /// Print the state of the link, or make the driver take it up or down.
    Link {
        /// The new state.
        #[arg(value_enum)]
        wanted: Option<LinkWanted>,
    },
    /// Reset the card and leave it halted.
    Reset,
    /// Watch a card that another process drives: load, rings, rates, drops.
    Top {
        /// Seconds between two updates.
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        interval: f64,
        /// The firmware's ELF file: shows each handler's share of its CPU's time.
        #[arg(long, value_name = "FILE", env = "TIGON_ELF")]
        elf: Option<PathBuf>,
    },
    /// Install firmware in the card's EEPROM, or inspect it.
    #[command(after_help = flash::EXAMPLE)]
    Flash(FlashOptions),
    /// Print shell completions for this command.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of this command, one for each subcommand.
    #[command(after_help = "Example: tigonctl man /usr/local/share/man/man1")]
    Man {
        /// The folder for them; it is created if it does not exist.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// The requested state of a link.
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
    use clap::error::ErrorKind;

    fn read(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::read(line.split_whitespace().map(OsString::from))
    }

    fn help(command: &str) -> String {
        let line = format!("tigonctl {command} --help");
        read(&line).expect_err("help").to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::description().debug_assert();
    }

    #[test]
    fn the_card_is_named_in_front_of_the_command_or_behind_it() {
        for line in [
            "tigonctl --json --socket /card stats --polling",
            "tigonctl stats --socket=/card --polling --json",
            "tigonctl --polling --json --socket /card stats",
        ] {
            let arguments = read(line).expect(line);
            let socket = arguments.socket.as_deref();
            assert_eq!(socket, Some(std::path::Path::new("/card")), "{line}");
            assert!(arguments.json && arguments.polling, "{line}");
            assert!(arguments.pci.is_none() && !arguments.consumer_by_register);
        }
        assert!(read("tigonctl flash info --json").expect("deep").json);
        let two = read("tigonctl --socket a info --pci 00:03.0").expect_err("two cards");
        assert_eq!(two.kind(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn help_shows_what_acts_and_a_commands_own_options_first() {
        let stats = help("stats");
        let place = |text: &str| {
            stats
                .find(text)
                .unwrap_or_else(|| panic!("{text}: {stats}"))
        };
        assert!(place("--watch") < place("The card:"));
        assert!(place("--watch") < place("--firmware"));
        assert!(place("Running the card") < place("--firmware"));
        let top = help("top");
        assert!(top.contains("--attach"), "{top}");
        for option in ["--json", "--socket", "--pci", "--polling"] {
            assert!(!top.contains(option), "{option}: {top}");
        }
        let completions = help("completions");
        assert!(!completions.contains("--attach") && !completions.contains("--json"));
        assert!(!help("poke").contains("--attach"), "it only explains");
    }

    #[test]
    fn what_means_nothing_to_a_command_is_refused() {
        for line in [
            "tigonctl --json top",
            "tigonctl top --socket /card",
            "tigonctl --polling info",
            "tigonctl --attach status peer --local a --remote b",
            "tigonctl --socket /card completions bash",
        ] {
            let error = read(line).expect_err(line);
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{line}");
        }
    }
}
