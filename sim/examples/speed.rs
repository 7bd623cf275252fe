//! Measures how fast the timed card is simulated under a load, and prints a digest of all
//! counters. `speed IMAGE [MS [LOAD]]`; equal digests before and after a change show that no cycle
//! has changed.

use tigon2_sim::workload::speed::{LOADS, measure};

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
    let only = arguments.next();
    for load in LOADS {
        if only.as_deref().is_some_and(|name| name != load.name) {
            continue;
        }
        let speed = measure(&image, &load, ms * 1_000_000, on_cpu).expect("it runs");
        println!(
            "{:12} {:016x} sent {} received {}: {:.1} M instructions/s, {:.2} of real time",
            load.name,
            speed.digest,
            speed.sent,
            speed.received,
            speed.instructions_per_second() / 1e6,
            speed.of_real_time(),
        );
    }
}
