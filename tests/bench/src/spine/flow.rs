//! Who works on which packet when: Figure 6 of the SPINE paper, of the router between two cards.
//!
//! | row | what a box is |
//! | --- | --- |
//! | card 0, wire | a packet that comes |
//! | card 0 or 1, a CPU | a run of a handler of the firmware |
//! | card 0, extension | a run of the router's handler |
//! | card 0, DMA | a transfer of the write channel to card 1 |
//! | card 1, wire | a packet that leaves |
//!
//! The arrows are a packet's way: from the event to the handler, and to what that has asked for.
//! Packets stay in their order, so the nth of each row is the same one.

use super::card::Kit;
use super::guarded::ROUTES;
use super::peers::{Forwarded, Pair};
use crate::functions::{LOOK_NS, Looks, Run, listing};
use crate::rows::{Arrow, Busy, Picture, Row};
use crate::simulated::tables::at_most;
use crate::trace::handlers;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use testbed::paths;
use testbed::paths::board_file;
use tigon_firmware::memory::shared::SPINE_RUNNING;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_model::Direction;
use tigon2_sim::fabric::Fabric;
use tigon2_sim::timeline::event::{Event, Span};
use tigon2_sim::timeline::{LIMIT, Recorder, Timeline};
use tigon2_sim::timing::Parameters;

/// Looks between two times that packets are taken off the wire.
const LOOKS: usize = 1000;
/// Nanoseconds between two marks of the time.
const MARK: u64 = 20_000;
/// Bytes of Ethernet, IPv4 and UDP in front of a datagram.
const HEADERS: usize = 42;
/// Packets a second, if nothing else is asked for.
const RATE: f64 = 50_000.0;

/// The row of the extension's handler.
pub const ROUTER: &str = "extension: router, handler 0";

/// The names of the firmware's handlers, by CPU and event bit.
type Names = BTreeMap<(usize, u8), String>;

/// What to record.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Bytes of a datagram in a packet.
    pub datagram: usize,
    /// Packets a second.
    pub rate: Option<f64>,
    /// What is shown, in microseconds behind the first packet.
    pub microseconds: Range<u64>,
    /// The timing profile of the board file.
    pub profile: String,
    /// Whether to look which function each CPU is in.
    pub functions: bool,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// The packets' ways.
    pub arrows: Vec<Arrow>,
    /// Latency and period of the packets that left in that time.
    pub forwarded: Forwarded,
    /// Which function each CPU was in, and when what is shown begins, in nanoseconds.
    pub functions: (Vec<Run>, u64),
}

/// Lets packets come and records both cards.
///
/// # Errors
/// For a datagram that is too short or too long, if a card does not start, or a packet is not
/// forwarded well.
pub fn record(kit: &Kit, recording: &Recording) -> Result<Flow> {
    ensure!(
        (18..=1472).contains(&recording.datagram),
        "--experiment router: --datagram must be from 18 to 1472, not {}",
        recording.datagram
    );
    let parameters = Parameters::from_toml(&board_file()?, &recording.profile)?;
    let pair = Pair::start(kit, ROUTES, &parameters)?;
    let machines = [0, 1].map(|card| pair.fabric.card(card));
    for machine in &machines {
        machine.lock().record(Recorder::new(LIMIT, |_| None));
    }
    let bytes = recording.datagram + HEADERS;
    let Range { start, end } = recording.microseconds;
    let begun = machines[0].lock().now();
    let shown = begun + start * 1000..begun + end * 1000;
    let rate = recording.rate.unwrap_or(RATE);
    let mut stream = pair.stream(bytes, rate, end * 1000);
    let (mut runs, mut running): (Vec<Busy>, u32) = (Vec::new(), 0);
    let mut looks = if recording.functions {
        Some(Looks::new(kit.elf(), &pair.cards[0].text().0)?)
    } else {
        None
    };
    while pair.feed(&mut stream) < shown.end {
        for _ in 0..LOOKS {
            machines[0].pass(LOOK_NS);
            let (run, now) = {
                let machine = machines[0].lock();
                (machine.word(SPINE_RUNNING.address()), machine.now())
            };
            if let Some(looks) = looks.as_mut().filter(|_| shown.contains(&now)) {
                looks.take(&machines);
            }
            if run == running {
                continue;
            }
            if let Some(last) = runs.last_mut().filter(|_| running != 0) {
                last.to = now;
            }
            if run != 0 {
                let item = Some(runs.len() as u32);
                runs.push(Busy {
                    from: now,
                    to: now,
                    item,
                });
            }
            running = run;
        }
        pair.collect(&mut stream)?;
    }
    let [one, other] = machines.map(|machine| machine.lock().recorded());
    let cards = [one.context("no recording")?, other.context("no recording")?];
    ensure!(
        cards.iter().all(|card| card.left_out == 0),
        "too many events: show an earlier time, or fewer packets a second"
    );
    let names = handlers::names(kit.elf())?;
    stream.left.retain(|(at, _)| shown.contains(at));
    let (rows, arrows) = drawn(&cards, &names, runs, bytes, &shown);
    Ok(Flow {
        rows,
        arrows,
        forwarded: stream.summary(),
        functions: (looks.map_or_else(Vec::new, Looks::runs), shown.start),
    })
}

/// The rows, and the ways of the packets that come and leave in the time that is shown.
fn drawn(
    cards: &[Timeline; 2],
    names: &Names,
    runs: Vec<Busy>,
    bytes: usize,
    shown: &Range<u64>,
) -> (Vec<Row>, Vec<Arrow>) {
    let [one, other] = cards;
    let (window, frames) = (Fabric::bar(1)..Fabric::bar(2), bytes as u32);
    let to_peer = of(one, |event| match event {
        Event::Dma(transfer)
            if transfer.direction == Direction::Write && window.contains(&transfer.host) =>
        {
            Some((transfer.span, transfer.length >= frames))
        }
        _ => None,
    });
    let comes = of(one, |event| match event {
        Event::Receive { span, length, .. } => Some((*span, *length == frames)),
        _ => None,
    });
    let leaves = of(other, |event| match event {
        Event::Transmit { span, length, .. } => Some((*span, *length == frames)),
        _ => None,
    });
    let mut rows = vec![Row::new("card 0", "wire, in", comes)];
    rows.extend(firmware(one, "card 0", names, shown));
    rows.push(Row::new("card 0", ROUTER, runs));
    rows.push(Row::new("card 0", "DMA to card 1", to_peer));
    rows.extend(firmware(other, "card 1", names, shown));
    rows.push(Row::new("card 1", "wire, out", leaves));
    let arrows = ways(&rows, shown);
    for row in &mut rows {
        row.boxes
            .retain(|busy| shown.start <= busy.from && busy.to <= shown.end);
    }
    (rows, arrows)
}

/// Boxes of some events: the nth that is a packet's is that of packet n.
fn of(timeline: &Timeline, what: impl Fn(&Event) -> Option<(Span, bool)>) -> Vec<Busy> {
    let mut number = 0..;
    let events = timeline.events.iter().filter_map(what);
    events
        .map(|(span, is_packet)| Busy {
            item: if is_packet { number.next() } else { None },
            ..busy(timeline, span)
        })
        .collect()
}

fn busy(timeline: &Timeline, span: Span) -> Busy {
    Busy {
        from: timeline.clock.nanoseconds(span.start),
        to: timeline.clock.nanoseconds(span.end),
        item: None,
    }
}

/// A row for each handler of the firmware that ran in that time, but for looks at a frame that
/// arrives: they fill all time in which a CPU has nothing else to do.
fn firmware(timeline: &Timeline, card: &str, names: &Names, shown: &Range<u64>) -> Vec<Row> {
    let mut rows: BTreeMap<(usize, u8), Vec<Busy>> = BTreeMap::new();
    for event in &timeline.events {
        if let Event::Run(run) = event
            && u32::from(run.bit) != EventBit::FollowFrame.number()
        {
            let run_of = (run.cpu.index(), run.bit);
            let busy = busy(timeline, run.span);
            if shown.start <= busy.from && busy.to <= shown.end {
                rows.entry(run_of).or_default().push(busy);
            }
        }
    }
    let row = |(key, boxes): ((usize, u8), Vec<Busy>)| {
        let name = names.get(&key).map_or("event", String::as_str);
        let cpu = if key.0 == Cpu::A.index() { "A" } else { "B" };
        Row::new(card, &format!("CPU {cpu}: {name}"), boxes)
    };
    rows.into_iter().map(row).collect()
}

/// From where a packet comes to the firmware's handler, the router, the transfer, card 1's handler
/// and the wire.
fn ways(rows: &[Row], shown: &Range<u64>) -> Vec<Arrow> {
    let place = |card: &str, of: &str| {
        let found = |row: &Row| row.name == card && row.of == of;
        rows.iter().position(found).unwrap_or_default()
    };
    let (comes, router) = (place("card 0", "wire, in"), place("card 0", ROUTER));
    let (moves, leaves) = (
        place("card 0", "DMA to card 1"),
        place("card 1", "wire, out"),
    );
    let item = |row: usize, number: u32| {
        let boxes = rows[row].boxes.iter();
        boxes.copied().find(|busy| busy.item == Some(number))
    };
    // The first run of one of these handlers that ends behind a time.
    let run = |rows_of: Range<usize>, at: u64| {
        let runs = rows_of.filter_map(|row| {
            let mut boxes = rows[row].boxes.iter();
            boxes.find(|busy| busy.to > at).map(|busy| (busy.from, row))
        });
        runs.min().map(|(from, row)| (row, from.max(at)))
    };
    let mut arrows = Vec::new();
    for number in 0.. {
        let whole = [comes, router, moves, leaves].map(|row| item(row, number));
        let [Some(come), Some(routed), Some(moved), Some(left)] = whole else {
            break;
        };
        if !shown.contains(&come.from) || left.to > shown.end {
            continue;
        }
        let at_one = run(comes + 1..router, routed.from);
        let at_other = run(moves + 1..leaves, moved.to);
        let (Some(at_one), Some(at_other)) = (at_one, at_other) else {
            continue;
        };
        let way = [
            (comes, come.to),
            at_one,
            (router, routed.from),
            (moves, moved.from),
            at_other,
            (leaves, left.from),
        ];
        arrows.extend(way.windows(2).map(|pair| Arrow {
            from: pair[0],
            to: pair[1],
        }));
    }
    arrows
}

/// Records it, writes the picture to the folder, or to `target/reports/trace`, and prints latency
/// and period.
///
/// # Errors
/// As of [`record`], and if the file cannot be written.
pub fn run(recording: &Recording, folder: Option<&Path>) -> Result<()> {
    let flow = record(&Kit::build()?, recording)?;
    let folder = folder.map_or_else(|| paths::reports().join("trace"), Path::to_path_buf);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let forwarded = &flow.forwarded;
    let title = format!(
        "Packets of {} bytes from card to card, {:.0} a second",
        forwarded.bytes, forwarded.offered
    );
    let picture = Picture {
        title: &title,
        legend: "a box: a packet on the wire, a run of a handler, a transfer; dark and light: one \
                 packet and the next; grey: of any; lines: a packet's way, to the dot",
        mark: MARK,
        rows: &flow.rows,
        arrows: &flow.arrows,
    };
    let path = folder.join(format!("router-{}.svg", recording.datagram));
    std::fs::write(&path, picture.svg())
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{title}");
    for row in &flow.rows {
        let boxes = row.boxes.len();
        println!("  {:7} {:42} {boxes:5} boxes", row.name, row.of);
    }
    let [median, most] = forwarded.latency_us;
    let [typical, best] = forwarded.period_us;
    println!("  latency: {median:.1} us, at most {} us", at_most(most));
    println!(
        "  period: {typical:.2} us, the shortest {best:.2} us, typical over shortest {:.2}",
        forwarded.oscillation
    );
    println!("  picture: {}", path.display());
    if recording.functions {
        let (runs, begin) = &flow.functions;
        let path = folder.join(format!("router-{}-functions.txt", recording.datagram));
        std::fs::write(&path, listing(runs, *begin))
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("  functions: {}", path.display());
    }
    Ok(())
}
