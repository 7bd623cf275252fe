//! Tests the driver's life cycle: probed, opened, closed, unloaded.

use integration_tests::guest::stage::{GUEST, GuestStage, PEER, STATION};
use std::time::Duration;

/// Reference 19 (second): what `acenic` says of a card that it knows.
pub fn the_driver_finds_a_card_that_it_knows(stage: &mut GuestStage) {
    let log = stage.guest.kernel_log().expect("the guest answers");
    let mac = STATION.map(|octet| format!("{octet:02x}")).join(":");
    for words in [
        "Tigon II (Rev. 6)",
        &format!("MAC: {mac}"),
        "PCI bus width: 64 bits",
        "Firmware up and running",
        "Optical link UP (Full Duplex, Flow Control: TX RX)",
    ] {
        assert!(log.contains(words), "{words} in:\n{log}");
    }
    let device = "/sys/class/net/eth0";
    assert_eq!(stage.sh(&format!("cat {device}/address")), mac);
    let driver = stage.sh(&format!("basename $(readlink {device}/device/driver)"));
    assert_eq!(driver, "acenic");
    let ids = stage.sh(&format!(
        "cat {device}/device/vendor {device}/device/device"
    ));
    assert_eq!(ids, "0x12ae\n0x0001");
    stage.carries_traffic();
}

pub fn up_and_down_a_hundred_times(stage: &mut GuestStage) {
    // A ping each tenth time, so that it was not just the first that worked.
    let script = format!(
        "for i in $(seq 100); do \
           ip link set eth0 down && ip link set eth0 up || exit 1; \
           [ $((i % 10)) != 0 ] || ping -q -c 3 -i 0.3 -W 3 {PEER} >&2 || exit 2; \
         done"
    );
    let output = stage.guest.run(&script, Duration::from_secs(180));
    let output = output.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert_eq!(
        output.stderr.matches("3 received").count(),
        10,
        "{}",
        output.stderr
    );
    stage.carries_traffic();
}

pub fn loaded_and_unloaded_twenty_times(stage: &mut GuestStage) {
    let script = format!(
        "for i in $(seq 20); do \
           modprobe -r acenic && modprobe acenic || exit 1; \
           ip address add {GUEST}/24 dev eth0 && ip link set eth0 up || exit 2; \
           n=0; until ping -q -c 1 -W 1 {PEER} > /dev/null; do \
             n=$((n + 1)); [ $n -lt 10 ] || exit 3; \
           done; \
         done"
    );
    let before = stage.guest.kernel_log().expect("the guest answers");
    let output = stage.guest.run(&script, Duration::from_secs(300));
    let output = output.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(output.status, 0, "{}", output.stderr);
    let log = stage.guest.kernel_log().expect("the guest answers");
    let ran = |log: &str| log.matches("Firmware up and running").count();
    assert_eq!(ran(&log) - ran(&before), 20);
    stage.carries_traffic();
}
