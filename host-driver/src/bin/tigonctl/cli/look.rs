//! The command lines of `stats`, `trace` and `log`.

use clap::Args;

use super::run::{RunOptions, number};

pub const LOG_EXAMPLE: &str = "Examples:\n  \
    tigonctl --attach tigon0.status log --elf parallel --follow\n  \
    tigonctl --attach tigon0.status log --elf parallel --level warn --module link=trace\n\n\
    Levels: off, error, warn, info, debug, trace. They are set on the card, without a reset,\n\
    and stay until others are set.";

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// How long to run the card, in seconds.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// What to trace from now on: the mask of gencom word 644.
    #[arg(long, value_name = "MASK", value_parser = number)]
    pub mask: Option<u32>,
    /// Print new entries until Ctrl-C.
    #[arg(long)]
    pub follow: bool,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `stats`.
#[derive(Debug, Args)]
pub struct StatsOptions {
    /// How long to run the card, in seconds.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// Print the counts repeatedly, this many seconds apart, until Ctrl-C.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    pub watch: Option<f64>,
    /// Print every word of the statistics block and the MAC's counters, including zeros.
    #[arg(long)]
    pub all: bool,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `log`.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// Print new messages for this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Print new messages until Ctrl-C.
    #[arg(long)]
    pub follow: bool,
    /// Only messages of this level or more severe, of all modules.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// The level of one module.
    #[arg(long, value_name = "MODULE=LEVEL")]
    pub module: Vec<String>,
    /// Do not change the card's levels: only filter the output.
    #[arg(long)]
    pub leave: bool,
    /// How to run the card.
    #[command(flatten)]
    pub run: RunOptions,
}
