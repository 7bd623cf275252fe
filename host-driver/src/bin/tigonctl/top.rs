//! `tigonctl top`: the card at a glance, again and again.
//!
//! With the firmware's ELF file it also looks at both program counters some hundred times a
//! second, which tells what part of its CPU's time each handler takes
//! ([`host_driver::profile`]). Without, it shows how often each ran.

mod looks;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use host_interface::extension::Extension;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};
use serde_json::Value;

use super::cli::Arguments;
use super::look::{Ring, Source, read_rings};
use looks::{Activity, LOOK, Looks, Share, activities, read_profile};

/// What was seen at one moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Seconds since the first sample.
    pub at: f64,
    /// Idle turns of the dispatch loops of CPU A and CPU B; they wrap.
    pub idle: [u32; 2],
    /// All counts by "group name".
    pub counts: BTreeMap<String, u64>,
    /// The rings.
    pub rings: Vec<Ring>,
    /// What the CPUs did since the sample before; nothing without the firmware's ELF file.
    pub shares: Vec<Share>,
}

impl Sample {
    fn take(source: &mut Source, looks: &mut Looks, start: Instant) -> Result<Self> {
        let statistics = source.statistics()?;
        let idle = [Extension::IdleA, Extension::IdleB].map(Extension::bar_offset);
        let idle = source.registers(&idle)?;
        Ok(Self {
            at: start.elapsed().as_secs_f64(),
            idle: [idle[0], idle[1]],
            counts: counts(&statistics),
            rings: read_rings(source)?,
            shares: looks.finish(),
        })
    }
}

/// The groups of counts that are shown, flat.
fn counts(statistics: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for group in [
        "driver",
        "handlers",
        "own",
        "firmware_drops",
        "driver_drops",
    ] {
        let fields = statistics.get(group).and_then(Value::as_object);
        for (name, value) in fields.into_iter().flatten() {
            counts.insert(format!("{group} {name}"), value.as_u64().unwrap_or(0));
        }
    }
    counts
}

/// What changed between two samples.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Seconds since the first sample.
    pub at: f64,
    /// Idle turns a second, and the part of its time that each CPU was busy, against the
    /// idlest interval so far.
    pub cpus: [(f64, f64); 2],
    /// The handlers that ran, the busiest first.
    pub handlers: Vec<Activity>,
    /// Whether their loads are known.
    pub has_loads: bool,
    /// Counts of the firmware's own, a second and since the first sample.
    pub own: Vec<(String, f64, u64)>,
    /// Frames and megabits a second: received, sent.
    pub rates: [(f64, f64); 2],
    /// Frames dropped since the first sample, by reason.
    pub drops: Vec<(String, u64)>,
    /// The rings.
    pub rings: Vec<Ring>,
}

/// Makes views of samples.
#[derive(Debug, Default)]
pub struct Watch {
    first: Option<Sample>,
    last: Option<Sample>,
    idlest: [f64; 2],
}

impl Watch {
    /// The view that a further sample gives; none for the first one.
    pub fn next(&mut self, now: Sample) -> Option<View> {
        let first = self.first.get_or_insert_with(|| now.clone()).clone();
        let last = self.last.replace(now.clone())?;
        let seconds = (now.at - last.at).max(1e-6);
        let delta = |name: &str, since: &Sample| {
            let count = |sample: &Sample| sample.counts.get(name).copied().unwrap_or(0);
            count(&now).saturating_sub(count(since))
        };
        let rate = |name: &str| delta(name, &last) as f64 / seconds;
        let mut cpus = [(0.0, 0.0); 2];
        for (cpu, shown) in cpus.iter_mut().enumerate() {
            let idle = f64::from(now.idle[cpu].wrapping_sub(last.idle[cpu])) / seconds;
            self.idlest[cpu] = self.idlest[cpu].max(idle);
            let idlest = self.idlest[cpu];
            let busy = if idlest > 0.0 {
                1.0 - idle / idlest
            } else {
                0.0
            };
            *shown = (idle, busy);
        }
        let named = |group: &str| -> Vec<String> {
            let prefix = format!("{group} ");
            let names = now.counts.keys().filter(|name| name.starts_with(&prefix));
            names.cloned().collect()
        };
        let short = |name: &str| name.split(' ').next_back().unwrap_or_default().to_owned();
        let runs = named("handlers").into_iter();
        let runs = runs.map(|name| (short(&name), rate(&name)));
        let handlers = activities(runs, &now.shares);
        let own = named("own").into_iter();
        let own = own
            .map(|name| (short(&name), rate(&name), delta(&name, &first)))
            .collect();
        let drops = ["firmware_drops", "driver_drops"]
            .into_iter()
            .flat_map(named)
            .map(|name| (short(&name), delta(&name, &first)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let megabits = |name: &str| rate(name) * 8.0 / 1e6;
        Some(View {
            at: now.at,
            cpus,
            handlers,
            has_loads: !now.shares.is_empty(),
            own,
            rates: [
                (
                    rate("driver frames_received"),
                    megabits("driver bytes_received"),
                ),
                (rate("driver frames_sent"), megabits("driver bytes_sent")),
            ],
            drops,
            rings: now.rings,
        })
    }
}

/// Draws a view.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let [head, loads, body] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Min(8),
    ])
    .areas(frame.area());
    let [(rx, rx_mbps), (tx, tx_mbps)] = view.rates;
    let line = format!(
        "tigonctl top  {:.0} s   in {rx:.0}/s {rx_mbps:.1} Mb/s   out {tx:.0}/s {tx_mbps:.1} Mb/s   q ends",
        view.at
    );
    frame.render_widget(Paragraph::new(line).bold(), head);
    draw_loads(frame, loads, view);
    let [handlers, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(body);
    draw_handlers(frame, handlers, view);
    let [rings, drops] = Layout::vertical([Constraint::Length(8), Constraint::Min(3)]).areas(right);
    let rows = view.rings.iter().map(|ring| {
        let filled = (ring.fill * 10).div_ceil(ring.size.max(1)).min(10) as usize;
        let bar = format!("{:<10}", "#".repeat(filled));
        Row::new([
            ring.name.to_owned(),
            bar,
            format!("{:>4}/{}", ring.fill, ring.size),
        ])
    });
    let widths = [
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Min(8),
    ];
    let table = Table::new(rows, widths).block(Block::bordered().title("rings"));
    frame.render_widget(table, rings);
    let rows = view
        .drops
        .iter()
        .map(|(name, count)| Row::new([name.clone(), format!("{count:>10}")]));
    let table = Table::new(rows, [Constraint::Min(16), Constraint::Length(10)])
        .block(Block::bordered().title("frames dropped"));
    frame.render_widget(table, drops);
}

fn draw_handlers(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let (title, load, width) = if view.has_loads {
        ("handlers: load, runs a second", 9, 9)
    } else {
        ("handler runs a second", 0, 10)
    };
    let rows = view.handlers.iter().map(|row| {
        let load = match row.load {
            Some((cpu, part)) => format!("{cpu} {:5.1} %", part * 100.0),
            None => String::new(),
        };
        let runs = row
            .runs
            .map_or(String::new(), |rate| format!("{rate:>10.0}"));
        Row::new([row.name.clone(), load, runs])
    });
    let own = view.own.iter().map(|(name, rate, count)| {
        let name = format!("{name}: {count}");
        Row::new([name, String::new(), format!("{rate:>width$.0}")])
    });
    let widths = [
        Constraint::Min(16),
        Constraint::Length(load),
        Constraint::Length(width as u16),
    ];
    let table = Table::new(rows.chain(own), widths).block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn draw_loads(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let block = Block::bordered().title("load, against the idlest interval");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows: [Rect; 2] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(inner);
    for (((idle, busy), name), row) in view.cpus.iter().zip(["A", "B"]).zip(rows) {
        let label = if *idle == 0.0 && *busy == 0.0 {
            format!("CPU {name}: no idle turns seen")
        } else {
            format!(
                "CPU {name}: {:3.0} %, {idle:.0} idle turns a second",
                busy * 100.0
            )
        };
        let gauge = Gauge::default()
            .gauge_style(Style::new().green())
            .ratio(busy.clamp(0.0, 1.0))
            .label(label);
        frame.render_widget(gauge, row);
    }
}

/// `tigonctl top`
pub fn top(
    arguments: &Arguments,
    interval: Duration,
    elf: Option<&Path>,
    stop: &AtomicBool,
) -> Result<()> {
    let mut source = Source::open(arguments)?;
    let profile = elf
        .map(|path| read_profile(&mut source, path))
        .transpose()?;
    let start = Instant::now();
    let mut watch = Watch::default();
    let mut looks = Looks::default();
    watch.next(Sample::take(&mut source, &mut looks, start)?);
    let mut terminal = ratatui::try_init()?;
    let result = (|| -> Result<()> {
        let mut view = View::default();
        loop {
            terminal.draw(|frame| draw(frame, &view))?;
            let end = Instant::now() + interval;
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if let Some(profile) = &profile {
                    looks.take(&mut source, profile)?;
                }
                if event::poll(left.min(LOOK))?
                    && let Event::Key(key) = event::read()?
                    && matches!(key.code, KeyCode::Char('q' | 'c') | KeyCode::Esc)
                {
                    return Ok(());
                }
            }
            if let Some(next) = watch.next(Sample::take(&mut source, &mut looks, start)?) {
                view = next;
            }
        }
    })();
    ratatui::restore();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_driver::profile::Owner;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tigon2_chip::Cpu;

    fn sample(at: f64, idle: u32, frames: u64, dropped: u64) -> Sample {
        let counts = [
            ("driver frames_received", frames),
            ("driver bytes_received", frames * 1000),
            ("driver frames_sent", frames / 2),
            ("driver bytes_sent", frames * 30),
            ("handlers ReceiveComplete", frames),
            ("handlers Timer", 1000 * at as u64),
            ("handlers Led", 0),
            ("firmware_drops NoReceiveBd", dropped),
            ("driver_drops NoTaker", 0),
        ];
        Sample {
            at,
            idle: [idle, 0],
            counts: counts.map(|(name, count)| (name.to_owned(), count)).into(),
            rings: vec![
                Ring {
                    name: "send",
                    producer: 40,
                    consumer: 8,
                    fill: 32,
                    size: 512,
                },
                Ring {
                    name: "mac receive",
                    producer: 0x800,
                    consumer: 0,
                    fill: 256,
                    size: 512,
                },
            ],
            shares: Vec::new(),
        }
    }

    fn screen(view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(76, 18)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("it draws");
        terminal.backend().to_string()
    }

    /// An idle second, then a busy one in which frames were dropped.
    #[test]
    fn the_screen_shows_load_rings_rates_and_drops() {
        let mut watch = Watch::default();
        assert!(watch.next(sample(0.0, 5, 100, 7)).is_none());
        let idle = watch.next(sample(1.0, 1_000_005, 100, 7)).expect("a view");
        insta::assert_snapshot!("idle", screen(&idle));
        let busy = watch
            .next(sample(2.0, 1_250_005, 50_100, 10))
            .expect("a view");
        assert_eq!(
            busy.drops,
            [("NoReceiveBd".to_owned(), 3)],
            "since the first look"
        );
        insta::assert_snapshot!("busy", screen(&busy));
    }

    /// With the ELF file: loads of handlers, and of a function that several call. A firmware
    /// with counts of its own shows those.
    #[test]
    fn the_screen_shows_what_each_handler_takes() {
        let mut watch = Watch::default();
        watch.next(sample(0.0, 5, 100, 7));
        let mut busy = sample(1.0, 250_005, 50_100, 7);
        let share = |cpu, owner, part| Share { cpu, owner, part };
        busy.shares = vec![
            share(Cpu::A, Owner::Idle, 0.25),
            share(Cpu::A, Owner::Handler("ReceiveComplete".into()), 0.625),
            share(Cpu::A, Owner::Function("dma::queue".into()), 0.125),
        ];
        busy.counts.insert("own pings".into(), 40);
        let view = watch.next(busy).expect("a view");
        insta::assert_snapshot!("loads", screen(&view));
    }

    /// The counter of idle turns wraps, and a driver that recovers begins its counts anew.
    #[test]
    fn counters_that_wrap_or_start_anew_give_no_nonsense() {
        let mut watch = Watch::default();
        watch.next(sample(0.0, u32::MAX - 9, 100, 0));
        let view = watch.next(sample(1.0, 90, 0, 0)).expect("a view");
        assert_eq!(view.cpus[0], (100.0, 0.0));
        assert_eq!(view.rates[0].0, 0.0);
        assert_eq!(view.cpus[1], (0.0, 0.0), "a CPU that never runs");
    }
}
