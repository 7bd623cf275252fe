//! The path of each frame through the card, reconstructed from a recording.
//!
//! ```text
//!   out  mailbox ► Mailbox ► SendBdReady ► BDs ► SendDataReady ► data ┬► MAC
//!        (host)    (CPU)     (CPU)        (DMA)  (CPU)          (DMA) └► DmaReadComplete ► word
//!                                                   ► Update... ► index ► interrupt
//!   in   MAC ► ReceiveComplete ► data ► return BD ► Update... ► index ► interrupt
//!              (CPU)            (DMA)   (DMA)       (CPU)       (DMA)
//! ```
//!
//! In queue mode the return BD lies in the ring of the frame's queue and names queue and hash, and
//! the queue's status line takes the index's place.
//!
//! The order of events is not used as evidence: a step belongs to a frame by the ring index of its
//! BDs, by the host address in a BD, by the NIC address of its bytes, or by the DMA descriptor
//! that a handler queued.

mod index;

use super::Timeline;
use super::event::{DmaTransfer, Event, Span, Verdict};
use index::{Index, covers};

/// What a step of a frame's way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The host wrote the mailbox.
    Mailbox,
    /// A handler worked on it.
    Handler,
    /// Its BDs were fetched.
    Fetch,
    /// Its bytes were moved by DMA.
    Data,
    /// The MAC had it.
    Mac,
    /// Its return BD was written.
    Return,
    /// An index in memory notified the host.
    Index,
    /// The word that the host reads notified it.
    Consumer,
    /// The interrupt.
    Interrupt,
}

/// A step of a frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is.
    pub stage: Stage,
    /// The event, by its place in [`Timeline::events`].
    pub event: usize,
    /// When.
    pub span: Span,
    /// The step that caused it, by its place among the frame's steps.
    pub after: Option<usize>,
}

/// A frame and its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether the host sent it.
    pub outgoing: bool,
    /// How many frames of its direction came before it in the recording.
    pub ordinal: u64,
    /// Its number, if it has one.
    pub number: Option<u64>,
    /// Its bytes without CRC.
    pub length: u32,
    /// What the card's classifier has found, of a frame received in queue mode.
    pub verdict: Option<Verdict>,
    /// Its way, causes before effects.
    pub steps: Vec<Step>,
    /// Whether all of its way is in the recording.
    pub complete: bool,
}

impl Packet {
    /// What to call it.
    pub fn name(&self) -> String {
        let way = if self.outgoing { "out" } else { "in" };
        let name = format!("{way} {}", self.number.unwrap_or(self.ordinal));
        match self.verdict {
            None => name,
            Some(verdict) => format!("{name}, {verdict}"),
        }
    }

    /// From its first step to the end of its last one.
    pub fn span(&self) -> Span {
        let starts = self.steps.iter().map(|step| step.span.start);
        let ends = self.steps.iter().map(|step| step.span.end);
        Span {
            start: starts.min().unwrap_or(0),
            end: ends.max().unwrap_or(0),
        }
    }

    /// The first step of a stage.
    pub fn step(&self, stage: Stage) -> Option<&Step> {
        self.steps.iter().find(|step| step.stage == stage)
    }

    fn then(&mut self, stage: Stage, event: usize, span: Span, after: Option<usize>) -> usize {
        // One run may do several things for a frame.
        let same = |step: &Step| step.event == event && step.stage == stage;
        if let Some(known) = self.steps.iter().position(same) {
            return known;
        }
        self.steps.push(Step {
            stage,
            event,
            span,
            after,
        });
        self.steps.len() - 1
    }
}

/// Finds the way of every frame of a recording: those that the host sent, then those that
/// it received, each in their order.
pub fn follow(timeline: &Timeline) -> Vec<Packet> {
    let index = Index::new(timeline);
    let mut packets = index.outgoing();
    packets.extend(index.incoming());
    packets
}

/// The frames that the MAC had within a span.
pub fn on_wire_in(packets: Vec<Packet>, span: Span) -> Vec<Packet> {
    let within = |packet: &Packet| {
        let mac = packet.step(Stage::Mac);
        mac.is_some_and(|step| step.span.meets(span))
    };
    packets.into_iter().filter(within).collect()
}

impl Index<'_> {
    /// Adds a transfer behind the run that queued it; returns its place.
    fn moved(
        &self,
        packet: &mut Packet,
        stage: Stage,
        found: (usize, &DmaTransfer),
        mut after: Option<usize>,
    ) -> usize {
        let (place, transfer) = found;
        if let Some((_, run_place, run)) = self.queued_by(transfer) {
            after = Some(packet.then(Stage::Handler, run_place, run.span, after));
        }
        packet.then(stage, place, transfer.span, after)
    }

    fn interrupted(&self, packet: &mut Packet, from: u64, after: usize) -> bool {
        let behind = self.interrupts.partition_point(|(_, at)| *at < from);
        let Some((place, at)) = self.interrupts.get(behind) else {
            return false;
        };
        let span = Span {
            start: *at,
            end: *at,
        };
        packet.then(Stage::Interrupt, *place, span, Some(after));
        true
    }

    fn outgoing(&self) -> Vec<Packet> {
        let mut packets = Vec::new();
        let mut bds = Vec::new();
        for event in self.events() {
            let Event::SendBd {
                index,
                host,
                length,
                last,
                number,
                at,
            } = event
            else {
                continue;
            };
            bds.push((*index, *host, *length, *at));
            if *last {
                let mut packet = Packet {
                    outgoing: true,
                    ordinal: packets.len() as u64,
                    number: *number,
                    length: bds.iter().map(|bd| bd.2).sum(),
                    verdict: None,
                    steps: Vec::new(),
                    complete: false,
                };
                packet.complete = self.follow_out(&mut packet, &bds).is_some();
                packets.push(packet);
                bds.clear();
            }
        }
        packets
    }

    /// `None` where the recording ends.
    fn follow_out(&self, packet: &mut Packet, bds: &[(u32, u64, u32, u64)]) -> Option<()> {
        let (first, .., given) = *bds.first()?;
        let (last, ..) = *bds.last()?;
        let mailbox = *self.mailboxes.get(&given)?;
        let span = Span {
            start: given,
            end: given + 1,
        };
        let mut step = packet.then(Stage::Mailbox, mailbox, span, None);
        let (place, fetch) = self.first_from(self.fetches.get(&first), given)?;
        if let Some((queued, ..)) = self.queued_by(fetch)
            && let Some((run_place, run)) = self.mailbox_run(given, queued)
        {
            step = packet.then(Stage::Handler, run_place, run.span, Some(step));
        }
        step = self.moved(packet, Stage::Fetch, (place, fetch), Some(step));
        let fetched = step;
        let mut from = fetch.span.end;
        let mut local = None;
        for (_, host, ..) in bds {
            let found = self.first_from(self.read.get(host), from)?;
            step = self.moved(packet, Stage::Data, found, Some(fetched));
            from = found.1.span.end;
            local = local.or(Some(found.1.local));
        }
        let arrived = from;
        let sent =
            self.transmits
                .get(&local?)?
                .iter()
                .find_map(|place| match self.events().get(*place) {
                    Some(Event::Transmit { span, .. }) if span.start >= arrived => {
                        Some((*place, *span))
                    }
                    _ => None,
                });
        if let Some((place, span)) = sent {
            packet.then(Stage::Mac, place, span, Some(step));
        }
        let reported = self.reported_consumed(packet, last, arrived, step)?;
        sent?;
        let from = packet.steps[reported].span.end;
        self.interrupted(packet, from, reported).then_some(())
    }

    /// How the host learns that the BD at `last` is its own again: by a word on the card, and
    /// by an index in its memory if it has asked for that. Returns the last of these steps.
    fn reported_consumed(
        &self,
        packet: &mut Packet,
        last: u32,
        from: u64,
        after: usize,
    ) -> Option<usize> {
        let entries = self.timeline?.send_entries;
        let (mut told, mut from, mut after) = (None, from, after);
        let behind = self.consumers.partition_point(|(_, at, ..)| *at < from);
        let word = self.consumers[behind..]
            .iter()
            .find(|(.., value)| covers(*value, last, entries));
        if let Some((place, at, cpu, _)) = word {
            if let Some((run_place, run)) = self.run_at(*cpu, *at) {
                after = packet.then(Stage::Handler, run_place, run.span, Some(after));
            }
            let span = Span {
                start: *at,
                end: *at,
            };
            after = packet.then(Stage::Consumer, *place, span, Some(after));
            (told, from) = (Some(after), *at);
        }
        if self.send_indices.is_empty() {
            return told;
        }
        let found = self.index_after(&self.send_indices, from, last, entries)?;
        Some(self.moved(packet, Stage::Index, found, Some(after)))
    }

    fn incoming(&self) -> Vec<Packet> {
        let mut packets = Vec::new();
        for (place, event) in self.events().iter().enumerate() {
            let Event::Receive {
                span,
                local: Some(local),
                length,
                number,
            } = event
            else {
                continue;
            };
            let mut packet = Packet {
                outgoing: false,
                ordinal: packets.len() as u64,
                number: *number,
                length: *length,
                verdict: None,
                steps: Vec::new(),
                complete: false,
            };
            packet.then(Stage::Mac, place, *span, None);
            packet.complete = self.follow_in(&mut packet, *local, span.end).is_some();
            packets.push(packet);
        }
        packets
    }

    fn follow_in(&self, packet: &mut Packet, local: u32, arrived: u64) -> Option<()> {
        let range = local..local + packet.length;
        let found = self
            .write
            .range(range)
            .filter_map(|(_, list)| self.first_from(Some(list), arrived))
            .min_by_key(|(_, transfer)| transfer.span.start)?;
        let buffer = found.1.host;
        let step = self.moved(packet, Stage::Data, found, Some(0));
        let moved = found.1.span.start;
        let back = self.returns.get(&buffer)?.iter();
        let back = back.copied().find(|back| {
            self.transfer(back.place)
                .is_some_and(|transfer| transfer.span.start >= moved)
        })?;
        packet.verdict = back.verdict;
        let transfer = self.transfer(back.place)?;
        let step = self.moved(packet, Stage::Return, (back.place, transfer), Some(step));
        let timeline = self.timeline?;
        let (list, entries) = match back.queue {
            None => (&self.indices, timeline.return_entries),
            Some(queue) => {
                let queue = usize::from(queue);
                (
                    self.statuses.get(queue)?,
                    *timeline.queue_entries.get(queue)?,
                )
            }
        };
        let found = self.index_after(list, transfer.span.end, back.index, entries)?;
        let step = self.moved(packet, Stage::Index, found, Some(step));
        self.interrupted(packet, found.1.span.end, step)
            .then_some(())
    }
}
