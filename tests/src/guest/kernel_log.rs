//! Checks the guest's kernel log for complaints.

use testbed::guest::Guest;

/// What no kernel that is well says.
const COMPLAINTS: &[&str] = &[
    "hw csum failure",
    "stuck",
    "timeout",
    "timed out",
    "netdev watchdog",
    "bug:",
    "warning:",
    "call trace",
    "oops",
    "panic",
    "nobody cared",
    "hung task",
    "soft lockup",
    "rcu_sched",
    "firmware not running",
    "transmit ring",
    "unable to",
];

/// Reads a log from where it stopped the last time.
#[derive(Clone, Debug, Default)]
pub struct KernelLog {
    last: Option<String>,
}

impl KernelLog {
    /// The lines of `log` that were not there the last time, without marking them
    /// as read. All of it, should the last line have been pushed out.
    pub fn peek<'a>(&self, log: &'a str) -> &'a str {
        let Some(last) = &self.last else { return log };
        match log.rfind(last.as_str()) {
            Some(at) => log[at + last.len()..].trim_start_matches('\n'),
            None => log,
        }
    }

    /// [`KernelLog::peek`], marking them as read.
    pub fn read<'a>(&mut self, log: &'a str) -> &'a str {
        let fresh = self.peek(log);
        if let Some(line) = log.trim_end().lines().last() {
            self.last = Some(line.to_owned());
        }
        fresh
    }

    /// Reads what is new in a guest's log.
    ///
    /// # Panics
    /// When a line of it complains, or the guest does not answer.
    pub fn inspect(&mut self, guest: &Guest) {
        let log = guest.kernel_log().expect("the guest answers");
        let complaints = complaints(self.read(&log));
        assert!(
            complaints.is_empty(),
            "the kernel complains: {complaints:#?}"
        );
    }
}

/// The last lines of a guest's log, or of its console should it no longer answer.
pub fn last_words(guest: &Guest, count: usize) -> String {
    let log = guest.kernel_log().unwrap_or_else(|_| guest.console());
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n    ")
}

/// The lines that complain.
fn complaints(log: &str) -> Vec<&str> {
    let complains = |line: &&str| {
        let line = line.to_lowercase();
        COMPLAINTS.iter().any(|complaint| line.contains(complaint))
    };
    log.lines().filter(complains).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_read() {
        let mut log = KernelLog::default();
        assert_eq!(log.read("[1] one\n[2] two\n"), "[1] one\n[2] two\n");
        assert_eq!(log.peek("[1] one\n[2] two\n"), "");
        assert_eq!(log.read("[1] one\n[2] two\n[3] three\n"), "[3] three\n");
        assert_eq!(log.read("[8] eight\n"), "[8] eight\n", "it ran over");
    }

    #[test]
    fn complaints_are_found_among_good_news() {
        let log = "[1] eth0: Optical link UP (Full Duplex, Flow Control: TX RX)\n\
            [2] eth0: hw csum failure\n[3] NETDEV WATCHDOG: eth0 (acenic): transmit queue 0\n";
        assert_eq!(complaints(log).len(), 2);
        assert!(complaints("[1] eth0: Jumbo ring flushed\n").is_empty());
    }
}
