//! Tests a cable that is pulled out and plugged in by hand.

use integration_tests::guest::stage::{GUEST, GuestStage, PEER};
use std::time::Duration;

/// Reference 11: link down and up are told the driver while a stream and pings run.
pub fn the_cable_is_pulled_while_traffic_flows(stage: &mut GuestStage) {
    let server = stage
        .peer
        .spawn("iperf3", &["--server", "--one-off", "--bind", PEER]);
    let mut server = server.unwrap_or_else(|error| panic!("{error:#}"));
    std::thread::sleep(Duration::from_millis(300));
    let stream = format!("iperf3 --client {PEER} --time 12 --json");
    let stream = stage
        .guest
        .spawn(&stream)
        .unwrap_or_else(|error| panic!("{error:#}"));
    let ping = format!("ping -n -q -i 0.01 -w 12 {PEER}");
    let pings = stage
        .guest
        .spawn(&ping)
        .unwrap_or_else(|error| panic!("{error:#}"));
    std::thread::sleep(Duration::from_millis(1500));
    for _ in 0..3 {
        let log = stage.guest.kernel_log().expect("the guest answers");
        stage.log.read(&log);
        stage
            .card
            .unplug()
            .unwrap_or_else(|error| panic!("{error:#}"));
        stage.cable.cut();
        stage.wait_log("link DOWN", Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(300));
        stage.cable.mend();
        stage
            .card
            .plug()
            .unwrap_or_else(|error| panic!("{error:#}"));
        stage.wait_log("link UP", Duration::from_secs(5));
        std::thread::sleep(Duration::from_secs(1));
    }
    let limit = Duration::from_secs(60);
    let stream = stream
        .wait(limit)
        .unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(stream.status, 0, "the stream broke: {}", stream.stdout);
    server
        .wait(limit)
        .unwrap_or_else(|error| panic!("{error:#}"));
    let pings = pings
        .wait(limit)
        .unwrap_or_else(|error| panic!("{error:#}"));
    let said = pings.stdout;
    assert!(said.contains("packets transmitted"), "{said}");
    assert!(!said.contains(" 0 received"), "{said}");
    // With the cable in again nothing is lost.
    stage.ping_both_ways(GUEST, PEER, 1000, 200);
}
