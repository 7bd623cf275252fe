//! `tigonctl stats`: all counts, of a card that this process drives or of one that another
//! process drives, once or again and again.

mod table;

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use host_driver::nic::NicStatistics;
use host_driver::status::{Question, statistics_block};
use serde_json::Value;

use super::card::{AnyNic, bring_up, discard_for, finish, link_text, seconds};
use super::cli::{Arguments, StatsOptions};
use super::look::Source;
use super::output::Output;
use table::{Counts, Since, in_one_style};

/// Clears the screen of a terminal and goes to its upper left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints all counts that are not zero.
pub fn print(statistics: &NicStatistics, output: &Output) -> Result<()> {
    Printer::new(output, false).print(serde_json::to_value(statistics)?);
    Ok(())
}

/// The firmware and the link, on one line.
fn heading(statistics: &Value) -> String {
    let version = statistics["firmware_version"].as_str();
    let link = serde_json::from_value(statistics["link"].clone());
    let link = link.map_or("unknown", link_text);
    format!("firmware {}, link {link}", version.unwrap_or("unknown"))
}

/// Prints counts, and from the second time on what came since the time before.
struct Printer<'a> {
    output: &'a Output,
    /// Each table takes the place of the one before.
    in_place: bool,
    last: Option<(Instant, Counts)>,
}

impl<'a> Printer<'a> {
    fn new(output: &'a Output, again: bool) -> Self {
        Self {
            output,
            in_place: again && !output.is_json() && std::io::stdout().is_terminal(),
            last: None,
        }
    }

    fn print(&mut self, statistics: Value) {
        let now = Instant::now();
        let mut value = in_one_style(statistics);
        // Zeros that were something else before count, for programs.
        let counts = Counts::read(&value, self.output.is_json());
        let since = self.last.as_ref().map(|(then, counts)| Since {
            counts,
            time: now.duration_since(*then),
        });
        let mut text = heading(&value);
        if let Some(since) = since {
            text += &format!("; {:.1} s since the look before", since.time.as_secs_f64());
            if let Some(fields) = value.as_object_mut() {
                fields.extend(counts.changes(since));
            }
        }
        text = format!("{text}\n{}", counts.table(since));
        if self.in_place {
            let mut stdout = std::io::stdout().lock();
            // A terminal that is gone is noticed by what follows.
            let _ = write!(stdout, "{CLEAR}");
        } else if since.is_some() {
            text.insert(0, '\n');
        }
        self.output
            .result("statistics", value, text.trim_end_matches('\n'));
        self.last = Some((now, counts));
    }
}

/// `tigonctl stats`
pub fn stats(
    arguments: &Arguments,
    options: &StatsOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let time = seconds(options.seconds)?;
    let watch = options.watch.map(seconds).transpose()?;
    if arguments.attach.is_some() {
        return attached(arguments, options, watch, output, stop);
    }
    let mut nic = bring_up(arguments, &options.run)?;
    if let Some(period) = watch {
        let mut printer = Printer::new(output, true);
        while !stop.load(Ordering::Relaxed) {
            discard_for(&mut nic, period, stop)?;
            printer.print(serde_json::to_value(nic.statistics()?)?);
        }
    }
    discard_for(&mut nic, time, stop)?;
    if options.all {
        print_all(&mut nic, output)?;
    }
    finish(nic, &options.run, output)
}

/// The counts of a card that another process drives.
fn attached(
    arguments: &Arguments,
    options: &StatsOptions,
    watch: Option<Duration>,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let mut source = Source::open(arguments)?;
    if options.all {
        print_block(source.question(&Question::StatisticsBlock)?, output);
    }
    let mut printer = Printer::new(output, watch.is_some());
    loop {
        printer.print(source.statistics()?);
        let Some(period) = watch else {
            return Ok(());
        };
        let end = Instant::now() + period;
        while Instant::now() < end {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20).min(period));
        }
    }
}

/// Every word of the statistics block and the MAC's own counters.
fn print_all(nic: &mut AnyNic, output: &Output) -> Result<()> {
    nic.update_statistics()?;
    print_block(statistics_block(nic)?, output);
    Ok(())
}

fn print_block(block: Value, output: &Output) {
    let block = in_one_style(block);
    let text = Counts::read(&block, true).table(None);
    output.result("statistics-block", block, text.trim_end_matches('\n'));
}
