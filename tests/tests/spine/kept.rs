//! Frames that an extension keeps: counted references, and a ledger that gets all of them back.

use crate::card::{self, Spine};
use host_interface::extension::Extension;
use host_interface::spine::{BlockWord, DomainCount, HandlerCount};
use integration_tests::Engine;
use spine_linker::load::{Card, Guard};
use tigon_firmware::memory::layout::POOL_SLOTS;

/// EtherType of the frames that the stage makes.
const OURS: u16 = 0x88B5;
/// Frames that a domain keeps at most.
const MOST: u32 = 4;

/// How many frames a domain keeps, and how many slots of the pool are free.
fn ledger(spine: &mut Spine, domain: u32) -> (u32, u32) {
    let mut word = |at| {
        let mut out = [0];
        spine.card.read(at, &mut out).expect("the card");
        out[0]
    };
    let block = word(Extension::Spine.nic_address());
    let kept = word(block + BlockWord::Kept as u32 + 4 * domain);
    (kept.count_ones(), word(block + BlockWord::FreeSlots as u32))
}

/// Sends a frame to a handler and lets the card work; the guards are those of this handler.
fn hand(spine: &mut Spine, domain: u32, handler: u8, number: u32) -> Vec<u8> {
    spine.guards(&[Guard::ether_type(domain, handler, OURS)]);
    let frame = spine.stage.inbound(number);
    let runs = spine.count(domain, HandlerCount::Runs);
    spine.stage.engine.send(&frame);
    for _ in 0..1000 {
        if spine.count(domain, HandlerCount::Runs) != runs {
            break;
        }
        spine.stage.engine.machine().lock().run(500);
    }
    assert_eq!(spine.count(domain, HandlerCount::Runs), runs + 1, "one run");
    spine.stage.engine.machine().lock().run(4000);
    frame
}

#[test]
fn a_kept_frame_goes_out_as_often_as_it_is_asked_for() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("keeping"));
    let mut expected = hand(&mut spine, domain, 0, 7);
    expected[14..16].copy_from_slice(b"KE");
    assert_eq!(spine.stage.wire(), expected, "as it was changed");
    assert_eq!(ledger(&mut spine, domain).0, 1);
    for number in 0..30 {
        hand(&mut spine, domain, 1, 100 + number);
        assert_eq!(spine.stage.wire(), expected);
    }
    assert_eq!(spine.count(domain, DomainCount::Transmitted), 31);
    assert_eq!(ledger(&mut spine, domain).0, 1, "still kept");
    spine
        .loader
        .unload(&mut spine.card, domain)
        .expect("loaded");
    assert_eq!(ledger(&mut spine, domain), (0, POOL_SLOTS));
}

#[test]
fn a_domain_keeps_so_many_frames_and_no_more_and_all_come_back() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("keeping"));
    for round in 0..5 {
        for number in 0..MOST + 3 {
            hand(&mut spine, domain, 2, number);
            let (kept, free) = ledger(&mut spine, domain);
            assert_eq!(kept, MOST.min(number + 1), "round {round}");
            assert_eq!(free, POOL_SLOTS - kept);
        }
        // One run gives them all back, but there is no room for its own frame yet.
        hand(&mut spine, domain, 0, 50);
        let _ = spine.stage.wire();
        assert_eq!(ledger(&mut spine, domain).0, 0);
        hand(&mut spine, domain, 2, 51);
        // The next one does both.
        hand(&mut spine, domain, 0, 52);
        let _ = spine.stage.wire();
        assert_eq!(ledger(&mut spine, domain).0, 1);
        spine
            .loader
            .unload(&mut spine.card, domain)
            .expect("loaded");
        assert_eq!(ledger(&mut spine, domain), (0, POOL_SLOTS));
        assert_eq!(spine.load(&card::of_tests("keeping")), domain);
    }
}

#[test]
fn a_kept_frame_is_read_by_who_keeps_it_and_by_nobody_else() {
    let mut spine = Spine::open();
    let keeper = spine.load(&card::of_tests("keeping"));
    let other = spine.load(&card::of_tests("keeping"));
    for number in 0..3 {
        hand(&mut spine, keeper, 2, number);
    }
    // One of the three is the same.
    hand(&mut spine, keeper, 3, 1);
    assert_eq!(spine.counters(keeper)[2], 1);
    hand(&mut spine, other, 4, 9);
    assert_eq!(
        spine.count(other, DomainCount::Dropped),
        0,
        "all is refused"
    );
    assert_eq!(spine.count(other, DomainCount::Consumed), 1);
    assert_eq!(ledger(&mut spine, keeper), (3, POOL_SLOTS - 3));
    assert_eq!(spine.stage.wire_now(), None);
}

#[test]
fn a_suspended_domain_keeps_nothing() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::of_tests("keeping"));
    for number in 0..MOST {
        hand(&mut spine, domain, 2, number);
    }
    assert_eq!(ledger(&mut spine, domain), (MOST, POOL_SLOTS - MOST));
    // It asks for another one, and is cut off: that is not kept.
    spine.guards(&[Guard::ether_type(domain, 7, OURS)]);
    let sent: Vec<_> = (0..3).map(|number| spine.stage.inbound(number)).collect();
    for frame in &sent {
        spine.stage.engine.send(frame);
    }
    assert_eq!(spine.stage.receive(3), sent);
    assert_eq!(spine.count(domain, DomainCount::Suspended), 1);
    assert_eq!(ledger(&mut spine, domain), (0, POOL_SLOTS));
}
