//! The command line of `tigonctl spine`.

use std::path::PathBuf;

use super::VideoAction;
use clap::Subcommand;
use spine_linker::guard::GuardText;
use spine_linker::routes::Prefix;

pub const EXAMPLE: &str = "Examples:\n  \
    tigonctl --attach tigon0.status spine load hello.spine --guard udp:4711\n  \
    tigonctl --attach tigon0.status spine list\n  \
    tigonctl --attach tigon0.status spine stats 0\n  \
    tigonctl --attach tigon0.status spine message 0 1 17 0xFF\n  \
    tigonctl --attach tigon0.status spine log\n  \
    tigonctl --attach tigon0.status spine route add 10.0.0.0/8 02:00:00:00:00:05\n  \
    tigonctl --attach tigon0.status spine video show 0 --window 320x240+10+5 --png screen.png\n  \
    tigonctl --attach tigon0.status spine unload 0\n\
    A guard is any, ether:TYPE, ip:PROTOCOL or udp:PORT, and =HANDLER behind it; or message.";

/// What to do with extensions.
#[derive(Debug, Subcommand)]
pub enum SpineAction {
    /// Load an extension while frames flow.
    Load {
        /// Its container (`cargo xtask extension build`).
        container: PathBuf,
        /// Which frames go to it, after the guards of other extensions.
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
    /// Send a handler a message from the driver's process.
    Send {
        /// Its domain.
        domain: u32,
        /// The handler's number.
        handler: u8,
        /// Words of arguments, up to 60.
        #[arg(value_parser = word)]
        arguments: Vec<u32>,
    },
    /// Open an endpoint, send messages to a handler, and print its answers.
    Message {
        /// The domain of the handlers.
        domain: u32,
        /// The handler's number.
        handler: u8,
        /// Words of arguments, up to 60.
        #[arg(value_parser = word)]
        arguments: Vec<u32>,
        /// How many answers to wait for.
        #[arg(long, default_value_t = 1)]
        answers: u32,
        /// How long to wait for each, in milliseconds.
        #[arg(long, default_value_t = 1000)]
        patience: u64,
    },
    /// Print what handlers have sent to the driver's process: the newest 256 messages.
    Log,
    /// Print the endpoints of the driver and of applications, and what became of their messages.
    Endpoints,
    /// Print which domains keep frames.
    Ledger,
    /// Let a suspended extension run again.
    Resume {
        /// Its domain.
        domain: u32,
    },
    /// Let an extension write to a range of the PCI bus, as a frame buffer, or take it back.
    Lease {
        /// Its domain.
        domain: u32,
        /// The range's address on the bus; without it, the lease is taken back.
        #[arg(value_parser = bus_address, requires = "bytes")]
        address: Option<u64>,
        /// Its bytes.
        #[arg(value_parser = word)]
        bytes: Option<u32>,
    },
    /// Show videos that come over the wire, or send them.
    Video {
        /// What to do.
        #[command(subcommand)]
        action: VideoAction,
    },
    /// Print or change the routes of a router on the card.
    Route {
        /// The router's domain [default: the only router].
        #[arg(long, global = true)]
        domain: Option<u32>,
        /// What to do.
        #[command(subcommand)]
        action: RouteAction,
    },
}

/// What to do with routes.
#[derive(Debug, Subcommand)]
pub enum RouteAction {
    /// Add a route, or give its prefix another next hop.
    Add {
        /// The prefix, such as 10.0.0.0/8.
        prefix: Prefix,
        /// The next hop: an Ethernet address, `peer` and one, or `host`.
        #[arg(required = true)]
        hop: Vec<String>,
    },
    /// Delete the route to a prefix.
    Del {
        /// Its addresses.
        prefix: Prefix,
    },
    /// Replace all routes by those of a file.
    Load {
        /// The file: one route a line; # begins a comment.
        file: PathBuf,
    },
    /// Print them.
    Show,
}

/// A word, decimal or hexadecimal.
fn word(text: &str) -> Result<u32, String> {
    let word = bus_address(text)?;
    u32::try_from(word).map_err(|error| error.to_string())
}

/// An address on the bus, decimal or hexadecimal.
fn bus_address(text: &str) -> Result<u64, String> {
    let address = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    address.map_err(|error| error.to_string())
}

/// A guard, judged before the driver is asked.
fn guard(text: &str) -> Result<String, String> {
    match text.parse::<GuardText>() {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
