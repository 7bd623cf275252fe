//! Tests what `ethtool` shows of the card, as far as `acenic` supports it.

use integration_tests::guest::stage::GuestStage;
use std::time::Duration;

pub fn ethtool_tells_what_the_driver_offers(stage: &mut GuestStage) {
    let info = stage.sh("ethtool -i eth0");
    assert!(info.contains("driver: acenic"), "{info}");
    let version = info
        .lines()
        .find_map(|l| l.strip_prefix("firmware-version: "));
    // The version that the header of our firmware file names.
    let firmware = integration_tests::stage::firmware();
    let header = format!("{}.{}.{}", firmware[0], firmware[1], firmware[2]);
    assert_eq!(version, Some(header.as_str()), "{info}");
    let slot = stage.sh("basename $(readlink -f /sys/class/net/eth0/device)");
    assert!(info.contains(&format!("bus-info: {slot}")), "{info}");

    let link = stage.sh("ethtool eth0");
    for line in [
        "Speed: 1000Mb/s",
        "Duplex: Full",
        "Port: FIBRE",
        "Auto-negotiation: on",
    ] {
        assert!(link.contains(line), "{line} in {link}");
    }
    // Not offered by this driver: refused, not wrong.
    for words in ["-c eth0", "-S eth0", "-a eth0"] {
        let output = stage
            .guest
            .run(&format!("ethtool {words}"), Duration::from_secs(10));
        let output = output.unwrap_or_else(|error| panic!("{error:#}"));
        let said = format!("{}{}", output.stdout, output.stderr).to_lowercase();
        let refused = ["not supported", "no stats", "n/a"]
            .iter()
            .any(|why| said.contains(why));
        assert!(refused, "ethtool {words}: {said}");
    }
    stage.carries_traffic();
}

/// The speed that is wished for survives `ethtool -s`, and the link comes back.
pub fn the_link_is_negotiated_anew(stage: &mut GuestStage) {
    for words in ["autoneg off speed 1000 duplex full", "autoneg on"] {
        stage.sh(&format!("ethtool -s eth0 {words}"));
        stage.wait_log("link UP", Duration::from_secs(15));
        let log = stage.guest.kernel_log().expect("the guest answers");
        stage.log.read(&log);
        stage.carries_traffic();
    }
}
