//! `tigonctl log`: prints the firmware's log while it runs.
//!
//! This process drives the card, reads it without a reset, or asks another process that drives it.
//! Levels are set on the card, whose CPUs then skip unwanted messages; they also filter the
//! output, since the card may have recorded more before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use host_driver::Transport;
use host_driver::log::{BuildId, LevelFilter, LogBlock, LogReader, NicMemory, level_named};
use host_driver::nic::CardMemory;
use host_driver::status::{LogAnswer, Request};
use host_interface::log::Level;

use super::cli::{Arguments, LogOptions};
use super::connect::{AnyNic, discard, seconds};
use super::look::Source;
use super::messages::{Fetched, Printer, read_texts};
use super::output::Output;
use super::session::bring_up;

/// How often the log is read.
const PERIOD: Duration = Duration::from_millis(100);

/// The source of messages.
enum Feed {
    /// A card that this process drives.
    Driven(Box<AnyNic>),
    /// A card that is read without a reset.
    AsItIs(Box<dyn Transport>, LogReader),
    /// The process that drives it, and the number of the next message.
    Attached(Source, u64),
}

impl Feed {
    fn open(arguments: &Arguments, options: &LogOptions) -> Result<Self> {
        if arguments.attach.is_some() {
            return Ok(Self::Attached(Source::open(arguments)?, 0));
        }
        if options.run.firmware.is_some() || options.run.own {
            return Ok(Self::Driven(Box::new(bring_up(arguments, &options.run)?)));
        }
        match Source::open(arguments)? {
            Source::Card(card) => Ok(Self::AsItIs(card, LogReader::new())),
            Source::Attached(_) => bail!("a card is a card"),
        }
    }

    /// The build of the card's firmware; None if it has no log.
    fn build(&mut self) -> Result<Option<BuildId>> {
        match self {
            Self::Driven(nic) => Ok(nic.log_block()?.map(|block| block.build)),
            Self::AsItIs(card, _) => {
                let block = LogBlock::find(&mut CardMemory::by_window(card))?;
                Ok(block.map(|block| block.build))
            }
            Self::Attached(source, _) => attached_build(source),
        }
    }

    fn fetch(&mut self) -> Result<Fetched> {
        match self {
            Self::Driven(nic) => {
                let (frames, missed) = nic.drain_log()?;
                Ok(Fetched {
                    frames,
                    missed,
                    lost: nic.log_lost(),
                })
            }
            Self::AsItIs(card, reader) => {
                let mut memory = CardMemory::by_window(card);
                let Some(block) = LogBlock::find(&mut memory)? else {
                    return Ok(Fetched::default());
                };
                Ok(Fetched {
                    frames: reader.read(&mut memory, &block)?,
                    missed: 0,
                    lost: block.counts.map(|counts| u64::from(counts.lost)),
                })
            }
            Self::Attached(source, next) => {
                let answer = ask_for_log(source, *next)?;
                let frames = answer.frames()?;
                let missed = answer.first.saturating_sub(*next);
                *next = answer.first + frames.len() as u64;
                Ok(Fetched {
                    frames,
                    missed,
                    lost: answer.lost,
                })
            }
        }
    }

    fn set_levels(&mut self, levels: &[(usize, Level)]) -> Result<()> {
        match self {
            Self::Driven(nic) => nic.set_log_levels(levels)?,
            Self::AsItIs(card, _) => {
                let mut memory = CardMemory::by_window(card);
                let block = LogBlock::find(&mut memory)?;
                let block = block.context("the firmware on this card has no log")?;
                for (module, level) in levels {
                    memory.store(block.level_address(*module), *level as u32)?;
                }
            }
            Self::Attached(source, _) => {
                let words = levels
                    .iter()
                    .map(|(module, level)| (*module, *level as u32));
                let levels = words.collect();
                source.request(&Request::LogLevels { levels })?;
            }
        }
        Ok(())
    }

    /// Lets the card run until the next read.
    fn pass(&mut self, stop: &AtomicBool) -> Result<()> {
        let end = Instant::now() + PERIOD;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            match self {
                Self::Driven(nic) => discard(nic)?,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Ok(())
    }
}

/// Requests the driver's log messages, from a number on.
fn ask_for_log(source: &mut Source, from: u64) -> Result<LogAnswer> {
    let mut answer = source.request(&Request::Log { from })?;
    Ok(serde_json::from_value(answer["log"].take())?)
}

/// The build of the firmware on a card that another process drives; None if it has no log.
pub fn attached_build(source: &mut Source) -> Result<Option<BuildId>> {
    // This requests no message, only the build that the driver sends with them.
    let build = ask_for_log(source, u64::MAX)?.build;
    let build = build.as_deref().map(str::parse).transpose();
    build.context("the driver's answer names no build")
}

/// `tigonctl log`
pub fn log(
    arguments: &Arguments,
    options: &LogOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let Some(elf) = &options.run.elf else {
        bail!("the log's texts are in the firmware's ELF file: name it with --elf FILE");
    };
    let limit = options.seconds.map(seconds).transpose()?;
    let level = options.level.as_deref().map(level_named).transpose()?;
    let filter = LevelFilter::new(level, &options.module)?;
    let texts = read_texts(elf)?;
    let mut feed = Feed::open(arguments, options)?;
    let mut levels = filter.levels().to_vec();
    if options.leave {
        levels.clear();
    }
    // A card that this process drives has logged nothing yet.
    let driven = matches!(feed, Feed::Driven(_));
    let follow = options.follow || limit.is_some() || driven;
    let mut printer = Printer::new(&texts, filter, output);
    let start = Instant::now();
    loop {
        let last = !follow
            || limit.is_some_and(|limit| start.elapsed() >= limit)
            || stop.load(Ordering::Relaxed);
        // First of all: messages can be taken once, and levels stay as they are set.
        match feed.build()? {
            Some(build) => texts
                .check(build)
                .with_context(|| format!("ELF file {}", elf.display()))?,
            None if driven || last => bail!("the firmware on this card has no log"),
            None => {
                feed.pass(stop)?;
                continue;
            }
        }
        if !levels.is_empty() {
            feed.set_levels(&std::mem::take(&mut levels))?;
        }
        let fetched = feed.fetch()?;
        printer.print(&fetched)?;
        // An answer of the driver may be incomplete.
        if fetched.frames.is_empty() || driven {
            if last {
                break;
            }
            feed.pass(stop)?;
        }
    }
    if let Feed::Driven(nic) = feed {
        nic.shut_down()?;
    }
    Ok(())
}
