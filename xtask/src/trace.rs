//! `cargo xtask trace`: records handlers, transfers and frames in the card over time.

use anyhow::{Result, ensure};
use clap::ValueEnum;
use std::path::PathBuf;
use tigon_bench::trace::{self, Classifier, Recorded, Recording};
use tigon_bench::{eudp, spine};
use tigon2_sim::workload::experiment::Experiment;

/// The experiment, and the part of it to show.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Direction of the datagrams
    #[arg(long, value_enum, default_value_t = Recorded::Bidirectional)]
    pub experiment: Recorded,
    /// Bytes of a datagram
    #[arg(long, default_value_t = 1472)]
    pub datagram: usize,
    /// Let the card sort received frames into this many queues [default: classic mode]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub queues: Option<u8>,
    /// What selects the queue
    #[arg(long, value_enum, default_value_t = Classifier::Toeplitz, requires = "queues")]
    pub classifier: Classifier,
    /// Start of the recording, in microseconds after the start of the load
    #[arg(long, value_name = "US", default_value_t = 4000)]
    pub from: u64,
    /// End of the recording
    #[arg(long, value_name = "US", default_value_t = 4500)]
    pub to: u64,
    /// Frames per second that arrive [default: as many as the card carries; router: 50000]
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// Use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// The timing profile of the board file
    #[arg(long, default_value = "default")]
    pub profile: String,
    /// BDs of a sent frame: 2 with its headers in a separate buffer
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub fragments: u32,
    /// Number of events to keep, the last ones
    #[arg(long, value_name = "N", default_value_t = tigon2_sim::timeline::LIMIT)]
    pub events: usize,
    /// Instead: which function each CPU is in while a message goes to a handler and back
    #[arg(long, conflicts_with_all = ["experiment", "datagram", "queues", "from", "to", "rate",
        "firmware", "profile", "fragments", "events", "functions", "eudp"])]
    pub messages: bool,
    /// router, --eudp: List which function each CPU of both cards is in, too, to two cycles
    #[arg(long)]
    pub functions: bool,
    /// Instead: ten datagrams of 32 KB from an endpoint of one card to that of another
    #[arg(long, conflicts_with_all = ["experiment", "datagram", "queues", "from", "to", "rate",
        "firmware", "profile", "fragments", "events"])]
    pub eudp: bool,
    /// Folder for the files [default: target/reports/trace]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The experiments with one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Out of the host
    Send,
    /// Into the host
    Receive,
    /// Both, at equal rates
    Bidirectional,
    /// One frame out, one back, one at a time
    Ping,
}

impl Way {
    /// The experiment.
    pub const fn experiment(self) -> Experiment {
        match self {
            Way::Send => Experiment::Send,
            Way::Receive => Experiment::Receive,
            Way::Bidirectional => Experiment::Bidirectional,
            Way::Ping => Experiment::Ping,
        }
    }
}

/// Judges the arguments, records and writes the files.
///
/// # Errors
/// As [`trace::run`], and for arguments that ask for nothing.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.eudp {
        return eudp::flow::run(arguments.out.as_deref(), arguments.functions);
    }
    if arguments.messages {
        return spine::messages::way::run(arguments.out.as_deref());
    }
    ensure!(
        arguments.from < arguments.to,
        "--from {} is not before --to {}",
        arguments.from,
        arguments.to
    );
    ensure!(arguments.rate != Some(0), "--rate must be above 0");
    if let Some(queues) = arguments.queues {
        let sorted = [Recorded::Receive, Recorded::Bidirectional];
        let receives = sorted.contains(&arguments.experiment);
        ensure!(
            receives,
            "--queues needs --experiment receive or bidirectional"
        );
        ensure!(
            arguments.classifier != Classifier::SourceAddress || queues.is_power_of_two(),
            "--classifier source-address needs a power of two of --queues, not {queues}"
        );
        ensure!(
            arguments.fragments == 2,
            "--queues: frames that leave have one BD, so --fragments does nothing"
        );
    }
    let Some(experiment) = arguments.experiment.of_one_card() else {
        return router(arguments);
    };
    ensure!(
        !arguments.functions,
        "--functions needs --experiment router"
    );
    let sorter = |queues| (arguments.classifier.sorter(), queues);
    trace::run(&Recording {
        experiment,
        datagram: arguments.datagram,
        queues: arguments.queues.map(sorter),
        microseconds: arguments.from..arguments.to,
        rate: arguments.rate,
        firmware: arguments.firmware.clone(),
        profile: arguments.profile.clone(),
        fragments: arguments.fragments,
        events: arguments.events,
        folder: arguments.out.clone(),
    })
}

/// The router between two cards.
fn router(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.firmware.is_none() && arguments.fragments == 2,
        "--experiment router takes no --firmware and no --fragments"
    );
    let recording = spine::flow::Recording {
        datagram: arguments.datagram,
        rate: arguments.rate.map(f64::from),
        microseconds: arguments.from..arguments.to,
        profile: arguments.profile.clone(),
        functions: arguments.functions,
    };
    spine::flow::run(&recording, arguments.out.as_deref())
}
