//! Runs that do not end, and runs that panic: cut off, counted, and nothing left behind.

use crate::card::{self, Spine};
use host_interface::spine::{DomainCount, HandlerCount, Outcome};
use integration_tests::Engine;
use spine_linker::load::{Guard, LoadError};
use std::time::Duration;

/// Frames of this EtherType go to the handlers of the tests' extensions.
const OURS: u16 = 0x88B5;

/// Frames that the handler was cut off at, after which its domain is suspended.
const PATIENCE: u32 = 3;

#[test]
fn a_handler_that_never_returns_is_cut_off_and_its_frames_are_the_hosts() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("infinite"));
    spine.guards(&[Guard::ether_type(domain, 7, OURS)]);
    let sent: Vec<_> = (0..10).map(|number| spine.stage.inbound(number)).collect();
    for frame in &sent {
        spine.stage.engine.send(frame);
    }
    assert_eq!(spine.stage.receive(10), sent);
    assert_eq!(spine.count(domain, HandlerCount::Overruns), PATIENCE);
    assert_eq!(spine.count(domain, DomainCount::Suspended), 1);
    // Nothing that it asked for has happened.
    assert_eq!(spine.counters(domain), [0; 8]);
    assert_eq!(spine.count(domain, DomainCount::Transmitted), 0);
    assert_eq!(spine.stage.wire_now(), None);
    // The host lets it run again, and it has as much patience as before.
    let resumed = spine.loader.resume(&mut spine.card, domain);
    resumed.expect("it is loaded");
    for frame in &sent {
        spine.stage.engine.send(frame);
    }
    assert_eq!(spine.stage.receive(10), sent);
    assert_eq!(spine.count(domain, HandlerCount::Overruns), 2 * PATIENCE);
}

#[test]
fn the_domains_other_handlers_and_other_domains_go_on() {
    let mut spine = Spine::open();
    let bad = spine.load(&card::of_tests("infinite"));
    let good = spine.load(&card::of_tests("infinite"));
    assert_ne!(bad, good);
    spine.guards(&[Guard::ether_type(bad, 7, OURS), Guard::any(good, 6)]);
    for number in 0..20 {
        let frame = spine.stage.inbound(number);
        let mut other = frame.clone();
        other[13] += 1;
        spine.stage.engine.send(&frame);
        spine.stage.engine.send(&other);
    }
    assert_eq!(spine.stage.receive(20).len(), 20);
    assert_eq!(spine.count(good, DomainCount::Consumed), 20);
    assert_eq!(spine.counters(good)[6], 20);
    assert_eq!(spine.count(good, HandlerCount::Overruns), 0);
    assert_eq!(spine.count(bad, DomainCount::Suspended), 1);
}

#[test]
fn a_handler_that_hides_in_the_runtime_is_cut_off_too() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("importing"));
    spine.guards(&[Guard::ether_type(domain, 0, OURS)]);
    let frame = spine.stage.inbound(1);
    spine.stage.engine.send(&frame);
    assert_eq!(spine.stage.receive(1), [frame]);
    assert_eq!(spine.count(domain, HandlerCount::Overruns), 1);
}

#[test]
fn a_panic_ends_the_run_alone() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("panicking"));
    spine.guards(&[Guard::any(domain, 0)]);
    // The handler reads the word whose index is in bytes 14 and 15 of the frame.
    let mut sent = Vec::new();
    for index in [0u16, 20, 0, 0xFFFF, 0] {
        let mut frame = spine.stage.inbound(1);
        frame.resize(60, 1);
        frame[14..16].copy_from_slice(&index.to_be_bytes());
        spine.stage.engine.send(&frame);
        if index != 0 {
            sent.push(frame);
        }
    }
    assert_eq!(spine.stage.receive(2), sent, "those that were cut off");
    assert_eq!(spine.count(domain, HandlerCount::Panics), 2);
    assert_eq!(spine.count(domain, DomainCount::Consumed), 3);
    for _ in 0..3 {
        let frame = spine.stage.wire();
        assert_eq!(frame[14..16], [0, 0], "those that returned");
    }
    assert_eq!(spine.stage.wire_now(), None);
}

#[test]
fn an_init_that_never_ends_takes_only_its_domain_with_it() {
    let mut spine = Spine::open();
    let free = spine.loader.free();
    let error = spine.try_load(&card::of_tests("endless_init"));
    let error = error.expect_err("it does not end");
    assert!(
        matches!(error, LoadError::Refused(Outcome::InitCut)),
        "{error}"
    );
    assert_eq!(spine.loader.free(), free);
    spine.stage.engine.pass(Duration::from_millis(2));
    let domain = spine.load(&card::ours("echo"));
    spine.guards(&[Guard::ether_type(domain, 0, OURS)]);
    let frame = spine.stage.inbound(1);
    spine.stage.engine.send(&frame);
    assert_eq!(spine.stage.receive(1), [frame]);
}
