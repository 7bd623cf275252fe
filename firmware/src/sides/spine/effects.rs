//! What a run asks for: a transaction.
//!
//! The imports of an extension note in here, and only the run's end carries out what is noted.
//! A run that is cut off leaves nothing behind but its own region, since its notes are thrown
//! away. Everything is bounded, and judged when it is noted, so that carrying out cannot fail.

use host_interface::spine::{COUNTERS, HANDLERS};

/// Words of a frame that a run can change; `spine::context::PATCHES`.
pub const PATCHES: usize = 16;
/// Counts of a run.
pub const COUNTS: usize = 16;
/// Bytes of [`Effects`] on the card.
pub const BYTES: u32 = 4 * (6 + COUNTS as u32) + 8 * (PATCHES as u32 + HANDLERS);
/// Bytes of a frame that the pool holds.
const FRAME_MAX: u32 = crate::memory::layout::POOL_FRAME;

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

/// What one run has asked for. Flags are words: the chip cannot store several bytes at once where
/// compilers would.
#[derive(Debug)]
pub struct Effects {
    /// Words of the frame; 0 without a frame, and in `init`.
    words: u32,
    /// Whether the frame may be transmitted.
    may_transmit: u32,
    /// Whether handlers may be installed.
    is_init: u32,
    patches: [(u32, u32); PATCHES],
    patch_count: usize,
    transmits: u32,
    counts: [u32; COUNTS],
    count_count: usize,
    /// Handlers by their numbers.
    pub handlers: [Installed; HANDLERS as usize],
}

impl Effects {
    /// None.
    pub const fn new() -> Effects {
        Effects {
            words: 0,
            may_transmit: 0,
            is_init: 0,
            patches: [(0, 0); PATCHES],
            patch_count: 0,
            transmits: 0,
            counts: [0; COUNTS],
            count_count: 0,
            handlers: [Installed::NONE; HANDLERS as usize],
        }
    }

    /// A run of a handler begins, with a frame of so many bytes; `has_room` says whether the
    /// pool has.
    #[inline(always)]
    pub fn begin(&mut self, frame: u32, has_room: bool) {
        self.words = (frame + 3) >> 2;
        let fits = frame != 0 && frame <= FRAME_MAX;
        self.may_transmit = u32::from(has_room && fits);
        self.patch_count = 0;
        self.transmits = 0;
        self.count_count = 0;
    }

    /// The run of `init` begins.
    pub fn begin_init(&mut self) {
        self.begin(0, false);
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
        if self.transmits != 0 || self.may_transmit == 0 {
            return Status::Full;
        }
        self.transmits = 1;
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

    /// Whether the frame is to be transmitted.
    #[inline(always)]
    pub const fn transmits(&self) -> bool {
        self.transmits != 0
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
mod tests {
    use super::*;

    #[test]
    fn each_list_ends_at_its_bound() {
        let mut effects = Effects::new();
        effects.begin(60, true);
        for n in 0..PATCHES as u32 {
            assert_eq!(effects.patch(n % 15, n), Status::Noted);
        }
        assert_eq!(effects.patch(0, 0), Status::Full);
        assert_eq!(effects.patches().len(), PATCHES);
        assert_eq!(effects.patch_three(0, [0; 3]), Status::Full);
        for _ in 0..COUNTS {
            assert_eq!(effects.count(7), Status::Noted);
        }
        assert_eq!(effects.count(7), Status::Full);
    }

    #[test]
    fn what_cannot_be_is_not_noted() {
        let mut effects = Effects::new();
        effects.begin(61, true);
        assert_eq!(effects.patch(15, 0), Status::Noted, "the last byte's word");
        assert_eq!(effects.patch(16, 0), Status::Full);
        assert_eq!(effects.patch(u32::MAX, 0), Status::Full);
        assert_eq!(effects.patch_three(14, [0; 3]), Status::Full, "word 16");
        assert_eq!(effects.patch_three(u32::MAX, [0; 3]), Status::Full);
        assert_eq!(effects.patch_three(13, [7, 8, 9]), Status::Noted);
        assert_eq!(effects.patches()[1..], [(13, 7), (14, 8), (15, 9)]);
        assert_eq!(effects.count(8), Status::Full);
        assert_eq!(effects.install(0x3_0000, 0, 0), Status::Full, "not in init");
        for (frame, has_room) in [(0, true), (FRAME_MAX + 1, true), (60, false)] {
            effects.begin(frame, has_room);
            assert_eq!(effects.transmit(), Status::Full);
            assert!(!effects.transmits());
        }
        effects.begin(60, true);
        assert_eq!(effects.transmit(), Status::Noted);
        assert_eq!(effects.transmit(), Status::Full, "once");
    }

    #[test]
    fn a_run_begins_with_nothing() {
        let mut effects = Effects::new();
        effects.begin(60, true);
        effects.patch(1, 2);
        effects.count(1);
        effects.transmit();
        effects.begin(60, true);
        assert!(effects.patches().is_empty() && effects.counts().is_empty());
        assert!(!effects.transmits());
    }

    #[test]
    fn init_installs_each_number_once() {
        let mut effects = Effects::new();
        effects.begin_init();
        assert_eq!(effects.install(0x3_0000, 7, 5), Status::Noted);
        assert_eq!(effects.install(0x3_0010, 7, 5), Status::Full);
        assert_eq!(effects.install(0x3_0010, 8, 5), Status::Full);
        assert_eq!(effects.transmit(), Status::Full);
        assert_eq!(effects.handlers[7].entry, 0x3_0000);
        effects.begin_init();
        assert_eq!(effects.handlers, [Installed::NONE; 8]);
    }
}
