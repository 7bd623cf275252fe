//! The points as tables for people.

use super::point::{PerFrame, Point};
use comfy_table::{CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use tigon2_sim::workload::experiment::Experiment;

/// The points of one experiment.
pub fn points(experiment: Experiment, points: &[Point]) -> Table {
    let mut table = framed(&[
        "bytes", "tx k/s", "rx k/s", "Mb/s", "limit", "bound", "of it", "paper", "A", "B", "SRAM",
        "PCI", "by",
    ]);
    if experiment == Experiment::Ping {
        table.set_header(["bytes", "us there and back", "A", "B", "drops"]);
    }
    for point in points.iter().filter(|point| point.experiment == experiment) {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        if experiment == Experiment::Ping {
            table.add_row([
                point.datagram.to_string(),
                point
                    .latency_us
                    .map_or_else(String::new, |us| format!("{us:.1}")),
                percent(point.cpu_a_busy),
                percent(point.cpu_b_busy),
                point.drops.to_string(),
            ]);
            continue;
        }
        let paper = point.paper.iter().map(|figure| {
            format!(
                "{} {:.0} ({:.2})",
                figure.of,
                figure.mbps,
                point.mbps / figure.mbps
            )
        });
        table.add_row([
            point.datagram.to_string(),
            format!("{:.1}", point.frames_per_s_tx / 1e3),
            format!("{:.1}", point.frames_per_s_rx / 1e3),
            format!("{:.1}", point.mbps),
            format!("{:.0}", point.limit_mbps),
            point
                .bound_mbps
                .map_or_else(String::new, |bound| format!("{bound:.0}")),
            point.share_of_bound.map_or_else(String::new, percent),
            paper.collect::<Vec<_>>().join("\n"),
            percent(point.cpu_a_busy),
            percent(point.cpu_b_busy),
            percent(point.sram_utilisation),
            percent(point.pci_utilisation),
            point.bottleneck.to_owned(),
        ]);
    }
    table
}

/// Where a CPU's cycles go for a frame: by handler, as Figure 5 of the paper, and by cause.
pub fn profile(cpu: &PerFrame) -> Table {
    let mut table = framed(&["handler", "runs", "instructions", "cycles", "share"]);
    for handler in &cpu.handlers {
        table.add_row([
            handler.name.clone(),
            format!("{:.2}", handler.runs),
            format!("{:.1}", handler.instructions),
            format!("{:.1}", handler.cycles),
            format!("{:.1} %", handler.share * 100.0),
        ]);
    }
    table.add_row([
        "all, for a frame".to_owned(),
        String::new(),
        format!("{:.1}", cpu.instructions),
        format!("{:.1}", cpu.cycles),
        String::new(),
    ]);
    for (cause, cycles) in &cpu.causes {
        table.add_row([
            format!("  of it: {cause}"),
            String::new(),
            String::new(),
            format!("{cycles:.1}"),
            format!("{:.1} %", cycles * 100.0 / cpu.cycles.max(1e-9)),
        ]);
    }
    table
}

fn framed(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
