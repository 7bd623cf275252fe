//! The command line of `tigonctl spine`.

use std::path::PathBuf;

use clap::Subcommand;
use spine_linker::guard::GuardText;

pub const EXAMPLE: &str = "Examples:\n  \
    tigonctl --attach tigon0.status spine load hello.spine --guard udp:4711\n  \
    tigonctl --attach tigon0.status spine list\n  \
    tigonctl --attach tigon0.status spine stats 0\n  \
    tigonctl --attach tigon0.status spine unload 0\n\
    A guard is any, ether:TYPE, ip:PROTOCOL or udp:PORT, and =HANDLER behind it.";

/// What to do with extensions.
#[derive(Debug, Subcommand)]
pub enum SpineAction {
    /// Load an extension while frames flow.
    Load {
        /// Its container (`cargo xtask extension build`).
        container: PathBuf,
        /// Which frames go to it, behind those that other extensions want.
        #[arg(long = "guard", value_name = "GUARD", value_parser = guard)]
        guards: Vec<String>,
    },
    /// List what is loaded.
    List,
    /// Print what the handlers of an extension did.
    Stats {
        /// Its domain; by default all of them.
        domain: Option<u32>,
    },
    /// Take an extension off the card.
    Unload {
        /// Its domain.
        domain: u32,
    },
    /// Let an extension run again that was suspended.
    Resume {
        /// Its domain.
        domain: u32,
    },
}

/// A guard, judged before the driver is asked.
fn guard(text: &str) -> Result<String, String> {
    match text.parse::<GuardText>() {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
