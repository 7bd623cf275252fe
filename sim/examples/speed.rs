//! How fast the timed card is simulated under a load, and a digest of all that was counted.
//! `speed IMAGE [MS]`; equal digests before and after a change: not a cycle has changed.

use host_driver::nic::Coalescing;
use std::hash::{DefaultHasher, Hash, Hasher};
use tigon2_chip::Cpu;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::arrivals::{Arrivals, Pattern};
use tigon2_sim::workload::rig::{Load, Rig, Setup, Source};

/// Seconds that this thread was on a CPU: the kernel's count, in nanoseconds.
fn on_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split_whitespace().next().expect("a number");
    first.parse::<f64>().expect("a number") / 1e9
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let image = std::fs::read(arguments.next().expect("an image")).expect("a readable image");
    let ms: u64 = arguments
        .next()
        .map_or(10, |ms| ms.parse().expect("a number"));
    for (name, send, receive, bytes, rate) in [
        ("both 1472", true, true, 1472, 60_000.0),
        ("both 18", true, true, 18, 100_000.0),
        ("send 400", true, false, 400, 0.0),
        ("receive 800", false, true, 800, 100_000.0),
        ("idle", false, false, 400, 0.0),
    ] {
        let setup = Setup {
            coalescing: Coalescing {
                receive_ticks: 170,
                transmit_ticks: 2000,
                statistics_ticks: 1_000_000,
                max_transmit_bds: 32,
                max_receive_bds: 64,
            },
            ..Setup::new(Board::default(), Parameters::default(), &image)
        };
        let mut rig = Rig::start(&setup).expect("a card");
        let mut load = Load::default();
        if send {
            load.send = Some(rig.outbound(bytes).expect("a size"));
        }
        if receive {
            let flow = rig.inbound(bytes).expect("a size");
            load.receive = Some(Source::new(
                flow,
                Arrivals::new(Pattern::Poisson, rate, rig.now(), 7),
            ));
        }
        rig.run(&mut load, 1_000_000).expect("it runs");
        let before = rig.reading();
        let start = on_cpu();
        rig.run(&mut load, ms * 1_000_000).expect("it runs");
        let seconds = on_cpu() - start;
        let after = rig.reading();
        let mut digest = DefaultHasher::new();
        (
            after.cycle,
            after.sent,
            after.received,
            after.grants,
            after.pci_busy,
        )
            .hash(&mut digest);
        after.instructions.hash(&mut digest);
        for counts in &after.counts {
            for (activity, tally) in counts.iter() {
                (activity, tally.runs, tally.instructions, tally.cycles).hash(&mut digest);
            }
        }
        let machine = rig.machine().lock();
        machine.cpus().core(Cpu::A).gprs().hash(&mut digest);
        for address in (0..0x10_0000).step_by(4) {
            machine.word(address).hash(&mut digest);
        }
        let cycles = (after.cycle - before.cycle) as f64;
        let instructions = (after.instructions - before.instructions) as f64;
        println!(
            "{name:12} {:016x} sent {} received {}: {:.1} M cycles/s, {:.1} M instructions/s, {:.2} of real time",
            digest.finish(),
            after.sent,
            after.received,
            cycles / seconds / 1e6,
            instructions / seconds / 1e6,
            cycles / 88e6 / seconds,
        );
    }
}
