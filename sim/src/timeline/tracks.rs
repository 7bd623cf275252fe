//! A recording as boxes on tracks, which both outputs show.
//!
//! A *track* does one thing at a time: a CPU, a DMA channel, the PCI bus, a side of the MAC. Its
//! boxes never overlap. The *kind* of a box is the event that it is an occurrence of.

use super::Timeline;
use super::event::{DmaTransfer, Event, Payload, Run, Span};
use super::packets::Packet;
use crate::theme::{self, Colour};
use crate::timing::counts::Cause;
use std::collections::BTreeMap;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_model::Direction;

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Track {
    /// The host writes mailboxes.
    Host,
    /// CPU A runs handlers.
    CpuA,
    /// CPU B runs handlers.
    CpuB,
    /// The DMA channel from the host.
    DmaRead,
    /// The DMA channel to the host.
    DmaWrite,
    /// The PCI bus.
    Pci,
    /// The MAC sends.
    Transmit,
    /// The MAC receives.
    Receive,
    /// The interrupt line.
    Interrupt,
}

impl Track {
    /// All of them, from top to bottom.
    pub const ALL: [Track; 9] = [
        Track::Host,
        Track::CpuA,
        Track::CpuB,
        Track::DmaRead,
        Track::DmaWrite,
        Track::Pci,
        Track::Transmit,
        Track::Receive,
        Track::Interrupt,
    ];

    /// What to call it.
    pub const fn name(self) -> &'static str {
        match self {
            Track::Host => "host",
            Track::CpuA => "CPU A",
            Track::CpuB => "CPU B",
            Track::DmaRead => "DMA read",
            Track::DmaWrite => "DMA write",
            Track::Pci => "PCI bus",
            Track::Transmit => "MAC transmit",
            Track::Receive => "MAC receive",
            Track::Interrupt => "interrupt",
        }
    }

    /// The colour of its boxes; the MAC's are those of the frames that it moves.
    pub const fn colour(self) -> Colour {
        match self {
            Track::Host => theme::QUIET,
            Track::CpuA => theme::GREEN,
            Track::CpuB => theme::ORANGE,
            Track::DmaRead => theme::SKY,
            Track::DmaWrite => theme::PURPLE,
            Track::Pci => theme::RULE,
            Track::Transmit => theme::OUT,
            Track::Receive => theme::IN,
            Track::Interrupt => theme::INK,
        }
    }

    const fn cpu(cpu: Cpu) -> Track {
        match cpu {
            Cpu::A => Track::CpuA,
            // There are no tracks for the CPUs of boards beyond the chip.
            _ => Track::CpuB,
        }
    }
}

/// Something to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// On which track.
    pub track: Track,
    /// What it is an occurrence of.
    pub kind: String,
    /// When.
    pub span: Span,
    /// The event, by its place in [`Timeline::events`].
    pub event: usize,
    /// The frames that it is a step of, by their place in the list of packets.
    pub packets: Vec<usize>,
    /// What else there is to say about it.
    pub details: Vec<(&'static str, String)>,
}

/// The name of a handler: the firmware's own, or that of its event.
fn handler(timeline: &Timeline, run: &Run) -> String {
    let bit = run.bit;
    if let Some(name) = timeline.handlers.get(&(run.cpu.index(), bit)) {
        return name.clone();
    }
    EventBit::from_number(bit.into())
        .map_or_else(|| format!("bit {bit}"), |event| event.name().to_owned())
}

/// The boxes of the part of a recording that is looked at, and of the whole way of the
/// frames given; by track and time.
pub fn boxes(timeline: &Timeline, packets: &[Packet]) -> Vec<Occurrence> {
    let mut of_event = vec![Vec::new(); timeline.events.len()];
    for (place, packet) in packets.iter().enumerate() {
        for step in &packet.steps {
            if of_event[step.event].last() != Some(&place) {
                of_event[step.event].push(place);
            }
        }
    }
    let mut asserted = None;
    let mut boxes: Vec<Occurrence> = Vec::new();
    for (event, what) in timeline.events.iter().enumerate() {
        let packets = std::mem::take(&mut of_event[event]);
        let mut put = |track, kind: String, span, packets, details| {
            boxes.push(Occurrence {
                track,
                kind,
                span,
                event,
                packets,
                details,
            });
        };
        match what {
            Event::Run(run) => {
                put(
                    Track::cpu(run.cpu),
                    handler(timeline, run),
                    run.span,
                    packets,
                    of_run(run),
                );
            }
            Event::Dma(transfer) => {
                let (track, kind) = of_transfer(transfer);
                put(
                    track,
                    kind.into(),
                    transfer.span,
                    packets,
                    details(transfer),
                );
            }
            Event::Bus {
                direction,
                span,
                data,
            } => {
                let kind = match direction {
                    Direction::Read => "read",
                    Direction::Write => "write",
                };
                let latency = data.saturating_sub(span.start).to_string();
                let said = vec![("latency, cycles", latency)];
                put(Track::Pci, kind.into(), *span, packets, said);
            }
            Event::Transmit {
                span,
                local,
                length,
            } => {
                let said = vec![("bytes", length.to_string()), ("NIC address", hex(*local))];
                put(Track::Transmit, "frame".into(), *span, packets, said);
            }
            Event::Receive {
                span,
                local,
                length,
                ..
            } => {
                let place = local.map_or_else(|| "dropped".into(), hex);
                let said = vec![("bytes", length.to_string()), ("NIC address", place)];
                put(Track::Receive, "frame".into(), *span, packets, said);
            }
            Event::Mailbox { name, value, at } => {
                let span = Span {
                    start: *at,
                    end: at + 1,
                };
                let said = vec![("value", value.to_string())];
                put(Track::Host, (*name).into(), span, packets, said);
            }
            Event::Interrupt { asserted: true, at } => asserted = Some((event, *at, packets)),
            Event::Interrupt { at, .. } => {
                if let Some((event, start, packets)) = asserted.take() {
                    boxes.push(line(event, start, *at, packets));
                }
            }
            Event::Queued { .. } | Event::SendBd { .. } | Event::SendConsumer { .. } => {}
        }
    }
    if let Some((event, start, packets)) = asserted {
        boxes.push(line(event, start, timeline.to, packets));
    }
    boxes.retain(|one| !one.packets.is_empty() || one.span.meets(timeline.shown));
    boxes.sort_by_key(|one| (one.track, one.span));
    boxes
}

/// INTA# is asserted.
fn line(event: usize, start: u64, end: u64, packets: Vec<usize>) -> Occurrence {
    Occurrence {
        track: Track::Interrupt,
        kind: "asserted".into(),
        span: Span { start, end },
        event,
        packets,
        details: Vec::new(),
    }
}

fn hex(address: u32) -> String {
    format!("{address:#x}")
}

fn of_run(run: &Run) -> Vec<(&'static str, String)> {
    let mut said = vec![
        ("cycles", run.span.cycles().to_string()),
        ("instructions", run.tally.instructions.to_string()),
        ("dispatch before, cycles", run.dispatch.to_string()),
    ];
    for cause in Cause::ALL {
        let cycles = run.tally.of(cause);
        if cycles != 0 {
            said.push((cause.name(), cycles.to_string()));
        }
    }
    said
}

const fn of_transfer(transfer: &DmaTransfer) -> (Track, &'static str) {
    let track = match transfer.direction {
        Direction::Read => Track::DmaRead,
        Direction::Write => Track::DmaWrite,
    };
    let kind = match &transfer.payload {
        Payload::Data => "data",
        Payload::SendBds { .. } => "send BDs",
        Payload::ReceiveBds { .. } => "receive BDs",
        Payload::ReturnBds { .. } => "return BDs",
        Payload::QueueStatus { .. } => "status line",
        Payload::ReturnIndex(_) => "return index",
        Payload::SendIndex(_) => "send index",
        Payload::Control => "control",
    };
    (track, kind)
}

fn details(transfer: &DmaTransfer) -> Vec<(&'static str, String)> {
    let mut said = vec![
        ("bytes", transfer.length.to_string()),
        ("host address", format!("{:#x}", transfer.host)),
        ("NIC address", hex(transfer.local)),
        ("cycles", transfer.span.cycles().to_string()),
    ];
    match &transfer.payload {
        Payload::SendBds { first, count } => {
            said.push(("BDs", format!("{count} from {first} on")));
        }
        Payload::ReceiveBds { ring, first, count } => {
            said.push(("BDs", format!("{ring}, {count} from {first} on")));
        }
        Payload::ReturnBds {
            queue,
            first,
            frames,
        } => {
            said.extend(queue.map(|queue| ("queue", queue.to_string())));
            said.push(("BDs", format!("{} from {first} on", frames.len())));
        }
        Payload::QueueStatus { queue, producer } => {
            said.push(("queue", queue.to_string()));
            said.push(("index", producer.to_string()));
        }
        Payload::ReturnIndex(value) | Payload::SendIndex(value) => {
            said.push(("index", value.to_string()));
        }
        Payload::Data | Payload::Control => {}
    }
    said
}

/// The rows of a picture of boxes, from top to bottom: by track, handlers from the most urgent
/// one down, other kinds by name. Each row's first box stands for it; the second list has
/// the row of each box.
pub fn rows(timeline: &Timeline, boxes: &[Occurrence]) -> (Vec<usize>, Vec<usize>) {
    let key = |one: &Occurrence| {
        let urgency = match &timeline.events[one.event] {
            Event::Run(run) => u8::MAX - run.bit,
            _ => 0,
        };
        (one.track, urgency, one.kind.clone())
    };
    let mut firsts = BTreeMap::new();
    for (n, one) in boxes.iter().enumerate() {
        firsts.entry(key(one)).or_insert(n);
    }
    let places: BTreeMap<_, usize> = firsts.keys().cloned().zip(0..).collect();
    let of_boxes = boxes.iter().map(|one| places[&key(one)]).collect();
    (firsts.into_values().collect(), of_boxes)
}

/// The box of each event, if it has one.
pub fn of_events(timeline: &Timeline, boxes: &[Occurrence]) -> Vec<Option<usize>> {
    let mut of_events = vec![None; timeline.events.len()];
    for (n, one) in boxes.iter().enumerate() {
        of_events[one.event] = Some(n);
    }
    of_events
}

/// The boxes of a frame's steps, each with that of its cause: the nearest step before it that
/// has a box.
pub fn arrows(packet: &Packet, box_of: &[Option<usize>]) -> Vec<(usize, Option<usize>)> {
    let drawn = |step: usize| box_of[packet.steps[step].event];
    let mut arrows = Vec::new();
    for (n, step) in packet.steps.iter().enumerate() {
        let Some(place) = drawn(n) else { continue };
        let mut cause = step.after;
        while let Some(before) = cause.filter(|before| drawn(*before).is_none()) {
            cause = packet.steps[before].after;
        }
        arrows.push((place, cause.and_then(drawn)));
    }
    arrows
}
