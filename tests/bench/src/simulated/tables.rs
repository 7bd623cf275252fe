//! Formats the points as tables.

use super::papers::figure_5;
use super::point::{PerFrame, Point};
use comfy_table::{CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use std::collections::BTreeMap;
use tigon2_sim::workload::experiment::Experiment;

/// The datagram of a frame of 64 bytes, as in Figure 5.
const SHORTEST: usize = 18;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A bound in tenths, rounded up: no value that it bounds exceeds what is printed.
pub fn at_most(bound: f64) -> String {
    format!("{:.1}", (bound * 10.0).ceil() / 10.0)
}

/// The points of one experiment.
pub fn points(experiment: Experiment, points: &[Point]) -> Table {
    let points = points.iter().filter(|point| point.experiment == experiment);
    if experiment == Experiment::Ping {
        return pings(points);
    }
    let mut table = framed(&[
        "bytes", "BDs", "traffic", "tx k/s", "rx k/s", "Mb/s", "limit", "bound", "of it", "paper",
        "A", "B", "SRAM", "PCI", "drops", "by",
    ]);
    for point in points {
        let paper = point.paper.iter().map(|compared| {
            let figure = &compared.figure;
            format!("{} {:.0} ({:.2})", figure.of, figure.mbps, compared.ratio)
        });
        table.add_row([
            point.datagram.to_string(),
            point.bds.to_string(),
            point.traffic.clone(),
            format!("{:.1}", point.frames_per_s_tx / 1e3),
            format!("{:.1}", point.frames_per_s_rx / 1e3),
            format!("{:.1}", point.mbps),
            format!("{:.0}", point.limit_mbps),
            format!("{:.0}", point.bound_mbps),
            percent(point.share_of_bound),
            paper.collect::<Vec<_>>().join("\n"),
            percent(point.cpu_a_busy),
            percent(point.cpu_b_busy),
            percent(point.sram_utilisation),
            percent(point.pci_utilisation),
            point.drops.to_string(),
            point.bottleneck.to_owned(),
        ]);
    }
    table
}

fn pings<'a>(points: impl Iterator<Item = &'a Point>) -> Table {
    let mut table = framed(&[
        "bytes",
        "BDs",
        "us there and back",
        "bound",
        "A",
        "B",
        "drops",
        "by",
    ]);
    let us = |time: Option<f64>| time.map_or_else(String::new, |us| format!("{us:.1}"));
    for point in points {
        table.add_row([
            point.datagram.to_string(),
            point.bds.to_string(),
            us(point.latency_us),
            us(point.bound_latency_us),
            percent(point.cpu_a_busy),
            percent(point.cpu_b_busy),
            point.drops.to_string(),
            point.bottleneck.to_owned(),
        ]);
    }
    table
}

/// What both CPUs do for a frame, by cause, at each point.
pub fn causes(points: &[Point]) -> Table {
    let causes = points.first().map_or(&[][..], |point| &point.cpu_a.causes);
    let mut header = vec!["experiment", "bytes", "BDs", "instructions", "cycles"];
    header.extend(causes.iter().map(|(cause, _)| *cause).skip(1));
    let mut table = framed(&header);
    for point in points {
        let both = [&point.cpu_a, &point.cpu_b];
        let sum = |figure: &dyn Fn(&PerFrame) -> f64| -> String {
            let sum: f64 = both.iter().map(|cpu| figure(cpu)).sum();
            format!("{sum:.0}")
        };
        let traffic = match point.traffic.as_str() {
            super::task::CONSTANT => String::new(),
            other => format!(", {other}"),
        };
        let mut row = vec![
            format!("{}{traffic}", point.experiment.name()),
            point.datagram.to_string(),
            point.bds.to_string(),
            sum(&|cpu| cpu.instructions),
            sum(&|cpu| cpu.cycles),
        ];
        row.extend((1..causes.len()).map(|n| sum(&|cpu| cpu.causes.get(n).map_or(0.0, |c| c.1))));
        table.add_row(row);
    }
    table
}

/// The profile of Figure 5: each handler's cycles for a frame and its share of all handlers
/// of sent and received frames of so many BDs, by CPU, beside the paper's.
pub fn profile(points: &[Point], bds: u32) -> Table {
    let mut table = framed(&[
        "handler",
        "CPU",
        "runs",
        "instructions",
        "cycles",
        "share",
        "paper",
    ]);
    let shortest = points.iter().find(|point| {
        (point.experiment, point.datagram, point.bds) == (Experiment::Bidirectional, SHORTEST, bds)
    });
    let Some(point) = shortest else {
        return table;
    };
    let cpus = [("A", &point.cpu_a), ("B", &point.cpu_b)];
    let of_figure = |handler: &&super::point::Handler| figure_5(&handler.name).is_some();
    let all: f64 = cpus
        .iter()
        .flat_map(|(_, cpu)| cpu.handlers.iter().filter(of_figure))
        .map(|handler| handler.cycles)
        .sum();
    let mut loads = BTreeMap::new();
    for (name, cpu) in cpus {
        for handler in &cpu.handlers {
            let share = handler.cycles / all.max(1e-9);
            let paper = figure_5(&handler.name);
            if paper.is_some() {
                *loads.entry(name).or_insert(0.0) += share;
            }
            table.add_row([
                handler.name.clone(),
                name.to_owned(),
                format!("{:.2}", handler.runs),
                format!("{:.1}", handler.instructions),
                format!("{:.1}", handler.cycles),
                paper.map_or_else(String::new, |_| format!("{:.1} %", share * 100.0)),
                paper.map_or_else(String::new, |(from, to)| {
                    if from == to {
                        format!("{from} %")
                    } else {
                        format!("{from} to {to} %")
                    }
                }),
            ]);
        }
    }
    let split: Vec<String> = loads
        .iter()
        .map(|(name, share)| format!("{name} {}", percent(*share)))
        .collect();
    table.add_row([
        "load of the CPUs".to_owned(),
        String::new(),
        String::new(),
        String::new(),
        format!("{all:.1}"),
        split.join(", "),
        "A 53 %, B 47 % (PARALLEL)".to_owned(),
    ]);
    table
}

/// The headline figures of each firmware and timing profile.
pub fn subjects(points: &[Point]) -> Table {
    const HEADLINES: [(Experiment, usize, u32); 8] = [
        (Experiment::Bidirectional, 1472, 1),
        (Experiment::Bidirectional, 1472, 2),
        (Experiment::Bidirectional, 18, 1),
        (Experiment::Bidirectional, 18, 2),
        (Experiment::Send, 400, 1),
        (Experiment::Send, 400, 2),
        (Experiment::Receive, 400, 2),
        (Experiment::Ping, 18, 1),
    ];
    let mut table = framed(&[
        "firmware",
        "placement",
        "profile",
        "both 1472 B, 1 BD",
        "2 BDs",
        "both 18 B, 1 BD",
        "2 BDs",
        "send 400 B, 1 BD",
        "2 BDs",
        "receive 400 B",
        "ping 18 B, us",
    ]);
    for group in points.chunk_by(Point::same_subject) {
        let first = &group[0];
        let mut row = vec![
            first.firmware.clone(),
            first.placement.clone(),
            first.profile.clone(),
        ];
        row.extend(HEADLINES.map(|(experiment, datagram, bds)| {
            let point = group.iter().find(|point| {
                (point.experiment, point.datagram, point.bds) == (experiment, datagram, bds)
                    && point.traffic == super::task::CONSTANT
            });
            point.map_or_else(String::new, |point| match point.latency_us {
                Some(us) => format!("{us:.1}"),
                None => format!("{:.1} ({})", point.mbps, percent(point.share_of_bound)),
            })
        }));
        table.add_row(row);
    }
    table
}

pub fn framed(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
