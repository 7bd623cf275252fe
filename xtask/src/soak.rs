//! `cargo xtask soak`: runs two guests under load for minutes, and accounts for every frame; or the
//! packet processing engine, whose applications are killed; or an endpoint, whose frames are damaged.

use anyhow::Result;
use std::path::PathBuf;
use tigon_bench::soak::{self, Soak};

/// The duration and the equipment.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use two Linux guests, with the unmodified driver in each
    #[arg(long, required_unless_present_any = ["eta", "eudp"])]
    pub guest: bool,
    /// Kill applications of the packet processing engine, open connections and send it nonsense
    #[arg(long, conflicts_with_all = ["guest", "firmware", "kvm"])]
    pub eta: bool,
    /// Send damaged frames to an endpoint of the simulated card, and datagrams out, on buses that stall
    #[arg(long, conflicts_with_all = ["guest", "eta", "firmware", "kvm", "minutes"])]
    pub eudp: bool,
    /// With --eudp: how many
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "eudp")]
    pub frames: u64,
    /// With --eudp: the seed of their lengths and faults
    #[arg(long, default_value_t = 1, requires = "eudp")]
    pub seed: u64,
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
    if arguments.eudp {
        return tigon_bench::eudp::damage::soak(arguments.frames, arguments.seed);
    }
    soak::run(&Soak {
        minutes: arguments.minutes,
        firmware: arguments.firmware.clone(),
        kvm: arguments.kvm,
    })
}
