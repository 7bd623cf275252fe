//! Tests full rings: a guest that is too slow, a wire that is too slow.

use integration_tests::frames;
use integration_tests::guest::stage::{GuestStage, STATION, wait_for};
use std::time::Duration;

/// Frames come while the guest takes none: its rings run out of buffers, then the
/// card's memory of room. What is lost is counted, and all goes on after it.
pub fn a_guest_that_cannot_follow(stage: &mut GuestStage) {
    const FRAMES: u32 = 4000;
    let config = "/sys/class/net/eth0/device/config";
    stage
        .cable
        .settle(Duration::from_millis(200), Duration::from_secs(5));
    let (before, sent) = (stage.link_counts(), stage.cable.counts().to_card.frames);
    // Interrupts off, then on (command register, bit 10): the driver sleeps.
    stage.sh(&format!(
        "printf '\\005' | dd of={config} bs=1 seek=5 conv=notrunc 2>&1"
    ));
    let flood = (0..FRAMES).map(|n| frames::numbered(STATION, frames::PEER, n));
    stage.cable.inject(flood);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(stage.link_counts().rx_packets, before.rx_packets);
    stage.sh(&format!(
        "printf '\\001' | dd of={config} bs=1 seek=5 conv=notrunc 2>&1"
    ));
    wait_for(Duration::from_secs(30), "room on the card", || {
        stage.cable.injected()
    });
    stage
        .cable
        .settle(Duration::from_millis(300), Duration::from_secs(10));
    let wire = stage.cable.counts().to_card.frames - sent;
    stage.accounts_for(&before, wire);
    // More than the two rings of buffers hold.
    let received = stage.link_counts().rx_packets - before.rx_packets;
    assert!(received > 72 + 64, "{received} received of {wire}");
    stage.carries_traffic();
}

/// The wire takes nothing for three seconds, then little, then all: the guest's
/// ring fills and its queue stops, nothing is lost and no watchdog barks.
pub fn a_wire_that_does_not_take(stage: &mut GuestStage) {
    const DATAGRAMS: u64 = 1500;
    stage
        .cable
        .settle(Duration::from_millis(200), Duration::from_secs(5));
    let (before, wire) = (stage.link_counts(), stage.cable.counts().from_card.frames);
    stage.cable.stall(Duration::from_secs(3));
    // A socket that blocks when the queue is full, as a program's would, to a
    // station that is not there and does not answer.
    stage.sh("ip neigh replace 10.79.0.77 lladdr 02:54:47:ee:00:77 dev eth0");
    let send = format!(
        "bash -c 'exec 3> /dev/udp/10.79.0.77/9 && \
         dd if=/dev/zero bs=1400 count={DATAGRAMS} 2>&1 >&3'"
    );
    let job = stage
        .guest
        .spawn(&send)
        .unwrap_or_else(|error| panic!("{error:#}"));
    std::thread::sleep(Duration::from_secs(2));
    let stalled = stage.cable.counts().from_card.frames - wire;
    assert!(stalled < 20, "{stalled} frames in spite of the stall");
    stage.cable.pace(Some(Duration::from_millis(2)));
    std::thread::sleep(Duration::from_secs(3));
    stage.cable.pace(None);
    let end = job.wait(Duration::from_secs(60));
    end.unwrap_or_else(|error| panic!("{error:#}"));
    stage
        .cable
        .settle(Duration::from_millis(300), Duration::from_secs(10));
    let (now, seen) = (
        stage.link_counts(),
        stage.cable.counts().from_card.frames - wire,
    );
    assert_eq!(
        now.tx_packets - before.tx_packets,
        seen,
        "what the guest sent"
    );
    assert!(seen > 200, "{seen} frames: the ring was never full");
    stage.carries_traffic();
}
