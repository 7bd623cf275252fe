//! The command `paycheck`.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use paycheck::message::{HEADER, LARGEST, LARGEST_DATAGRAM};
use paycheck::report::Report;
use paycheck::{Plan, tcp, udp};

const EXAMPLE: &str = "Example:\n  \
    paycheck receive --udp 0.0.0.0:7000\n  \
    paycheck send --udp 10.0.0.2:7000 --size 8000 --rate 50 --seconds 10\n  \
    paycheck both --listen --tcp 0.0.0.0:7000\n  \
    paycheck both --tcp 10.0.0.2:7000\n\n\
    The report is one line of JSON. The exit status is 1 if a payload came damaged, if\n\
    the other side is missing, or, on request, if one was lost.";

/// Sends numbered, checksummed payloads and checks those that come.
#[derive(Debug, Parser)]
#[command(name = "paycheck", version, about, after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Listen and receive what a sender sends.
    Receive(Options),
    /// Connect and send.
    Send(Options),
    /// Send and receive at once; one side connects, the other listens.
    Both {
        /// Listen instead of connecting.
        #[arg(long)]
        listen: bool,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Debug, Args)]
struct Options {
    /// Over UDP: where to listen, or whom to send to.
    #[arg(long, value_name = "ADDRESS:PORT")]
    udp: Option<SocketAddr>,
    /// Over TCP: where to listen, or whom to connect to.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "udp")]
    tcp: Option<SocketAddr>,
    /// Bytes of each message, at least 28.
    #[arg(long, default_value_t = 1400)]
    size: usize,
    /// Payload in megabits per second; as fast as it goes if not given.
    #[arg(long, value_name = "MBPS")]
    rate: Option<f64>,
    /// How long to send.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How many messages to send at most.
    #[arg(long)]
    count: Option<u64>,
    /// How long to wait for the other side, in seconds.
    #[arg(long, default_value_t = 30.0)]
    patience: f64,
    /// A peer that was silent for so long is gone, in seconds.
    #[arg(long, default_value_t = 5.0)]
    idle: f64,
    /// Exit with 1 if a message was lost, too.
    #[arg(long)]
    no_loss: bool,
}

fn seconds(value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).with_context(|| format!("{value} is no time in seconds"))
}

fn plan(options: &Options, listen: bool, send: bool) -> Result<Plan> {
    let (address, largest) = match (options.udp, options.tcp) {
        (Some(address), _) => (address, LARGEST_DATAGRAM),
        (None, Some(address)) => (address, LARGEST),
        (None, None) => bail!("over what? Say --udp ADDRESS:PORT or --tcp ADDRESS:PORT"),
    };
    if !(HEADER..=largest).contains(&options.size) {
        bail!("--size {}: must be {HEADER} to {largest}", options.size);
    }
    if options
        .rate
        .is_some_and(|rate| rate.is_nan() || rate <= 0.0)
    {
        bail!("--rate must be above 0");
    }
    Ok(Plan {
        size: options.size,
        rate: options.rate,
        duration: seconds(options.seconds)?,
        count: options.count,
        patience: seconds(options.patience)?,
        idle: seconds(options.idle)?,
        ..Plan::new(address, listen, send)
    })
}

fn run(arguments: &Arguments) -> Result<(Report, bool)> {
    let (options, listen, send) = match &arguments.command {
        Command::Receive(options) => (options, true, false),
        Command::Send(options) => (options, false, true),
        Command::Both { listen, options } => (options, *listen, true),
    };
    let plan = plan(options, listen, send)?;
    let report = if options.udp.is_some() {
        udp::run(&plan)?
    } else {
        tcp::run(&plan)?
    };
    Ok((report, options.no_loss))
}

fn main() -> ExitCode {
    let finished = run(&Arguments::parse()).and_then(|(report, no_loss)| {
        println!("{}", serde_json::to_string(&report)?);
        let flow = report.total;
        if flow.corrupt > 0 {
            bail!("{} messages came damaged", flow.corrupt);
        }
        if no_loss && flow.lost > 0 {
            bail!("{} messages were lost", flow.lost);
        }
        if !report.complete {
            bail!("the other side was gone before the end");
        }
        Ok(())
    });
    match finished {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paycheck: {error:#}");
            ExitCode::FAILURE
        }
    }
}
