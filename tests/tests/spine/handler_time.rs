//! The time of a handler, the mean of some runs, beside what it runs.

use crate::card::Spine;
use crate::page;
use crate::rings::Messages;
use host_interface::spine::HandlerCount;
use tigon_firmware::memory::shared::SPINE_RUNNING;

/// A handler that answers with all its arguments, and one that does next to nothing.
const ANSWERS: u8 = 0;
const CONSUMES: u8 = 7;
/// Messages to each of them.
const ROUNDS: u32 = 2000;
/// Cycles between two looks at which handler runs.
const STEP: u64 = 4;
/// Cycles of a microsecond.
const CLOCK: f64 = 88.0;

/// What runs took, of those that come first, third and so on, and of the others: they take turns.
#[derive(Default)]
struct Ran {
    begun: u64,
    in_work: u32,
    cycles: [u64; 2],
}

impl Ran {
    /// Lets time pass.
    fn pass(&mut self, messages: &mut Messages, cycles: u64) {
        let mut machine = messages.spine.card.machine.lock();
        let end = machine.cycle() + cycles;
        while machine.cycle() < end {
            let before = machine.cycle();
            machine.run(STEP);
            let run = machine.word(SPINE_RUNNING.address());
            if run != 0 {
                self.begun += u64::from(run != self.in_work);
                self.cycles[(self.begun & 1 ^ 1) as usize] += machine.cycle() - before;
            }
            self.in_work = run;
        }
    }
}

#[test]
fn the_time_of_a_handler_is_near_what_it_ran() {
    let mut messages = Messages::on(Spine::timed("default"), &[5]);
    let (mut ran, mut waited) = (Ran::default(), 0);
    let arguments: Vec<u32> = (0..60).collect();
    for round in 0..ROUNDS {
        messages.send(5, ANSWERS, &arguments);
        messages.send(5, CONSUMES, &[round]);
        ran.pass(&mut messages, 3000 + u64::from(round % 97));
        while messages.of(5).take().expect("memory").is_none() {
            ran.pass(&mut messages, 1000);
            waited += 1;
            assert!(waited < ROUNDS, "round {round}: no answer");
        }
        messages.ring(5);
    }
    // The firmware counts behind the run.
    ran.pass(&mut messages, 5000);
    let most = page::measured("a handler's time as the host is told it, more by at most");
    let domain = messages.domain;
    let counts = messages.spine.counts(domain);
    for (handler, cycles) in [ANSWERS, CONSUMES].into_iter().zip(ran.cycles) {
        let runs = counts.of_handler(handler.into(), HandlerCount::Runs);
        assert_eq!(runs, ROUNDS);
        let time = counts.time(handler.into());
        assert!((8..100).contains(&time.runs()), "{time:?}");
        let told = f64::from(time.microseconds()) / f64::from(time.runs());
        let ran = cycles as f64 / CLOCK / f64::from(ROUNDS);
        println!("handler {handler}: told {told:.2} us, runs {ran:.2} us");
        assert!(
            (told - ran).abs() < most,
            "handler {handler}: {told}, {ran}"
        );
    }
}
