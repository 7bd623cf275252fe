//! The layout of the memory that driver and card share, computed from a plan.
//!
//! Control and each queue have their own piece of DMA memory. A [`Layout`] allocates a piece from
//! its start; an allocated span is consumed when it becomes a region, so two regions never share a
//! byte.
//!
//! ```text
//!  control            a send queue          a receive queue
//!  +---------------+  +-----------------+   +---------------------------+
//!  | information   |  | send ring       |   | return ring               |
//!  | event index   |  |   (or on card)  |   | standard, jumbo, mini ring|
//!  | event ring    |  | consumer index  |   | return producer index     |
//!  +---------------+  | a slot for each |   | a slot for each buffer    |
//!                     |   BD            |   |   of each ring            |
//!                     +-----------------+   +---------------------------+
//! ```
//!
//! Rings and slots are aligned to their size, a power of two, so that none crosses a boundary at
//! which the card's addresses may jump ([`DmaMemory::address`]). Each index that the card writes
//! has its own cache line.

use host_interface::info::GeneralInformationBlock;
use host_interface::queue::control::CONTROL_BYTES;
use host_interface::ring;

use super::plan::{BufferPlan, Plan, ReceivePlan, SendPlan};
use super::region::{Slots, Table};
use super::rings::SendRingPlace;
use crate::dma::DmaMemory;

/// Distance of indices that the card writes.
const INDEX_ALIGN: usize = 64;
/// Words of the general information block.
pub(super) const INFO_WORDS: usize = size_of::<GeneralInformationBlock>() / 4;
/// Words of the queue control block.
pub(super) const CONTROL_WORDS: usize = CONTROL_BYTES / 4;

/// Allocates the bytes of one piece of memory.
#[derive(Debug, Default)]
pub(super) struct Layout {
    end: usize,
}

/// Allocated bytes of a piece of memory; it cannot be copied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    offset: usize,
    bytes: usize,
}

/// The span of a table with entries of `WORDS` words.
#[derive(Debug)]
pub(super) struct TableSpan<const WORDS: usize> {
    span: Span,
    entries: u32,
}

/// The span of slots.
#[derive(Debug)]
pub(super) struct SlotsSpan {
    span: Span,
    count: usize,
    bytes: usize,
}

/// A buffer ring's BDs: with one buffer each, or four.
#[derive(Debug)]
pub(super) enum BufferTable<N, E> {
    /// BDs of 32 bytes.
    Normal(N),
    /// BDs of 64 bytes.
    Extended(E),
}

impl Layout {
    fn take(&mut self, bytes: usize, align: usize) -> Span {
        let offset = self.end.next_multiple_of(align);
        self.end = offset + bytes;
        Span { offset, bytes }
    }

    /// A table of `entries` entries, a power of two.
    fn table<const WORDS: usize>(&mut self, entries: u32) -> TableSpan<WORDS> {
        let bytes = entries as usize * WORDS * 4;
        let align = bytes.next_power_of_two().max(INDEX_ALIGN);
        let span = self.take(bytes, align);
        TableSpan { span, entries }
    }

    fn slots(&mut self, count: usize, bytes: usize) -> SlotsSpan {
        let span = self.take(count * bytes, bytes.next_power_of_two());
        SlotsSpan { span, count, bytes }
    }

    fn buffers(&mut self, plan: &BufferPlan) -> BufferTable<TableSpan<8>, TableSpan<16>> {
        if plan.extended {
            BufferTable::Extended(self.table(plan.entries))
        } else {
            BufferTable::Normal(self.table(plan.entries))
        }
    }
}

impl<const WORDS: usize> TableSpan<WORDS> {
    /// The table, in memory that was allocated for its layout.
    pub fn within(self, memory: &DmaMemory) -> Table<WORDS> {
        Table::new(memory, self.span.offset, self.entries)
    }
}

impl SlotsSpan {
    /// The slots, in memory that was allocated for their layout.
    pub fn within(self, memory: &DmaMemory) -> Slots {
        Slots::new(memory, self.span.offset, self.count, self.bytes)
    }
}

/// The layout of control's memory.
#[derive(Debug)]
pub(super) struct ControlLayout {
    pub info: TableSpan<INFO_WORDS>,
    pub event_producer: TableSpan<2>,
    pub events: TableSpan<2>,
    /// Bytes in all.
    pub bytes: usize,
}

/// The layout of queue mode's memory that belongs to no queue.
#[derive(Debug)]
pub(super) struct QueueControlLayout {
    pub control: TableSpan<CONTROL_WORDS>,
    pub bytes: usize,
}

impl QueueControlLayout {
    pub fn new() -> Self {
        let mut layout = Layout::default();
        Self {
            control: layout.table(1),
            bytes: layout.end,
        }
    }
}

/// The layout of a send queue's memory.
#[derive(Debug)]
pub(super) struct SendLayout {
    pub consumer: TableSpan<2>,
    /// None if the ring is on the card.
    pub bds: Option<TableSpan<4>>,
    pub slots: SlotsSpan,
    pub bytes: usize,
}

/// The layout of a receive queue's memory.
#[derive(Debug)]
pub(super) struct ReceiveLayout {
    pub producer: TableSpan<4>,
    pub returns: TableSpan<8>,
    /// In the order of the plan.
    pub rings: Vec<(BufferTable<TableSpan<8>, TableSpan<16>>, SlotsSpan)>,
    pub bytes: usize,
}

/// The memory of a card: one piece for control and one for each queue.
#[derive(Debug)]
pub(super) struct CardLayout {
    pub control: ControlLayout,
    pub send: Vec<SendLayout>,
    pub receive: Vec<ReceiveLayout>,
}

impl ControlLayout {
    pub fn new() -> Self {
        let mut layout = Layout::default();
        Self {
            info: layout.table(1),
            event_producer: layout.table(1),
            events: layout.table(ring::EVENT_ENTRIES),
            bytes: layout.end,
        }
    }
}

impl SendLayout {
    fn of(plan: &SendPlan) -> Self {
        let mut layout = Layout::default();
        let bds = (plan.place == SendRingPlace::Host).then(|| layout.table(plan.entries));
        Self {
            bds,
            consumer: layout.table(1),
            slots: layout.slots(plan.entries as usize, plan.slot),
            bytes: layout.end,
        }
    }
}

impl ReceiveLayout {
    /// The memory of one receive queue.
    pub fn of(plan: &ReceivePlan) -> Self {
        let mut layout = Layout::default();
        // The largest first, so that little space is wasted.
        let returns = layout.table(plan.returns);
        let tables: Vec<_> = plan.rings.iter().map(|ring| layout.buffers(ring)).collect();
        let producer = layout.table(1);
        let slots = plan
            .rings
            .iter()
            .map(|ring| layout.slots(usize::from(ring.buffers), ring.slot));
        Self {
            producer,
            returns,
            rings: tables.into_iter().zip(slots).collect(),
            bytes: layout.end,
        }
    }
}

impl CardLayout {
    /// The layout of a plan's queues.
    pub fn of(plan: &Plan) -> Self {
        Self {
            control: ControlLayout::new(),
            send: plan.send.iter().map(SendLayout::of).collect(),
            receive: plan.receive.iter().map(ReceiveLayout::of).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
