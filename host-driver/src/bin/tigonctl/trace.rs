//! `tigonctl trace`: prints the firmware's trace ring, of a card that this process drives, of one
//! without a reset, or of one that another process drives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use host_driver::Transport;
use host_driver::nic::read_trace;
use host_driver::status::{Request, words};
use host_interface::gencom::Gencom;
use host_interface::trace::TraceEntry;
use serde_json::json;

use super::cli::{Arguments, TraceOptions};
use super::connect::{AnyNic, discard, discard_for, seconds};
use super::look::Source;
use super::output::Output;
use super::session::bring_up;

/// How often a followed ring is read.
const PERIOD: Duration = Duration::from_millis(100);

enum Feed {
    Driven(Box<AnyNic>),
    AsItIs(Box<dyn Transport>),
    Attached(Source),
}

impl Feed {
    fn open(arguments: &Arguments, options: &TraceOptions) -> Result<Self> {
        if arguments.attach.is_some() {
            return Ok(Self::Attached(Source::open(arguments)?));
        }
        if options.run.firmware.is_some() || options.run.own {
            return Ok(Self::Driven(Box::new(bring_up(arguments, &options.run)?)));
        }
        match Source::open(arguments)? {
            Source::Card(card) => Ok(Self::AsItIs(card)),
            Source::Attached(_) => bail!("a card is a card"),
        }
    }

    /// The ring's entries, the oldest first.
    fn entries(&mut self) -> Result<Vec<TraceEntry>> {
        match self {
            Self::Driven(nic) => Ok(nic.trace()?),
            Self::AsItIs(card) => Ok(read_trace(card)?),
            Self::Attached(source) => {
                let words = words(&source.request(&Request::Trace)?)?;
                let (entries, _) = words.as_chunks::<8>();
                let entries = entries
                    .iter()
                    .map(|[a, b, code, time, arguments @ ..]| TraceEntry {
                        label: [*a, *b],
                        code: *code,
                        time: *time,
                        arguments: *arguments,
                    });
                Ok(entries.collect())
            }
        }
    }

    fn set_mask(&mut self, mask: u32) -> Result<()> {
        match self {
            Self::Driven(nic) => nic.set_trace_mask(mask)?,
            Self::AsItIs(card) => {
                card.write(Gencom::TraceMask.bar_offset(), mask)?;
                card.flush()?;
            }
            Self::Attached(source) => {
                source.request(&Request::TraceMask { mask })?;
            }
        }
        Ok(())
    }

    fn pass(&mut self) -> Result<()> {
        let end = Instant::now() + PERIOD;
        while Instant::now() < end {
            match self {
                Self::Driven(nic) => discard(nic)?,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Ok(())
    }
}

/// `tigonctl trace`
pub fn trace(
    arguments: &Arguments,
    options: &TraceOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let time = seconds(options.seconds)?;
    let mut feed = Feed::open(arguments, options)?;
    if let Some(mask) = options.mask {
        feed.set_mask(mask)?;
    }
    if let Feed::Driven(nic) = &mut feed
        && !options.follow
    {
        discard_for(nic, time, stop)?;
    }
    let mut seen = None;
    loop {
        let entries = feed.entries()?;
        let (new, known) = behind(&entries, seen.as_ref());
        if !known {
            let text = "entries were overwritten before they could be read";
            output.result("trace-gap", json!({}), text);
        }
        for entry in new {
            print(entry, output);
        }
        seen = entries.last().copied().or(seen);
        if !options.follow || stop.load(Ordering::Relaxed) {
            break;
        }
        feed.pass()?;
    }
    if let Feed::Driven(nic) = feed {
        nic.shut_down()?;
    }
    Ok(())
}

/// The entries after the last one seen, and whether that one is still there.
fn behind<'a>(entries: &'a [TraceEntry], seen: Option<&TraceEntry>) -> (&'a [TraceEntry], bool) {
    let Some(seen) = seen else {
        return (entries, true);
    };
    match entries.iter().rposition(|entry| entry == seen) {
        Some(at) => (entries.get(at + 1..).unwrap_or_default(), true),
        None => (entries, false),
    }
}

fn print(entry: &TraceEntry, output: &Output) {
    let label: String = entry
        .label()
        .into_iter()
        .take_while(|byte| *byte != 0)
        .map(|byte| {
            if byte.is_ascii_graphic() {
                char::from(byte)
            } else {
                '.'
            }
        })
        .collect();
    let [a, b, c, d] = entry.arguments;
    let text = format!(
        "{:>12} us  {label:<8}  {:#010x}  {a:#010x} {b:#010x} {c:#010x} {d:#010x}",
        entry.time, entry.code
    );
    let value = json!({
        "label": label,
        "code": entry.code,
        "time": entry.time,
        "arguments": entry.arguments,
    });
    output.result("trace", value, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_sees_each_entry_once_or_hears_of_a_gap() {
        let entry = |time| TraceEntry {
            time,
            ..TraceEntry::default()
        };
        let entries = [entry(1), entry(2), entry(3)];
        assert_eq!(behind(&entries, None), (&entries[..], true));
        assert_eq!(behind(&entries, Some(&entry(2))), (&entries[2..], true));
        assert_eq!(behind(&entries, Some(&entry(3))), (&entries[3..], true));
        assert_eq!(behind(&entries, Some(&entry(0))), (&entries[..], false));
    }
}
