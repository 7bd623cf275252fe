//! Tests `cargo xtask sim-run --pcap IN --pcap-out OUT`: a capture through the simulated card, in
//! either direction: the same bytes in the same order, and the same file each time.

use host_driver::capture::{CapturedFrame, FrameReader, FrameWriter};
use integration_tests::{frames, stage};
use std::path::Path;
use std::time::Duration;
use testbed::conditions::DmaChannels;
use tigon_bench::replay::{Way, run};

/// Frames of all lengths, a millisecond's tenth apart, for somebody else's station.
fn capture(into: &Path) -> Vec<Vec<u8>> {
    let mut writer = FrameWriter::create(into).unwrap();
    let mut all = Vec::new();
    for number in 0..200_u32 {
        let length = frames::SHORTEST + number as usize * 7;
        let frame = frames::of_length(frames::PEER, [2, 0, 0, 0, 0, 9], number, length);
        let time = Duration::from_micros(5_000_000 + 100 * u64::from(number));
        writer.write(time, &frame).unwrap();
        all.push(frame);
    }
    writer.finish().unwrap();
    all
}

fn frames_of(path: &Path) -> Vec<CapturedFrame> {
    let mut reader = FrameReader::open(path).unwrap();
    std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
}

#[test]
fn a_capture_comes_through_whole_either_way() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.pcap");
    let went = capture(&input);
    let firmware = stage::firmware();
    for way in [Way::Out, Way::In] {
        let files = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name));
        let summaries =
            [0, 1].map(|n| run(&firmware, &input, &files[n], way, DmaChannels::Both).unwrap());
        assert_eq!(
            (summaries[0].frames_in, summaries[0].frames_out),
            (200, 200)
        );
        let came = frames_of(&files[0]);
        let bytes: Vec<_> = came.iter().map(|frame| frame.bytes.clone()).collect();
        assert!(bytes == went, "{way:?}: other bytes or another order");
        let span = came[199].time - came[0].time;
        match way {
            // 200 frames of 60 to 1453 bytes take 1.3 ms of wire.
            Way::Out => assert!((1..5).contains(&span.as_millis()), "{span:?}"),
            Way::In => assert!((19..22).contains(&span.as_millis()), "{span:?}"),
        }
        let [a, b] = files.map(|file| std::fs::read(file).unwrap());
        assert!(a == b, "{way:?}: the same run gives the same file");
        assert_eq!(summaries[0], summaries[1]);
    }
}
