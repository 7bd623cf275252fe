//! `tigonctl queues`: the receive queues of a card that another process drives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use host_driver::nic::{QueueReport, skew};
use host_driver::status::Request;
use serde_json::{Value, json};

use super::cli::{Arguments, QueuesOptions};
use super::connect::seconds;
use super::look::Source;
use super::output::Output;
use super::rss::driver;

/// What changed in a queue from one look to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Frames that the card handed over, a second.
    pub frames: f64,
    /// Their bits, in millions a second.
    pub megabits: f64,
    /// Interrupts a second.
    pub interrupts: f64,
    /// Frames dropped, a second.
    pub drops: f64,
}

/// The queues of a driver's card.
pub fn read(source: &mut Source) -> Result<Vec<QueueReport>> {
    let mut answer = source.request(&Request::Queues)?;
    Ok(serde_json::from_value(answer["queues"].take())?)
}

/// What changed in so many seconds. The card's counts wrap.
pub fn rates(before: &[QueueReport], now: &[QueueReport], seconds: f64) -> Vec<Rates> {
    let seconds = seconds.max(1e-6);
    let since = |now: u32, before: u32| f64::from(now.wrapping_sub(before)) / seconds;
    let rate = |now: &QueueReport| {
        let same = before.iter().find(|other| other.number == now.number);
        let Some(QueueReport { card: then, .. }) = same else {
            return Rates::default();
        };
        Rates {
            frames: since(now.card.frames, then.frames),
            megabits: since(now.card.bytes, then.bytes) * 8.0 / 1e6,
            interrupts: since(now.card.interrupts, then.interrupts),
            drops: since(now.card.dropped(), then.dropped()),
        }
    };
    now.iter().map(rate).collect()
}

/// `tigonctl queues`
pub fn queues(
    arguments: &Arguments,
    options: &QueuesOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let period = seconds(options.watch.unwrap_or(options.interval))?;
    let mut source = driver(arguments)?;
    let mut last = (Instant::now(), read(&mut source)?);
    loop {
        let end = last.0 + period;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        let now = (Instant::now(), read(&mut source)?);
        let rates = rates(&last.1, &now.1, (now.0 - last.0).as_secs_f64());
        print(&now.1, &rates, output);
        if options.watch.is_none() {
            return Ok(());
        }
        last = now;
    }
}

fn print(queues: &[QueueReport], rates: &[Rates], output: &Output) {
    let loads: Vec<f64> = rates.iter().map(|rate| rate.frames).collect();
    let skew = skew(&loads);
    let list: Vec<Value> = queues
        .iter()
        .zip(rates)
        .map(|(queue, rate)| {
            json!({
                "queue": queue.number,
                "cpu": queue.cpu,
                "served": queue.served,
                "polled": queue.polled,
                "frames_per_second": rate.frames,
                "megabits_per_second": rate.megabits,
                "interrupts_per_second": rate.interrupts,
                "drops_per_second": rate.drops,
                "fill": queue.fill,
                "entries": queue.entries,
                "buffers": queue.buffers,
                "frames": queue.frames,
                "card": queue.card,
            })
        })
        .collect();
    let text = table(queues, rates, skew);
    output.result("queues", json!({ "queues": list, "skew": skew }), &text);
}

fn table(queues: &[QueueReport], rates: &[Rates], skew: f64) -> String {
    let mut lines = vec![format!(
        "{:>5} {:>4} {:>9} {:>7} {:>9} {:>10} {:>9} {:>10}  {}",
        "queue", "cpu", "frames/s", "Mb/s", "fill", "frames", "drops", "interr./s", "state"
    )];
    for (queue, rate) in queues.iter().zip(rates) {
        let cpu = queue.cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
        let fill = format!("{}/{}", queue.fill, queue.entries);
        lines.push(format!(
            "{:>5} {cpu:>4} {:>9.0} {:>7.1} {fill:>9} {:>10} {:>9} {:>10.0}  {}",
            queue.number,
            rate.frames,
            rate.megabits,
            queue.card.frames,
            queue.card.dropped(),
            rate.interrupts,
            state(queue),
        ));
    }
    lines.push(match skew {
        0.0 => "no frames came meanwhile".to_owned(),
        skew => format!("the fullest queue has {skew:.2} of the mean"),
    });
    lines.join("\n")
}

/// Armed or polled; or nobody's.
pub fn state(queue: &QueueReport) -> &'static str {
    match (queue.served, queue.polled) {
        (false, _) => "nobody serves it",
        (true, true) => "polled",
        (true, false) => "armed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_driver::nic::QueueCounters;

    fn report(number: u8, frames: u32) -> QueueReport {
        QueueReport {
            number,
            card: QueueCounters {
                frames,
                bytes: frames.wrapping_mul(1000),
                interrupts: 3,
                no_buffer: 2,
                return_ring_full: 5,
                ..QueueCounters::default()
            },
            entries: 256,
            fill: 4,
            served: true,
            polled: number == 0,
            cpu: Some(number.into()),
            ..QueueReport::default()
        }
    }

    /// The card's counts wrap at 2^32.
    #[test]
    fn rates_are_of_what_came_since() {
        let before = [report(0, u32::MAX - 9), report(1, 50)];
        let now = [report(0, 190), report(1, 250)];
        let rates = rates(&before, &now, 2.0);
        assert_eq!(rates[0].frames, 100.0);
        assert_eq!(rates[1].frames, 100.0);
        assert_eq!(rates[1].megabits, 0.8);
        assert_eq!((rates[1].interrupts, rates[1].drops), (0.0, 0.0));
    }

    #[test]
    fn the_table_says_who_serves_what() {
        let mut queues = [report(0, 300), report(1, 100)];
        queues[1].served = false;
        queues[1].cpu = None;
        let before = [report(0, 0), report(1, 0)];
        let rates = rates(&before, &queues, 1.0);
        insta::assert_snapshot!(table(&queues, &rates, 1.5));
        let none = table(&queues, &[Rates::default(); 2], 0.0);
        assert!(none.ends_with("no frames came meanwhile"), "{none}");
    }
}
