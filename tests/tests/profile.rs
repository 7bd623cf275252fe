//! Tests each handler's share of its CPU's time: samples of the program counters against the
//! simulator's counts, cycle by cycle.

use host_driver::profile::{Owner, Profile};
use integration_tests::engine::tools;
use integration_tests::stage;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::machine::probe::{Position, Probe, Verdict};
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Activity, Counts};
use tigon2_sim::transport::{SharedMachine, SimTransport};
use tigon2_sim::workload::talk;
use tigon2_sim::workload::testbench::Setup;

/// Behind the start of the traffic; the link is up within 103 ms.
const FROM: u64 = 9_300_000;
const UNTIL: u64 = 12_300_000;
/// Cycles between two looks: no period of the traffic or of the loop.
const STEP: u64 = 37;

#[derive(Default)]
struct Seen {
    looks: [Vec<u32>; 2],
    first: Option<[Counts; 2]>,
    last: Option<[Counts; 2]>,
}

struct Looker(Arc<Mutex<Seen>>);

impl Probe for Looker {
    fn look(&mut self, machine: &mut Machine, at: Position) -> Verdict {
        if at.cycle < FROM {
            return Verdict::From(FROM);
        }
        let mut seen = self.0.lock().expect("no panic");
        let counts = machine
            .timing()
            .map(|timed| [0, 1].map(|cpu| timed.pipelines[cpu].counts.clone()));
        if at.cycle >= UNTIL {
            seen.last = counts;
            return Verdict::Leave;
        }
        if seen.first.is_none() {
            seen.first = counts;
        }
        for cpu in Cpu::ALL {
            let pc = machine.cpus().core(cpu).pc();
            seen.looks[cpu.index()].push(pc);
        }
        Verdict::From(at.cycle + STEP)
    }

    fn ended(&mut self, _: &mut Machine, how: &str) {
        panic!("it should have been left: {how}");
    }
}

/// The chip's event of a handler that the profile names.
fn bit(name: &str) -> u8 {
    let name = if name == "SendTimer" { "Timer" } else { name };
    let mut events = EventBit::ALL.iter();
    let event = events.find(|event| event.name() == name);
    event.expect("an event").number() as u8
}

#[test]
fn looks_at_the_program_counters_tell_what_each_handler_takes() {
    let elf = std::fs::read(tools().firmware.elf).expect("the ELF");
    let profile = Profile::parse(&elf).expect("the firmware's own");
    let image = stage::firmware();
    let setup = Setup::new(Board::default(), Parameters::default(), &image);
    let mut machine = Machine::timed(setup.board.clone(), setup.parameters.clone(), 1);
    let seen = Arc::new(Mutex::new(Seen::default()));
    machine.set_probe(Box::new(Looker(seen.clone())));
    let machine = SharedMachine::new(machine);
    talk::talk(SimTransport::to(&machine), &setup, u64::MAX).expect_err("it is left");

    let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
    let (first, last) = (seen.first.expect("counts"), seen.last.expect("counts"));
    for cpu in Cpu::ALL {
        let looks = &seen.looks[cpu.index()];
        let counts = last[cpu.index()].since(&first[cpu.index()]);
        let all = counts.total().total();
        if all == 0 {
            let somewhere = looks.iter().find(|pc| profile.owner(cpu, **pc).is_some());
            assert_eq!(somewhere, None, "CPU {cpu} was never started");
            continue;
        }
        let mut handlers: BTreeMap<u8, f64> = BTreeMap::new();
        let (mut idle, mut shared) = (0.0, 0.0);
        let each = 1.0 / looks.len() as f64;
        for pc in looks {
            let owner = profile.owner(cpu, *pc);
            match owner.unwrap_or_else(|| panic!("CPU {cpu} is at {pc:#x}: nowhere")) {
                Owner::Idle => idle += each,
                Owner::Handler(name) => *handlers.entry(bit(name)).or_default() += each,
                Owner::Function(_) => shared += each,
            }
        }
        // Most is some handler's own.
        let busy = 1.0 - idle;
        assert!(shared < busy / 4.0, "CPU {cpu}: {shared} of {busy}");
        let mut compared = 0;
        for (activity, tally) in counts.iter() {
            let Activity::Handler(event) = activity else {
                continue;
            };
            let part = tally.total() as f64 / all as f64;
            let looked = handlers.get(&event).copied().unwrap_or(0.0);
            let least = (part - shared) * 0.8 - 0.003;
            let most = part * 1.2 + 0.003;
            println!("CPU {cpu}, bit {event}: {looked:.4}, in fact {part:.4}");
            assert!(
                (least..=most).contains(&looked),
                "CPU {cpu}, bit {event}: {looked} for {part}"
            );
            compared += usize::from(part > 0.01);
        }
        assert!(
            compared >= 3,
            "CPU {cpu}: {compared} handlers that take something"
        );
    }
}
