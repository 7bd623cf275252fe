//! The fast path of queue mode: runs of frames that need no inspection.
//!
//! As the [fast path](super::super::fast_path) of classic mode, with a queue for each frame. The
//! state of the queue is in memory, so a frame costs more. Any other frame ends the run, and
//! [`slow_path`](super::slow_path) handles it.

use super::classify::{self, Classify, Found};
use super::queue::Queue;
use super::state::Queues;
use super::verdicts::By;
use crate::io::note::WriteNote;
use crate::io::{IoA, filter};
use crate::memory::layout::{QUEUE_SLOTS, QUEUES, VERDICTS, verdict_offset};
use crate::path::receive::deliver::{NOW, Taken, flags_of};
use crate::path::receive::frame::CRC;
use crate::path::receive::state::Receive;
use flow_classify::classifier::LEAST;
use flow_classify::fields::Version;
use host_interface::bd::ReceiveBdAt;
use host_interface::bd::destination::UNICAST;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Transfers of a frame.
pub(super) const TRANSFERS: u32 = 1;

/// The result of a run, in two words, which a function returns in registers. What its last frame
/// has for a verdict is in [`Queues`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// From bit 0 on the number of frames that were delivered, from [`TOUCHED`] on the queues that
    /// got some, from [`END`] on why it ended, from [`AT_ONCE`] on whether a BD asked for a report.
    word: u32,
    /// The bytes of these frames.
    octets: u32,
}

const TOUCHED: u32 = 8;
const END: u32 = 16;
const AT_ONCE: u32 = 24;

impl Run {
    /// No frame is for the fast path.
    const NONE: Run = Run {
        word: (End::Slow as u32) << END,
        octets: 0,
    };

    /// Frames that were delivered.
    #[inline(always)]
    pub const fn count(self) -> u32 {
        self.word & 0xFF
    }

    /// The queues that got frames, a bit for each.
    #[inline(always)]
    pub const fn touched(self) -> u32 {
        self.word >> TOUCHED & 0xFF
    }

    /// Whether a BD asked for a report at once.
    #[inline(always)]
    const fn at_once(self) -> bool {
        self.word >> AT_ONCE != 0
    }

    /// Whether it ended for this reason.
    #[inline(always)]
    pub const fn is(self, end: End) -> bool {
        self.word >> END & 0xFF == end as u32
    }

    /// The same run, which ended because there were as many frames as one CPU has classified.
    #[inline(always)]
    const fn again(self) -> Run {
        Run {
            word: self.word & !(0xFF << END) | (End::Again as u32) << END,
            ..self
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// No frame is there any more, or there were as many as were asked for.
    Done,
    /// There were as many as one CPU has classified.
    Again,
    /// There is no descriptor for the next frame, if there is one.
    Full,
    /// The queue of the next frame needs a look.
    Look,
    /// The next frame is one for the slow path.
    Slow,
}

/// How frames get their verdicts. The loop is compiled for each of them.
trait Verdicts {
    /// Whether there is a hash; if not, the slots have zeros in its place.
    const HASHES: bool;

    /// The verdict on a frame at least [`LEAST`] long, whose descriptor is at offset `at`.
    fn next<B: Bus>(&mut self, bus: &mut B, at: u32, start: u32, length: u32) -> Found;
}

/// By the source address.
struct BySource {
    mask: u32,
}

impl Verdicts for BySource {
    const HASHES: bool = false;

    #[inline(always)]
    fn next<B: Bus>(&mut self, bus: &mut B, _: u32, start: u32, length: u32) -> Found {
        classify::by_source(bus, start, length, self.mask)
    }
}

/// By the verdicts in their ring: CPU B's, which has [classified ahead](crate::path::ahead), or
/// CPU A's own.
struct Ahead;

impl Verdicts for Ahead {
    const HASHES: bool = true;

    #[inline(always)]
    fn next<B: Bus>(&mut self, bus: &mut B, at: u32, _: u32, _: u32) -> Found {
        let verdict = VERDICTS + verdict_offset(at);
        Found {
            kind: bus.load(verdict),
            hash: bus.load(verdict + 4),
        }
    }
}

/// By CPU A's cache, of IPv4 flows if not `SIX`: frames of its flows alone.
struct Cached<'a, const SIX: bool> {
    classify: &'a Classify,
}

impl<const SIX: bool> Verdicts for Cached<'_, SIX> {
    const HASHES: bool = true;

    #[inline(always)]
    fn next<B: Bus>(&mut self, bus: &mut B, _: u32, start: u32, length: u32) -> Found {
        if SIX {
            self.classify.cached_ipv6(bus, start, length)
        } else {
            self.classify.cached_ipv4(bus, start, length)
        }
    }
}

/// Delivers up to `most` frames of flows in CPU A's cache, of IPv6 if `SIX`, else of IPv4.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn run_cached<B: Dispatch, const SIX: bool>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    most: u32,
    lengths: u32,
) -> Run {
    let mut verdicts = Cached::<SIX> {
        classify: &queues.classify,
    };
    run_by(
        &mut verdicts,
        receive,
        &mut queues.table,
        &mut queues.found,
        io,
        most,
        lengths,
    )
}

/// Delivers up to `most` frames of `lengths` that go by source address, of which `mask` is what counts.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low"))]
#[inline(never)]
fn run_by_source<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    mask: u32,
    most: u32,
    lengths: u32,
) -> Run {
    run_by(
        &mut BySource { mask },
        receive,
        &mut queues.table,
        &mut queues.found,
        io,
        most,
        lengths,
    )
}

/// Delivers up to `most` frames that have verdicts.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low_ahead"))]
#[inline(never)]
fn run_ahead<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    most: u32,
    lengths: u32,
) -> Run {
    run_by(
        &mut Ahead,
        receive,
        &mut queues.table,
        &mut queues.found,
        io,
        most,
        lengths,
    )
}

/// Delivers up to `most` frames; fewer when CPU B classifies and has not come further.
#[inline(always)]
pub(super) fn run<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    most: u32,
) -> Run {
    let lengths = receive.queue_lengths(LEAST);
    let run = if let Some(mask) = queues.classify.source_mask() {
        run_by_source(receive, queues, io, mask, most, lengths)
    } else if !queues.verdicts.is_open {
        // There is no room for verdicts.
        queues.found = Found::NONE;
        Run::NONE
    } else {
        by_hash(receive, queues, io, most, lengths)
    };
    let count = run.count();
    if count != 0 {
        io.frees_with_data();
        receive.counters.received(UNICAST, count, run.octets);
        if run.at_once() {
            // Which of them asked for it is not worth a look at each.
            queues.due |= run.touched();
        }
    }
    run
}

/// The same by verdicts, or where CPU A has claimed frames by its cache.
#[inline(always)]
fn by_hash<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    most: u32,
    lengths: u32,
) -> Run {
    let next = match queues.verdicts.look_at_few(&queues.classify) {
        Some(few) if few.count <= most => few,
        _ => queues
            .verdicts
            .look(receive, &mut queues.classify, io, most),
    };
    let mut run = match next.by {
        By::Verdicts => run_ahead(receive, queues, io, next.count, lengths),
        By::Cache(Version::V4) => run_cached::<_, false>(receive, queues, io, next.count, lengths),
        By::Cache(Version::V6) => run_cached::<_, true>(receive, queues, io, next.count, lengths),
    };
    queues.verdicts.released(run.count());
    if !next.done && run.count() == next.count {
        run = run.again();
    }
    if next.by != By::Verdicts && run.is(End::Slow) && !queues.found.is_some() {
        let classify = &mut queues.classify;
        queues.verdicts.missed(receive, classify, io);
        run = run.again();
    }
    run
}

/// The run itself, as [`run`]. One loop in one function: what goes from frame to frame is in
/// registers, and the queue's state is taken from the scratch pad once a frame.
#[inline(always)]
fn run_by<B: Dispatch>(
    verdicts: &mut impl Verdicts,
    receive: &mut Receive,
    table: &mut [Queue; QUEUES],
    at_end: &mut Found,
    io: &mut IoA<B>,
    most: u32,
    lengths: u32,
) -> Run {
    let IoA {
        bus,
        write_ring,
        states,
        ..
    } = io;
    // Of the CRC.
    let kept = CRC - receive.cut;
    let state = states.data;
    let mut frames = receive.ring.open();
    let mut writes = write_ring.open();
    let limit = most.min(writes.free());
    let mut left = limit;
    let (mut octets, mut touched, mut flags) = (0, 0, 0);
    let (end, verdict) = loop {
        if left == 0 {
            break if limit == most {
                (End::Done, Found::NONE)
            } else {
                (End::Full, Found::NONE)
            };
        }
        let Some(frame) = frames.oldest(bus) else {
            break (End::Done, Found::NONE);
        };
        // Errors make it longer than any frame.
        let length = (frame.errors << 16 | frame.length).wrapping_sub(CRC);
        if length.wrapping_sub(LEAST) >= lengths
            || (frame.start + (classify::REACH - 1)) >= PACKET_MEMORY_END
            || filter::is_of_group(bus, frame.start)
        {
            break (End::Slow, Found::NONE);
        }
        let found = verdicts.next(bus, frames.offset(), frame.start, length);
        if !found.is_some() {
            break (End::Slow, Found::NONE);
        }
        let number = found.queue() as usize % QUEUES.max(1);
        let Some(queue) = table.get_mut(number) else {
            break (End::Slow, found);
        };
        if queue.needs_look() {
            break (End::Look, found);
        }
        let bytes = length + kept;
        let bd = queue.bd();
        let taken = Taken::new(bus, bd);
        if bytes > taken.room() {
            break (End::Slow, found);
        }
        // The frame before this one: the loads have waited for its stores anyway.
        writes.notify(bus);
        let descriptor = writes.next();
        descriptor.local(bus, frame.start);
        octets = barrier(octets + length);
        let slot = barrier(bd + QUEUE_SLOTS);
        let staged = ReceiveBdAt(slot);
        bus.store(staged.kind_and_flags(), found.kind | flags_of(0, UNICAST));
        queue.advance(length);
        descriptor.length(bus, bytes);
        touched = barrier(touched | 1 << number);
        descriptor.state(bus, state);
        flags = barrier(flags | taken.flags);
        bus.store(staged.index_and_length(), taken.index_and_length(bytes));
        frames.release();
        bus.store(staged.opaque(), taken.opaque);
        left = barrier(left - 1);
        if hashes(verdicts) {
            bus.store(staged.reserved(), found.hash);
        }
        bus.store_host_address(staged.address(), taken.host);
        descriptor.host(bus, taken.host);
        writes.commit(WriteNote::receive_data(slot).word());
    };
    drop(frames);
    writes.notify(bus);
    drop(writes);
    if end as u32 >= End::Look as u32 {
        *at_end = verdict;
    }
    let at_once = u32::from(flags & NOW != 0);
    Run {
        word: (limit - left) | touched << TOUCHED | (end as u32) << END | at_once << AT_ONCE,
        octets,
    }
}

const fn hashes<V: Verdicts>(_: &V) -> bool {
    V::HASHES
}
