//! Works with a Tigon II card from user space.
//!
//! Each call connects to the card, resets it, does one thing and halts it again, or looks at
//! a card as it is or as another process drives it.
//! What it prints goes to standard output (with `--json` one object a line), what
//! went wrong to standard error in one line, and then the exit status is 1.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::{CommandFactory, Parser};

mod card;
mod cli;
mod flash;
mod link;
mod log;
mod look;
mod output;
mod top;
mod trace;
mod traffic;

use cli::{Arguments, Command};
use output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output::new(arguments.json);
    match run(&arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line, with the causes behind it unless they repeat it.
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

fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    match &arguments.command {
        Command::Flash(options) => flash::flash(arguments, options, output),
        Command::Completions { shell } => {
            let mut command = Arguments::command();
            clap_complete::generate(*shell, &mut command, "tigonctl", &mut std::io::stdout());
            Ok(())
        }
        Command::Man { folder } => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
            .with_context(|| format!("cannot write to {}", folder.display())),
        Command::Regs { name } => look::regs(arguments, name.as_deref(), output),
        Command::Peek { place, words } => look::peek(arguments, place, *words, output),
        Command::Poke { place, value } => look::poke(arguments, place, *value, output),
        Command::Rings => look::rings(arguments, output),
        Command::Link { wanted } => link::link(arguments, *wanted, output),
        Command::Reset => card::reset(arguments, output),
        Command::Top { interval, elf } => {
            let interval = card::seconds(*interval)?;
            top::top(arguments, interval, elf.as_deref(), &stop)
        }
        Command::Info => card::info(arguments, output),
        Command::Load { firmware } => card::load(arguments, firmware, output),
        Command::Stats(options) => card::stats(arguments, options, output, &stop),
        Command::Trace(options) => trace::trace(arguments, options, output, &stop),
        Command::Log(options) => log::log(arguments, options, output, &stop),
        Command::Bridge(options) => traffic::bridge(arguments, options, output, &stop),
        Command::Replay(options) => traffic::replay(arguments, options, output, &stop),
        Command::Capture(options) => traffic::capture(arguments, options, output, &stop),
        Command::Ping(options) => traffic::ping(arguments, options, output, &stop),
        Command::Throughput(options) => traffic::throughput(arguments, options, output, &stop),
        Command::Peer(options) => traffic::peer(options, output, &stop),
    }
}
