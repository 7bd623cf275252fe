//! Tests the card's properties in QEMU's monitor.

use crate::card::Card;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connection to the monitor; answers are looked at as text.
pub struct Monitor {
    lines: BufReader<UnixStream>,
}

impl Monitor {
    /// The options of a QEMU whose monitor is in `folder`.
    pub fn options(folder: &Path) -> Vec<String> {
        let socket = folder.join("monitor");
        let monitor = format!("unix:{},server=on,wait=off", socket.display());
        vec!["-qmp".into(), monitor]
    }

    /// Connects to it.
    pub fn connect(folder: &Path) -> Self {
        let stream = UnixStream::connect(folder.join("monitor")).expect("the monitor is there");
        let limit = Some(Duration::from_secs(10));
        stream
            .set_read_timeout(limit)
            .expect("a time limit can be set");
        let mut monitor = Monitor {
            lines: BufReader::new(stream),
        };
        monitor.command(r#"{"execute": "qmp_capabilities"}"#);
        monitor
    }

    /// Gives a command; returns the line of its answer.
    pub fn command(&mut self, json: &str) -> String {
        writeln!(self.lines.get_mut(), "{json}").expect("the monitor listens");
        loop {
            let mut line = String::new();
            let length = self
                .lines
                .read_line(&mut line)
                .expect("the monitor answers");
            assert_ne!(length, 0, "the monitor is there");
            if line.starts_with(r#"{"return""#) || line.starts_with(r#"{"error""#) {
                return line;
            }
        }
    }

    /// Reads a property of the card.
    pub fn get(&mut self, property: &str) -> String {
        self.command(&format!(
            r#"{{"execute": "qom-get", "arguments":
            {{"path": "/machine/card", "property": "{property}"}}}}"#
        ))
    }

    /// Writes a property of the card.
    pub fn set(&mut self, property: &str, value: &str) -> String {
        self.command(&format!(
            r#"{{"execute": "qom-set", "arguments":
            {{"path": "/machine/card", "property": "{property}", "value": "{value}"}}}}"#
        ))
    }
}

/// Partner, link and faults are the monitor's to see and to change; what means nothing is
/// refused with the words that would mean something.
#[test]
fn the_wire_is_changed_from_the_monitor() {
    let mut card = Card::start_with("", |folder| Monitor::options(folder.path()));
    let mut monitor = Monitor::connect(card.folder.path());
    assert!(monitor.get("link").contains(r#""return": "down""#));
    card.write(0x200, 0xE2);
    card.read(0x200);
    assert!(monitor.get("link").contains(r#""return": "up""#));
    assert!(
        monitor
            .get("partner")
            .contains("1000-full 1000-half 100-full")
    );
    assert!(
        monitor
            .set("partner", "1000-full silent")
            .contains("return")
    );
    assert!(monitor.get("partner").contains(r#""1000-full silent""#));
    assert_ne!(card.read(0x220) & 1 << 25, 0, "the card sees the change");
    assert!(monitor.set("inject", "receive crc 2").contains("return"));
    let refused = monitor.set("inject", "receive dirt");
    assert!(
        refused.contains("error") && refused.contains("receive dirt"),
        "{refused}"
    );
    let refused = monitor.set("link", "up");
    assert!(refused.contains("error"), "{refused}");
    assert!(monitor.get("undefined").contains(r#""return": "0""#));
}
