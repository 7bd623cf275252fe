//! Reports a command's preparations: one line for each slow step, or all output with `--verbose`.

use crate::interrupt;
use crate::process::{self, Process};
use anyhow::{Result, bail};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Keeps cargo from saying what it compiles, wherever its arguments end.
pub const QUIET: &str = "CARGO_TERM_QUIET";

static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Shorter steps are not reported.
const SHORT: Duration = Duration::from_secs(1);
/// The longest build.
const LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Shows all output from now on.
pub fn tell_everything() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// Whether to show all output.
pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Runs a build of cargo's that must succeed. Cargo's output is shown with `--verbose`;
/// else its warnings and errors, and `what` is done if that takes long.
///
/// # Errors
/// If it does not start, fails or is interrupted.
pub fn cargo(command: &mut Command, what: &str) -> Result<()> {
    if is_verbose() {
        return process::run(command);
    }
    let status = {
        let mut cargo = Process::spawn(command.env(QUIET, "true"))?;
        let start = Instant::now();
        while cargo.finished()?.is_none() && start.elapsed() < SHORT {
            interrupt::sleep(Duration::from_millis(5))?;
        }
        if cargo.finished()?.is_none() {
            println!("{what}");
        }
        cargo.wait(LIMIT)?
    };
    if !status.success() {
        bail!("{what}: cargo failed ({status})");
    }
    Ok(())
}
