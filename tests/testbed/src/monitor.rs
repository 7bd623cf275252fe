//! QEMU's monitor: the machine protocol (QMP), one JSON object a line.

use anyhow::{Context, Result, bail};
use host_driver::log::NicMemory;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long QEMU may take for one answer.
const LIMIT: Duration = Duration::from_secs(10);

/// A connection to a monitor that is ready for commands.
#[derive(Debug)]
pub struct Monitor {
    answers: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects and agrees on capabilities: none.
    ///
    /// # Errors
    /// When nobody listens there, or speaks something else.
    pub fn connect(socket: &Path) -> Result<Monitor> {
        let stream = UnixStream::connect(socket)
            .with_context(|| format!("no monitor at {}", socket.display()))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut monitor = Monitor {
            answers: BufReader::new(stream),
        };
        let greeting = monitor.line()?;
        if greeting.get("QMP").is_none() {
            bail!("the monitor greets with {greeting}");
        }
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Runs one command and gives what it returns.
    ///
    /// # Errors
    /// QEMU's own description of what is wrong.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let words = json!({"execute": command, "arguments": arguments});
        let stream = self.answers.get_mut();
        stream.write_all(format!("{words}\n").as_bytes())?;
        loop {
            let mut answer = self.line()?;
            if let Some(error) = answer.get("error") {
                let said = error.get("desc").and_then(Value::as_str);
                bail!("{command}: {}", said.unwrap_or("refused"));
            }
            // What is neither is an event, which nobody here waits for.
            if let Some(returned) = answer.get_mut("return") {
                return Ok(returned.take());
            }
        }
    }

    /// Plugs or unplugs a network device's cable.
    ///
    /// # Errors
    /// When QEMU knows no network device of this name.
    pub fn set_link(&mut self, name: &str, up: bool) -> Result<()> {
        self.execute("set_link", json!({"name": name, "up": up}))?;
        Ok(())
    }

    /// Words of CPU A's memory, big-endian as the card has them.
    ///
    /// # Errors
    /// When QEMU does not say what is there.
    pub fn words(&mut self, address: u32, count: usize) -> Result<Vec<u32>> {
        let command = format!("xp /{count}wx {address:#x}");
        let said = self.execute("human-monitor-command", json!({ "command-line": command }))?;
        let said = said.as_str().unwrap_or_default();
        // A line is an address, a colon, and up to four words.
        let words = said.lines().filter_map(|line| line.split_once(':'));
        let words = words.flat_map(|(_, words)| words.split_whitespace());
        let words = words.map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16));
        let words: Vec<u32> = words
            .collect::<Result<_, _>>()
            .with_context(|| format!("{command}: {said}"))?;
        if words.len() != count {
            bail!("{command}: {said}");
        }
        Ok(words)
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("the monitor has ended");
        }
        serde_json::from_str(&line).context("the monitor says something that is no JSON")
    }
}

/// NIC memory, past the card's driver: it can be looked at only. Each look is a connection of
/// its own, since a monitor takes one at a time.
#[derive(Clone, Debug)]
pub struct MemoryByMonitor(pub PathBuf);

impl NicMemory for MemoryByMonitor {
    type Error = anyhow::Error;

    fn load(&mut self, address: u32, out: &mut [u32]) -> Result<()> {
        let words = Monitor::connect(&self.0)?.words(address, out.len())?;
        out.copy_from_slice(&words);
        Ok(())
    }

    fn store(&mut self, _: u32, _: u32) -> Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A monitor that says these lines and hands over what it was told.
    fn scripted(lines: &'static [&'static str]) -> (tempfile::TempDir, Result<Monitor>) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("monitor");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for line in lines {
                writeln!(stream, "{line}").unwrap();
            }
            // Stays until the other side goes.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let monitor = Monitor::connect(&socket);
        (folder, monitor)
    }

    #[test]
    fn events_between_command_and_answer_are_skipped() {
        let (_folder, monitor) = scripted(&[
            r#"{"QMP": {"version": {}, "capabilities": []}}"#,
            r#"{"return": {}}"#,
            r#"{"event": "NIC_RX_FILTER_CHANGED"}"#,
            r#"{"return": {"running": true}}"#,
        ]);
        let status = monitor.unwrap().execute("query-status", json!({})).unwrap();
        assert_eq!(status, json!({"running": true}));
    }

    #[test]
    fn a_refusal_is_quoted() {
        let (_folder, monitor) = scripted(&[
            r#"{"QMP": {}}"#,
            r#"{"return": {}}"#,
            r#"{"error": {"class": "DeviceNotFound", "desc": "Device 'x' not found"}}"#,
        ]);
        let error = monitor.unwrap().set_link("x", true).unwrap_err();
        assert_eq!(error.to_string(), "set_link: Device 'x' not found");
    }

    #[test]
    fn something_else_that_listens_is_refused() {
        let (_folder, monitor) = scripted(&["hello"]);
        assert!(monitor.is_err());
        let nobody = Path::new("/nonexistent/monitor");
        let error = Monitor::connect(nobody).unwrap_err();
        assert!(format!("{error:#}").contains("/nonexistent/monitor"));
    }
}
