//! A running QEMU under attack by clients, and checks of the resources that it must not lose.

use crate::card::Card;
use crate::monitor::Monitor;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How soon the monitor answers, and a good client is served.
const SOON: Duration = Duration::from_secs(1);

/// What a process uses.
#[derive(Clone, Copy, Debug)]
pub struct Vitals {
    /// Memory in KB.
    pub resident: u64,
    pub descriptors: usize,
    pub threads: u64,
    /// Mappings.
    pub maps: usize,
}

impl Vitals {
    fn of(pid: u32) -> Self {
        let proc = format!("/proc/{pid}");
        let status = fs::read_to_string(format!("{proc}/status")).expect("QEMU runs");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok())
                .expect("the kernel tells it")
        };
        let maps = fs::read_to_string(format!("{proc}/maps")).expect("QEMU runs");
        Vitals {
            resident: number("VmRSS:"),
            threads: number("Threads:"),
            descriptors: fs::read_dir(format!("{proc}/fd")).expect("it").count(),
            maps: maps.lines().count(),
        }
    }

    /// Nothing has come and stayed. Allocators keep a little for themselves.
    fn is_flat(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.threads <= before.threads
            && self.maps <= before.maps + 4
            && self.resident <= before.resident + 1024
    }
}

/// A card under QEMU with a monitor, and no client.
pub struct Victim {
    pub card: Card,
    monitor: Monitor,
}

impl Victim {
    /// One that says what it has to say to the test's own standard error.
    pub fn new() -> Self {
        Self::changed(|_, _| ())
    }

    /// One that says it to the file `said`.
    pub fn writing() -> Self {
        Self::changed(|command, folder| {
            let file = fs::File::create(folder.path().join("said")).expect("a file");
            command.stderr(Stdio::from(file));
        })
    }

    fn changed(change: impl FnOnce(&mut Command, &TempDir)) -> Self {
        let mut card = Card::start_changed("", |folder| Monitor::options(folder.path()), change);
        let monitor = Monitor::connect(card.folder.path());
        card.leave();
        Victim { card, monitor }
    }

    /// What QEMU has said.
    pub fn said(&self) -> String {
        fs::read_to_string(self.card.folder.path().join("said")).expect("it is kept")
    }

    pub fn vitals(&self) -> Vitals {
        Vitals::of(self.card.qemu.id())
    }

    /// The same, when the last client is forgotten.
    pub fn settled_vitals(&self) -> Vitals {
        let start = Instant::now();
        let mut last = self.vitals();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.vitals();
            if (now.descriptors, now.maps) == (last.descriptors, last.maps) {
                return now;
            }
            assert!(start.elapsed() < SOON, "{now:?} after {last:?}");
            last = now;
        }
    }

    /// The monitor answers soon; its question takes the locks that a card's access takes.
    pub fn monitor_answers(&mut self, when: &str) {
        let start = Instant::now();
        let link = self.monitor.get("link");
        let took = start.elapsed();
        assert!(link.contains("return"), "{when}: {link}");
        assert!(took < SOON, "{when}: the monitor took {took:?}");
    }

    /// A good client comes, works and goes, soon.
    pub fn good_client_works(&mut self, when: &str) {
        let start = Instant::now();
        self.card.connect();
        self.card.store(0x4000, 0x1234_5678);
        assert_eq!(self.card.load(0x4000), 0x1234_5678, "{when}");
        let took = start.elapsed();
        assert!(took < SOON, "{when}: a good client took {took:?}");
        self.card.leave();
    }

    /// Waits until QEMU uses no more than before.
    pub fn is_flat(&self, before: &Vitals, when: &str) {
        let start = Instant::now();
        loop {
            let now = self.vitals();
            if now.is_flat(before) {
                return;
            }
            let patient = start.elapsed() < SOON;
            assert!(patient, "{when}: {now:?} after {before:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
