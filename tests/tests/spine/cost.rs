//! What a run costs, and how soon one that does not end is cut off: cycles of the timing model.

use crate::answers::{is_answer, ping};
use crate::card::{self, Spine, symbol};
use crate::page;
use host_interface::spine::HandlerCount;
use integration_tests::Engine;
use spine_image::interface::Number;
use spine_linker::load::Guard;
use tigon_bench::spine::card::Text;
use tigon_firmware::memory::shared::SPINE_RUNNING;
use tigon2_chip::Cpu;
use tigon2_sim::Machine;

/// Cycles of a microsecond.
const CLOCK: u64 = 88;

fn pc(machine: &Machine) -> u32 {
    machine.cpus().core(Cpu::A).pc()
}

/// The cycle at which CPU A comes to where `there` holds.
fn until(machine: &mut Machine, there: impl Fn(&Machine) -> bool) -> u64 {
    for _ in 0..4_000_000 {
        if there(machine) {
            return machine.cycle();
        }
        machine.run(1);
    }
    panic!("it does not come there; CPU A at {:#x}", pc(machine));
}

/// Cycles of runs of a handler: from the first instruction behind the guard to the last one, and
/// those in its own text.
fn runs(spine: &mut Spine, frame: impl Fn(&Spine) -> Vec<u8>, count: u32) -> Vec<(u64, u64)> {
    let enter = symbol("spine_enter");
    let in_text = Text::of(&spine.stage.engine.machine().lock());
    let mut all = Vec::new();
    for _ in 0..count {
        let frame = frame(spine);
        spine.stage.engine.send(&frame);
        let machine = spine.stage.engine.machine().clone();
        let machine = &mut machine.lock();
        let begins = until(machine, |machine| pc(machine) == enter);
        let text = until(machine, |machine| in_text.contains(pc(machine)));
        let left = until(machine, |machine| {
            pc(machine) >= enter && pc(machine) < enter + 0x100
        });
        let over = until(machine, |machine| {
            machine.word(SPINE_RUNNING.address()) == 0
        });
        all.push((over - begins, left - text));
        machine.run(40_000);
    }
    all
}

#[test]
fn an_empty_handler_costs_what_the_page_says() {
    let mut spine = Spine::timed("default");
    let domain = spine.load(&card::of_tests("empty"));
    spine.guards(&[Guard::any(domain, 0)]);
    let all = runs(&mut spine, |spine| spine.stage.inbound(1), 12);
    println!("empty: {all:?}");
    let (most, _) = all.iter().max().expect("some");
    // From CPU A's pad, in cycles; docs/spine.md.
    assert!(*most <= 40, "{all:?}");
}

#[test]
fn an_answer_costs_what_the_page_says() {
    let mut spine = Spine::timed("default");
    let domain = spine.load(&card::ours("echo"));
    spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
    let all = runs(&mut spine, |spine| ping(spine, 7, &[0; 18]), 12);
    println!("echo: {all:?}");
    assert!(all.iter().all(|(whole, _)| *whole < 10 * CLOCK), "{all:?}");
    // From the last bit of a frame to the first of the answer.
    let machine = spine.stage.engine.machine().clone();
    let mut latencies = Vec::new();
    while spine.stage.wire_now().is_some() {}
    for number in 0..10 {
        let question = ping(&spine, number, &[0; 18]);
        let begins = machine.lock().cycle();
        spine.stage.engine.send(&question);
        let came = until(&mut machine.lock(), |machine| {
            machine.outgoing_frames() != 0
        });
        is_answer(&spine.stage.wire(), &question);
        latencies.push(came - begins);
        machine.lock().run(50_000);
    }
    println!("latency: {latencies:?} cycles with both times on the wire");
    assert!(
        latencies.iter().all(|cycles| *cycles < 40 * CLOCK),
        "{latencies:?}"
    );
}

/// What the gate takes of a call, without the procedure.
#[test]
fn a_call_costs_what_the_page_says() {
    let mut spine = Spine::timed("default");
    spine.load(&card::of_tests("numbers"));
    let calling = spine.load(&card::of_tests("calling"));
    spine.guards(&[Guard::any(calling, 0)]);
    let entry = symbol("SPINE_IMPORTS") + 4 * Number::Call as u32;
    let mut all = Vec::new();
    for number in 0..12 {
        let frame = spine.stage.inbound(number);
        spine.stage.engine.send(&frame);
        let machine = spine.stage.engine.machine().clone();
        let machine = &mut machine.lock();
        let gate = machine.word(entry);
        let in_text = Text::of(machine);
        let called = until(machine, |machine| pc(machine) == gate);
        let begins = until(machine, |machine| in_text.contains(pc(machine)));
        let returned = until(machine, |machine| !in_text.contains(pc(machine)));
        let over = until(machine, |machine| in_text.contains(pc(machine)));
        all.push(begins - called + over - returned);
        machine.run(40_000);
    }
    println!("gate: {all:?}");
    let most = all.iter().max().expect("some");
    let said = page::measured("the gate of a call");
    assert!((0.9..=1.0).contains(&(*most as f64 / said)), "{all:?}");
}

/// After how many microseconds each of so many runs without end was over, the shortest first. The
/// watchdog's time is 10; the next frame is handled.
fn endless_runs(count: u32) -> Vec<f64> {
    let mut spine = Spine::timed("default");
    let domain = spine.load_patiently(&card::of_tests("infinite"));
    spine.guards(&[Guard::any(domain, 7)]);
    let enter = symbol("spine_enter");
    let machine = spine.stage.engine.machine().clone();
    let mut times = Vec::new();
    for number in 0..count {
        let frame = spine.stage.inbound(number);
        spine.stage.engine.send(&frame);
        {
            let machine = &mut machine.lock();
            let begins = until(machine, |machine| pc(machine) == enter);
            let over = until(machine, |machine| {
                machine.word(SPINE_RUNNING.address()) == 0
            });
            times.push((over - begins) as f64 / CLOCK as f64);
            machine.run(u64::from(1000 + number * 977 % 5000));
        }
        assert_eq!(spine.stage.receive(1), [frame]);
    }
    assert_eq!(spine.count(domain, HandlerCount::Overruns), count);
    times.sort_by(f64::total_cmp);
    times
}

/// The handler in work is cut off within twice the watchdog's time and what CPU B is at.
#[test]
fn an_endless_run_ends_soon_after_its_time() {
    let times = endless_runs(200);
    let [least, median, most_of_them, most] = [0, 100, 190, 199].map(|index| times[index]);
    println!("cut off after {least:.1} to {most:.1} us; {median:.1}, {most_of_them:.1}");
    assert!(least >= 10.0 && most <= 30.0, "{least} to {most} us");
    assert!(median < 22.0 && most_of_them < 26.0, "{times:?}");
}

/// At the rare moments when CPU B looks later, too: docs/spine.md.
#[test]
fn the_longest_of_many_endless_runs() {
    let times = endless_runs(3000);
    let beyond = |limit: f64| times.iter().filter(|time| **time > limit).count();
    println!("{} above 25 us, {} above 30", beyond(25.0), beyond(30.0));
    println!(
        "half below {:.1}, 95 % below {:.1}",
        times[1500], times[2850]
    );
    println!("the longest: {:?}", &times[2990..]);
    assert!(times[2999] <= 30.0, "{:?}", &times[2990..]);
}
