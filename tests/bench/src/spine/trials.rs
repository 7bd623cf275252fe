//! Trials of all extensions: cut off everywhere, loaded and unloaded at full wire load.

use super::card::Kit;
use super::{churn, contained, cuts, emulated};
use crate::report::write_json;
use anyhow::Result;
use indicatif::ProgressBar;
use std::time::Instant;
use testbed::setup::{self, Need};
use testbed::tools::Tools;

/// Cuts runs off, prints the table and writes `target/reports/extension-cut.json`.
///
/// # Errors
/// As [`cuts::run`].
pub fn cut(wanted: u64) -> Result<()> {
    let kit = Kit::build()?;
    let begun = Instant::now();
    let bar = ProgressBar::new(wanted).with_prefix("cuts");
    let rows = cuts::run(&kit, wanted, |cuts| bar.set_position(cuts.min(wanted)));
    bar.finish_and_clear();
    let rows = rows?;
    println!("{}", cuts::table(&rows));
    let cuts: u64 = rows.iter().map(|row| row.cuts).sum();
    println!(
        "extension: {cuts} cuts in {} s; each run had done nothing, and nothing was lost",
        begun.elapsed().as_secs()
    );
    println!("report: {}", write_json("extension-cut", &rows)?.display());
    Ok(())
}

/// Cuts runs off on the emulated card, prints the table and writes
/// `target/reports/extension-cut-qemu.json`.
///
/// # Errors
/// As [`emulated::run`].
pub fn cut_under_qemu(wanted: u64) -> Result<()> {
    setup::ensure(&[Need::Firmware, Need::Qemu])?;
    let tools = Tools::build()?;
    let kit = Kit::build()?;
    let begun = Instant::now();
    let bar = ProgressBar::new(wanted).with_prefix("cuts");
    let rows = emulated::run(&tools, &kit, wanted, |cuts| {
        bar.set_position(cuts.min(wanted))
    });
    bar.finish_and_clear();
    let rows = rows?;
    println!("{}", emulated::table(&rows));
    let cuts: u64 = rows.iter().map(|row| row.cuts).sum();
    println!(
        "extension: {cuts} cuts under QEMU in {} s; each run had done nothing, and nothing was lost",
        begun.elapsed().as_secs()
    );
    let report = write_json("extension-cut-qemu", &rows)?;
    println!("report: {}", report.display());
    Ok(())
}

/// Loads and unloads, prints what was counted and writes `target/reports/extension-churn.json`.
///
/// # Errors
/// As [`churn::run`].
pub fn churn(loads: u32, datagram: usize) -> Result<()> {
    let kit = Kit::build()?;
    let bar = ProgressBar::new(loads.into()).with_prefix("loads");
    let churned = churn::run(&kit, loads, datagram, |loads| {
        bar.set_position(loads.into())
    });
    bar.finish_and_clear();
    let churned = churned?;
    let [out, into] = churned.before;
    let [out_then, into_then] = churned.during;
    println!(
        "extension: {loads} loads in {:.0} ms of the card; {} runs, {} of them cut off",
        churned.milliseconds, churned.runs, churned.overruns
    );
    println!(
        "  datagrams a second, out and in: {out} and {into}; meanwhile {out_then} and {into_then}"
    );
    println!(
        "  {} datagrams arrived in order, {} drops were counted, and no other is missing",
        churned.arrived, churned.dropped
    );
    println!(
        "  in the second half of them the host's memory grew by {} kB",
        churned.host_grown
    );
    println!(
        "report: {}",
        write_json("extension-churn", &churned)?.display()
    );
    Ok(())
}

/// Loads hostile extensions, prints the table and writes `target/reports/extension-contain.json`.
///
/// # Errors
/// As [`contained::run`].
pub fn contain() -> Result<()> {
    let rows = contained::run(&Kit::build()?)?;
    println!("{}", contained::table(&rows));
    println!(
        "report: {}",
        write_json("extension-contain", &rows)?.display()
    );
    Ok(())
}
