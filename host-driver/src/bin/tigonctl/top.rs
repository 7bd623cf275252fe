//! `tigonctl top`: shows a running card at a glance.
//!
//! With the firmware's ELF file it also samples both program counters some hundred times a second.
//! The samples give each handler's share of its CPU's time ([`host_driver::profile`]), and a CPU's
//! load is everything but its idle time. Without the file, it shows how often each handler ran,
//! and a load from the CPU's idle turns.

mod draw;
mod extensions;
mod fit;
mod looks;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use host_driver::nic::QueueReport;
use host_interface::extension::Extension;
use ratatui::crossterm::event::{self, Event, KeyCode};
use serde_json::Value;

use super::cli::Arguments;
use super::look::Source;
use super::queues::{self, Rates};
use super::rings::{Ring, read_rings};
use draw::draw;
use extensions::Loaded;
use looks::{Activity, LOOK, Looks, Seen, activities, read_profile};

/// The counts at one moment.
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
    /// The receive queues; none in classic mode.
    pub queues: Vec<QueueReport>,
    /// The extensions; None of a driver that serves none.
    pub extensions: Option<Loaded>,
    /// Recent samples of the CPUs; None without the firmware's ELF file.
    pub seen: Option<Seen>,
}

impl Sample {
    fn take(source: &mut Source, seen: Option<Seen>, start: Instant) -> Result<Self> {
        let statistics = source.statistics()?;
        let idle = [Extension::IdleA, Extension::IdleB].map(Extension::bar_offset);
        let idle = source.registers(&idle)?;
        Ok(Self {
            at: start.elapsed().as_secs_f64(),
            idle: [idle[0], idle[1]],
            counts: counts(&statistics),
            rings: read_rings(source)?,
            // A driver in classic mode says that it has none.
            queues: queues::read(source).unwrap_or_default(),
            extensions: extensions::read(source),
            seen,
        })
    }
}

/// The displayed groups of counts, flattened.
fn counts(statistics: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for group in [
        "driver",
        "handlers",
        "custom_counters",
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

/// The changes between two samples.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Seconds since the first sample.
    pub at: f64,
    /// Idle turns per second, and each CPU's busy share of its time, relative to the idlest
    /// interval so far.
    pub cpus: [(f64, f64); 2],
    /// The activities of the CPUs, the busiest handler first.
    pub handlers: Vec<Activity>,
    /// The samples behind them, with the firmware's ELF file.
    pub seen: Option<Seen>,
    /// Custom counters, per second and since the first sample.
    pub custom_counters: Vec<(String, f64, u64)>,
    /// Frames and megabits per second: received, sent.
    pub rates: [(f64, f64); 2],
    /// Frames dropped since the first sample, by reason.
    pub drops: Vec<(String, u64)>,
    /// The rings.
    pub rings: Vec<Ring>,
    /// The receive queues, with their rates.
    pub queues: Vec<(QueueReport, Rates)>,
    /// The extensions, with their rates; None of a driver that serves none.
    pub extensions: Option<(Loaded, Vec<extensions::Rates>)>,
}

/// Computes views from samples.
#[derive(Debug, Default)]
pub struct Watch {
    first: Option<Sample>,
    last: Option<Sample>,
    idlest: [f64; 2],
}

impl Watch {
    /// The view after a further sample; None after the first one.
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
        let handlers = activities(runs, now.seen.as_ref());
        let custom_counters = named("custom_counters").into_iter();
        let custom_counters = custom_counters
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
            seen: now.seen.clone(),
            custom_counters,
            rates: [
                (
                    rate("driver frames_received"),
                    megabits("driver bytes_received"),
                ),
                (rate("driver frames_sent"), megabits("driver bytes_sent")),
            ],
            drops,
            rings: now.rings,
            queues: {
                let rates = queues::rates(&last.queues, &now.queues, seconds);
                now.queues.into_iter().zip(rates).collect()
            },
            extensions: now.extensions.map(|loaded| {
                let rates = extensions::rates(last.extensions.as_ref(), &loaded, seconds);
                (loaded, rates)
            }),
        })
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
    watch.next(Sample::take(&mut source, None, start)?);
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
            let seen = profile.as_ref().map(|_| looks.finish());
            if let Some(next) = watch.next(Sample::take(&mut source, seen, start)?) {
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

    pub fn sample(at: f64, idle: u32, frames: u64, dropped: u64) -> Sample {
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
            queues: Vec::new(),
            extensions: None,
            seen: None,
        }
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
