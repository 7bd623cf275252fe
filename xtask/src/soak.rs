//! `cargo xtask soak`: runs two guests under load for minutes, and accounts for every frame; or the
//! packet processing engine, whose applications are killed.

use anyhow::Result;
use std::path::PathBuf;
use tigon_bench::soak::{self, Soak};

/// The duration and the equipment.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use two Linux guests, with the unmodified driver in each
    #[arg(long, required_unless_present = "eta")]
    pub guest: bool,
    /// Kill applications of the packet processing engine, open connections and send it nonsense
    #[arg(long, conflicts_with_all = ["guest", "firmware", "kvm"])]
    pub eta: bool,
    /// Duration of the load
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub minutes: u32,
    /// Use this firmware image (drivers' load format) instead of the project's
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Try KVM, and fall back to TCG where KVM does not work
    #[arg(long)]
    pub kvm: bool,
}

/// Runs it, prints the report and writes it.
///
/// # Errors
/// As [`soak::run`].
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.eta {
        return tigon_bench::eta::soak(arguments.minutes);
    }
    soak::run(&Soak {
        minutes: arguments.minutes,
        firmware: arguments.firmware.clone(),
        kvm: arguments.kvm,
    })
}
