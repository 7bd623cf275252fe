//! Validates the queue control block; opens and closes the queues.
//!
//! The host may change its memory at any time. This module validates the copy in NIC memory, and
//! the firmware uses nothing else later.

use super::classify::Classify;
use super::notify::Notify;
use super::queue::Queue;
pub use super::refused::Refused;
use super::report;
use super::state::Queues;
use crate::io::buffer_ring::RingId;
use crate::io::{Busy, IoA};
use crate::memory::layout::{QUEUE_BLOCK, QUEUE_CONTROL, QUEUES};
use crate::memory::overlay::{self, Overlay, Receiver};
use crate::memory::shared::{CLASSIC_NEXT, QUEUE_PRODUCERS};
use crate::path::receive::state::Receive;
use core::mem::offset_of;
use host_interface::queue::{
    BlockWord, QueueControl, QueueControlBlock, QueueResult, block, is_ring_size,
};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;

/// Bytes of a BD, as a shift.
const BD_SHIFT: u32 = 5;
/// Alignment of ring addresses: transfers move words, and the bus moves double words.
const RING_ALIGNMENT: u32 = 8;

/// A ring from its control block.
#[derive(Clone, Copy, Debug)]
struct Ring {
    host: HostAddress,
    entries: u32,
}

impl Ring {
    fn load<B: Bus>(bus: &mut B, rcb: u32) -> Ring {
        Ring {
            host: bus.load_host_address(rcb),
            entries: bus.load(rcb + 8) >> 16,
        }
    }

    /// Whether such a ring is possible.
    const fn is_possible(&self) -> bool {
        !self.host.is_null()
            && self.host.low & (RING_ALIGNMENT - 1) == 0
            && is_ring_size(self.entries)
            && self.start() <= u64::MAX - self.bytes()
    }

    const fn start(&self) -> u64 {
        (self.host.high as u64) << 32 | self.host.low as u64
    }

    const fn bytes(&self) -> u64 {
        (self.entries << BD_SHIFT) as u64
    }

    const fn overlaps(&self, other: &Ring) -> bool {
        self.start() < other.start() + other.bytes() && other.start() < self.start() + self.bytes()
    }
}

/// Offset of a field of queue `number` in NIC memory.
const fn of_queue(number: u32, offset: usize) -> u32 {
    const FIRST: u32 = QUEUE_CONTROL + offset_of!(QueueControlBlock, queue) as u32;
    FIRST + (number << 6) + offset as u32
}

const _: () = assert!(size_of::<QueueControl>() == 1 << 6);

fn buffers<B: Bus>(bus: &mut B, number: u32) -> Ring {
    Ring::load(bus, of_queue(number, offset_of!(QueueControl, buffers)))
}

fn returns<B: Bus>(bus: &mut B, number: u32) -> Ring {
    Ring::load(bus, of_queue(number, offset_of!(QueueControl, returns)))
}

/// Where the status line of a queue is.
fn status<B: Bus>(bus: &mut B, number: u32) -> HostAddress {
    let at = of_queue(number, offset_of!(QueueControl, status));
    bus.load_host_address(at)
}

/// Whether a ring overlaps one of the queues before `number`.
fn meets_another<B: Bus>(bus: &mut B, number: u32, ring: &Ring) -> bool {
    (0..number).any(|other| {
        let (buffers, returns) = (buffers(bus, other), returns(bus, other));
        ring.overlaps(&buffers) || ring.overlaps(&returns)
    })
}

/// Validates one queue.
fn judge<B: Bus>(bus: &mut B, number: u32) -> Result<(), QueueResult> {
    const STATUS_ALIGNMENT: u32 = 16;
    let ring = buffers(bus, number);
    if !ring.is_possible() || meets_another(bus, number, &ring) {
        return Err(QueueResult::BufferRing);
    }
    let back = returns(bus, number);
    if !back.is_possible() || back.overlaps(&ring) || meets_another(bus, number, &back) {
        return Err(QueueResult::ReturnRing);
    }
    let line = status(bus, number);
    if line.is_null() || line.low & (STATUS_ALIGNMENT - 1) != 0 {
        return Err(QueueResult::StatusLine);
    }
    if bus.load(of_queue(number, offset_of!(QueueControl, message))) != 0 {
        return Err(QueueResult::Message);
    }
    Ok(())
}

/// Sends all return BDs of classic mode to the host, because the queues reuse their slots.
///
/// # Errors
/// [`Busy`] while some are in flight.
#[inline(never)]
pub fn settle<B: Dispatch>(receive: &Receive, io: &mut IoA<B>) -> Result<(), Busy> {
    if receive.returns.waiting() != 0 {
        io.bus.set(EventBit::UpdateReceiveReturnProducer);
        return Err(Busy);
    }
    if io.all_written() { Ok(()) } else { Err(Busy) }
}

/// Suspends the rings of classic mode: no frame takes their BDs, and CPU B is asked to stop
/// fetching.
#[inline(never)]
pub fn rest<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    for id in RingId::ALL {
        let next = receive.rings.get_mut(id).rest();
        CLASSIC_NEXT.of(id as usize).set(&io.me, &mut io.bus, next);
    }
}

/// Resumes them; CPU B fetches again what it had fetched.
#[inline(never)]
pub fn resume<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    receive.returns.clear_slots(&mut io.bus);
    for id in RingId::ALL {
        receive.rings.get_mut(id).resume();
    }
    io.bus.set(EventBit::ReceiveComplete);
}

/// Validates the control block that was read, and prepares the queues; returns their number.
/// [`begin`] follows when CPU B is ready as well.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
#[inline(never)]
pub fn prepare<B: Dispatch>(queues: &mut Queues, io: &mut IoA<B>) -> Result<u32, Refused> {
    let bus = &mut io.bus;
    let count = bus.load(QUEUE_CONTROL + offset_of!(QueueControlBlock, queues) as u32);
    if count == 0 || count > QUEUES as u32 {
        return Err(Refused::of(QueueResult::QueueCount));
    }
    for number in 0..count {
        judge(bus, number).map_err(|result| Refused::about(result, number))?;
    }
    queues.classify = Classify::configured(bus, count)?;
    let every = queues
        .table
        .iter_mut()
        .zip(&mut queues.notify)
        .zip(&mut queues.returns);
    for (number, ((queue, notify), host)) in (0..count).zip(every) {
        let (buffers, returns) = (buffers(bus, number), returns(bus, number));
        *queue = Queue::open(bus, number, buffers.entries, returns.entries);
        // CPU B looks at the limits of all queues as soon as one has moved.
        QUEUE_PRODUCERS.of(number as usize).set(&io.me, bus, 0);
        *host = returns.host;
        let mut word = |offset| bus.load(of_queue(number, offset));
        let ticks = word(offset_of!(QueueControl, coalescing_ticks));
        let frames = word(offset_of!(QueueControl, coalescing_frames));
        *notify = Notify::configured(status(bus, number), ticks, frames);
    }
    queues.due = 0;
    Ok(count)
}

/// Starts sorting frames.
pub fn begin<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>, open: u32) {
    queues.open = open;
    classify_anew(receive, queues, io);
    receive.set_queues(open != 0);
    overlay::lead(Receiver::Other);
    io.bus.set(EventBit::ReceiveComplete);
}

/// Takes the classifier from the control block.
///
/// # Errors
/// [`Refused`]; the old classifier stays.
#[inline(never)]
pub fn update<B: Dispatch>(
    receive: &Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
) -> Result<(), Refused> {
    // No verdict is made while the rows are.
    queues.verdicts.end(io);
    let configured = Classify::configured(&mut io.bus, queues.open);
    if let Ok(classify) = configured {
        queues.classify = classify;
    }
    classify_anew(receive, queues, io);
    configured?;
    // The slots may have hashes, which not every classifier overwrites.
    for queue in &mut queues.table {
        queue.is_untidy();
    }
    count_read(&mut io.bus);
    Ok(())
}

/// Frames are classified by another classifier from now on.
fn classify_anew<B: Dispatch>(receive: &Receive, queues: &mut Queues, io: &mut IoA<B>) {
    let by_source = queues.classify.source_mask().is_some();
    overlay::place(if by_source {
        Overlay::BySource
    } else {
        Overlay::Ahead
    });
    if by_source {
        return queues.verdicts.end(io);
    }
    let oldest = receive.ring.oldest_number();
    let hashes = queues.classify.hashes() | queues.open << 24;
    let by_b = queues.classify.makes_hashes();
    queues.verdicts.begin(io, oldest, hashes, by_b);
}

/// Counts that the classifier was read.
pub fn count_read<B: Bus>(bus: &mut B) {
    let at = QUEUE_BLOCK + BlockWord::ClassifierReads as u32;
    let reads = bus.load(at).wrapping_add(1);
    bus.store(at, reads);
}

/// Stops sorting frames into queues. Sends the remaining return BDs and the status lines to the
/// host, without interrupts.
///
/// # Errors
/// [`Busy`] while there is no descriptor for them: the caller tries again.
#[inline(never)]
pub fn end<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
) -> Result<(), Busy> {
    report_all(queues, io)?;
    queues.open = 0;
    queues.verdicts.end(io);
    receive.set_queues(false);
    overlay::lead(Receiver::Classic);
    Ok(())
}

/// Reports all queues that have something to report, without interrupts.
#[inline(never)]
fn report_all<B: Dispatch>(queues: &mut Queues, io: &mut IoA<B>) -> Result<(), Busy> {
    let open = queues.open as usize;
    let every = queues
        .table
        .iter_mut()
        .zip(&mut queues.notify)
        .zip(&queues.returns);
    for ((queue, notify), host) in every.take(open) {
        queue.settle_now();
        if queue.waiting() != 0 || queue.unreported != 0 {
            queue.polled = true;
            if !report::report_queue(queue, notify, *host, io) {
                return Err(Busy);
            }
        }
    }
    Ok(())
}

/// Publishes the capabilities of this firmware in the queue block.
pub fn describe<B: Bus>(bus: &mut B) {
    use host_interface::queue::{ClassifierKind, HashTypes, TABLE_ENTRIES};
    let kinds = ClassifierKind::ALL
        .iter()
        .fold(0, |mask, kind| mask | kind.mask());
    for offset in (0..block::BLOCK_BYTES).step_by(4) {
        bus.store(QUEUE_BLOCK + offset, 0);
    }
    for (word, value) in [
        (BlockWord::Queues, QUEUES as u32),
        (BlockWord::Classifiers, kinds),
        (BlockWord::HashTypes, HashTypes::ALL.into_bits()),
        (BlockWord::TableEntries, TABLE_ENTRIES as u32),
        (BlockWord::BufferMailbox, block::BUFFER_MAILBOX),
        (BlockWord::RearmMailbox, block::REARM_MAILBOX),
    ] {
        bus.store(QUEUE_BLOCK + word as u32, value);
    }
}
