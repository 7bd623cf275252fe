//! Which function each CPU is in while a datagram goes from process to process, by two cards on one
//! wire.

use super::card::{PORT, elf, image};
use super::pair::Pair;
use crate::functions::{LOOK_NS, Looks, listing};
use anyhow::{Result, ensure};
use eudp::{Checksum, Completion, CutThrough};

/// How often the program counters are looked at between two polls of the processes.
const LOOKS: usize = 9;
/// Nanoseconds within which the datagram is there.
const PATIENCE: u64 = 5_000_000;

/// A line for each run of a function, from the call of the process that sends, which card 0 has, until
/// the other one sees the datagram.
///
/// # Errors
/// If the firmware does not build or start, or the datagram does not arrive.
pub fn record(bytes: usize, mtu: u32, cut: CutThrough) -> Result<String> {
    let elf = elf()?;
    let mut pair = Pair::start(&image()?, cut, Checksum::None, mtu)?;
    // The first one finds nothing where it will be.
    pair.one_way(bytes, 2)?;
    let [one, other] = pair.hosts();
    other.lend(0)?;
    for host in [&mut *one, &mut *other] {
        host.settle()?;
    }
    let machines = [one.machine().clone(), other.machine().clone()];
    let mut looks = Looks::new(&elf, &[])?;
    let begin = one.now();
    one.post_to(PORT, bytes)?;
    loop {
        for _ in 0..LOOKS {
            machines[0].pass(LOOK_NS);
            looks.take(&machines);
        }
        one.poll()?;
        if let Some(Completion::Received { .. }) = other.poll()? {
            return Ok(listing(&looks.runs(), begin));
        }
        let late = one.now() - begin > PATIENCE;
        ensure!(!late, "a datagram of {bytes} bytes does not arrive");
    }
}
