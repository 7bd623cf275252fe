//! `cargo xtask extension`: makes extensions of the running card, checks them, tries them out.
//!
//! ```text
//! new ──> crate ── check: its tests, gate, compiler, linker, verifier
//!                  build: the same, and a signed container
//!                  load:  the same, into the running card of a driver, by tigonctl
//!                  sign:  who answers for a container of somebody else's
//!                  run:   the same, on a simulated card, with frames from the wire
//! ```

use anyhow::Result;
use std::path::PathBuf;
use tigon_bench::spine::{list, made, new, running, trials, try_out};

/// What to do.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with an extension.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Create the crate of an extension, with a handler and a test
    New {
        /// Folder of the crate; its name becomes the extension's
        folder: PathBuf,
    },
    /// Run its tests, compile it, and say what the verifier proves
    Check {
        /// The crate's folder
        folder: PathBuf,
    },
    /// Compile it and sign the container
    Build(made::Options),
    /// Verify a container that somebody else has built and signed, and sign it with another key
    Sign {
        /// The container
        container: PathBuf,
        /// Secret key to sign with
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The container with the new signature [default: in place of the old one]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List containers: their content, their signer, and whether this checkout's build made them
    List {
        /// Containers [default: those in target/extensions]
        containers: Vec<PathBuf>,
    },
    /// Print a policy that lets a driver load what this checkout builds and signs
    Policy(made::PolicyOptions),
    /// Load it into the running card of a driver, as `tigonctl spine load` does
    Load(running::Load),
    /// Take it off the running card of a driver, as `tigonctl spine unload` does
    Unload {
        /// Its domain
        domain: u32,
        /// Which card
        #[command(flatten)]
        driver: running::Driver,
    },
    /// Load it into a simulated card, and send frames to it
    Run(try_out::Options),
    /// Cut off every handler and every init at each instruction of its run, under traffic
    Cut {
        /// The least number of cuts of handlers
        #[arg(long, default_value_t = 20_000)]
        cuts: u64,
        /// Cut at random on the emulated card instead
        #[arg(long)]
        qemu: bool,
    },
    /// Load hostile extensions that only the watchdog stops, and measure what others lose
    Contain,
    /// Load and unload extensions at full wire load, and account for every datagram
    Churn {
        /// Number of loads
        #[arg(long, default_value_t = 1000)]
        loads: u32,
        /// Bytes of a datagram
        #[arg(long, default_value_t = 1472, value_parser = clap::value_parser!(u16).range(18..=1472))]
        datagram: u16,
    },
}

/// Does it.
///
/// # Errors
/// Which wall refuses the extension and why, or what the system says.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.action {
        Action::New { folder } => new::run(folder),
        Action::Check { folder } => made::check(folder),
        Action::Build(options) => made::build(options).map(drop),
        Action::Sign {
            container,
            key,
            out,
        } => made::sign(container, key, out.as_deref().unwrap_or(container)),
        Action::List { containers } => list::run(containers),
        Action::Policy(options) => made::print_policy(options),
        Action::Load(options) => running::load(options),
        Action::Unload { domain, driver } => running::unload(*domain, driver),
        Action::Run(options) => made::run(options),
        Action::Cut { cuts, qemu: false } => trials::cut(*cuts),
        Action::Cut { cuts, qemu: true } => trials::cut_under_qemu(*cuts),
        Action::Contain => trials::contain(),
        Action::Churn { loads, datagram } => trials::churn(*loads, usize::from(*datagram)),
    }
}
