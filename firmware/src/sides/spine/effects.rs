//! What a run asks for: a transaction.
//!
//! The imports of an extension note in here, and only the run's end carries out what is noted.
//! A run that is cut off leaves nothing behind but its own region, since its notes are thrown
//! away. Everything is bounded, and judged when it is noted, so that carrying out cannot fail.

use super::slots::{NONE, may_keep};
use crate::memory::layout::POOL_SLOTS;
use host_interface::spine::{COUNTERS, HANDLERS};
use tigon2_hal::schedule::barrier;

/// Words of a frame that a run can change; `spine::context::PATCHES`.
pub const PATCHES: usize = 16;
/// Counts of a run.
pub const COUNTS: usize = 16;
/// Messages of a run, at most.
pub const MESSAGES: u32 = 4;
/// Bytes of [`Effects`] on the card.
pub const BYTES: u32 = 4 * (11 + COUNTS as u32) + 8 * (PATCHES as u32 + HANDLERS);
/// Bytes of a frame that the pool holds.
const FRAME_MAX: u32 = crate::memory::layout::POOL_FRAME;

/// The frame is to be transmitted.
const TRANSMIT: u32 = 1 << 31;
/// The frame is to be kept.
const KEEP: u32 = 1 << 30;
/// A message goes to the wire.
const MESSAGE: u32 = 1 << 29;
/// The frame is to be handed to the peer.
const FORWARD: u32 = 1 << 28;
/// The run has a message, whose data cannot be handed to the peer.
pub const OF_MESSAGE: u32 = 1 << 27;
/// A message was noted, to whomever.
const SENDS: u32 = 1 << 26;
/// What [`Effects::asked`] has besides frames.
const NO_FRAMES: u32 = MESSAGE | FORWARD | OF_MESSAGE | SENDS;
/// A bit for each slot that is to be transmitted, from this one on; those to be released are the
/// lowest.
const SEND: u32 = POOL_SLOTS;
const SLOTS: u32 = (1 << POOL_SLOTS) - 1;
const _: () = assert!(2 * POOL_SLOTS <= 26);

/// What an import answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// It is noted.
    Noted = 0,
    /// There is no room for it, or it cannot be.
    Full = 1,
}

/// A handler that `init` installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// NIC address of its first instruction; 0 for none.
    pub entry: u32,
    /// The word that it finds in its context.
    pub argument: u32,
}

impl Installed {
    /// None.
    pub const NONE: Installed = Installed {
        entry: 0,
        argument: 0,
    };
}

/// What there is for a run.
#[derive(Clone, Copy, Debug)]
pub struct There {
    /// The slot that a frame would go into, or [`NONE`].
    pub slot: u32,
    /// Entries that the queue has room for.
    pub room: u32,
    /// Slots that the domain keeps.
    pub kept: u32,
    /// Slots that are free.
    pub free_count: u32,
}

impl There {
    /// Nothing.
    pub const NOTHING: There = There {
        slot: NONE,
        room: 0,
        kept: 0,
        free_count: 0,
    };
}

/// What one run has asked for. Flags are words: the chip cannot store several bytes at once where
/// compilers would.
#[derive(Debug)]
pub struct Effects {
    /// Words of the frame; 0 without a frame, and in `init`.
    words: u32,
    /// The slot that the frame goes into; [`NONE`] if it cannot.
    slot: u32,
    /// Entries that the queue has room for.
    room: u32,
    /// The slots that the domain keeps.
    kept: u32,
    /// Slots that are free.
    free_count: u32,
    /// Whether handlers may be installed.
    is_init: u32,
    patches: [(u32, u32); PATCHES],
    patch_count: usize,
    /// What is to become of the frame, and of those that are kept.
    asked: u32,
    counts: [u32; COUNTS],
    count_count: usize,
    /// Messages to endpoints and to the wire.
    message_count: u32,
    /// Messages to the own domain.
    post_count: u32,
    /// Handlers by their numbers.
    pub handlers: [Installed; HANDLERS as usize],
}

impl Effects {
    /// None.
    pub const fn new() -> Effects {
        Effects {
            words: 0,
            slot: NONE,
            room: 0,
            kept: 0,
            free_count: 0,
            is_init: 0,
            patches: [(0, 0); PATCHES],
            patch_count: 0,
            asked: 0,
            counts: [0; COUNTS],
            count_count: 0,
            message_count: 0,
            post_count: 0,
            handlers: [Installed::NONE; HANDLERS as usize],
        }
    }

    /// A run of a handler begins, with a frame of so many bytes, or with a message that has so many
    /// bytes of data (`kind` is [`OF_MESSAGE`], else 0), and with what there is.
    #[inline(always)]
    pub fn begin(&mut self, kind: u32, frame: u32, there: There) {
        let fits = frame != 0 && frame <= FRAME_MAX;
        self.words = (frame + 3) >> 2;
        self.slot = if fits { there.slot } else { NONE };
        self.room = there.room;
        self.kept = there.kept;
        self.free_count = there.free_count;
        // One by one: compilers would call a function that clears memory, which is in SRAM.
        self.patch_count = 0;
        self.asked = barrier(kind);
        self.count_count = 0;
        self.message_count = barrier(0);
        self.post_count = 0;
    }

    /// The run of `init` begins.
    pub fn begin_init(&mut self) {
        self.begin(OF_MESSAGE, 0, There::NOTHING);
        self.is_init = 1;
        self.handlers = [Installed::NONE; HANDLERS as usize];
    }

    /// The run of `init` is over.
    pub fn end_init(&mut self) {
        self.is_init = 0;
    }

    /// Installs a handler.
    pub fn install(&mut self, entry: u32, number: u32, argument: u32) -> Status {
        match self.handlers.get_mut(number as usize) {
            Some(place) if self.is_init != 0 && place.entry == 0 => {
                *place = Installed { entry, argument };
                Status::Noted
            }
            _ => Status::Full,
        }
    }

    /// Whether the run is that of `init`.
    #[inline(always)]
    pub const fn is_init(&self) -> bool {
        self.is_init != 0
    }

    /// Notes a message to an endpoint that takes so many more, where there is room for so many in
    /// all. Returns how many were noted before.
    #[inline(always)]
    pub fn message(&mut self, takes: u32, room: u32) -> Option<u32> {
        let before = self.message_count;
        if before >= MESSAGES || before >= takes || before >= room || self.is_init != 0 {
            return None;
        }
        self.message_count += 1;
        self.asked |= SENDS;
        Some(before)
    }

    /// The same of one for the wire, which takes a slot of the pool and an entry of the queue.
    #[inline(always)]
    pub fn message_to_wire(&mut self, room: u32) -> Option<u32> {
        // The frame of the run may need the last slot.
        if self.room == 0 || self.free_count < 2 || self.asked & MESSAGE != 0 {
            return None;
        }
        let before = self.message(MESSAGES, room)?;
        self.room -= 1;
        self.asked |= MESSAGE;
        Some(before)
    }

    /// Notes a message to the own domain, where there is room for so many. Returns how many were
    /// noted before.
    #[inline(always)]
    pub fn post(&mut self, room: u32) -> Option<u32> {
        let before = self.post_count;
        if before >= room || self.is_init != 0 {
            return None;
        }
        self.post_count += 1;
        self.asked |= SENDS;
        Some(before)
    }

    /// How many messages were noted for endpoints and the wire.
    #[inline(always)]
    pub const fn messages(&self) -> u32 {
        self.message_count
    }

    /// How many messages were noted for the own domain.
    #[inline(always)]
    pub const fn posts(&self) -> u32 {
        self.post_count
    }

    /// Whether any messages were noted.
    #[inline(always)]
    pub const fn sends_messages(&self) -> bool {
        self.asked & SENDS != 0
    }

    /// Changes a word of the frame.
    #[inline(always)]
    pub fn patch(&mut self, index: u32, value: u32) -> Status {
        match self.patches.get_mut(self.patch_count) {
            Some(place) if index < self.words => {
                *place = (index, value);
                self.patch_count += 1;
                Status::Noted
            }
            _ => Status::Full,
        }
    }

    /// Changes three words of the frame, from `index` on.
    #[inline(always)]
    pub fn patch_three(&mut self, index: u32, values: [u32; 3]) -> Status {
        let places = self.patches.get_mut(self.patch_count..);
        match places.and_then(<[_]>::first_chunk_mut) {
            Some([first, second, third]) if index < self.words.saturating_sub(2) => {
                let [one, two, three] = values;
                *first = (index, one);
                *second = (index + 1, two);
                *third = (index + 2, three);
                self.patch_count += 3;
                Status::Noted
            }
            _ => Status::Full,
        }
    }

    /// Has the frame transmitted.
    #[inline(always)]
    pub fn transmit(&mut self) -> Status {
        if self.asked & TRANSMIT != 0 || self.slot == NONE || self.room == 0 {
            return Status::Full;
        }
        self.room -= 1;
        self.asked |= TRANSMIT;
        Status::Noted
    }

    /// Has the frame handed to the peer, if that has room for it.
    #[inline(always)]
    pub fn forward(&mut self, has_room: bool) -> Status {
        let fits = self.words != 0 && self.words <= FRAME_MAX >> 2;
        if self.asked & (FORWARD | OF_MESSAGE) != 0 || !fits || !has_room {
            return Status::Full;
        }
        self.asked |= FORWARD;
        Status::Noted
    }

    /// Whether the frame is to be handed to the peer.
    #[inline(always)]
    pub const fn forwards(&self) -> bool {
        self.asked & FORWARD != 0
    }

    /// Has the frame kept; returns its slot, or [`NONE`].
    #[inline(always)]
    pub fn keep(&mut self) -> u32 {
        if self.asked & KEEP != 0 || !may_keep(self.kept, self.free_count) {
            return NONE;
        }
        if self.slot != NONE {
            self.asked |= KEEP;
        }
        self.slot
    }

    /// Whether the domain keeps a slot.
    #[inline(always)]
    pub const fn keeps(&self, slot: u32) -> bool {
        slot < POOL_SLOTS && self.kept >> slot & 1 != 0
    }

    /// Has a frame transmitted that is kept.
    #[inline(always)]
    pub fn send(&mut self, slot: u32) -> Status {
        let bit = 1 << (SEND.wrapping_add(slot) & 31);
        if !self.keeps(slot) || self.asked & bit != 0 || self.room == 0 {
            return Status::Full;
        }
        self.room -= 1;
        self.asked |= bit;
        Status::Noted
    }

    /// Gives a frame back that is kept.
    #[inline(always)]
    pub fn release(&mut self, slot: u32) -> Status {
        if !self.keeps(slot) {
            return Status::Full;
        }
        self.asked |= 1 << (slot & 31);
        Status::Noted
    }

    /// Counts.
    #[inline(always)]
    pub fn count(&mut self, counter: u32) -> Status {
        match self.counts.get_mut(self.count_count) {
            Some(place) if counter < COUNTERS => {
                *place = counter;
                self.count_count += 1;
                Status::Noted
            }
            _ => Status::Full,
        }
    }

    /// Whether anything is asked for besides that the frame is to be handed to the peer.
    #[inline(always)]
    pub const fn asks_for_more(&self) -> bool {
        self.asked & !(FORWARD | OF_MESSAGE) | self.count_count as u32 != 0
    }

    /// Whether anything is to become of frames.
    #[inline(always)]
    pub const fn moves_frames(&self) -> bool {
        self.asked & !NO_FRAMES != 0
    }

    /// Whether the frame is to be transmitted, and nothing else is to become of frames.
    #[inline(always)]
    pub const fn only_transmits(&self) -> bool {
        self.asked & !(NO_FRAMES & !FORWARD) == TRANSMIT
    }

    /// Whether the frame is to be transmitted.
    #[inline(always)]
    pub const fn transmits(&self) -> bool {
        self.asked & TRANSMIT != 0
    }

    /// Whether the frame is to be kept.
    #[inline(always)]
    pub const fn keeps_frame(&self) -> bool {
        self.asked & KEEP != 0
    }

    /// Slots that are to be transmitted, a bit for each.
    #[inline(always)]
    pub const fn sent(&self) -> u32 {
        self.asked >> SEND & SLOTS
    }

    /// Slots that are to be released, a bit for each.
    #[inline(always)]
    pub const fn released(&self) -> u32 {
        self.asked & SLOTS
    }

    /// The slots that the domain keeps.
    #[inline(always)]
    pub const fn kept(&self) -> u32 {
        self.kept
    }

    /// The changed words, each with its index.
    #[inline(always)]
    pub fn patches(&self) -> &[(u32, u32)] {
        self.patches.get(..self.patch_count).unwrap_or_default()
    }

    /// The counters that are to be counted in.
    #[inline(always)]
    pub fn counts(&self) -> &[u32] {
        self.counts.get(..self.count_count).unwrap_or_default()
    }
}

#[cfg(target_arch = "mips")]
const _: () = assert!(size_of::<Effects>() == BYTES as usize);

impl Default for Effects {
    fn default() -> Effects {
        Effects::new()
    }
}

#[cfg(test)]
mod tests;
