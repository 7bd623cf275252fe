//! A timer wheel: timers are set and expire at a cost that does not depend on their number.
//!
//! ```text
//!   level 0   64 slots of 1 tick        due within 64 ticks
//!   level 1   64 slots of 64 ticks      moved to level 0 when their time begins
//!   level 2   64 slots of 4096 ticks    ...
//!   level 3   64 slots of 262144 ticks
//! ```
//!
//! A word of bits for each level says which slots have timers, so that time without timers is
//! skipped at once. A timer cannot be taken back: its owner remembers which one counts.

const LEVELS: usize = 4;
const SLOT_BITS: u32 = 6;
const SLOTS: u64 = 1 << SLOT_BITS;
/// How far the wheel reaches; a timer beyond it is set again on the way.
const FARTHEST: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;

/// A timer: its owner and the tick at which it expires.
pub(super) type Timer = (u32, u64);

#[derive(Debug)]
struct Level {
    slots: [Vec<Timer>; SLOTS as usize],
    /// Bit n: slot n has timers.
    occupied: u64,
}

/// The wheel.
#[derive(Debug)]
pub(super) struct Wheel {
    now: u64,
    levels: Box<[Level; LEVELS]>,
    /// Timers set for the past: they expire at the next advance.
    overdue: Vec<Timer>,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            slots: std::array::from_fn(|_| Vec::new()),
            occupied: 0,
        }
    }
}

impl Wheel {
    /// An empty wheel at tick 0.
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            levels: Box::new(std::array::from_fn(|_| Level::default())),
            overdue: Vec::new(),
        }
    }

    /// Sets a timer.
    pub(super) fn set(&mut self, timer: Timer) {
        let (_, due) = timer;
        if due <= self.now {
            self.overdue.push(timer);
            return;
        }
        let place = due.min(self.now.saturating_add(FARTHEST));
        let delta = place - self.now;
        let level = (63 - delta.leading_zeros()) / SLOT_BITS;
        let slot = (place >> (level * SLOT_BITS)) % SLOTS;
        let level = &mut self.levels[level as usize];
        level.slots[slot as usize].push(timer);
        level.occupied |= 1 << slot;
    }

    /// The next tick at which something is to be done: a timer expires or moves a level down.
    pub(super) fn next(&self) -> Option<u64> {
        if !self.overdue.is_empty() {
            return Some(self.now);
        }
        let of_level = |(number, level): (usize, &Level)| {
            if level.occupied == 0 {
                return None;
            }
            let shift = number as u32 * SLOT_BITS;
            let here = self.now >> shift;
            // The slot of the present time is a whole turn away: what was due in it has moved.
            let first = (here + 1) % SLOTS;
            let distance = level.occupied.rotate_right(first as u32).trailing_zeros();
            Some((here + 1 + u64::from(distance)) << shift)
        };
        self.levels.iter().enumerate().filter_map(of_level).min()
    }

    /// Lets time pass, and adds the timers that expire.
    pub(super) fn advance(&mut self, to: u64, expired: &mut Vec<Timer>) {
        expired.append(&mut self.overdue);
        while let Some(next) = self.next().filter(|next| *next <= to) {
            self.now = next;
            for number in (0..LEVELS).rev() {
                let shift = number as u32 * SLOT_BITS;
                if next.trailing_zeros() < shift {
                    continue;
                }
                let slot = (next >> shift) % SLOTS;
                let level = &mut self.levels[number];
                level.occupied &= !(1 << slot);
                let timers = std::mem::take(&mut level.slots[slot as usize]);
                for timer in timers {
                    if number == 0 || timer.1 <= next {
                        expired.push(timer);
                    } else {
                        self.set(timer);
                    }
                }
            }
            expired.append(&mut self.overdue);
        }
        self.now = self.now.max(to);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn timers_expire_in_the_tick_in_which_a_sorted_list_has_them(
            steps in prop::collection::vec((0u64..300_000, 0u64..9, 1u64..70_000), 1..80),
        ) {
            let (mut wheel, mut list) = (Wheel::new(), BTreeSet::new());
            let mut now = 0;
            for (number, (delay, shift, pass)) in steps.into_iter().enumerate() {
                let timer = (number as u32, now + (delay >> shift));
                wheel.set(timer);
                list.insert((timer.1, timer.0));
                // Small and large steps of time.
                now += pass >> (2 * shift);
                let mut expired = Vec::new();
                wheel.advance(now, &mut expired);
                let mut expired: Vec<_> = expired.into_iter().map(|(who, at)| (at, who)).collect();
                expired.sort_unstable();
                let later = list.split_off(&(now + 1, 0));
                let due: Vec<_> = std::mem::replace(&mut list, later).into_iter().collect();
                prop_assert_eq!(expired, due);
                // Nobody sleeps past the first timer.
                if let Some((first, _)) = list.first() {
                    let next = wheel.next().expect("a timer is set");
                    prop_assert!(next > now && next <= *first, "{next} for {first}");
                }
            }
        }
    }

    #[test]
    fn a_timer_beyond_the_reach_expires_in_time() {
        let mut wheel = Wheel::new();
        let far = FARTHEST + 1_000_000;
        wheel.set((7, far));
        let mut expired = Vec::new();
        wheel.advance(far, &mut expired);
        assert_eq!(expired, [(7, far)]);
    }
}
