//! `cargo xtask trace`: what happens in the card, when, and to which frame.
//!
//! Runs one of the microbenchmarks in the simulator and writes a window of it twice: as
//! trace events for ui.perfetto.dev, and as a page with the event graph.

pub mod files;
pub mod handlers;
mod summary;

use crate::report::write_json;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::path::PathBuf;
use summary::Summary;
use testbed::paths;
use testbed::paths::board_file;
use testbed::tools::given_or_built;
use tigon2_model::Board;
use tigon2_sim::timeline::capture::{self, Subject, Window};
use tigon2_sim::timeline::packets;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::Experiment;
use tigon2_sim::workload::testbench::Setup;

/// What to run and which part of it to show.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which way the datagrams go
    #[arg(long, value_enum, default_value_t = Way::Bidirectional)]
    pub experiment: Way,
    /// Bytes of a datagram
    #[arg(long, default_value_t = 1472)]
    pub datagram: usize,
    /// Where the recording begins, in microseconds behind the start of the load
    #[arg(long, value_name = "US", default_value_t = 4000)]
    pub from: u64,
    /// Where it ends
    #[arg(long, value_name = "US", default_value_t = 4500)]
    pub to: u64,
    /// Frames a second that arrive [default: what the card carries]
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// A firmware image in the drivers' load format, instead of this project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// The timing profile of the board file
    #[arg(long, default_value = "default")]
    pub profile: String,
    /// BDs of a sent frame: 2 with its headers in a buffer of their own
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub fragments: u32,
    /// Events that are kept, the last ones
    #[arg(long, value_name = "N", default_value_t = tigon2_sim::timeline::LIMIT)]
    pub events: usize,
    /// Folder for the files [default: target/reports/trace]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Out of the host
    Send,
    /// Into the host
    Receive,
    /// Both, at equal rates
    Bidirectional,
    /// One there, one back, one at a time
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

impl Arguments {
    /// What the pictures show, and under which conditions.
    fn title(&self, firmware: &str) -> String {
        let what = match self.experiment {
            Way::Send => "Datagrams out of the host",
            Way::Receive => "Datagrams into the host",
            Way::Bidirectional => "Datagrams both ways",
            Way::Ping => "A ping",
        };
        let rate = self.rate.map(|rate| format!(", {rate} frames/s arrive"));
        format!(
            "{what}, {} bytes{}: firmware {firmware}, timing profile {}, BDs a sent frame: {}; \
             {} to {} µs of the load",
            self.datagram,
            rate.unwrap_or_default(),
            self.profile,
            self.fragments,
            self.from,
            self.to
        )
    }
}

/// Runs it and writes the files.
///
/// # Errors
/// If the firmware cannot be built or read, the experiment fails, or a file cannot be
/// written.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.from < arguments.to,
        "--from {} is not before --to {}",
        arguments.from,
        arguments.to
    );
    ensure!(arguments.rate != Some(0), "--rate must be above 0");
    let board = board_file()?;
    let parameters = Parameters::from_toml(&board, &arguments.profile)?;
    let given = given_or_built(arguments.firmware.as_ref(), true)?;
    let (firmware, image) = (given.name, given.image);
    let handlers = match &given.elf {
        Some(elf) => handlers::names(&std::fs::read(elf)?)?,
        None => BTreeMap::new(),
    };
    let setup = Setup {
        fragments: arguments.fragments,
        ..Setup::new(Board::from_toml(&board)?, parameters, &image)
    };
    let experiment = arguments.experiment.experiment();
    let subject = Subject {
        rate: arguments.rate.map(f64::from),
        limit: arguments.events,
        ..Subject::new(experiment, arguments.datagram)
    };
    let window = Window {
        from: arguments.from * 1000,
        to: arguments.to * 1000,
    };
    let name = format!("{}-{}", experiment.name(), arguments.datagram);
    println!("trace: {name}, firmware {firmware}");
    let mut timeline = capture::capture(&setup, subject, window)?;
    timeline.handlers = handlers;
    let packets = packets::on_wire_in(packets::follow(&timeline), timeline.shown);

    let folder = match &arguments.out {
        Some(folder) => folder.clone(),
        None => paths::reports().join("trace"),
    };
    let title = arguments.title(&firmware);
    let written = files::write(&folder, &name, &title, &timeline, &packets)?;
    let summary = Summary::new(
        &firmware,
        experiment,
        arguments.datagram,
        &timeline,
        &packets,
    );
    println!("{}", summary.table());
    println!(
        "{} of {} frames of this window are followed from end to end; events recorded: {}, left out: {}",
        summary.complete, summary.frames, summary.events, summary.left_out
    );
    println!("event graph:  {}", written.page.display());
    if let Some(picture) = &written.picture {
        println!("picture:      {}", picture.display());
    }
    println!(
        "trace events: {} (open in ui.perfetto.dev)",
        written.trace.display()
    );
    println!("report:       {}", write_json("trace", &summary)?.display());
    Ok(())
}
