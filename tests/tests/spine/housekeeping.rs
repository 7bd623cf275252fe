//! CPU A's housekeeping while a domain is loaded.

use crate::card::kit;
use host_interface::gencom::Gencom;
use host_interface::spine::HandlerCount;
use spine_linker::load::{Card, Guard};
use tigon_bench::spine::card::SpineCard;
use tigon_bench::spine::frames;
use tigon2_chip::Register;
use tigon2_chip::bits::MiscHostControl;
use tigon2_chip::events::EventBit;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::Activity;

/// A card with a domain, or without.
fn card(loads: bool) -> SpineCard {
    let mut card = SpineCard::start(kit(), Some(Parameters::default())).expect("a card");
    if loads {
        load(&mut card, "firmware/spine/extensions/echo");
    }
    card.machine.pass(20_000_000);
    card
}

/// Loads the extension in a folder; returns its domain.
fn load(card: &mut SpineCard, folder: &str) -> u32 {
    let container = kit().container(folder.as_ref()).expect("it builds");
    let policy = kit().policy(10, 3).expect("a policy");
    let (domain, _) = card.load(kit(), &container, &policy).expect("it is loaded");
    domain
}

/// How often CPU A's timer event was handled.
fn turns(card: &SpineCard) -> u64 {
    let machine = card.machine.lock();
    let timed = machine.timing().expect("a card with a time");
    let timer = Activity::Handler(EventBit::Timer as u8);
    timed.pipelines[0].counts.tally(timer).runs
}

/// It is done each millisecond, and with a domain each hundredth of a second.
#[test]
fn it_rests_while_a_domain_is_loaded() {
    for (loads, wanted) in [(false, 95..=105), (true, 9..=13)] {
        let card = card(loads);
        let before = turns(&card);
        card.machine.pass(100_000_000);
        let turns = turns(&card) - before;
        assert!(wanted.contains(&turns), "{loads}: {turns}");
    }
}

/// A handler that gets frames faster than it consumes them does not keep CPU A from it.
#[test]
fn frames_without_a_pause_do_not_keep_it_off() {
    let mut card = SpineCard::start(kit(), Some(Parameters::default())).expect("a card");
    let domain = load(&mut card, "tests/extensions/empty");
    let all = Guard::any(domain, 0);
    card.guards(&[all]).expect("a guard");
    let frame = frames::plain(card.nic.station(), frames::PEER, 0x88B5, 1, 60);
    let (before, runs) = (turns(&card), card.counts(domain).of(HandlerCount::Runs));
    for _ in 0..50 {
        {
            let mut machine = card.machine.lock();
            let now = machine.now();
            for at in (now..now + 1_000_000).step_by(3_000) {
                machine.send_frame(at, frame.clone());
            }
        }
        card.machine.pass(1_000_000);
    }
    let runs = card.counts(domain).of(HandlerCount::Runs) - runs;
    assert!(runs > 9_000, "{runs}");
    let turns = turns(&card) - before;
    assert!((4..=7).contains(&turns), "{turns}");
}

/// An interrupt that the host has masked comes within a millisecond after it has unmasked it, at
/// whatever time of the rest that is.
#[test]
fn what_waits_has_it_done_soon() {
    let mut card = card(true);
    let mask = Gencom::MaskInterrupts.nic_address();
    for number in 0..20 {
        card.window.write(mask, &[1]).expect("memory");
        let frame = frames::plain(card.nic.station(), frames::PEER, 0x88B6, number, 60);
        {
            let mut machine = card.machine.lock();
            let now = machine.now();
            machine.send_frame(now, frame.clone());
        }
        card.machine.pass(1_700_000);
        assert!(!card.machine.lock().interrupt(), "{number}: it is masked");
        card.window.write(mask, &[0]).expect("memory");
        card.machine.pass(1_100_000);
        {
            let mut machine = card.machine.lock();
            assert!(machine.interrupt(), "{number}");
            let control = Register::MiscHostControl.offset();
            let clear = MiscHostControl::new().with_clear_interrupt(true);
            let value = machine.bar_read(control) | clear.into_bits();
            machine.bar_write(control, value);
        }
        card.nic.service().expect("a card");
        assert_eq!(card.nic.receive_batch(2).expect("a frame"), [frame]);
        card.machine.pass(u64::from(number) * 700_000);
    }
}
