//! One guest, one card, one cable, one Linux peer.

use super::cable::Cable;
use super::echo;
use super::kernel_log::{KernelLog, last_words};
use super::peer::Peer;
use super::playbill::Scene;
use crate::engine::tools;
use crate::stage::firmware;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};
use testbed::guest::{Guest, GuestOptions, GuestTools};
use testbed::net::iperf::{self, Direction, Protocol, Throughput};

/// The guest's address.
pub const GUEST: &str = "10.79.0.1";
/// The peer's address.
pub const PEER: &str = "10.79.0.2";
/// The station address in the card's EEPROM.
pub const STATION: [u8; 6] = [0x00, 0x60, 0xCF, 0x54, 0x47, 0x01];

/// How long a driver may take until its link is up.
const LINK: Duration = Duration::from_secs(20);

/// Stages are numbered, so that several have names of their own.
static STAGES: AtomicU8 = AtomicU8::new(1);

/// The stage; dropping it ends guest and card.
pub struct GuestStage {
    /// The machine whose network device is the card.
    pub guest: Guest,
    /// What is between card and peer.
    pub cable: Cable,
    /// The machine at the other end.
    pub peer: Peer,
    /// The card.
    pub card: Card,
    /// How far the guest's kernel log has been judged.
    pub log: KernelLog,
}

/// What `ip -s link` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the kernel's names
pub struct LinkCounts {
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub rx_missed_errors: u64,
    pub multicast: u64,
}

/// The guest's tools that `cargo xtask test --guest` has prepared.
///
/// # Panics
/// When a story is run without them, saying so.
pub fn guest_tools() -> GuestTools {
    GuestTools::from_environment().unwrap_or_else(|error| panic!("{error:#}"))
}

/// Options of a guest with cards at these sockets and our firmware for them.
pub fn options(cards: &[&Card]) -> GuestOptions {
    GuestOptions {
        cards: cards.iter().map(|card| card.socket()).collect(),
        firmware: firmware(),
        own_clock: true,
        ..GuestOptions::default()
    }
}

/// Starts a guest.
///
/// # Panics
/// When it does not come up, with the reason.
pub fn boot(options: &GuestOptions) -> Guest {
    let guest = Guest::start(&guest_tools(), options).unwrap_or_else(|e| panic!("{e:#}"));
    // Only the traffic asked for is on the wire.
    sh(
        &guest,
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; \
         echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6",
    );
    guest
}

/// Starts a card.
///
/// # Panics
/// When it does not come up, with the reason.
pub fn card(options: &CardOptions) -> Card {
    Card::start(&tools(), options).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Runs a shell command in a guest.
///
/// # Panics
/// When it fails, with what it said.
pub fn sh(guest: &Guest, command: &str) -> String {
    guest
        .sh(command)
        .unwrap_or_else(|error| panic!("guest: {command}: {error:#}"))
}

/// Pings from a guest; every request is answered.
///
/// # Panics
/// When one is not, or wrongly.
pub fn ping_from(guest: &Guest, address: &str, payload: u32, count: u32) {
    let command = echo::command(address, payload, count);
    let output = guest.run(&command, echo::limit());
    let output = output.unwrap_or_else(|error| panic!("{command}: {error:#}"));
    echo::judge(&output.stdout, count)
        .unwrap_or_else(|why| panic!("{command}: {why}{}", output.stderr));
}

/// Loads `acenic` in a guest, brings `eth0` up with an address and waits for the
/// link.
///
/// # Panics
/// When the driver does not come up.
pub fn bring_up(guest: &Guest, card: &Card, address: &str) {
    let witness = || testimony(guest, 25, [card]);
    let up = format!("modprobe acenic; ip address add {address} dev eth0 && ip link set eth0 up");
    let up = guest.sh(&up);
    up.unwrap_or_else(|error| panic!("{error:#}\n{}", witness()));
    let linked = || {
        let log = guest.kernel_log().expect("the guest answers");
        log.contains("link UP")
    };
    wait_for_or(LINK, "link UP", linked, witness);
}

/// What there is to read after a failure: the end of the guest's kernel log, and of each of
/// its cards what explains a stall.
pub fn testimony<'a>(
    guest: &Guest,
    lines: usize,
    cards: impl IntoIterator<Item = &'a Card>,
) -> String {
    let tail = last_words(guest, lines);
    let cards = cards.into_iter().map(Card::testimony);
    let cards: Vec<String> = cards.collect();
    format!(
        "  the kernel's last words:\n    {tail}\n  {}",
        cards.join("\n  ")
    )
}

/// Waits until `done`.
///
/// # Panics
/// When `what` does not come in time.
pub fn wait_for(limit: Duration, what: &str, done: impl FnMut() -> bool) {
    wait_for_or(limit, what, done, String::new);
}

/// The same where no stage is there yet that is asked after a failure.
///
/// # Panics
/// When `what` does not come in time, with what `witness` says then.
pub fn wait_for_or(
    limit: Duration,
    what: &str,
    mut done: impl FnMut() -> bool,
    witness: impl Fn() -> String,
) {
    let end = Instant::now() + limit;
    while !done() {
        if Instant::now() >= end {
            panic!("no {what} within {limit:?}\n{}", witness());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl GuestStage {
    /// Everything there, the driver not loaded.
    ///
    /// # Panics
    /// When something does not come up, with the reason.
    pub fn booted() -> Self {
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let card = card(&CardOptions {
            monitor: true,
            station: Some(STATION),
            ..CardOptions::default()
        });
        let role = format!("guest{number}");
        let (peer, tap) = Peer::start(&role, number, &format!("{PEER}/24"))
            .unwrap_or_else(|error| panic!("{error:#}"));
        let cable = Cable::join(&card.wire_peer(), &card.wire_card(), tap)
            .unwrap_or_else(|error| panic!("{error:#}"));
        let guest = boot(&options(&[&card]));
        let mut log = KernelLog::default();
        log.read(&guest.kernel_log().expect("the guest answers"));
        GuestStage {
            guest,
            cable,
            peer,
            card,
            log,
        }
    }

    /// Runs a shell command in the guest.
    ///
    /// # Panics
    /// When it fails, with what it said.
    pub fn sh(&self, command: &str) -> String {
        sh(&self.guest, command)
    }

    /// Pings the peer from the guest and the guest from the peer: all replies come.
    ///
    /// # Panics
    /// When they do not.
    pub fn carries_traffic(&self) {
        for payload in [56, 1472] {
            self.ping_both_ways(GUEST, PEER, payload, 10);
        }
    }

    /// Pings both ways between these addresses without loss.
    ///
    /// # Panics
    /// When a reply is missing.
    pub fn ping_both_ways(&self, guest: &str, peer: &str, payload: u32, count: u32) {
        ping_from(&self.guest, peer, payload, count);
        self.peer.answered_by(guest, payload, count);
    }

    /// What the guest's kernel has counted for `eth0`.
    pub fn link_counts(&self) -> LinkCounts {
        let names = "rx_packets rx_bytes tx_packets tx_bytes rx_missed_errors multicast";
        let text = self.sh(&format!("cd /sys/class/net/eth0/statistics && cat {names}"));
        let mut numbers = text
            .split_whitespace()
            .map(|n| n.parse().expect("a number"));
        let mut next = || numbers.next().expect("a number for each name");
        LinkCounts {
            rx_packets: next(),
            rx_bytes: next(),
            tx_packets: next(),
            tx_bytes: next(),
            rx_missed_errors: next(),
            multicast: next(),
        }
    }

    /// Each of the `given` frames since `before` was received or is counted as
    /// missed. The card's own counts reach the host every two seconds.
    ///
    /// # Panics
    /// When one is not, or twice.
    pub fn accounts_for(&self, before: &LinkCounts, given: u64) {
        let end = Instant::now() + Duration::from_secs(6);
        loop {
            let now = self.link_counts();
            let received = now.rx_packets - before.rx_packets;
            let missed = now.rx_missed_errors - before.rx_missed_errors;
            if received + missed == given {
                return;
            }
            assert!(
                Instant::now() < end,
                "{received} received and {missed} missed of {given}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Interrupts that the guest's driver has handled.
    pub fn interrupts(&self) -> u64 {
        let line = self.sh("grep acenic /proc/interrupts");
        let count = line.split_whitespace().nth(1);
        count.and_then(|n| n.parse().ok()).expect("a count")
    }

    /// Runs iperf3 in the guest against a server at the peer's `address`.
    ///
    /// # Panics
    /// When either fails.
    pub fn iperf(
        &self,
        address: &str,
        protocol: Protocol,
        direction: Direction,
        seconds: u32,
    ) -> Throughput {
        let words = iperf::client_words(address, protocol, direction, seconds).join(" ");
        let limit = Duration::from_secs(u64::from(seconds) + 40);
        let result = iperf::against(self.peer.namespace(), address, protocol, || {
            let output = self.guest.run(&format!("iperf3 {words}"), limit)?;
            Ok((output.stdout, output.stderr))
        });
        result.unwrap_or_else(|error| panic!("iperf3 {words}: {error:#}"))
    }

    /// What is new in the guest's kernel log since it was last judged.
    pub fn fresh_log(&self) -> String {
        let log = self.guest.kernel_log().expect("the guest answers");
        self.log.peek(&log).to_owned()
    }

    /// Waits until the guest's kernel says something new.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait_log(&self, text: &str, limit: Duration) {
        wait_for(limit, text, || self.fresh_log().contains(text));
    }
}

/// Looks at card, cable and the kernel's log after a story.
///
/// # Panics
/// If one of them has died, or the kernel complained.
pub fn inspect(card: &mut Card, cable: &mut Cable, log: &mut KernelLog, guest: &Guest) {
    card.check().unwrap_or_else(|error| panic!("{error:#}"));
    cable.check().unwrap_or_else(|error| panic!("{error:#}"));
    log.inspect(guest);
}

impl Scene for GuestStage {
    fn raise() -> Self {
        let stage = GuestStage::booted();
        bring_up(&stage.guest, &stage.card, &format!("{GUEST}/24"));
        stage
    }

    fn inspect(&mut self) {
        inspect(&mut self.card, &mut self.cable, &mut self.log, &self.guest);
    }

    fn testimony(&self) -> String {
        format!(
            "  the cable: {:?}\n{}",
            self.cable.counts(),
            testimony(&self.guest, 25, [&self.card])
        )
    }
}
