//! Converts Ctrl-C, SIGTERM and SIGHUP into an error that unwinds the command.
//!
//! The signal handler kills nothing: it sets a flag, every wait of the command runner checks the
//! flag, and the guards that own processes, namespaces and sockets release them as the error
//! propagates. The command then ends with the status that shells expect for a signal.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_usize};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The user asked the command to end.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Installs the handlers. Call once, from `main`.
///
/// # Errors
/// As the system says.
pub fn install() -> std::io::Result<()> {
    for (signal, number) in [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)] {
        // In this order: whoever sees the flag finds the number.
        register_usize(signal, SIGNAL.clone(), number)?;
        register(signal, REQUESTED.clone())?;
    }
    Ok(())
}

/// The flag itself, for loops that take one.
pub fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// The exit status of a command that a signal has ended: 130 after Ctrl-C, 143 after SIGTERM.
pub fn status() -> Option<u8> {
    check().err()?;
    let signal = SIGNAL.load(Ordering::SeqCst);
    Some(128 + u8::try_from(signal).unwrap_or(0))
}

/// Fails when the user asked to end.
///
/// # Errors
/// [`Interrupted`].
pub fn check() -> Result<(), Interrupted> {
    if REQUESTED.load(Ordering::SeqCst) {
        return Err(Interrupted);
    }
    Ok(())
}

/// Sleeps, but wakes and fails when the user asks to end.
///
/// # Errors
/// [`Interrupted`].
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
