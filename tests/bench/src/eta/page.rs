//! The figures of `docs/eta.md`: a stored report of one run, and the tables made of it. A test
//! compares the page with them.

use crate::front_page;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use testbed::paths;

/// The report that the page shows.
pub const STORED: &str = "docs/eta-bench.json";
/// The page.
pub const PAGE: &str = "docs/eta.md";
/// What the marks of its tables say.
const MAKER: &str = "cargo xtask bench --eta --store";

/// What the bench measured last, part by part; medians of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub calls: Vec<Calls>,
    pub rates: Rates,
    pub overload: Overload,
    pub arrivals: Arrivals,
    pub clients: Vec<Client>,
    /// Requests in a second of 100 active connections alone, and among 10 000.
    pub crowd: [f64; 2],
}

/// System calls of a request, by `strace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    pub arm: String,
    pub clients: usize,
    pub server: f64,
    /// By the server's own count, over its whole life.
    pub own: f64,
    /// Of the engine, or of the bridge in its place.
    pub engine: Option<f64>,
}

/// Requests as fast as eight clients ask.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    pub rounds: u32,
    /// Of each look.
    pub seconds: u64,
    /// Processors of the computer, and programs that wanted one when this part began.
    pub processors: usize,
    pub load: f64,
    pub lines: Vec<Rate>,
}

impl Rates {
    /// Requests of an arm beside those of another, under each load.
    fn beside(&self, arm: &str, other: &str) -> Vec<f64> {
        let of = |arm: &str| {
            let lines = self.lines.iter().filter(move |line| line.arm == arm);
            lines.map(|line| line.requests_per_s).collect::<Vec<_>>()
        };
        let pairs = of(arm).into_iter().zip(of(other));
        pairs.map(|(one, other)| one / other).collect()
    }
}

/// An arm under a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub load: String,
    pub arm: String,
    pub requests_per_s: f64,
    pub least: f64,
    pub most: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_us: f64,
    pub machine_us: f64,
}

/// Figure 4.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    pub rounds: u32,
    /// Shares of saturation.
    pub loads: Vec<f64>,
    /// Replies in a second that saturate each arm.
    pub saturations: Vec<(String, f64)>,
    pub lines: Vec<Line>,
}

/// An arm with an accept policy: replies in a second, and the share of the connections that the
/// client could begin, at each load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub arm: String,
    pub policy: String,
    pub replies_per_s: Vec<f64>,
    pub begun: Vec<f64>,
}

/// Connections at fixed rates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    pub rounds: u32,
    /// Programs that wanted a processor when this part began.
    pub load: f64,
    /// Replies in a second that saturate the slowest arm without a card, and the slowest behind it.
    pub saturations: [f64; 2],
    pub lines: Vec<Arrival>,
}

/// An arm at a share of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    pub load: f64,
    pub arm: String,
    pub target_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// Processor time of a reply, as in the rates.
    pub cpu_us: f64,
    pub machine_us: f64,
    /// Connections that the client began late, and those without a reply, in all rounds.
    pub late: u64,
    pub lost: u64,
    /// SYNs that the engine dropped because the server's backlog was full, in all rounds.
    pub refused: Option<u64>,
}

/// What a client of others saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Client {
    pub arm: String,
    pub client: String,
    pub requests: u64,
    pub errors: u64,
}

impl Overload {
    /// Of each arm, at each load: replies of the adaptive line beside those of the best fixed one.
    pub fn adaptive(&self) -> Vec<(String, Vec<f64>)> {
        let arms = self.saturations.iter().map(|(arm, _)| arm);
        let beside = |arm: &String| {
            let lines = || self.lines.iter().filter(move |line| line.arm == *arm);
            let of = |line: &Line, at: usize| line.replies_per_s.get(at).copied().unwrap_or(0.0);
            let shares = (0..self.loads.len()).map(|at| {
                let fixed = lines().filter(|line| line.policy != "adaptive");
                let best = fixed.map(|line| of(line, at)).fold(0.0, f64::max);
                let adaptive = lines().find(|line| line.policy == "adaptive");
                adaptive.map_or(0.0, |line| of(line, at)) / best
            });
            (arm.clone(), shares.collect())
        };
        arms.map(beside).collect()
    }
}

/// The report that the page shows.
///
/// # Errors
/// If it cannot be read.
pub fn stored() -> Result<Summary> {
    let text = std::fs::read_to_string(paths::root().join(STORED)).context(STORED)?;
    serde_json::from_str(&text).context(STORED)
}

/// Stores a report, and puts its tables into the page.
///
/// # Errors
/// If the page lacks a mark, or a file cannot be written.
pub fn store(summary: &Summary) -> Result<()> {
    let page = paths::root().join(PAGE);
    let filled = fill(&std::fs::read_to_string(&page).context(PAGE)?, summary)?;
    let text = serde_json::to_string_pretty(summary)? + "\n";
    std::fs::write(paths::root().join(STORED), text).context(STORED)?;
    std::fs::write(page, filled).context(PAGE)
}

/// A page with the tables of a report.
///
/// # Errors
/// If it lacks a mark.
pub fn fill(page: &str, summary: &Summary) -> Result<String> {
    let tables = [
        ("calls", calls(summary)),
        ("rates", rates(&summary.rates)),
        ("overload", overload(&summary.overload)),
        ("arrivals", arrivals(&summary.arrivals)),
        ("clients", clients(summary)),
    ];
    tables
        .iter()
        .try_fold(page.to_owned(), |page, (name, text)| {
            front_page::fill_made_by(&page, (name, MAKER), text)
        })
}

/// A paragraph as wide as the page's own.
fn paragraph(text: &str) -> String {
    textwrap::fill(text, 100) + "\n"
}

fn head(names: &[&str]) -> String {
    let lines = names.iter().map(|_| "---").collect::<Vec<_>>().join(" | ");
    format!("| {} |\n| {lines} |\n", names.join(" | "))
}

fn calls(summary: &Summary) -> String {
    let names = [
        "arm",
        "clients",
        "server, by strace",
        "by itself",
        "engine or bridge",
        "sum",
    ];
    let mut text = head(&names);
    for row in &summary.calls {
        let sum = row.server + row.engine.unwrap_or(0.0);
        let engine = row
            .engine
            .map_or(String::new(), |calls| format!("{calls:.2}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.3} | {:.3} | {engine} | {sum:.2} |",
            row.arm, row.clients, row.server, row.own
        );
    }
    text
}

/// The table of rates.
pub fn rates(rates: &Rates) -> String {
    let mut text = paragraph(&format!(
        "Medians of {} round(s) of {} s, {} processors for clients, server and engine together, \
         load average {:.1} when they began.",
        rates.rounds, rates.seconds, rates.processors, rates.load
    ));
    text.push('\n');
    let names = [
        "load",
        "arm",
        "requests/s",
        "least, most",
        "p50 us",
        "p99 us",
        "CPU us",
        "machine us",
    ];
    text += &head(&names);
    for row in &rates.lines {
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} | {:.0}, {:.0} | {:.0} | {:.0} | {:.1} | {:.1} |",
            row.load,
            row.arm,
            row.requests_per_s,
            row.least,
            row.most,
            row.p50_us,
            row.p99_us,
            row.cpu_us,
            row.machine_us
        );
    }
    let beside = |arm, other| {
        let shares = rates.beside(arm, other).into_iter();
        shares
            .map(|share| format!("{share:.2}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    text.push('\n');
    text += &paragraph(&format!(
        "Under the three loads `dusi` has {} of the requests of the kernel over the same kind of wire \
         (`epoll, copy loop`), and behind the card {} of those of `card: epoll`.",
        beside("dusi", "epoll, copy loop"),
        beside("card: dusi", "card: epoll")
    ));
    text
}

fn overload(overload: &Overload) -> String {
    let loads = overload.loads.iter();
    let loads: Vec<_> = loads.map(|load| format!("{load} of saturation")).collect();
    let names = ["arm", "accepts"].into_iter();
    let names: Vec<_> = names.chain(loads.iter().map(String::as_str)).collect();
    let mut text = String::new();
    for (arm, saturation) in &overload.saturations {
        let _ = writeln!(text, "`{arm}` is saturated at {saturation:.0} replies/s.");
    }
    text += &paragraph(&format!(
        "Replies/s in time, medians of {} round(s); in brackets the share of the connections that \
         the client began.",
        overload.rounds
    ));
    text.push('\n');
    text += &head(&names);
    for line in &overload.lines {
        let _ = write!(text, "| {} | {} |", line.arm, line.policy);
        for (replies, begun) in line.replies_per_s.iter().zip(&line.begun) {
            let _ = write!(text, " {replies:.0} ({begun:.2}) |");
        }
        text.push('\n');
    }
    for (arm, shares) in overload.adaptive() {
        let _ = write!(text, "| {arm} | adaptive beside the best |");
        for share in shares {
            let _ = write!(text, " {share:.2} |");
        }
        text.push('\n');
    }
    text
}

/// The table of fixed rates.
pub fn arrivals(arrivals: &Arrivals) -> String {
    let mut text = paragraph(&format!(
        "The slowest arm without a card is saturated at {:.0} replies/s, the slowest behind it at \
         {:.0}. Medians of {} round(s), load average {:.1} when they began; late, lost and refused are sums.",
        arrivals.saturations[0], arrivals.saturations[1], arrivals.rounds, arrivals.load
    ));
    text.push('\n');
    text += &head(&[
        "of saturation",
        "arm",
        "connections/s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "CPU us",
        "machine us",
        "begun late",
        "lost",
        "SYNs refused",
    ]);
    for line in &arrivals.lines {
        let refused = line.refused.map_or(String::new(), |syns| syns.to_string());
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {} | {} | {refused} |",
            line.load,
            line.arm,
            line.target_per_s,
            line.p50_us,
            line.p99_us,
            line.p999_us,
            line.cpu_us,
            line.machine_us,
            line.late,
            line.lost
        );
    }
    text
}

fn clients(summary: &Summary) -> String {
    let mut text = head(&["arm", "client", "requests", "errors"]);
    for row in &summary.clients {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            row.arm, row.client, row.requests, row.errors
        );
    }
    let [alone, among] = summary.crowd;
    text.push('\n');
    text += &paragraph(&format!(
        "A hundred active connections had {alone:.0} requests/s by themselves and {among:.0} among \
         10 000 open ones, {:.2} of it.",
        among / alone
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_figures_of_the_stored_report() {
        let page = std::fs::read_to_string(paths::root().join(PAGE)).expect("the page");
        let filled = fill(&page, &stored().expect("a report")).expect("its marks");
        assert!(page == filled, "{PAGE} is not that of {STORED}:\n{filled}");
    }

    #[test]
    fn an_arm_stands_beside_another_under_each_load() {
        let line = |arm: &str, load: &str, requests_per_s| Rate {
            load: load.to_owned(),
            arm: arm.to_owned(),
            requests_per_s,
            least: 0.0,
            most: 0.0,
            p50_us: 0.0,
            p99_us: 0.0,
            cpu_us: 0.0,
            machine_us: 0.0,
        };
        let lines = vec![
            line("one", "few", 30.0),
            line("other", "few", 20.0),
            line("one", "many", 5.0),
            line("other", "many", 10.0),
        ];
        let rates = Rates {
            lines,
            ..Rates::default()
        };
        assert_eq!(rates.beside("one", "other"), [1.5, 0.5]);
    }

    #[test]
    fn the_adaptive_line_stands_beside_the_best_fixed_one() {
        let line = |policy: &str, replies: [f64; 2]| Line {
            arm: "epoll".to_owned(),
            policy: policy.to_owned(),
            replies_per_s: replies.to_vec(),
            begun: vec![1.0, 0.9],
        };
        let overload = Overload {
            rounds: 1,
            loads: vec![0.5, 2.0],
            saturations: vec![("epoll".to_owned(), 100.0)],
            lines: vec![
                line("limit=1", [50.0, 80.0]),
                line("limit=16", [40.0, 100.0]),
                line("adaptive", [50.0, 90.0]),
            ],
        };
        assert_eq!(overload.adaptive(), [("epoll".to_owned(), vec![1.0, 0.9])]);
    }
}
