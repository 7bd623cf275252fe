//! Messages of the driver's process to handlers.

use crate::card::{self, CardError, Spine};
use host_interface::spine::rings::DRIVER;
use host_interface::spine::{DomainCount, HandlerCount, Outcome};
use integration_tests::Engine;
use spine_linker::load::{Guard, LoadError};

/// EtherType of the frames that the stage makes.
const OURS: u16 = 0x88B5;

fn send(
    spine: &mut Spine,
    domain: u32,
    handler: u8,
    arguments: &[u32],
) -> Result<(), LoadError<CardError>> {
    spine
        .loader
        .send(&mut spine.card, domain, handler, arguments)
}

fn region(spine: &mut Spine, domain: u32) -> [u32; 3] {
    let mut words = [0; 3];
    let read = spine
        .loader
        .read_region(&mut spine.card, domain, 0, &mut words);
    read.expect("it is loaded");
    words
}

#[test]
fn a_handler_gets_each_message_with_all_its_arguments() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("summing"));
    for count in [0, 1, 2, 17, 59, 60u32] {
        let arguments: Vec<u32> = (0..count).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
        let sum = arguments
            .iter()
            .fold(0, |sum: u32, word| sum.wrapping_add(*word));
        send(&mut spine, domain, 0, &arguments).expect("it runs");
        assert_eq!(region(&mut spine, domain), [sum, DRIVER, count]);
    }
    assert_eq!(spine.counters(domain)[0], 6);
    assert_eq!(spine.count(domain, HandlerCount::Runs), 6);
}

#[test]
fn a_message_that_cannot_be_delivered_is_refused_by_name() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("summing"));
    let refused = send(&mut spine, domain, 0, &[0; 61]);
    assert!(
        matches!(refused, Err(LoadError::TooMany { count: 61, .. })),
        "{refused:?}"
    );
    let nobody = send(&mut spine, domain, 5, &[]);
    assert!(
        matches!(nobody, Err(LoadError::Refused(Outcome::NoHandler))),
        "{nobody:?}"
    );
    let nobody = send(&mut spine, domain, 200, &[]);
    assert!(
        matches!(nobody, Err(LoadError::Refused(Outcome::NoHandler))),
        "{nobody:?}"
    );
    let nowhere = send(&mut spine, 3, 0, &[]);
    assert!(
        matches!(nowhere, Err(LoadError::NotLoaded(3))),
        "{nowhere:?}"
    );
    assert_eq!(spine.count(domain, HandlerCount::Runs), 0);
}

#[test]
fn a_message_whose_handler_never_returns_is_answered_all_the_same() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("summing"));
    for overruns in 1..=3 {
        let cut = send(&mut spine, domain, 1, &[1]);
        assert!(
            matches!(cut, Err(LoadError::Refused(Outcome::Cut))),
            "{cut:?}"
        );
        assert_eq!(spine.count(domain, HandlerCount::Overruns), overruns);
    }
    let suspended = send(&mut spine, domain, 0, &[1]);
    assert!(
        matches!(suspended, Err(LoadError::Refused(Outcome::Cut))),
        "{suspended:?}"
    );
    let resumed = spine.loader.resume(&mut spine.card, domain);
    resumed.expect("it is loaded");
    send(&mut spine, domain, 0, &[1, 2]).expect("it runs again");
    assert_eq!(region(&mut spine, domain)[0], 3);
    assert_eq!(
        spine.counters(domain)[1],
        0,
        "what was cut off has counted nothing"
    );
}

#[test]
fn a_message_has_a_kept_frame_go_out() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("keeping"));
    spine.guards(&[Guard::ether_type(domain, 2, OURS)]);
    let frame = spine.stage.inbound(5);
    spine.stage.engine.send(&frame);
    for _ in 0..1000 {
        if spine.count(domain, HandlerCount::Runs) == 1 {
            break;
        }
        spine.stage.engine.machine().lock().run(500);
    }
    for _ in 0..20 {
        send(&mut spine, domain, 1, &[]).expect("it runs");
        assert_eq!(spine.stage.wire(), frame);
    }
    assert_eq!(spine.count(domain, DomainCount::Transmitted), 20);
}
