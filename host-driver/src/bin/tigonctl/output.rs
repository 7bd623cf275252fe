//! What is printed: lines for people or objects for programs.

use std::io::Write;

use host_driver::nic::Link;
use serde_json::{Map, Value};

/// Where and how results are printed.
pub struct Output {
    json: bool,
    /// Results go to standard error.
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

    /// The same on standard error, for a command that has something else for standard
    /// output.
    pub fn to_standard_error(&self) -> Self {
        Self {
            json: self.json,
            beside: true,
        }
    }

    /// Whether programs read it.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a result: `kind` names it, `text` is what people read.
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

/// An address as people write it.
pub fn station_text(station: [u8; 6]) -> String {
    station.map(|byte| format!("{byte:02x}")).join(":")
}

/// The link as people name it.
pub fn link_text(link: Link) -> &'static str {
    match link {
        Link::Down => "down",
        Link::Gigabit => "1000 Mb/s",
        Link::Fast => "10/100 Mb/s",
    }
}
