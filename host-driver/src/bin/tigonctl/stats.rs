//! `tigonctl stats`: prints all counts, of a card that this process or another process drives,
//! once or repeatedly.

pub mod printer;
mod table;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use host_driver::status::{Request, statistics_block};
use serde_json::Value;

use super::cli::{Arguments, StatsOptions};
use super::connect::{AnyNic, discard_for, seconds};
use super::look::Source;
use super::output::Output;
use super::session::{bring_up, finish};
use printer::Printer;
use table::{Counts, in_one_style};

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
        print_block(source.request(&Request::StatisticsBlock)?, output);
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
