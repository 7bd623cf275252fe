//! Who works on which datagram when: Figures 2, 4 and 9 of the paper, of two cards on one wire.
//!
//! | row | what a box is |
//! | --- | --- |
//! | library, sends | a call of the process's: a descriptor is posted |
//! | SDMA | a transfer of the sender's read channel with data of a datagram |
//! | SEND | a run of a handler of the sender's CPU B, which SDMA and SEND share |
//! | link | a frame on the wire |
//! | RECV | a run of a handler of the receiver's CPU A, which RECV and RDMA share |
//! | RDMA | a transfer of the receiver's write channel with data of a datagram |
//! | library, receives | the process sees that a datagram is complete |

use super::pair::Pair;
use super::way;
use crate::rows::{self, Busy, Picture, Row};
use anyhow::{Context, Result, ensure};
use eudp::{Checksum, Completion, CutThrough, Status};
use std::path::{Path, PathBuf};
use testbed::paths;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_model::Direction;
use tigon2_sim::timeline::event::Event;
use tigon2_sim::timeline::{LIMIT, Recorder, Timeline, number};

/// Bytes of the paper's datagrams, how many there are, and bytes of a packet on the wire.
const BYTES: usize = 32_768;
const COUNT: u32 = 10;
const MTU: u32 = 9000;
/// Single datagrams, and the packets of their wire.
const WAYS: [(usize, u32); 3] = [(1, 1500), (1472, 1500), (8972, 9000)];
/// Nanoseconds within which all of them are there.
const PATIENCE: u64 = 50_000_000;

/// All rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// From top to bottom.
    pub rows: [Row; 7],
}

/// Nanoseconds between two marks of the time.
const MARK: u64 = 250_000;

/// Records ten datagrams of 32 KB that are posted at once.
///
/// # Errors
/// If the firmware cannot be built, or one does not arrive.
pub fn record(cut: CutThrough) -> Result<Flow> {
    let mut pair = Pair::start(&super::image()?, cut, Checksum::None, MTU)?;
    let [one, other] = pair.hosts();
    for number in 0..COUNT {
        other.lend(number)?;
    }
    other.settle()?;
    let machines = [one.machine().clone(), other.machine().clone()];
    for machine in &machines {
        let recorder = Recorder::new(LIMIT, number::of_datagram);
        machine.lock().record(recorder);
    }
    let (mut calls, mut seen) = (Vec::new(), Vec::new());
    for number in 0..COUNT {
        let from = one.now();
        one.post_to(super::card::PORT, BYTES)?;
        calls.push(Busy {
            from,
            to: one.now(),
            item: Some(number),
        });
    }
    let end = one.now() + PATIENCE;
    while seen.len() < COUNT as usize {
        ensure!(one.now() < end, "{} datagrams arrive", seen.len());
        one.poll()?;
        let from = other.now();
        while let Some(Completion::Received { status, .. }) = other.poll()? {
            ensure!(status == Status::Done, "{status:?}");
            seen.push(Busy {
                from,
                to: other.now(),
                item: Some(seen.len() as u32),
            });
        }
        one.pass();
    }
    let memory = [one.addresses()?, other.addresses()?];
    let [sender, receiver] = machines.map(|machine| machine.lock().recorded());
    let [sender, receiver] = [
        sender.context("no recording")?,
        receiver.context("no recording")?,
    ];
    let row = |name: &str, of: &str, boxes| Row::new(name, of, boxes);
    Ok(Flow {
        rows: [
            row("library", "posts", calls),
            row("SDMA", "reads", moved(&sender, Direction::Read, &memory[0])),
            row("SEND", "CPU B", runs(&sender, Cpu::B)),
            row("link", "frames", frames(&sender)),
            row("RECV", "CPU A", runs(&receiver, Cpu::A)),
            row(
                "RDMA",
                "writes",
                moved(&receiver, Direction::Write, &memory[1]),
            ),
            row("library", "sees", seen),
        ],
    })
}

/// Transfers of datagrams' data: they come in the datagrams' order.
fn moved(timeline: &Timeline, way: Direction, memory: &std::ops::Range<u64>) -> Vec<Busy> {
    let mut bytes = 0;
    let transfers = timeline.events.iter().filter_map(|event| match event {
        Event::Dma(transfer) if transfer.direction == way && memory.contains(&transfer.host) => {
            Some(transfer)
        }
        _ => None,
    });
    transfers
        .map(|transfer| {
            let item = Some((bytes / BYTES) as u32);
            bytes += transfer.length as usize;
            Busy {
                from: timeline.clock.nanoseconds(transfer.span.start),
                to: timeline.clock.nanoseconds(transfer.span.end),
                item,
            }
        })
        .collect()
}

/// Runs of handlers, but looks at a frame that arrives, which fill all time in which a CPU has nothing
/// else to do.
fn runs(timeline: &Timeline, cpu: Cpu) -> Vec<Busy> {
    let looks = EventBit::FollowFrame.number();
    let runs = timeline.events.iter().filter_map(|event| match event {
        Event::Run(run) if run.cpu == cpu && u32::from(run.bit) != looks => Some(run.span),
        _ => None,
    });
    runs.map(|span| Busy {
        from: timeline.clock.nanoseconds(span.start),
        to: timeline.clock.nanoseconds(span.end),
        item: None,
    })
    .collect()
}

fn frames(timeline: &Timeline) -> Vec<Busy> {
    let each = (BYTES + 8).div_ceil((MTU as usize - 20) & !7);
    let spans = timeline.events.iter().filter_map(|event| match event {
        Event::Transmit { span, .. } => Some(*span),
        _ => None,
    });
    spans
        .enumerate()
        .map(|(number, span)| Busy {
            from: timeline.clock.nanoseconds(span.start),
            to: timeline.clock.nanoseconds(span.end),
            item: Some((number / each) as u32),
        })
        .collect()
}

/// Records them, stored and cut through, and writes a picture of each to the folder, or to
/// `target/reports/trace`; and `functions`, of single datagrams, too.
///
/// # Errors
/// As [`record`] and [`way::record`], and if a file cannot be written.
pub fn run(folder: Option<&Path>, functions: bool) -> Result<()> {
    let folder = folder.map_or_else(|| paths::reports().join("trace"), Path::to_path_buf);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, cut) in [
        ("stored", CutThrough::Off),
        ("cut-through", CutThrough::OfBus),
    ] {
        let Flow { rows } = record(cut)?;
        let title = format!("Ten datagrams of 32 KB, frames of {MTU} bytes, {name}");
        let path: PathBuf = folder.join(format!("eudp-{name}.svg"));
        let picture = Picture {
            title: &title,
            legend: "a box: a call, a transfer, a run of a handler, a frame; dark and light: one \
                     datagram and the next; grey: of any",
            mark: MARK,
            rows: &rows,
            arrows: &[],
        };
        std::fs::write(&path, picture.svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{title}: {} us", rows::nanoseconds(&rows) / 1000);
        for row in &rows {
            let (share, boxes) = (100.0 * row.share(), row.boxes.len());
            println!(
                "  {:8} {:7} {boxes:4} boxes, {share:5.1} % of its time",
                row.name, row.of
            );
        }
        println!("  picture: {}", path.display());
        for (bytes, mtu) in WAYS.into_iter().filter(|_| functions) {
            let path = folder.join(format!("eudp-{name}-{bytes}-functions.txt"));
            std::fs::write(&path, way::record(bytes, mtu, cut)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("  functions, {bytes} bytes: {}", path.display());
        }
    }
    Ok(())
}
