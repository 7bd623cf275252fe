//! Ctrl-C, SIGTERM and SIGHUP: they end commands that otherwise run forever, and make others fail.

use super::cli::{Arguments, Command, SpineAction, VideoAction};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_usize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A request from outside to stop.
#[derive(Debug, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Installs the handlers.
    pub fn install() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for (signal, number) in [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)] {
            // In this order: a reader of the flag also finds the number.
            register_usize(signal, interrupt.signal.clone(), number)?;
            register(signal, interrupt.requested.clone())?;
        }
        Ok(interrupt)
    }

    /// The flag that every loop checks.
    pub fn flag(&self) -> &AtomicBool {
        &self.requested
    }

    /// The exit status for a signal, such as 130 for Ctrl-C, if one has interrupted this command.
    pub fn status(&self, arguments: &Arguments) -> Option<u8> {
        let cut = self.requested.load(Ordering::SeqCst) && has_an_end(&arguments.command);
        let signal = self.signal.load(Ordering::SeqCst);
        cut.then(|| 128 + u8::try_from(signal).unwrap_or(0))
    }
}

/// Whether a command that checks the flag ends without it.
fn has_an_end(command: &Command) -> bool {
    match command {
        Command::Ping(_) | Command::Throughput(_) | Command::Replay(_) => true,
        Command::Capture(options) => options.count.is_some() || options.seconds.is_some(),
        Command::Stats(options) => options.watch.is_none(),
        Command::Trace(options) => !options.follow,
        Command::Log(options) => options.seconds.is_some(),
        Command::Spine {
            action: SpineAction::Video { action },
        } => match action {
            VideoAction::Show(options) => options.seconds.is_some(),
            VideoAction::Serve(options) => options.pictures.is_some(),
        },
        _ => false,
    }
}
