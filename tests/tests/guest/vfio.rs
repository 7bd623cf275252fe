//! Tests our driver in the guest, through the kernel's VFIO and an IOMMU.
//!
//! Debian's kernel has no no-IOMMU mode; on a kernel that has it, the driver works the same
//! without the protection (`docs/driver.md`, "Kernel VFIO").

use integration_tests::guest::kernel_log::KernelLog;
use integration_tests::guest::playbill::Scene;
use integration_tests::guest::stage::{
    boot, bring_up, card, inspect, options, ping_from, sh, testimony, wait_for,
};
use integration_tests::guest::{Cable, Peer};
use serde_json::Value;
use std::time::Duration;
use testbed::card::{Card, CardOptions};
use testbed::guest::{Guest, GuestOptions};
use testbed::net::iperf::{self, Direction, Protocol};

const GUEST: &str = "10.84.0.1";
const PEER: &str = "10.84.0.2";
const FIRMWARE: &str = "/lib/firmware/acenic/tg2.bin";

/// A guest with an IOMMU between the card and its memory.
pub struct BehindIommu {
    guest: Guest,
    cable: Cable,
    peer: Peer,
    card: Card,
    log: KernelLog,
    /// The card's place on the PCI bus.
    slot: String,
}

impl Scene for BehindIommu {
    fn raise() -> Self {
        let card = card(&CardOptions {
            monitor: true,
            ..CardOptions::default()
        });
        let (peer, tap) = Peer::start("vfio", 99, &format!("{PEER}/24"))
            .unwrap_or_else(|error| panic!("{error:#}"));
        let cable = Cable::join(&card.wire_peer(), &card.wire_card(), tap)
            .unwrap_or_else(|error| panic!("{error:#}"));
        let guest = boot(&GuestOptions {
            iommu: true,
            ..options(&[&card])
        });
        let mut log = KernelLog::default();
        log.read(&guest.kernel_log().expect("the guest answers"));
        let vendors = sh(&guest, "grep -l 0x12ae /sys/bus/pci/devices/*/vendor");
        // The emulated IOMMU remaps no interrupts, which VFIO wants to be told.
        sh(
            &guest,
            "modprobe vfio_iommu_type1 allow_unsafe_interrupts=1 && modprobe vfio-pci",
        );
        let slot = vendors.split('/').nth_back(1).expect("a card").to_owned();
        BehindIommu {
            guest,
            cable,
            peer,
            card,
            log,
            slot,
        }
    }

    fn inspect(&mut self) {
        inspect(&mut self.card, &mut self.cable, &mut self.log, &self.guest);
    }

    fn testimony(&self) -> String {
        testimony(&self.guest, 15, [&self.card])
    }
}

impl BehindIommu {
    /// Gives the card to a driver of the kernel's, or takes it from that.
    fn bind(&self, driver: &str) {
        let slot = &self.slot;
        let device = format!("/sys/bus/pci/devices/{slot}");
        sh(
            &self.guest,
            &format!(
                "echo {driver} > {device}/driver_override; \
                 ! test -e {device}/driver || echo {slot} > {device}/driver/unbind; \
                 echo {slot} > /sys/bus/pci/drivers_probe; \
                 test $(basename $(readlink {device}/driver)) = {driver}"
            ),
        );
    }
}

pub fn our_driver_works_through_the_kernels_vfio(stage: &mut BehindIommu) {
    sh(&stage.guest, "modprobe tun");
    stage.bind("vfio-pci");
    let tigonctl = format!("tigonctl --json --pci {}", stage.slot);
    let ping = format!(
        "{tigonctl} ping {PEER} --address {GUEST}/24 --count 50 --size 1472 --firmware {FIRMWARE}"
    );
    let said = sh(&stage.guest, &ping);
    let mut lines = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let report: Value = lines
        .find(|line: &Value| line["kind"] == "ping")
        .unwrap_or_else(|| panic!("no result: {said}"));
    assert_eq!(report["received"], 50, "{said}");

    // Linux behind it, by a TAP device.
    let bridge = format!("{tigonctl} bridge --tap tigon0 --up --firmware {FIRMWARE}");
    let bridge = stage
        .guest
        .spawn(&bridge)
        .unwrap_or_else(|error| panic!("{error:#}"));
    wait_for(Duration::from_secs(30), "TAP device", || {
        sh(&stage.guest, "ls /sys/class/net").contains("tigon0")
    });
    sh(
        &stage.guest,
        &format!("ip address add {GUEST}/24 dev tigon0"),
    );
    wait_for(Duration::from_secs(20), "link", || {
        let said = sh(&stage.guest, &format!("ping -q -c 1 -W 1 {PEER} || true"));
        said.contains("1 received")
    });
    for size in [0, 56, 1472, 4000] {
        ping_from(&stage.guest, PEER, size, 20);
        stage.peer.answered_by(GUEST, size, 20);
    }
    for direction in [Direction::Out, Direction::In] {
        for protocol in [Protocol::Tcp, Protocol::Udp(1)] {
            let words = iperf::client_words(PEER, protocol, direction, 1).join(" ");
            let result = iperf::against(stage.peer.namespace(), PEER, protocol, || {
                let output = stage
                    .guest
                    .run(&format!("iperf3 {words}"), Duration::from_secs(60))?;
                Ok((output.stdout, output.stderr))
            });
            let result = result.unwrap_or_else(|error| panic!("iperf3 {words}: {error:#}"));
            assert!(
                result.bytes > 10_000,
                "{protocol:?} {direction:?}: {result:?}"
            );
            assert_eq!(result.lost, 0, "{protocol:?} {direction:?}: {result:?}");
        }
    }
    bridge.kill().unwrap_or_else(|error| panic!("{error:#}"));
}

/// After our driver the kernel's finds the card as it was.
pub fn acenic_takes_over_from_our_driver(stage: &mut BehindIommu) {
    sh(&stage.guest, "modprobe acenic || true; modprobe -r acenic");
    stage.bind("vfio-pci");
    let tigonctl = format!("tigonctl --pci {} load {FIRMWARE}", stage.slot);
    sh(&stage.guest, &tigonctl);
    sh(&stage.guest, "modprobe acenic");
    stage.bind("acenic");
    bring_up(&stage.guest, &stage.card, &format!("{GUEST}/24"));
    for size in [56, 1472] {
        ping_from(&stage.guest, PEER, size, 20);
    }
}
