//! Ctrl-C and SIGTERM, turned into an error that unwinds the command.
//!
//! Nothing is killed in a signal handler: the handler sets a flag, every wait
//! of the command runner looks at it, and the guards that own processes,
//! namespaces and sockets give them back as the error travels up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The user asked the command to end.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Installs the handler. Call once, from `main`.
pub fn install() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| REQUESTED.store(true, Ordering::SeqCst))
}

/// The flag itself, for loops that take one.
pub fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// Fails when the user asked to end.
pub fn check() -> Result<(), Interrupted> {
    if REQUESTED.load(Ordering::SeqCst) {
        return Err(Interrupted);
    }
    Ok(())
}

/// Sleeps, but wakes and fails when the user asks to end.
pub fn sleep(time: Duration) -> Result<(), Interrupted> {
    let end = Instant::now() + time;
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}
