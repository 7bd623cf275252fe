//! Prints counts, once or repeatedly.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::Result;
use host_driver::nic::NicStatistics;
use serde_json::Value;

use super::table::{Counts, Since, in_one_style};
use crate::output::{Output, link_text};

/// Clears a terminal's screen and moves to its upper left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints all counts that are not zero.
pub fn print(statistics: &NicStatistics, output: &Output) -> Result<()> {
    Printer::new(output, false).print(serde_json::to_value(statistics)?);
    Ok(())
}

/// The firmware and the link, on one line.
fn heading(statistics: &Value) -> String {
    // No card: a packet processing engine answers as a driver does.
    if statistics.get("engine").is_some() {
        return "packet processing engine".to_owned();
    }
    let version = statistics["firmware_version"].as_str();
    let link = serde_json::from_value(statistics["link"].clone());
    let link = link.map_or("unknown", link_text);
    format!("firmware {}, link {link}", version.unwrap_or("unknown"))
}

/// Prints counts and, from the second time on, their changes.
pub struct Printer<'a> {
    output: &'a Output,
    /// Whether each table replaces the previous one.
    in_place: bool,
    last: Option<(Instant, Counts)>,
}

impl<'a> Printer<'a> {
    pub fn new(output: &'a Output, again: bool) -> Self {
        Self {
            output,
            in_place: again && !output.is_json() && std::io::stdout().is_terminal(),
            last: None,
        }
    }

    pub fn print(&mut self, statistics: Value) {
        let now = Instant::now();
        let mut value = in_one_style(statistics);
        // For programs, zeros that were another value before matter.
        let counts = Counts::read(&value, self.output.is_json());
        let since = self.last.as_ref().map(|(then, counts)| Since {
            counts,
            time: now.duration_since(*then),
        });
        let mut text = heading(&value);
        if let Some(since) = since {
            text += &format!("; {:.1} s since the look before", since.time.as_secs_f64());
            if let Some(fields) = value.as_object_mut() {
                fields.extend(counts.changes(since));
            }
        }
        text = format!("{text}\n{}", counts.table(since));
        if self.in_place {
            let mut stdout = std::io::stdout().lock();
            // The following output notices a terminal that has gone.
            let _ = write!(stdout, "{CLEAR}");
        } else if since.is_some() {
            text.insert(0, '\n');
        }
        self.output
            .result("statistics", value, text.trim_end_matches('\n'));
        self.last = Some((now, counts));
    }
}
