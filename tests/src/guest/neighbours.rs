//! Cards joined back to back: guests, a guest and our driver, a router between.
//!
//! ```text
//!   guest ── card ════ cable ════ card ── guest, or our driver and a namespace
//! ```

use super::kernel_log::KernelLog;
use super::playbill::Scene;
use super::stage::{boot, card, options, sh, testimony, wait_for_or};
use crate::engine::tools;
use host_driver::nic::NicStatistics;
use host_driver::tap::Tap;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use testbed::card::{Card, CardOptions, Wire};
use testbed::guest::Guest;
use testbed::hosts;
use testbed::net::namespace::Namespace;
use testbed::worker::Worker;

/// How long a driver may take until its link is up.
const LINK: Duration = Duration::from_secs(30);

/// A guest with cards in it, `eth0`, `eth1`, .. in their order.
pub struct Machine {
    /// The guest.
    pub guest: Guest,
    /// Its cards.
    pub cards: Vec<Card>,
    log: KernelLog,
}

impl Machine {
    /// Boots a guest with these cards and brings each up with its address.
    ///
    /// # Panics
    /// When something does not come up.
    pub fn boot(cards: Vec<Card>, addresses: &[&str]) -> Machine {
        let guest = boot(&options(&cards.iter().collect::<Vec<_>>()));
        let mut log = KernelLog::default();
        log.read(&guest.kernel_log().expect("the guest answers"));
        sh(&guest, "modprobe acenic");
        for (number, address) in addresses.iter().enumerate() {
            let device = format!("eth{number}");
            let command =
                format!("ip address add {address}/24 dev {device} && ip link set {device} up");
            let up = guest.sh(&command);
            up.unwrap_or_else(|error| panic!("{error:#}\n{}", testimony(&guest, 12, &cards)));
        }
        wait_for_or(
            LINK,
            "link UP of each card",
            || {
                let said = guest.kernel_log().expect("the guest answers");
                said.matches("link UP").count() >= cards.len()
            },
            || testimony(&guest, 12, &cards),
        );
        Machine { guest, cards, log }
    }

    /// Panics if a card has gone or the kernel complains.
    pub fn inspect(&mut self) {
        for card in &mut self.cards {
            card.check().unwrap_or_else(|error| panic!("{error:#}"));
        }
        self.log.inspect(&self.guest);
    }

    fn testimony(&self) -> String {
        testimony(&self.guest, 12, &self.cards)
    }
}

/// Two cards at one cable; `number` is what their station addresses end with.
///
/// # Panics
/// When a card does not come up.
pub fn cards_back_to_back(folder: &TempDir, number: u8) -> (Card, Card) {
    let socket: PathBuf = folder.path().join(format!("cable{number}"));
    let start = |wire, last| {
        card(&CardOptions {
            wire,
            monitor: true,
            station: Some([0x00, 0x60, 0xCF, 0x54, number, last]),
            ..CardOptions::default()
        })
    };
    let one = start(Wire::Listen(socket.clone()), 1);
    let other = start(Wire::Connect(socket), 2);
    (one, other)
}

fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("tigon-cable-").tempdir();
    folder.expect("a folder for the cable")
}

/// Two guests at one cable.
pub struct TwoGuests {
    /// 10.80.0.1
    pub left: Machine,
    /// 10.80.0.2
    pub right: Machine,
    _folder: TempDir,
}

impl TwoGuests {
    /// The address of the left one.
    pub const LEFT: &str = "10.80.0.1";
    /// The address of the right one.
    pub const RIGHT: &str = "10.80.0.2";
}

impl Scene for TwoGuests {
    fn raise() -> Self {
        let folder = folder();
        let (one, other) = cards_back_to_back(&folder, 1);
        TwoGuests {
            left: Machine::boot(vec![one], &[Self::LEFT]),
            right: Machine::boot(vec![other], &[Self::RIGHT]),
            _folder: folder,
        }
    }

    fn inspect(&mut self) {
        self.left.inspect();
        self.right.inspect();
    }

    fn testimony(&self) -> String {
        format!("{}\n{}", self.left.testimony(), self.right.testimony())
    }
}

/// A guest, and at the other end of the cable our own driver on vfio-user.
pub struct GuestAndDriver {
    /// 10.81.0.1
    pub guest: Machine,
    /// The Linux host behind our driver, 10.81.0.2.
    pub host: Namespace,
    /// Moves frames between that host and its card.
    pub driver: Worker<NicStatistics>,
    /// Its card.
    pub card: Card,
    _folder: TempDir,
}

impl GuestAndDriver {
    /// The guest's address.
    pub const GUEST: &str = "10.81.0.1";
    /// The address of the host behind our driver.
    pub const HOST: &str = "10.81.0.2";
}

impl Scene for GuestAndDriver {
    fn raise() -> Self {
        let folder = folder();
        let (one, other) = cards_back_to_back(&folder, 2);
        let guest = Machine::boot(vec![one], &[Self::GUEST]);
        let host = Namespace::create("driver").unwrap_or_else(|error| panic!("{error:#}"));
        let nic = hosts::open_nic(&tools(), &other).unwrap_or_else(|e| panic!("{e:#}"));
        let name = format!("tgd{}", std::process::id());
        let tap = Tap::create(&name, nic.station(), 1500, false);
        let tap = tap.unwrap_or_else(|error| panic!("{error}"));
        let adopted = host.adopt(&name, &format!("{}/24", Self::HOST));
        adopted.unwrap_or_else(|error| panic!("{error:#}"));
        GuestAndDriver {
            guest,
            host,
            driver: hosts::drive(nic, tap, |_| ()),
            card: other,
            _folder: folder,
        }
    }

    fn inspect(&mut self) {
        self.guest.inspect();
        self.card
            .check()
            .unwrap_or_else(|error| panic!("{error:#}"));
        assert!(!self.driver.ended(), "our driver has given up");
    }

    fn testimony(&self) -> String {
        format!(
            "{}\n  our driver: {}",
            self.guest.testimony(),
            self.card.testimony()
        )
    }
}

/// Two guests and a third between them that routes, with two cards in it.
pub struct Routed {
    /// 10.82.1.1
    pub left: Machine,
    /// 10.82.1.254 and 10.82.2.254
    pub router: Machine,
    /// 10.82.2.1
    pub right: Machine,
    _folder: TempDir,
}

impl Routed {
    /// The address of the left one.
    pub const LEFT: &str = "10.82.1.1";
    /// The address of the right one.
    pub const RIGHT: &str = "10.82.2.1";
}

impl Scene for Routed {
    fn raise() -> Self {
        let folder = folder();
        let (left, left_port) = cards_back_to_back(&folder, 3);
        let (right, right_port) = cards_back_to_back(&folder, 4);
        let ports = ["10.82.1.254", "10.82.2.254"];
        let router = Machine::boot(vec![left_port, right_port], &ports);
        sh(&router.guest, "echo 1 > /proc/sys/net/ipv4/ip_forward");
        let left = Machine::boot(vec![left], &[Self::LEFT]);
        sh(&left.guest, "ip route add 10.82.2.0/24 via 10.82.1.254");
        let right = Machine::boot(vec![right], &[Self::RIGHT]);
        sh(&right.guest, "ip route add 10.82.1.0/24 via 10.82.2.254");
        Routed {
            left,
            router,
            right,
            _folder: folder,
        }
    }

    fn inspect(&mut self) {
        for machine in [&mut self.left, &mut self.router, &mut self.right] {
            machine.inspect();
        }
    }

    fn testimony(&self) -> String {
        let machines = [&self.left, &self.router, &self.right];
        machines.map(Machine::testimony).join("\n")
    }
}
