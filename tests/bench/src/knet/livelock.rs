//! Receive livelock: more datagrams arrive than the host can process (section 3).
//!
//! The modelled host is a third as fast as the paper's, so that the host is the limit: the card takes
//! its loss-free rate without loss, too, by every policy.

use super::{Bench, percent, rounded, signed};
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;
use tigon2_sim::hosts::policy::PolicyKind;
use tigon2_sim::workload::knet::livelock::{Point, loss_free, measure as look};
use tigon2_sim::workload::knet::model::Model;

/// CPUs of the host.
const CPUS: usize = 4;
/// How much slower it is than the paper's.
const SLOWER: u64 = 3;
/// What is offered, in hundredths of the loss-free rate.
const PERCENT: [u32; 9] = [10, 25, 50, 75, 100, 125, 150, 200, 300];
/// In a quick look.
const QUICK: [u32; 4] = [50, 100, 150, 300];
/// A sender's share while others are quiet, and when it floods its queue.
const QUIET: f64 = 0.9;
const FLOOD: f64 = 3.0;

/// A policy at a rate.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    policy: &'static str,
    /// Its highest rate without loss, datagrams per second.
    loss_free: f64,
    /// What is offered, in hundredths of that.
    percent: u32,
    /// What the application gets, in datagrams per second.
    delivered: f64,
    /// The same as a share of the loss-free rate.
    share: f64,
    /// Share of what is offered that is dropped after work of the host.
    wasted: f64,
    /// Share of what is offered that the card drops.
    dropped_by_card: f64,
    /// Interrupts in a hundred datagrams that the application gets.
    interrupts_in_100: f64,
    /// The application's time over the network's.
    ta_te: f64,
    /// Load of the card's busier CPU.
    card: f64,
    /// alpha of the model on so many CPUs, with the measured Ta / Te.
    alpha: f64,
}

/// One sender floods its queue.
#[derive(Clone, Debug, Serialize)]
pub struct FloodRow {
    policy: &'static str,
    /// Of the flooded queue, before and then, in datagrams per second.
    flooded: [f64; 2],
    /// Of all others together.
    others: [f64; 2],
    /// By how much those change, as a share.
    change: f64,
    card: f64,
}

pub(super) fn measure(bench: Bench<'_>) -> Result<(Vec<Row>, Vec<FloodRow>)> {
    let policies = PolicyKind::ALL;
    let found = bench.each("livelock", &policies, |policy| {
        let rate = loss_free_rate(bench, *policy)?;
        let percents: &[u32] = if bench.quick { &QUICK } else { &PERCENT };
        let rows: Result<Vec<Row>> = percents
            .iter()
            .map(|percent| point(bench, *policy, rate, *percent))
            .collect();
        let flood = match policy {
            PolicyKind::Knet => Some(flood(bench, *policy, rate)?),
            _ => None,
        };
        Ok((rows?, flood))
    })?;
    let (rows, floods): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    Ok((rows.concat(), floods.into_iter().flatten().collect()))
}

fn loss_free_rate(bench: Bench<'_>, policy: PolicyKind) -> Result<f64> {
    let profile = bench.profile.clone().slower(SLOWER);
    Ok(loss_free(
        bench.setup,
        &profile,
        policy,
        CPUS,
        bench.duration,
    )?)
}

fn point(bench: Bench<'_>, policy: PolicyKind, loss_free: f64, percent: u32) -> Result<Row> {
    let profile = bench.profile.clone().slower(SLOWER);
    let rate = loss_free * f64::from(percent) / 100.0;
    let point = Point::new(policy, CPUS, rate);
    let found = look(bench.setup, &profile, &point, bench.duration)?;
    let offered = found.offered.max(1) as f64;
    let missing = offered - (found.delivered + found.wasted) as f64;
    let ratio = found.window.ratio();
    let alpha = Model::new(CPUS as u32, 1.0, ratio).map_or(f64::NAN, |model| model.alpha());
    Ok(Row {
        policy: policy.name(),
        loss_free: rounded(loss_free, 1.0),
        percent,
        delivered: rounded(found.rate(), 1.0),
        share: rounded(found.rate() / loss_free, 1e3),
        wasted: rounded(found.wasted as f64 / offered, 1e3),
        dropped_by_card: rounded((missing / offered).max(0.0), 1e3),
        interrupts_in_100: rounded(
            100.0 * found.window.interrupts as f64 / found.delivered.max(1) as f64,
            100.0,
        ),
        ta_te: rounded(ratio, 1e3),
        card: rounded(found.window.busiest(), 1e3),
        alpha: rounded(alpha, 1e3),
    })
}

fn flood(bench: Bench<'_>, policy: PolicyKind, loss_free: f64) -> Result<FloodRow> {
    let profile = bench.profile.clone().slower(SLOWER);
    let quiet = Point::new(policy, CPUS, QUIET * loss_free);
    let flooded = Point {
        flood: Some(FLOOD * loss_free / CPUS as f64),
        ..quiet
    };
    let before = look(bench.setup, &profile, &quiet, bench.duration)?;
    let after = look(bench.setup, &profile, &flooded, bench.duration)?;
    let rates = [&before, &after].map(|found| {
        let rate = |count: u64| rounded(count as f64 / found.window.seconds, 1.0);
        match found.delivered_by.split_first() {
            Some((first, others)) => (rate(*first), rate(others.iter().sum())),
            None => (0.0, 0.0),
        }
    });
    let others = rates.map(|(_, others)| others);
    Ok(FloodRow {
        policy: policy.name(),
        flooded: rates.map(|(first, _)| first),
        others,
        change: rounded(others[1] / others[0] - 1.0, 1e4),
        card: rounded(after.window.busiest(), 1e3),
    })
}

pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "policy",
        "loss-free /s",
        "offered",
        "delivered /s",
        "of it",
        "host drops",
        "card drops",
        "interrupts in 100",
        "Ta/Te",
        "alpha",
        "card",
    ]);
    for row in rows {
        table.add_row([
            row.policy.to_owned(),
            format!("{:.0}", row.loss_free),
            format!("{} %", row.percent),
            format!("{:.0}", row.delivered),
            percent(row.share),
            percent(row.wasted),
            percent(row.dropped_by_card),
            format!("{:.2}", row.interrupts_in_100),
            format!("{:.2}", row.ta_te),
            format!("{:.2}", row.alpha),
            percent(row.card),
        ]);
    }
    table
}

pub(super) fn flood_table(rows: &[FloodRow]) -> Table {
    let mut table = framed(&[
        "policy",
        "flooded /s",
        "then",
        "others /s",
        "then",
        "change",
        "card",
    ]);
    for row in rows {
        table.add_row([
            row.policy.to_owned(),
            format!("{:.0}", row.flooded[0]),
            format!("{:.0}", row.flooded[1]),
            format!("{:.0}", row.others[0]),
            format!("{:.0}", row.others[1]),
            signed(row.change),
            percent(row.card),
        ]);
    }
    table
}
