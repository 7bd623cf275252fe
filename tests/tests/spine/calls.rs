//! Extensions that call each other: what comes back, whose cut it is, who may go.

use crate::card::{self, CardError, Spine};
use crate::cuts::{Places, cut, what_came};
use host_interface::spine::{DomainCount, HandlerCount, Outcome};
use integration_tests::Engine;
use spine_linker::link::LinkError;
use spine_linker::load::{Guard, LoadError};
use spine_linker::policy::Policy;

/// The handlers of `calling`, by what they ask for.
const SUM: u8 = 0;
const ENDLESS: u8 = 1;
const PANIC: u8 = 2;
const AGAIN: u8 = 3;
const LATE: u8 = 4;
/// What the gate says.
const CALLED: u32 = 0;
const ABSENT: u32 = 1;
const FULL: u32 = 2;
/// EtherType of the frames that the stage makes.
const OURS: u16 = 0x88B5;

/// A card with both extensions: `numbers` and `calling`.
struct Two {
    spine: Spine,
    numbers: u32,
    calling: u32,
}

impl Two {
    fn open() -> Two {
        Two::by(&card::policy())
    }

    fn by(policy: &Policy) -> Two {
        Two::on(Spine::open(), policy)
    }

    fn on(mut spine: Spine, policy: &Policy) -> Two {
        let [numbers, calling] = ["numbers", "calling"].map(|name| {
            let loaded = spine.load_by(&card::of_tests(name), policy);
            loaded.unwrap_or_else(|error| panic!("{error}"))
        });
        Two {
            spine,
            numbers,
            calling,
        }
    }

    fn ask(&mut self, handler: u8, arguments: &[u32]) -> Result<(), LoadError<CardError>> {
        let Spine { card, loader, .. } = &mut self.spine;
        loader.send(card, self.calling, handler, arguments)
    }

    fn is_cut(&mut self, handler: u8, arguments: &[u32]) {
        let cut = self.ask(handler, arguments);
        assert!(
            matches!(cut, Err(LoadError::Refused(Outcome::Cut))),
            "{cut:?}"
        );
    }

    /// The word that came back last, and what the gate said.
    fn answer(&mut self) -> [u32; 2] {
        let mut words = [0; 2];
        let Spine { card, loader, .. } = &mut self.spine;
        let read = loader.read_region(card, self.calling, 0, &mut words);
        read.expect("it is loaded");
        words
    }

    /// Of both domains: runs, overruns, panics, and whether they are suspended.
    fn counts(&mut self) -> [[u32; 4]; 2] {
        [self.numbers, self.calling].map(|domain| {
            let counts = self.spine.counts(domain);
            [
                counts.of(HandlerCount::Runs),
                counts.of(HandlerCount::Overruns),
                counts.of(HandlerCount::Panics),
                counts.of(DomainCount::Suspended),
            ]
        })
    }
}

#[test]
fn a_procedure_answers_from_its_own_region() {
    let mut two = Two::open();
    for count in 1..=3 {
        two.ask(SUM, &[count, 20, 0x8000_0000]).expect("it runs");
        assert_eq!(two.answer(), [count + 20 + 0x8000_0000, CALLED]);
        let mut words = [0; 2];
        let Spine { card, loader, .. } = &mut two.spine;
        let read = loader.read_region(card, two.numbers, 0, &mut words);
        read.expect("it is loaded");
        assert_eq!(words, [count, two.calling], "calls, and who has called");
    }
    assert_eq!(two.counts(), [[3, 0, 0, 0], [3, 0, 0, 0]]);
}

#[test]
fn a_procedure_that_never_returns_is_its_own_domains_cut() {
    let mut two = Two::open();
    for overruns in 1..=3 {
        two.is_cut(ENDLESS, &[]);
        let suspended = u32::from(overruns == 3);
        let expected = [[overruns, overruns, 0, suspended], [overruns, 0, 0, 0]];
        assert_eq!(two.counts(), expected);
    }
    assert_eq!(two.spine.counters(two.calling)[1], 0, "the run is cut off");
    // The caller goes on, and is told.
    two.ask(ENDLESS, &[]).expect("it runs");
    assert_eq!(two.answer(), [0, ABSENT]);
    let Spine { card, loader, .. } = &mut two.spine;
    let resumed = loader.resume(card, two.numbers);
    resumed.expect("it is loaded");
    two.ask(SUM, &[1, 2, 3]).expect("it runs");
    assert_eq!(two.answer(), [6, CALLED]);
}

#[test]
fn a_procedure_that_panics_is_its_own_domains_cut() {
    let mut two = Two::open();
    two.ask(PANIC, &[2]).expect("it runs");
    assert_eq!(two.answer(), [3, CALLED]);
    two.is_cut(PANIC, &[3]);
    assert_eq!(two.counts(), [[2, 0, 1, 0], [2, 0, 0, 0]]);
    // What follows in the same domain is not affected.
    two.ask(SUM, &[4, 5, 0]).expect("it runs");
    assert_eq!(two.answer(), [9, CALLED]);
}

#[test]
fn a_run_has_a_bound_of_calls() {
    let mut two = Two::by(&card::policy_with_time(100));
    two.ask(AGAIN, &[15]).expect("it runs");
    assert_eq!(two.answer(), [14, CALLED]);
    two.ask(AGAIN, &[16]).expect("it runs");
    assert_eq!(two.answer(), [0, FULL]);
    assert_eq!(two.counts(), [[30, 0, 0, 0], [2, 0, 0, 0]]);
}

#[test]
fn a_caller_that_calls_too_late_is_to_blame() {
    let mut two = Two::open();
    // The tests' policy gives 10 us to each: 5 of the caller's are left.
    two.is_cut(LATE, &[5]);
    let [numbers, calling] = two.counts();
    assert_eq!(numbers[1..], [0, 0, 0], "it was not given its own time");
    assert_eq!(calling[1..], [1, 0, 0]);
    // And a caller that is over its time when it calls.
    two.is_cut(LATE, &[100]);
    let [numbers, calling] = two.counts();
    assert_eq!((numbers[1], calling[1]), (0, 2));
}

#[test]
fn frames_pass_a_handler_that_calls() {
    let mut two = Two::open();
    let guard = Guard::ether_type(two.calling, ENDLESS, OURS);
    two.spine.guards(&[guard]);
    let sent: Vec<_> = (0..5).map(|n| two.spine.stage.inbound(n)).collect();
    for frame in &sent {
        two.spine.stage.engine.send(frame);
    }
    // Three runs are cut off, in the other domain; then that is suspended, and the handler returns.
    assert_eq!(two.spine.stage.receive(3), sent[..3]);
    for _ in 0..1000 {
        if two.spine.count(two.calling, DomainCount::Consumed) == 2 {
            break;
        }
        two.spine.stage.engine.machine().lock().run(500);
    }
    assert_eq!(two.counts(), [[3, 3, 0, 1], [5, 0, 0, 0]]);
    assert_eq!(two.spine.counters(two.calling)[1], 2);
}

#[test]
fn who_is_linked_with_an_extension_keeps_it_loaded() {
    let mut two = Two::open();
    let Spine { card, loader, .. } = &mut two.spine;
    let kept = loader.unload(card, two.numbers);
    let (domain, user) = (two.numbers, two.calling);
    assert!(
        matches!(kept, Err(LoadError::Imported { domain: d, user: u }) if (d, u) == (domain, user)),
        "{kept:?}"
    );
    loader.unload(card, user).expect("nobody calls it");
    loader.unload(card, domain).expect("nobody calls it now");
    // One that nobody exports for, and one whose signer may not link with it.
    let alone = two.spine.try_load(&card::of_tests("calling"));
    assert!(
        matches!(&alone, Err(LoadError::Link(LinkError::NotExported(name))) if name == "numbers.endless"),
        "{alone:?}"
    );
    two.spine.load(&card::of_tests("numbers"));
    let refused = two
        .spine
        .load_by(&card::of_tests("calling"), &card::policy_without("numbers"));
    assert!(
        matches!(&refused, Err(LoadError::Link(LinkError::NotInDomain { domain, .. })) if domain == "numbers"),
        "{refused:?}"
    );
    // Both again, the one in another place, under another number.
    let calling = two.spine.load(&card::of_tests("calling"));
    two.calling = calling;
    two.ask(SUM, &[7, 8, 9]).expect("it runs");
    assert_eq!(two.answer(), [24, CALLED]);
}

#[test]
fn what_was_exported_is_gone_with_its_domain() {
    let mut spine = Spine::open();
    // Three procedures each time, of eight that there is room for.
    for _ in 0..5 {
        let mut two = Two::on(spine, &card::policy());
        two.ask(SUM, &[1, 1, 1]).expect("it runs");
        assert_eq!(two.answer(), [3, CALLED]);
        let (numbers, calling) = (two.numbers, two.calling);
        spine = two.spine;
        let Spine { card, loader, .. } = &mut spine;
        loader.unload(card, calling).expect("it is loaded");
        loader.unload(card, numbers).expect("it is loaded");
    }
}

/// In the caller's text, in the gate, and in the procedure.
#[test]
fn a_call_that_is_cut_off_anywhere_has_done_nothing() {
    let mut two = Two::by(&card::policy_with(0));
    let guard = Guard::ether_type(two.calling, SUM, OURS);
    two.spine.guards(&[guard]);
    let places = Places::of(&mut two.spine);
    let mut cuts = 0;
    loop {
        let [[_, of_numbers, ..], [runs, of_calling, ..]] = two.counts();
        let counted = two.spine.counters(two.calling)[0];
        let frame = two.spine.stage.inbound(cuts);
        two.spine.stage.engine.send(&frame);
        let machine = two.spine.stage.engine.machine().clone();
        let was_cut = cut(&mut machine.lock(), &places, cuts);
        let (received, sent) = what_came(&mut two.spine);
        assert_eq!(sent, None);
        let [[_, numbers, ..], [again, calling, ..]] = two.counts();
        assert_eq!(again, runs + 1, "{cuts}");
        let overruns = numbers + calling - of_numbers - of_calling;
        let has_counted = two.spine.counters(two.calling)[0] - counted;
        // A cut behind the end of it is too late.
        assert_eq!(
            (received.len() as u32, 1 - has_counted),
            (overruns, overruns),
            "{cuts}"
        );
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    let [[_, numbers, ..], [_, calling, ..]] = two.counts();
    println!("{cuts} cuts: {numbers} of the procedure, {calling} of its caller");
    assert!(numbers > 10 && calling > 50, "{numbers}, {calling}");
    assert!(
        numbers + calling > cuts * 9 / 10,
        "{numbers} + {calling} of {cuts}"
    );
    two.ask(SUM, &[1, 2, 3]).expect("it runs");
    assert_eq!(two.answer(), [6, CALLED]);
}
