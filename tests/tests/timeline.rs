//! Tests recordings of the real firmware under load: complete, free of overlaps, repeatable, and
//! without influence on the run.

use host_driver::nic::Coalescing;
use integration_tests::stage;
use std::collections::{BTreeSet, HashMap};
use std::io::IoSlice;
use testbed::firmware::choice::{self, Variant};
use tigon_bench::trace::handlers;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_model::Board;
use tigon2_sim::timeline::capture::{Subject, Window};
use tigon2_sim::timeline::event::Event;
use tigon2_sim::timeline::packets::{self, Packet, Stage};
use tigon2_sim::timeline::tracks::{Track, boxes};
use tigon2_sim::timeline::{LIMIT, Recorder, Timeline, number, page, picture, trace_events};
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::datagram::Flow;
use tigon2_sim::workload::experiment::Experiment;
use tigon2_sim::workload::knet::cost::Sorter;
use tigon2_sim::workload::knet::flows::{Flows, Version};
use tigon2_sim::workload::knet::recording;
use tigon2_sim::workload::knet::reference::Reference;
use tigon2_sim::workload::knet::sorting::FLOWS;
use tigon2_sim::workload::testbench::{Load, Reading, Setup, Testbench};

const FRAMES: u64 = 40;
const COALESCING: Coalescing = Coalescing {
    receive_ticks: 170,
    transmit_ticks: 400,
    statistics_ticks: 1_000_000,
    max_transmit_bds: 16,
    max_receive_bds: 8,
};

/// 40 frames each way on the timed card, and silence until the host has heard of them all.
fn run(limit: Option<usize>, fragments: u32) -> (Option<Timeline>, Reading, u64) {
    let firmware = stage::firmware();
    let setup = Setup {
        seed: 7,
        fragments,
        coalescing: COALESCING,
        ..Setup::new(Board::default(), Parameters::default(), &firmware)
    };
    let mut testbench = Testbench::start(&setup).expect("a card");
    if let Some(limit) = limit {
        let recorder = Recorder::new(limit, number::of_datagram);
        testbench.machine().lock().record(recorder);
    }
    let mut out = testbench.outbound(600).expect("a size");
    let mut into = testbench.inbound(300).expect("a size");
    let start = testbench.now();
    for n in 0..FRAMES {
        testbench
            .machine()
            .lock()
            .send_frame(start + 40_000 * n, into.frame());
        queue(&mut testbench, &mut out, fragments);
        if n % 3 == 0 {
            testbench.nic().submit().expect("a doorbell");
        }
        testbench
            .run(&mut Load::default(), 30_000)
            .expect("a card that runs");
    }
    testbench.nic().submit().expect("a doorbell");
    testbench
        .run(&mut Load::default(), 3_000_000)
        .expect("a card that runs");
    let reading = testbench.reading();
    let now = testbench.now();
    let timeline = testbench.machine().lock().recorded();
    (timeline, reading, now)
}

fn queue(testbench: &mut Testbench, flow: &mut Flow, fragments: u32) {
    let frame = flow.frame();
    let (headers, payload) = frame.split_at(42);
    let parts = [IoSlice::new(headers), IoSlice::new(payload)];
    let whole = [IoSlice::new(&frame)];
    let parts = if fragments > 1 {
        &parts[..]
    } else {
        &whole[..]
    };
    assert!(
        testbench.nic().queue(parts).expect("a frame"),
        "there is room"
    );
}

fn recorded(fragments: u32) -> Timeline {
    run(Some(LIMIT), fragments).0.expect("a recording")
}

/// SPINE, section 6, Figure 6: the way of each packet is there, from its mailbox write to
/// the interrupt and from the wire to it, and causes come before effects.
#[test]
fn every_frame_is_followed_from_end_to_end() {
    for fragments in [1, 2] {
        let timeline = recorded(fragments);
        let packets = packets::follow(&timeline);
        for outgoing in [true, false] {
            let numbers: Vec<_> = packets
                .iter()
                .filter(|packet| packet.outgoing == outgoing)
                .map(|packet| packet.number)
                .collect();
            let all: Vec<_> = (0..FRAMES).map(Some).collect();
            assert_eq!(numbers, all, "each frame once, in order");
        }
        for packet in &packets {
            check(packet, fragments as usize);
        }
    }
}

fn check(packet: &Packet, fragments: usize) {
    let name = packet.name();
    assert!(packet.complete, "{packet:?}");
    let count = |stage| {
        packet
            .steps
            .iter()
            .filter(|step| step.stage == stage)
            .count()
    };
    let stages: &[(Stage, usize)] = if packet.outgoing {
        &[
            (Stage::Mailbox, 1),
            (Stage::Fetch, 1),
            (Stage::Data, fragments),
            (Stage::Mac, 1),
            (Stage::Consumer, 1),
            (Stage::Index, 1),
            (Stage::Interrupt, 1),
        ]
    } else {
        &[
            (Stage::Mac, 1),
            (Stage::Data, 1),
            (Stage::Return, 1),
            (Stage::Index, 1),
            (Stage::Interrupt, 1),
        ]
    };
    for (stage, expected) in stages {
        assert_eq!(count(*stage), *expected, "{name}: {stage:?}");
    }
    assert!(count(Stage::Handler) >= 2, "{name}: handlers worked on it");
    assert_eq!(packet.length, if packet.outgoing { 642 } else { 342 });
    for step in &packet.steps {
        let Some(cause) = step.after.map(|place| packet.steps[place]) else {
            continue;
        };
        assert!(
            cause.span.start <= step.span.start,
            "{name}: {cause:?} causes {step:?}"
        );
    }
}

/// A CPU, a channel, the bus, a side of the MAC do one thing at a time; a handler's cycles
/// by cause are the cycles that it took.
#[test]
fn what_one_does_never_overlaps_and_adds_up() {
    let timeline = recorded(2);
    let packets = packets::follow(&timeline);
    let boxes = boxes(&timeline, &packets);
    for track in Track::ALL {
        let spans: Vec<_> = boxes.iter().filter(|one| one.track == track).collect();
        let idle = track == Track::CpuB && choice::chosen().0 == Variant::Uniprocessor;
        assert_eq!(spans.is_empty(), idle, "{track:?}");
        for pair in spans.windows(2) {
            assert!(pair[0].span.end <= pair[1].span.start, "{pair:?}");
        }
    }
    let mut runs = 0;
    for event in &timeline.events {
        if let Event::Run(run) = event {
            assert_eq!(run.tally.total(), run.span.cycles(), "{run:?}");
            runs += 1;
        }
    }
    assert!(runs > 4 * FRAMES, "{runs}");
}

/// A recording changes not one cycle of what it records.
#[test]
fn recording_changes_nothing() {
    let figures = |limit| {
        let (_, reading, now) = run(limit, 2);
        (
            (reading.cycle, now, reading.instructions, reading.pci_busy),
            (reading.sent, reading.received, reading.dropped),
            (reading.counts, reading.grants),
        )
    };
    let without = figures(None);
    assert_eq!(without.1, (FRAMES, FRAMES, 0));
    assert!(without == figures(Some(LIMIT)));
    assert!(without == figures(Some(50)));
}

/// Two runs give the same bytes; what does not fit is counted.
#[test]
fn two_recordings_are_equal_and_bounded() {
    let write = |timeline: &Timeline| {
        let packets = packets::follow(timeline);
        let trace = trace_events::write(timeline, &packets).expect("a trace");
        {
            let page = page::write(timeline, &packets, "a page").expect("a page");
            (trace, page, picture::write(timeline, &packets, "a picture"))
        }
    };
    let (first, second) = (recorded(2), recorded(2));
    assert!(write(&first) == write(&second));
    assert_eq!(first.left_out, 0);

    let (short, ..) = run(Some(100), 2);
    let short = short.expect("a recording");
    assert_eq!(short.events.len(), 100);
    assert_eq!(short.left_out as usize, first.events.len() - 100);
    assert!(short.from > first.from);
    write(&short);
}

/// Handlers bear the firmware's own names, which its jump tables lead to.
#[test]
fn handlers_are_called_as_in_the_firmware() {
    let elf = std::fs::read(stage::elf()).expect("the ELF");
    let names = handlers::names(&elf).expect("an ELF");
    let find = |event: EventBit| {
        let of_event = |cpu: Cpu| names.get(&(cpu.index(), event as u8));
        Cpu::ALL.into_iter().find_map(of_event).map(String::as_str)
    };
    assert_eq!(find(EventBit::SendDataReady), Some("send_data_ready"));
    assert_eq!(find(EventBit::ReceiveComplete), Some("receive_complete"));
    let mut timeline = recorded(1);
    timeline.handlers = names.clone();
    let boxes = boxes(&timeline, &[]);
    for (cpu, track) in [(Cpu::A, Track::CpuA), (Cpu::B, Track::CpuB)] {
        let of_cpu = |name: &str| {
            names
                .iter()
                .any(|(key, it)| key.0 == cpu.index() && it == name)
        };
        for one in boxes.iter().filter(|one| one.track == track) {
            assert!(of_cpu(&one.kind), "{one:?}");
        }
    }
    assert!(handlers::names(b"no ELF").is_err());
}

/// The Trace Event format: valid JSON; each flow starts once, ends once, and lies in slices.
#[test]
fn the_trace_events_are_what_viewers_read() {
    let timeline = recorded(2);
    let packets = packets::follow(&timeline);
    let text = trace_events::write(&timeline, &packets).expect("a trace");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let mut slices = Vec::new();
    let mut flows: HashMap<u64, Vec<&str>> = HashMap::new();
    for event in events {
        if event["ph"] == "X" {
            let [ts, dur] = ["ts", "dur"].map(|key| event[key].as_f64().expect("a time"));
            assert!(ts >= 0.0 && dur >= 0.0);
            slices.push((event["tid"].as_u64(), ts, ts + dur));
        }
    }
    for event in events {
        let phase = event["ph"].as_str().expect("a phase");
        if let Some(id) = event["id"].as_u64() {
            flows.entry(id).or_default().push(phase);
            let (tid, ts) = (event["tid"].as_u64(), event["ts"].as_f64().expect("a time"));
            let inside =
                |slice: &&(Option<u64>, f64, f64)| slice.0 == tid && slice.1 <= ts && ts <= slice.2;
            assert!(slices.iter().any(|slice| inside(&slice)), "{event}");
        }
    }
    assert_eq!(flows.len(), 2 * FRAMES as usize);
    for phases in flows.values() {
        let count = |phase| phases.iter().filter(|one| **one == phase).count();
        assert_eq!((count("s"), count("f")), (1, 1), "{phases:?}");
        assert_eq!((phases.first(), phases.last()), (Some(&"s"), Some(&"f")));
    }
}

/// In queue mode each received frame is followed through the rings and the status line of its queue,
/// and shows the queue and the hash that an independent reference has for it.
#[test]
fn received_frames_show_their_queue_and_hash() {
    const QUEUES: u8 = 4;
    const BYTES: usize = 200;
    let firmware = stage::firmware();
    let setup = Setup::new(Board::default(), Parameters::default(), &firmware);
    let settings = Sorter::Toeplitz.settings(QUEUES);
    let subject = Subject {
        rate: Some(100_000.0),
        ..Subject::new(Experiment::Receive, BYTES)
    };
    let window = Window {
        from: 300_000,
        to: 1_300_000,
    };
    let timeline =
        recording::capture_sorted(&setup, &settings, subject, window).expect("a recording");
    let shown = timeline.shown;
    let packets = packets::on_wire_in(packets::follow(&timeline), shown);
    assert!(packets.len() > 80, "{}", packets.len());
    let classification = &settings.classification;
    let mut table = [0; 128];
    table.copy_from_slice(classification.table(QUEUES).entries());
    let reference = Reference {
        kind: classification.kind,
        queues: QUEUES.into(),
        types: classification.hash_types,
        key: classification.key.0,
        table,
    };
    // Where a flow goes does not depend on the card's address.
    let mut flows = Flows::new(FLOWS, [2; 6], Version::Four, BYTES, 1);
    let expected: BTreeSet<_> = (0..20 * FLOWS)
        .map(|_| reference.classify(&flows.frame(), &mut 0))
        .map(|expected| (expected.queue as u8, expected.hash_type, expected.hash))
        .collect();
    assert_eq!(expected.len(), FLOWS);
    let mut queues = BTreeSet::new();
    for packet in &packets {
        assert!(packet.complete, "{packet:?}");
        let verdict = packet.verdict.expect("a frame that was sorted");
        let found = (verdict.queue, verdict.hash_type, verdict.hash);
        assert!(expected.contains(&found), "{verdict}");
        assert!(packet.name().ends_with(&verdict.to_string()));
        queues.insert(verdict.queue);
    }
    assert_eq!(queues.len(), usize::from(QUEUES));
    let text = trace_events::write(&timeline, &packets).expect("plain text");
    assert!(text.contains("(UdpIpv4)") && text.contains("status line"));
}
