//! `cargo xtask explore`: runs the firmware under thousands of random schedules.

use anyhow::Result;
use std::path::PathBuf;
use tigon_bench::explore::{self, Workload};

/// The number of schedules, or a single one.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many schedules
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub schedules: u64,
    /// Seed of the first schedule; the others count up from it
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub first: u64,
    /// Run only the schedule of this seed, and write its timeline
    #[arg(long, conflicts_with_all = ["schedules", "first"])]
    pub seed: Option<u64>,
    /// Sort frames into 1 to 8 receive queues
    #[arg(long)]
    pub queues: bool,
    /// Send and receive datagrams of endpoints, with the firmware that has them
    #[arg(long, conflicts_with = "queues")]
    pub eudp: bool,
    /// Load, run, cut off and unload extensions meanwhile, with the variant `spine`
    #[arg(long, conflicts_with_all = ["queues", "eudp", "firmware"])]
    pub extensions: bool,
    /// Use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
}

/// Runs the schedules and reports.
///
/// # Errors
/// As [`explore::search`] and [`explore::replay`].
pub fn run(arguments: &Arguments) -> Result<()> {
    let firmware = arguments.firmware.as_ref();
    let workload = if arguments.eudp {
        Workload::Endpoints
    } else if arguments.queues {
        Workload::Queues
    } else if arguments.extensions {
        Workload::Extensions
    } else {
        Workload::Classic
    };
    match arguments.seed {
        Some(seed) => explore::replay(firmware, workload, seed),
        None => explore::search(firmware, workload, arguments.first, arguments.schedules),
    }
}
