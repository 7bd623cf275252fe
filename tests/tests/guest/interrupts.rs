//! Tests many interrupts, and none.

use integration_tests::frames;
use integration_tests::guest::stage::{GuestStage, STATION, wait_for};
use std::time::{Duration, Instant};

/// The story's own frames come from here.
const SOMEBODY: [u8; 6] = [0x02, 0x54, 0x47, 0xEE, 0, 2];

/// Frames of the least length, so that as many as possible come in a second.
fn small(count: u32) -> Vec<Vec<u8>> {
    let frame = |number| {
        let mut frame = frames::numbered(STATION, SOMEBODY, number);
        frame.truncate(frames::SHORTEST);
        frame
    };
    (0..count).map(frame).collect()
}

/// The guest stays at work while it is overrun, and has fewer interrupts than
/// frames (Host/NIC software interface, words 630 to 640).
pub fn a_storm_of_small_frames(stage: &mut GuestStage) {
    const FRAMES: u32 = 20_000;
    stage
        .cable
        .settle(Duration::from_millis(200), Duration::from_secs(5));
    let (counts, interrupts) = (stage.link_counts(), stage.interrupts());
    let given = stage.cable.counts().to_card.frames;
    stage.cable.inject(small(FRAMES));
    let start = Instant::now();
    assert_eq!(stage.sh("echo alive"), "alive");
    let alive = start.elapsed();
    assert!(alive < Duration::from_secs(10), "an answer took {alive:?}");
    wait_for(Duration::from_secs(60), "end of the storm", || {
        stage.cable.injected()
    });
    stage
        .cable
        .settle(Duration::from_millis(300), Duration::from_secs(10));
    // The storm, and what the peer had to say meanwhile.
    let given = stage.cable.counts().to_card.frames - given;
    assert!(given >= u64::from(FRAMES), "{given} frames");
    stage.accounts_for(&counts, given);
    let (now, came) = (stage.link_counts(), stage.interrupts() - interrupts);
    let received = now.rx_packets - counts.rx_packets;
    assert!(received > 1000, "{received} received of {given}");
    assert!(
        came > 10 && came < received,
        "{came} interrupts for {received} frames"
    );
    stage.carries_traffic();
}

/// The PCI command register's bit that keeps INTx from being asserted, set and
/// cleared through the guest's kernel.
fn interrupts_off(stage: &GuestStage, off: bool) {
    // Command bits 15:8: interrupt disable is bit 10, SERR bit 8.
    let octet = if off { "005" } else { "001" };
    let config = "/sys/class/net/eth0/device/config";
    stage.sh(&format!(
        "printf '\\{octet}' | dd of={config} bs=1 seek=5 conv=notrunc 2>&1"
    ));
}

/// Frames given to the card and frames that the guest has received, with nothing between the
/// two: the peer may have a word to say at any time.
fn both_counts(stage: &GuestStage) -> (u64, u64) {
    loop {
        let given = stage.cable.counts().to_card.frames;
        let received = stage.link_counts().rx_packets;
        if stage.cable.counts().to_card.frames == given {
            return (given, received);
        }
        stage
            .cable
            .settle(Duration::from_millis(50), Duration::from_secs(5));
    }
}

/// What came meanwhile is delivered when they are let through again.
pub fn masked_interrupts_are_made_up_for(stage: &mut GuestStage) {
    // Fewer than acenic's standard and mini rings hold.
    const FRAMES: u32 = 40;
    for round in 0..20 {
        stage
            .cable
            .settle(Duration::from_millis(50), Duration::from_secs(5));
        let (given, received) = both_counts(stage);
        interrupts_off(stage, true);
        let (before, interrupts) = (stage.link_counts().rx_packets, stage.interrupts());
        stage.cable.inject(small(FRAMES));
        wait_for(Duration::from_secs(5), "room on the card", || {
            stage.cable.injected()
        });
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(stage.link_counts().rx_packets, before, "round {round}");
        assert_eq!(stage.interrupts(), interrupts, "round {round}");
        interrupts_off(stage, false);
        wait_for(Duration::from_secs(5), "frame that was kept", || {
            let given = stage.cable.counts().to_card.frames - given;
            given >= FRAMES.into() && stage.link_counts().rx_packets - received == given
        });
        assert!(stage.interrupts() > interrupts, "round {round}");
    }
    stage.carries_traffic();
}
