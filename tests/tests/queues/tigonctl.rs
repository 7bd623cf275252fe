//! Tests `tigonctl bridge --queues` on a card under QEMU, and the verbs that inspect it.

use host_driver::peer::DatagramWire;
use integration_tests::engine::tools;
use integration_tests::tigonctl::{complaint, objects, program, said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};
use testbed::net::namespace;
use tigon2_sim::workload::knet::random::RandomFrames;

/// How long frames may take.
const PATIENCE: Duration = Duration::from_secs(30);
const FRAMES: u64 = 200;

#[test]
fn a_bridge_with_queues_is_looked_at_and_changed() {
    if !namespace::for_test() {
        return;
    }
    let tools = tools();
    let card = Card::start(&tools, &CardOptions::default());
    let card = card.unwrap_or_else(|error| panic!("{error:#}"));
    let mut wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card()).expect("a socket");
    let folder = tempfile::tempdir().expect("a folder");
    let status = folder.path().join("status");
    let tap = format!("tgq{}", std::process::id());
    let mut bridge = Command::new(program())
        .arg("--json")
        .arg("--socket")
        .arg(card.socket())
        .args(["bridge", "--queues", "2", "--defer-polls", "4", "--up"])
        .args(["--tap", &tap, "--status"])
        .arg(&status)
        .arg("--firmware")
        .arg(&tools.firmware.tg2)
        .stdout(Stdio::piped())
        .spawn()
        .expect("tigonctl runs");
    let mut lines = BufReader::new(bridge.stdout.take().expect("a pipe")).lines();
    let ready = lines.next().expect("it says something").expect("text");
    let ready: Value = serde_json::from_str(&ready).expect("an object");
    assert_eq!(
        (&ready["kind"], &ready["tap"]),
        (&"ready".into(), &tap.as_str().into())
    );
    let station = ready["station"].as_str().expect("an address");
    let station: Vec<u8> = station
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).expect("digits"))
        .collect();

    let ask = |words: &[&str]| -> Output {
        let mut command = Command::new(program());
        command.arg("--attach").arg(&status).args(words);
        command.output().expect("tigonctl runs")
    };
    let mut random = RandomFrames::new(3);
    for _ in 0..FRAMES {
        let mut frame = random.frame();
        frame.resize(frame.len().max(60), 0);
        frame[..6].copy_from_slice(&station);
        // A datagram socket holds only so many.
        while !wire.send_frame(&frame).expect("the card is there") {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let end = Instant::now() + PATIENCE;
    let queues = loop {
        let all = objects(&ask(&["--json", "queues", "--interval", "0.05"]));
        let queues = all[0]["queues"].as_array().expect("queues").clone();
        let frames = queues
            .iter()
            .map(|queue| queue["frames"].as_u64().expect("a count"));
        if frames.sum::<u64>() >= FRAMES {
            break queues;
        }
        assert!(Instant::now() < end, "{queues:?}");
    };
    assert_eq!(queues.len(), 2);
    for queue in &queues {
        assert!(
            queue["frames"].as_u64() > Some(10) && queue["served"] == true,
            "{queue}"
        );
        assert!(queue["cpu"].is_u64(), "{queue}");
    }
    let said_of = said(&ask(&["queues", "--interval", "0.01"]));
    assert!(said_of.contains("interr./s"), "{said_of}");

    assert!(said(&ask(&["rss", "show"])).contains("0: 64, 1: 64"));
    assert!(said(&ask(&["rss", "set", "weights", "3,1"])).contains("0: 96, 1: 32"));
    assert!(said(&ask(&["rss", "show"])).contains("0: 96, 1: 32"));
    let flow = [
        "rss",
        "explain",
        "10.84.0.2:4000",
        "10.84.0.1:80",
        "--to",
        "1",
    ];
    assert!(said(&ask(&flow)).contains(": queue 1: hash "));
    for (words, reason) in [
        (
            &["rss", "set", "key", "6d5a"][..],
            "a key has 40 bytes, not 2",
        ),
        (
            &["rss", "set", "table", "0,2"],
            "table entry 1 names a queue",
        ),
        (
            &["rss", "set", "weights", "1,2,3"],
            "3 weights for 2 queues",
        ),
        (&["rss", "set", "fields", "sctp"], "sctp is no type of hash"),
        (
            &["rss", "set", "classifier", "best"],
            "best is no classifier",
        ),
    ] {
        let complaint = complaint(&ask(words));
        assert!(complaint.contains(reason), "{words:?}: {complaint}");
    }
    let pid = Pid::from_child(&bridge);
    kill_process(pid, Signal::INT).expect("it is ours");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(bridge.wait().expect("it ends").success(), "{rest:?}");
    let report: Value = serde_json::from_str(&rest[0]).expect("an object");
    assert_eq!(report["kind"], "bridge");
    assert_eq!(
        report["threads"].as_array().map(Vec::len),
        Some(2),
        "{report}"
    );
    assert!(report["to_tap"].as_u64() >= Some(FRAMES / 2), "{report}");
}
