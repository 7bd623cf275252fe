//! Records handlers, transfers and frames in the card over time.
//!
//! Runs one of the microbenchmarks in the simulator and writes a window of it in two forms: as
//! trace events for ui.perfetto.dev, and as a page with the event graph.

pub mod files;
pub mod handlers;
mod summary;

use crate::report::write_json;
use anyhow::Result;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::ops::Range;
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
use tigon2_sim::workload::knet::cost::Sorter;
use tigon2_sim::workload::knet::recording;
use tigon2_sim::workload::testbench::Setup;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Recorded {
    /// Out of the host
    Send,
    /// Into the host
    Receive,
    /// Both, at equal rates
    Bidirectional,
    /// One frame out, one back, one at a time
    Ping,
    /// Packets through the router of SPINE, from one card to another
    Router,
}

impl Recorded {
    /// The experiment with one card.
    pub const fn of_one_card(self) -> Option<Experiment> {
        match self {
            Recorded::Send => Some(Experiment::Send),
            Recorded::Receive => Some(Experiment::Receive),
            Recorded::Bidirectional => Some(Experiment::Bidirectional),
            Recorded::Ping => Some(Experiment::Ping),
            Recorded::Router => None,
        }
    }
}

/// The classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Classifier {
    /// All frames go to queue 0
    Single,
    /// The lowest bits of the source address
    SourceAddress,
    /// The hash of addresses and ports
    Toeplitz,
    /// Each datagram goes to the next queue
    RoundRobin,
}

impl Classifier {
    /// As the experiments have it.
    pub const fn sorter(self) -> Sorter {
        match self {
            Classifier::Single => Sorter::Single,
            Classifier::SourceAddress => Sorter::SourceAddress,
            Classifier::Toeplitz => Sorter::Toeplitz,
            Classifier::RoundRobin => Sorter::RoundRobin,
        }
    }
}

/// What to run and which part of it to show.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The direction of the datagrams.
    pub experiment: Experiment,
    /// Bytes of a datagram.
    pub datagram: usize,
    /// The classifier and the number of receive queues, for frames that the card sorts.
    pub queues: Option<(Sorter, u8)>,
    /// Where the recording begins and ends, in microseconds behind the start of the load.
    pub microseconds: Range<u64>,
    /// Frames a second that arrive, if not as many as the card carries.
    pub rate: Option<u32>,
    /// A firmware image (drivers' load format) that replaces the project's.
    pub firmware: Option<PathBuf>,
    /// The timing profile of the board file.
    pub profile: String,
    /// BDs of a sent frame: 1, or 2 with its headers in a separate buffer.
    pub fragments: u32,
    /// Number of events to keep, the last ones.
    pub events: usize,
    /// Folder for the files; `target/reports/trace` if none.
    pub folder: Option<PathBuf>,
}

impl Recording {
    /// What the pictures show, and under which conditions.
    fn title(&self, firmware: &str) -> String {
        let what = match self.experiment {
            Experiment::Send => "Datagrams out of the host",
            Experiment::Receive => "Datagrams into the host",
            Experiment::Bidirectional => "Datagrams both ways",
            Experiment::Ping => "A ping",
        };
        let queues = self
            .queues
            .map(|(sorter, queues)| format!(", sorted into {queues} queues by {}", sorter.name()));
        let rate = self.rate.map(|rate| format!(", {rate} frames/s arrive"));
        format!(
            "{what}, {} bytes{}{}: firmware {firmware}, timing profile {}, BDs a sent frame: {}; \
             {} to {} µs of the load",
            self.datagram,
            queues.unwrap_or_default(),
            rate.unwrap_or_default(),
            self.profile,
            self.fragments,
            self.microseconds.start,
            self.microseconds.end
        )
    }
}

/// Runs it and writes the files.
///
/// # Errors
/// If the firmware cannot be built or read, the experiment fails, or a file cannot be
/// written.
pub fn run(recording: &Recording) -> Result<()> {
    let board = board_file()?;
    let parameters = Parameters::from_toml(&board, &recording.profile)?;
    let given = given_or_built(recording.firmware.as_ref(), true)?;
    let (firmware, image) = (given.name, given.image);
    let handlers = match &given.elf {
        Some(elf) => handlers::names(&std::fs::read(elf)?)?,
        None => BTreeMap::new(),
    };
    let setup = Setup {
        fragments: recording.fragments,
        ..Setup::new(Board::from_toml(&board)?, parameters, &image)
    };
    let experiment = recording.experiment;
    let subject = Subject {
        rate: recording.rate.map(f64::from),
        limit: recording.events,
        ..Subject::new(experiment, recording.datagram)
    };
    let window = Window {
        from: recording.microseconds.start * 1000,
        to: recording.microseconds.end * 1000,
    };
    let queues = recording
        .queues
        .map(|(sorter, queues)| format!("-{}-{queues}", sorter.name()));
    let name = format!(
        "{}-{}{}",
        experiment.name(),
        recording.datagram,
        queues.unwrap_or_default()
    );
    println!("trace: {name}, firmware {firmware}");
    let mut timeline = match recording.queues {
        None => capture::capture(&setup, subject, window)?,
        Some((sorter, queues)) => {
            recording::capture_sorted(&setup, &sorter.settings(queues), subject, window)?
        }
    };
    timeline.handlers = handlers;
    let packets = packets::on_wire_in(packets::follow(&timeline), timeline.shown);

    let folder = match &recording.folder {
        Some(folder) => folder.clone(),
        None => paths::reports().join("trace"),
    };
    let title = recording.title(&firmware);
    let written = files::write(&folder, &name, &title, &timeline, &packets)?;
    let summary = Summary::new(
        &firmware,
        experiment,
        recording.datagram,
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
