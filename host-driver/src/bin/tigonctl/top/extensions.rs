//! The extensions in `tigonctl top`: a row for each domain that is loaded.

use host_driver::status::Request;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Stylize;
use ratatui::widgets::{Block, Row, Table};
use spine_linker::extensions::{HandlerReport, Ledger, Report};

use super::fit::fitted;
use crate::look::Source;

/// What is loaded at one moment.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Each domain, with its counts.
    pub reports: Vec<Report>,
    /// Who keeps slots of the pool.
    pub ledger: Ledger,
}

/// The extensions of a driver's card; None of one that serves none.
pub fn read(source: &mut Source) -> Option<Loaded> {
    // A driver without a policy, and firmware that loads nothing, refuse the request.
    let mut answer = source.request(&Request::Extensions).ok()?;
    Some(Loaded {
        reports: serde_json::from_value(answer["extensions"].take()).ok()?,
        ledger: serde_json::from_value(answer["ledger"].take()).ok()?,
    })
}

/// What a handler did between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Handled {
    /// Runs a second.
    pub runs: f64,
    /// Its part of CPU A's time, in percent.
    pub part: f64,
}

/// What a domain did between two moments, a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// What each of its handlers did, as far as it was there before.
    pub handlers: Vec<Handled>,
    /// Runs of its handlers.
    pub runs: f64,
    /// Frames that it had transmitted.
    pub transmitted: f64,
    /// Frames that it consumed.
    pub consumed: f64,
    /// Frames that it dropped.
    pub dropped: f64,
}

/// What each domain of `now` did in so many seconds.
pub fn rates(before: Option<&Loaded>, now: &Loaded, seconds: f64) -> Vec<Rates> {
    let rate = |one: &Report| {
        let mut others = before.iter().flat_map(|loaded| &loaded.reports);
        // The number may be another extension's meanwhile.
        let same = others.find(|other| (other.domain, &other.name) == (one.domain, &one.name));
        let Some(then) = same else {
            return Rates {
                handlers: vec![Handled::default(); one.handlers.len()],
                ..Rates::default()
            };
        };
        let since = |now, before| f64::from(grown(now, before)) / seconds;
        let handled = |now: &HandlerReport| {
            let mut others = then.handlers.iter();
            let Some(then) = others.find(|other| other.number == now.number) else {
                return Handled::default();
            };
            let runs = since(now.runs, then.runs);
            Handled {
                runs,
                part: runs * now.mean().unwrap_or_default() / 1e4,
            }
        };
        Rates {
            handlers: one.handlers.iter().map(handled).collect(),
            runs: since(one.runs, then.runs),
            transmitted: since(one.transmitted, then.transmitted),
            consumed: since(one.consumed, then.consumed),
            dropped: since(one.dropped, then.dropped),
        }
    };
    now.reports.iter().map(rate).collect()
}

/// By how much a count has grown. It wraps; one that is lower otherwise began anew, as its
/// extension was loaded again.
fn grown(now: u32, before: u32) -> u32 {
    let grown = now.wrapping_sub(before);
    if grown > u32::MAX / 2 { 0 } else { grown }
}

/// The headings; each is as wide as its column, but the name has what the others leave.
const HEADING: [&str; 10] = [
    "#", "name", "state", "runs/s", PART, "cut off", "sent/s", "cons/s", "drop/s", "kept",
];

/// A figure at the right of the column under a heading.
fn under(heading: &str, value: f64) -> String {
    let columns = heading.len();
    let plain = format!("{value:.0}");
    let text = if plain.len() <= columns {
        plain
    } else {
        format!("{value:.0e}")
    };
    format!("{text:>columns$}")
}

/// The rows that [`draw`] fills, with its borders and the heading.
pub fn height(extensions: Option<&(Loaded, Vec<Rates>)>) -> u16 {
    extensions.map_or(0, |(loaded, _)| {
        let reports = loaded.reports.iter();
        let rows: usize = reports.map(|one| 1 + one.handlers.len()).sum();
        rows as u16 + 3
    })
}

/// Draws the domains, and how many slots of the pool are free.
pub fn draw(frame: &mut Frame<'_>, area: Rect, (loaded, rates): &(Loaded, Vec<Rates>)) {
    let free = loaded.ledger.free;
    let block = Block::bordered().title(format!("extensions: {free} slots of the pool are free"));
    let widths = HEADING.map(|heading| heading.len() as u16);
    let [number, _, others @ ..] = widths;
    let taken = number + others.iter().map(|columns| 1 + columns).sum::<u16>();
    let name = block.inner(area).width.saturating_sub(taken + 1);
    let mut rows = Vec::new();
    for (one, rates) in loaded.reports.iter().zip(rates) {
        let kept = loaded.ledger.kept.get(one.domain as usize).copied();
        let state = if one.suspended { "susp." } else { "runs" };
        let parts: f64 = rates.handlers.iter().map(|handler| handler.part).sum();
        let names = [
            &one.domain.to_string(),
            &fitted(&one.name, name.into()),
            state,
        ];
        let figures = [
            rates.runs,
            parts,
            cut_off([one.overruns, one.panics, one.faults]),
            rates.transmitted,
            rates.consumed,
            rates.dropped,
            kept.unwrap_or_default().into(),
        ];
        rows.push(row(names, &figures));
        for (handler, rates) in one.handlers.iter().zip(&rates.handlers) {
            let figures = [
                rates.runs,
                rates.part,
                cut_off([handler.overruns, handler.panics, handler.faults]),
            ];
            rows.push(row(
                ["", &fitted(&handler.name(), name.into()), ""],
                &figures,
            ));
        }
    }
    let widths = [number, name].into_iter().chain(others);
    let table = Table::new(rows, widths.map(Constraint::Length));
    frame.render_widget(table.header(Row::new(HEADING).bold()).block(block), area);
}

/// A row: what stands in the first columns, and figures in those behind them.
fn row(names: [&str; 3], figures: &[f64]) -> Row<'static> {
    let [_, _, _, headings @ ..] = HEADING;
    let figures = headings.into_iter().zip(figures);
    let figures = figures.map(|(heading, value)| match heading {
        PART => format!("{value:>4.1}%"),
        _ => under(heading, *value),
    });
    Row::new(names.map(str::to_owned).into_iter().chain(figures))
}

/// Runs that were cut off, for whatever reason.
fn cut_off(counts: [u32; 3]) -> f64 {
    counts.map(f64::from).iter().sum()
}

/// The column of parts of CPU A's time.
const PART: &str = "CPU A";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::draw::tests::sized;
    use crate::top::tests::sample;
    use crate::top::{View, Watch};
    use spine_linker::load::lease::Lease;

    fn report(domain: u32, name: &str, runs: u32) -> Report {
        Report {
            domain,
            name: name.to_owned(),
            bytes: 640,
            in_pad: 128,
            stack: 48,
            suspended: false,
            runs,
            overruns: 0,
            panics: 0,
            faults: 0,
            consumed: runs,
            dropped: 0,
            transmitted: runs.wrapping_mul(2),
            lease: Lease::NONE,
            counters: Vec::new(),
            handlers: vec![HandlerReport {
                number: Some(0),
                runs,
                overruns: 0,
                panics: 0,
                faults: 0,
                timed: (50, 10),
            }],
        }
    }

    fn loaded(reports: Vec<Report>) -> Loaded {
        Loaded {
            reports,
            ledger: Ledger {
                kept: vec![0, 4, 0, 1],
                free: 7,
            },
        }
    }

    /// A second later.
    fn view(before: Option<Loaded>, now: Option<Loaded>) -> View {
        let mut watch = Watch::default();
        let mut first = sample(0.0, 5, 100, 7);
        first.extensions = before;
        watch.next(first);
        let mut second = sample(1.0, 250_005, 50_100, 7);
        second.extensions = now;
        watch.next(second).expect("a view")
    }

    #[test]
    fn the_screen_shows_each_domain_and_the_pool() {
        let before = loaded(vec![report(0, "spine-echo", 10), report(1, "keeper", 5)]);
        let mut keeper = report(1, "keeper", 5);
        (keeper.suspended, keeper.overruns) = (true, 3);
        keeper.handlers[0].overruns = 3;
        let now = loaded(vec![report(0, "spine-echo", 40_010), keeper]);
        insta::assert_snapshot!("extensions", sized(&view(Some(before), Some(now)), 76, 24));
    }

    /// Where nothing is loaded yet, the pool is there; where nothing can be, all is as before.
    #[test]
    fn the_rest_of_the_screen_stays_as_it_is() {
        let without = sized(&view(None, None), 76, 18);
        assert!(!without.contains("extensions"), "{without}");
        let nothing = sized(&view(None, Some(loaded(Vec::new()))), 76, 21);
        let line = nothing.lines().nth(18).expect("a row");
        assert!(
            line.contains("extensions: 7 slots of the pool are free"),
            "{nothing}"
        );
        let above = |text: &str| text.lines().take(18).collect::<Vec<_>>().join("\n");
        assert_eq!(above(&nothing), above(&without));
    }

    /// A count wraps; an extension that was loaded again begins anew, and so does another one.
    #[test]
    fn rates_are_of_what_the_same_extension_did_since() {
        let before = loaded(vec![
            report(0, "wraps", u32::MAX - 9),
            report(1, "again", 1000),
            report(2, "one", 1000),
        ]);
        let now = loaded(vec![
            report(0, "wraps", 90),
            report(1, "again", 5),
            report(2, "another", 3000),
            report(3, "new", 7),
        ]);
        let rates = rates(Some(&before), &now, 2.0);
        assert_eq!(rates[0].runs, 50.0);
        assert_eq!(rates[0].transmitted, 100.0);
        let handled = Handled {
            runs: 50.0,
            part: 0.025,
        };
        assert_eq!(rates[0].handlers, [handled]);
        for others in &rates[1..] {
            assert_eq!((others.runs, others.transmitted), (0.0, 0.0));
            assert_eq!(others.handlers, [Handled::default()]);
        }
    }

    /// On a terminal of 80 columns no figure is cut off.
    #[test]
    fn the_widest_figures_have_room() {
        let mut widest = report(3, "a-name-that-is-long", 0);
        (widest.overruns, widest.panics) = (u32::MAX, u32::MAX);
        widest.faults = 999_999;
        let before = loaded(vec![widest.clone()]);
        (widest.runs, widest.consumed) = (1_488_095, 999_999);
        let text = sized(&view(Some(before), Some(loaded(vec![widest]))), 80, 24);
        let row = text
            .lines()
            .find(|line| line.contains("a-name"))
            .expect("a row");
        let cells: Vec<&str> = row.trim_matches(['"', '│']).split_whitespace().collect();
        let expected = [
            "3",
            "a-name-that-is-long",
            "runs",
            "1e6",
            "0.0%",
            "9e9",
            "0",
            "999999",
            "0",
            "1",
        ];
        assert_eq!(cells, expected, "{text}");
    }
}
