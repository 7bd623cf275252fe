//! Controls a Tigon II card from user space.
//!
//! Each call connects to the card, resets it, does one thing and halts it again; or it inspects a
//! card without a reset, or through the process that drives it. Results go to standard output
//! (with `--json` one object per line), errors to standard error in one line. The exit status is 1
//! after an error, and 130 after a Ctrl-C that interrupted the command.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

mod bridge;
mod capture;
mod card;
mod cli;
mod connect;
mod eudp;
mod flash;
mod interrupt;
mod link;
mod log;
mod look;
mod messages;
mod output;
mod queues;
mod regs;
mod rings;
mod rss;
mod session;
mod spine;
mod stats;
mod top;
mod trace;
mod traffic;

use cli::{Arguments, Command};
use interrupt::Interrupt;
use output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let output = Output::new(arguments.json);
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            output.error(&format!("signal handlers: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let result = run(&arguments, &output, &interrupt);
    if let Some(status) = interrupt.status(&arguments) {
        output.error("interrupted");
        return ExitCode::from(status);
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line, followed by the causes unless they repeat it.
            let mut text = error.to_string();
            for cause in error.chain().skip(1).map(ToString::to_string) {
                if !text.contains(&cause) {
                    text = format!("{text}: {cause}");
                }
            }
            output.error(&text.replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

/// Writes the completions; the reader may go away at any time.
fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut Arguments::description(),
        "tigonctl",
        &mut script,
    );
    match std::io::stdout().write_all(&script) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn run(arguments: &Arguments, output: &Output, interrupt: &Interrupt) -> anyhow::Result<()> {
    let stop = interrupt.flag();
    match &arguments.command {
        Command::Flash(options) => flash::flash(arguments, options, output),
        Command::Completions { shell } => completions(*shell),
        Command::Man { folder } => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Arguments::description(), folder))
            .with_context(|| format!("cannot write to {}", folder.display())),
        Command::Regs { name } => regs::regs(arguments, name.as_deref(), output),
        Command::Peek { place, words } => look::peek(arguments, place, *words, output),
        Command::Poke { place, value } => look::poke(arguments, place, *value, output),
        Command::Rings { addresses } => rings::rings(arguments, *addresses, output),
        Command::Queues(options) => queues::queues(arguments, options, output, stop),
        Command::Rss { action } => rss::rss(arguments, action, output),
        Command::Spine { action } => spine::spine(arguments, action, output, stop),
        Command::Link { wanted } => link::link(arguments, *wanted, output),
        Command::Reset => card::reset(arguments, output),
        Command::Top { interval, elf } => {
            let interval = connect::seconds(*interval)?;
            top::top(arguments, interval, elf.as_deref(), stop)
        }
        Command::Info => card::info(arguments, output),
        Command::Load { firmware } => card::load(arguments, firmware, output),
        Command::Stats(options) => stats::stats(arguments, options, output, stop),
        Command::Trace(options) => trace::trace(arguments, options, output, stop),
        Command::Log(options) => log::log(arguments, options, output, stop),
        Command::Bridge(options) => bridge::bridge(arguments, options, output, stop),
        Command::Replay(options) => traffic::replay(arguments, options, output, stop),
        Command::Capture(options) => capture::capture(arguments, options, output, stop),
        Command::Ping(options) => traffic::ping(arguments, options, output, stop),
        Command::Throughput(options) => traffic::throughput(arguments, options, output, stop),
        Command::Eudp { action } => eudp::eudp(arguments, action, output, stop),
        Command::Peer(options) => traffic::peer(options, output, stop),
    }
}
