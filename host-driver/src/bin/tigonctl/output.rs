//! Prints results: lines for people, JSON objects for programs.

use std::io::Write;

use host_driver::nic::Link;
use serde_json::{Map, Value};

/// Where and how to print results.
pub struct Output {
    json: bool,
    /// Whether results go to standard error.
    beside: bool,
}

impl Output {
    /// For people, or as JSON.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            beside: false,
        }
    }

    /// The same on standard error, for a command that writes something else to standard output.
    pub fn to_standard_error(&self) -> Self {
        Self {
            json: self.json,
            beside: true,
        }
    }

    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a result: `kind` names it, `text` is its form for people.
    pub fn result(&self, kind: &str, value: Value, text: &str) {
        let line = if self.json {
            let mut object = Map::new();
            object.insert("kind".to_owned(), Value::from(kind));
            match value {
                Value::Object(fields) => object.extend(fields),
                other => {
                    object.insert("value".to_owned(), other);
                }
            }
            Value::Object(object).to_string()
        } else {
            text.to_owned()
        };
        if self.beside {
            eprintln!("{line}");
            return;
        }
        let mut stdout = std::io::stdout().lock();
        // A reader that has gone away does not stop the traffic.
        let _ = writeln!(stdout, "{line}");
        let _ = stdout.flush();
    }

    /// Prints why the command failed.
    pub fn error(&self, text: &str) {
        if self.json {
            self.result("error", serde_json::json!({ "error": text }), text);
        }
        eprintln!("tigonctl: {text}");
    }
}

/// A station address for people.
pub fn station_text(station: [u8; 6]) -> String {
    station.map(|byte| format!("{byte:02x}")).join(":")
}

/// The state of the link for people.
pub fn link_text(link: Link) -> &'static str {
    match link {
        Link::Down => "down",
        Link::Gigabit => "1000 Mb/s",
        Link::Fast => "10/100 Mb/s",
    }
}
