//! `cargo xtask soak --eudp`: frames for an endpoint that end badly, by the ten thousand. A tenth as many
//! [leave](super::stalls::soak) on buses that stall.
//!
//! Datagrams of all lengths come in on buses that stall, most of them while their frame is still on
//! the wire, and in front of each good one come some that are damaged: by an error that only their end
//! shows, or by a burst of 1 to 8 bytes that are wrong from their arrival on, in headers or data. Half
//! of them have no checksum, but for those whose checksum is all that is wrong.
//!
//! | what must hold | how it is looked at |
//! | --- | --- |
//! | a damaged frame completes nothing | one completion for each good datagram, in order |
//! | none of its bytes is in a datagram | the memory of each completion beside what was sent |
//! | no buffer and no datagram is lost | each good datagram has one buffer posted for it |
//! | a wrong sum is counted, and nothing else | [`Refusals`] |
//! | CPU A follows its tables | the card's own count of transitions that no table has |

use super::card::{Bench, HEADERS};
use crate::report::write_json;
use anyhow::{Context, Result, ensure};
use eudp::{Checksum, Completion, CutThrough, Refusals, Status};
use indicatif::ProgressBar;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;
use tigon2_chip::mac::RxError;
use tigon2_model::Board;
use tigon2_model::faults::{Damage, Fault};
use tigon2_sim::timing::{BusStalls, Parameters};

/// What a bus transaction waits for beside the usual, in clocks: 0 to twice of it.
const STALLS: [u64; 3] = [0, 300, 2000];
/// BusStalls of another bus, within transactions.
const WITHIN: BusStalls = BusStalls {
    every: 40,
    least: 5,
    most: 50_000,
};
/// Good datagrams that are awaited together.
const BATCH: u32 = 4;
/// Damaged frames in front of a good one, at most.
const MOST: u64 = 5;
/// The longest datagram of one frame.
const LONGEST: u64 = 8972;
/// Nanoseconds within which good datagrams are completed, and between two looks.
const PATIENCE: u64 = 50_000_000;
const LOOK: u64 = 2_000;
/// Nanoseconds behind a frame's end in which the MAC has seen it: an error that is asked for then is
/// the next frame's.
const BEHIND: u64 = 1_000;
/// Where a frame has its UDP checksum.
const CHECKSUM: Range<usize> = HEADERS - 2..HEADERS;
/// Errors of a frame from the wire.
const ERRORS: [RxError; 6] = [
    RxError::CRC,
    RxError(RxError::TRUNCATED.0 | RxError::CRC.0),
    RxError::PHY_DECODE,
    RxError(RxError::ODD_NIBBLES.0 | RxError::CRC.0),
    RxError::LINK_LOST,
    RxError::MAC_ABORT,
];

/// What came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Damaged frames.
    pub damaged: u64,
    /// Of them those with a good CRC and a wrong UDP checksum.
    pub wrong_sums: u64,
    /// And those with bytes that the wire has changed, from one in the headers and one in the data on.
    pub changed: [u64; 2],
    /// Damaged frames of which the process's memory had bytes at their end.
    pub early: u64,
    /// Good datagrams, each completed once and whole.
    pub good: u64,
}

/// Sends about so many damaged frames and a tenth as many datagrams out, prints what came in and writes
/// `target/reports/soak-eudp.json`.
///
/// # Errors
/// As [`run`].
pub fn soak(damaged: u64, seed: u64) -> Result<()> {
    let image = super::image()?;
    let begun = Instant::now();
    let bar = ProgressBar::new(damaged).with_prefix("frames");
    let report = run(&image, damaged, seed, |frames| {
        bar.set_position(frames.min(damaged));
    });
    bar.finish_and_clear();
    let report = report?;
    println!(
        "soak: {} damaged frames in {} s, {} of them with a wrong UDP checksum, {} with a burst of \
         changed bytes from the headers on and {} in the data; of {} the process's memory had bytes early, and none was \
         completed",
        report.damaged,
        begun.elapsed().as_secs(),
        report.wrong_sums,
        report.changed[0],
        report.changed[1],
        report.early
    );
    println!(
        "  {} good datagrams between them, each completed once, whole and in order",
        report.good
    );
    let out = (damaged / 10) as u32;
    let aborted = super::stalls::soak(&image, out)?;
    println!(
        "  {out} datagrams out, while the bus stalls within transactions: {aborted} frames cut off, and \
         each datagram arrives once, whole and in order"
    );
    println!("report: {}", write_json("soak-eudp", &report)?.display());
    Ok(())
}

/// Sends about so many damaged frames, by random numbers of a seed; says how many there were so far.
///
/// # Errors
/// What does not hold, and behind how many frames.
pub fn run(image: &[u8], damaged: u64, seed: u64, mut told: impl FnMut(u64)) -> Result<Report> {
    let mut report = Report::default();
    let mut random = SplitMix64::seed_from_u64(seed);
    for (number, parameters) in (1..).zip(buses()) {
        let told_stalls = format!("{} clocks, {:?}", parameters.pci_wr, parameters.stalls);
        let how = (CutThrough::OfBus, Checksum::None, 9000);
        let mut bench = Bench::of((Board::default(), parameters), image, how)?;
        let before = report;
        while report.damaged < damaged * number / BUSES as u64 {
            let told_of = report;
            batch(&mut bench, &mut random, &mut report)
                .with_context(|| format!("a bus of {told_stalls}, after {told_of:?}"))?;
            told(report.damaged);
        }
        let expected = Refusals {
            bad_sum: (report.wrong_sums - before.wrong_sums) as u32,
            ..Refusals::default()
        };
        let refusals = bench.refusals()?;
        ensure!(refusals == expected, "{refusals:?}, not {expected:?}");
        bench.cuts()?;
    }
    Ok(report)
}

/// The buses, by what they make the write channel wait for.
const BUSES: usize = STALLS.len() + 1;

fn buses() -> [Parameters; BUSES] {
    let usual = Parameters::default();
    std::array::from_fn(|number| match STALLS.get(number) {
        Some(stall) => Parameters {
            pci_wr: usual.pci_wr + stall,
            jit: 1.0,
            ..usual.clone()
        },
        None => Parameters {
            stalls: WITHIN,
            ..usual.clone()
        },
    })
}

/// Some good datagrams, each behind damaged ones.
fn batch(bench: &mut Bench, random: &mut SplitMix64, report: &mut Report) -> Result<()> {
    for number in 0..BATCH {
        bench.lend(number)?;
    }
    let mut good = Vec::new();
    let mut lent: BTreeSet<u32> = (0..BATCH).collect();
    for number in 0..BATCH {
        for _ in 0..random.next_u64() % MOST {
            damage(bench, random, report)?;
        }
        let datagram = datagram(random);
        let frame = inbound(bench, random, &datagram);
        arrive(bench, frame, None);
        good.push((number, datagram));
    }
    let end = bench.now() + PATIENCE;
    for (number, datagram) in good {
        let completion = loop {
            if let Some(completion) = bench.poll()? {
                break completion;
            }
            ensure!(bench.now() < end, "datagram {number} does not arrive");
            bench.machine().pass(LOOK);
        };
        let Completion::Received {
            cookie,
            status,
            datagram: received,
        } = completion
        else {
            anyhow::bail!("{completion:?}, though nothing was sent");
        };
        // The buffer of a wrong datagram is posted again behind those that are in use.
        ensure!(lent.remove(&cookie), "{completion:?} comes twice");
        ensure!(
            (status, received.bytes as usize) == (Status::Done, datagram.len()),
            "{completion:?}, not {number} of {} bytes",
            datagram.len()
        );
        ensure!(
            bench.received(cookie, datagram.len())? == datagram,
            "datagram {number} has other bytes"
        );
        report.good += 1;
    }
    ensure!(bench.poll()?.is_none(), "a completion too many");
    Ok(())
}

/// A frame that ends badly: by an error, by bytes that the wire has changed, or by one that its CRC
/// covers and its sum does not.
fn damage(bench: &mut Bench, random: &mut SplitMix64, report: &mut Report) -> Result<()> {
    let datagram = datagram(random);
    let whole = |error, damage| {
        Some(Fault::Receive {
            error,
            damage,
            frames: 1,
        })
    };
    let how = (random.next_u64() % (ERRORS.len() as u64 + 3)) as usize;
    let fault = match how.checked_sub(ERRORS.len()) {
        None => whole(ERRORS[how], None),
        Some(0) => None,
        Some(part) => {
            // In the headers, or in the data, whose frame is often there by half when it comes.
            let ends = [0, HEADERS, HEADERS + datagram.len()].map(|end| end as u16);
            report.changed[part - 1] += 1;
            let burst = Damage::any(random, ends[part - 1]..ends[part]);
            whole(RxError::NONE, Some(burst))
        }
    };
    let frame = match fault {
        Some(_) => inbound(bench, random, &datagram),
        None => {
            let mut frame = bench.inbound(&datagram);
            let at = HEADERS + random.next_u64() as usize % datagram.len();
            frame[at] ^= 1 << (random.next_u64() % 8);
            report.wrong_sums += 1;
            frame
        }
    };
    let data = frame[HEADERS..].to_vec();
    arrive(bench, frame, fault);
    report.damaged += 1;
    // Of the buffers only the first that is still posted is written to.
    let begun = |number| {
        let there = bench.received(number, data.len().min(256))?;
        anyhow::Ok(there == data[..there.len()])
    };
    for number in 0..BATCH {
        if data.len() >= 256 && begun(number)? {
            report.early += 1;
            break;
        }
    }
    Ok(())
}

/// Puts a frame on the wire, with a fault or none, and waits for its end.
fn arrive(bench: &Bench, frame: Vec<u8>, fault: Option<Fault>) {
    let end = {
        let mut machine = bench.machine().lock();
        if let Some(fault) = fault {
            machine.inject(fault);
        }
        machine.send_frame(0, frame)
    };
    let behind = end + BEHIND;
    bench.machine().pass(behind.saturating_sub(bench.now()));
}

/// A frame with the datagram, with a checksum or without.
fn inbound(bench: &Bench, random: &mut SplitMix64, datagram: &[u8]) -> Vec<u8> {
    let mut frame = bench.inbound(datagram);
    if random.next_u64().is_multiple_of(2) {
        frame[CHECKSUM].fill(0);
    }
    frame
}

/// Random bytes, of each length equally often.
fn datagram(random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = vec![0; (random.next_u64() % LONGEST + 1) as usize];
    random.fill_bytes(&mut bytes);
    bytes
}
