//! CPU B classifies frames ahead of CPU A, when it has nothing to send.
//!
//! KNET, section 3.1; a Toeplitz hash costs more than all other work for a small frame. CPU B
//! reads the MAC's ring, which CPU A still owns, and leaves a verdict for each frame:
//!
//! ```text
//!   MAC's ring, 512 descriptors:   released (A's)    ahead (B's)      producer
//!                                     v                 v                v
//!                                  ---+=================+================+---
//!                                     | verdicts stand  | not looked at  |
//!                                       from (B's)
//! ```
//!
//! Positions count frames and never decrease; a descriptor's number is its position modulo 512.
//! Verdicts lie in a ring of [`VERDICT_SLOTS`] and exist between two positions of CPU B. Where CPU A
//! has caught up, it classifies the next few frames itself, and CPU B continues after them. So they
//! do not work on the same frames, and each existing verdict was written for its frame and needs no
//! mark. A change of the classifier clears [`QUEUE_EPOCH`], builds the new rows, advances CPU A's
//! position by whole turns of the ring, and sets another epoch: CPU B's unfinished work is then
//! behind.
//!
//! A flow's hash is looked up once and then found in CPU B's [cache](crate::memory::flow_cache),
//! which is cleared with each epoch.
//!
//! Only untagged TCP and UDP datagrams without IPv4 options or IPv6 extensions get a verdict; for
//! all others the entry makes CPU A classify the frame.
//!
//! [`VERDICT_SLOTS`]: crate::memory::layout::VERDICT_SLOTS

use crate::io::IoB;
use crate::memory::flow_cache::{FlowCache, View};
use crate::memory::layout::{AHEAD_MOST, QUEUES};
use crate::memory::shared::{
    QUEUE_AHEAD, QUEUE_AHEAD_FROM, QUEUE_EPOCH, QUEUE_HASHES, QUEUE_RELEASED,
};
use crate::memory::verdict;
use flow_classify::classifier::Classifier;
use flow_classify::key::Period;
use flow_classify::{ClassifierKind, HashTypes};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedView;

/// Frames of one run of the handler: whatever is more urgent waits no longer.
const MOST: u32 = 8;

/// What CPU B knows of the received frames.
#[derive(Debug)]
pub struct Ahead {
    frames: ReceivedView,
    /// What it classifies by.
    classifier: Classifier,
    /// The [`QUEUE_EPOCH`] that this is of; 0 for none.
    epoch: u32,
    /// The next frame to look at.
    position: u32,
    flows: FlowCache,
}

impl Ahead {
    /// Nothing to classify.
    pub const fn new() -> Ahead {
        Ahead {
            frames: ReceivedView::new(),
            classifier: match classifier(HashTypes::new(), Period::None) {
                Some(classifier) => classifier,
                None => panic!("no types of hash fit every classifier"),
            },
            epoch: 0,
            position: 0,
            flows: FlowCache::NONE,
        }
    }

    /// Says where the MAC's ring is, in the block with base K.
    pub const fn place(&mut self, block: u32) {
        self.frames.place(block + block::MAC_RX_RING);
    }
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead::new()
    }
}

/// The classifier that makes these hashes; the table has been judged, so the number of queues
/// means nothing.
const fn classifier(types: HashTypes, period: Period) -> Option<Classifier> {
    match Classifier::new(ClassifierKind::Toeplitz, 1, types, period) {
        Ok(classifier) => Some(classifier),
        Err(_) => None,
    }
}

/// Classify ahead: some frames. The event goes off when there are no more; CPU A's doorbell sets
/// it again.
#[inline(always)]
pub fn classify<B: Dispatch>(ahead: &mut Ahead, io: &mut IoB<B>) {
    if QUEUES == 0 {
        return;
    }
    let epoch = QUEUE_EPOCH.get(&mut io.bus);
    if epoch != ahead.epoch {
        begin(ahead, io, epoch);
    }
    if epoch == 0 || !some(ahead, io) {
        io.bus.clear(EventBit::ClassifyAhead);
    }
}

/// Another classifier, or none.
#[cold]
#[inline(never)]
fn begin<B: Dispatch>(ahead: &mut Ahead, io: &mut IoB<B>, epoch: u32) {
    let hashes = QUEUE_HASHES.get(&mut io.bus);
    let types = HashTypes::from_bits(hashes & 0xFFFF);
    let period = Period::from_number(hashes >> 16 & 0xFF);
    if let Some(classifier) = classifier(types, period) {
        ahead.classifier = classifier;
    }
    ahead.epoch = epoch;
    if epoch != 0 {
        // With epoch 0 the memory is classic mode's again.
        ahead.flows = FlowCache::cleared(&mut io.bus, Cpu::B, hashes >> 24);
    }
    let released = QUEUE_RELEASED.get(&mut io.bus);
    skip(ahead, io, released);
}

/// CPU A has come as far as `released`, or classifies the frames in front of it itself.
fn skip<B: Dispatch>(ahead: &mut Ahead, io: &mut IoB<B>, released: u32) {
    ahead.position = released;
    QUEUE_AHEAD_FROM.set(&io.me, &mut io.bus, ahead.position);
    QUEUE_AHEAD.set(&io.me, &mut io.bus, ahead.position);
}

/// Some frames; `false` if there are no more, or no room for verdicts.
#[inline(never)]
fn some<B: Dispatch>(ahead: &mut Ahead, io: &mut IoB<B>) -> bool {
    let released = QUEUE_RELEASED.get(&mut io.bus);
    if (ahead.position.wrapping_sub(released) as i32) < 0 {
        skip(ahead, io, released);
    }
    let producer = ahead.frames.producer(&mut io.bus);
    let arrived = ahead.frames.arrived(released, producer);
    let end = released.wrapping_add(arrived.min(AHEAD_MOST));
    for _ in 0..MOST {
        if (end.wrapping_sub(ahead.position) as i32) <= 0 {
            return false;
        }
        let bus = &mut io.bus;
        if !known(ahead, bus) && !known_ipv6(ahead, bus) {
            unknown(ahead, bus);
        }
        ahead.position = ahead.position.wrapping_add(1);
        QUEUE_AHEAD.set(&io.me, &mut io.bus, ahead.position);
    }
    true
}

/// One frame of an IPv4 flow that is in the cache; `false` for any other. A leaf: all that it needs
/// is in registers that need not be saved.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn known<B: Bus>(ahead: &Ahead, bus: &mut B) -> bool {
    let view = &mut View::new(bus, ahead.flows);
    verdict::judge(&ahead.frames, ahead.position, view, |view, length| {
        ahead.classifier.cached_ipv4(view, length)
    })
}

/// One frame of an IPv6 flow that is in the cache; `false` for any other. A leaf, too.
#[inline(never)]
fn known_ipv6<B: Bus>(ahead: &Ahead, bus: &mut B) -> bool {
    let view = &mut View::new(bus, ahead.flows);
    verdict::judge(&ahead.frames, ahead.position, view, |view, length| {
        ahead.classifier.cached_ipv6(view, length)
    })
}

/// One frame of a flow that is new to the cache, or for CPU A.
#[inline(never)]
fn unknown<B: Bus>(ahead: &Ahead, bus: &mut B) {
    let view = &mut View::new(bus, ahead.flows);
    if !verdict::judge_new(&ahead.frames, ahead.position, &ahead.classifier, view) {
        verdict::leave_none(ahead.position, view);
    }
}
