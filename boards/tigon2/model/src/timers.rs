//! The microsecond counter `R[54]` and the two references `R[58]` and `R[78]`.
//!
//! Hardware reference, section 7. The counter runs at the core clock divided by
//! (prescaler + 1). A CPU's event bit 28 is 1 from the time at which the counter reaches
//! its reference until a new reference is written.
//!
//! The comparison is made in nanoseconds, once per write, so a read of an event register costs one
//! compare.

use tigon2_chip::Cpu;

const NANOSECONDS: u64 = 1_000_000_000;

/// The counter and both references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    core_hz: u32,
    prescaler: u32,
    /// Counter value at `base_ns`.
    base_count: u32,
    base_ns: u64,
    reference: [u32; 2],
    /// When each reference is reached; `None` until one has been written.
    due_ns: [Option<u64>; 2],
    /// References that were reached when they were written.
    late: [u64; 2],
}

impl Timers {
    /// A counter at 0 of a chip with this core clock.
    pub fn new(core_hz: u32, now: u64) -> Self {
        Timers {
            core_hz,
            prescaler: 0,
            base_count: 0,
            base_ns: now,
            reference: [0; 2],
            due_ns: [None; 2],
            late: [0; 2],
        }
    }

    /// `R[54]` at a time.
    pub fn count(&self, now: u64) -> u32 {
        self.base_count.wrapping_add(self.ticks(now) as u32)
    }

    /// A write to `R[54]`: the counter continues from `count` (7: 0 clears it, C).
    pub fn set_count(&mut self, now: u64, count: u32) {
        self.base_count = count;
        self.base_ns = now;
        self.settle(now);
    }

    /// A write to `R[50]`: the divisor of the core clock is bits 6:0 plus one (7).
    pub fn set_prescaler(&mut self, now: u64, prescaler: u8) {
        let prescaler = u32::from(prescaler);
        if prescaler != self.prescaler {
            self.base_count = self.count(now);
            self.base_ns = now;
            self.prescaler = prescaler;
            self.settle(now);
        }
    }

    /// The CPU's reference.
    pub fn reference(&self, cpu: Cpu) -> u32 {
        self.reference[cpu.index()]
    }

    /// A new reference: clears the CPU's event unless it is already reached (7, C).
    pub fn set_reference(&mut self, now: u64, cpu: Cpu, reference: u32) {
        let due = self.due(now, reference);
        let index = cpu.index();
        self.reference[index] = reference;
        self.due_ns[index] = Some(due);
        self.late[index] += u64::from(due <= now);
    }

    /// How many references of a CPU were reached already when they were written. Here the event
    /// rises at once, as 7 says; silicon that compares for equality would raise it 71 minutes later.
    pub fn late_references(&self, cpu: Cpu) -> u64 {
        self.late.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Event bit 28 of the CPU; always false for a CPU without a reference.
    #[inline]
    pub fn reached(&self, now: u64, cpu: Cpu) -> bool {
        matches!(self.due_ns.get(cpu.index()), Some(Some(due)) if now >= *due)
    }

    /// The time after `now` at which the CPU's event rises.
    #[inline]
    pub fn deadline(&self, now: u64, cpu: Cpu) -> Option<u64> {
        self.due_ns[cpu.index()].filter(|due| *due > now)
    }

    /// The next time after `now` at which an event rises.
    pub fn next_deadline(&self, now: u64) -> Option<u64> {
        let both = Cpu::ALL.map(|cpu| self.deadline(now, cpu));
        both.into_iter().flatten().min()
    }

    /// Nanoseconds of `core_hz` ticks.
    fn divider(&self) -> u64 {
        NANOSECONDS * (u64::from(self.prescaler) + 1)
    }

    /// Ticks since the base.
    fn ticks(&self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.base_ns);
        let hz = u64::from(self.core_hz);
        // 64 bits are enough for minutes; longer runs use the wider product.
        match elapsed.checked_mul(hz) {
            Some(product) => product / self.divider(),
            None => (u128::from(elapsed) * u128::from(hz) / u128::from(self.divider())) as u64,
        }
    }

    /// When the counter reaches `reference`: at once if the signed distance is not positive (7:
    /// "(int32)(counter - reference) >= 0").
    fn due(&self, now: u64, reference: u32) -> u64 {
        let distance = reference.wrapping_sub(self.count(now));
        if distance as i32 <= 0 {
            return now;
        }
        let ticks = u128::from(self.ticks(now)) + u128::from(distance);
        let elapsed = (ticks * u128::from(self.divider())).div_ceil(self.core_hz.into());
        u64::try_from(u128::from(self.base_ns) + elapsed).unwrap_or(u64::MAX)
    }

    fn settle(&mut self, now: u64) {
        for index in 0..2 {
            if self.due_ns[index].is_some() {
                self.due_ns[index] = Some(self.due(now, self.reference[index]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timers() -> Timers {
        let mut timers = Timers::new(88_000_000, 0);
        timers.set_prescaler(0, 0x55);
        timers
    }

    /// Reference 7: prescaler 85 divides the core clock by 86, so at 88 MHz a tick is
    /// 977.27 ns (C value, I formula).
    #[test]
    fn a_tick_is_eighty_six_core_cycles() {
        let timers = timers();
        assert_eq!(timers.count(977), 0);
        assert_eq!(timers.count(978), 1);
        assert_eq!(timers.count(1_000_000_000), 1_023_255);
        // Beyond the 64-bit product: one hour.
        assert_eq!(timers.count(3_600_000_000_000), 3_683_720_930);
    }

    /// Reference 7: writing 0 clears the counter (C).
    #[test]
    fn writing_zero_clears_the_counter() {
        let mut timers = timers();
        timers.set_count(1_000_000, 0);
        assert_eq!(timers.count(1_000_977), 0);
        assert_eq!(timers.count(1_000_978), 1);
    }

    /// Reference 7: bit 28 becomes 1 when the counter reaches the reference; writing a new
    /// one clears it (C).
    #[test]
    fn the_event_rises_at_the_reference_and_falls_with_the_next() {
        let mut timers = timers();
        assert!(
            !timers.reached(u64::MAX, Cpu::A),
            "no reference was written yet"
        );
        timers.set_reference(0, Cpu::A, 1000);
        timers.set_reference(0, Cpu::B, 5);
        let due_b = timers.next_deadline(0).unwrap();
        assert_eq!(timers.count(due_b - 1), 4);
        assert_eq!(timers.count(due_b), 5);
        assert!(timers.reached(due_b, Cpu::B) && !timers.reached(due_b, Cpu::A));
        timers.set_reference(due_b, Cpu::B, 10);
        assert!(!timers.reached(due_b, Cpu::B));
        let due_a = 977_273;
        assert!(!timers.reached(due_a - 1, Cpu::A));
        assert!(timers.reached(due_a, Cpu::A));
        assert_eq!(timers.next_deadline(due_a), None);
    }

    /// Reference 7: "reached" is a signed comparison: a reference in the past is reached.
    #[test]
    fn a_reference_in_the_past_is_reached_at_once_also_over_the_wrap() {
        let mut timers = timers();
        timers.set_count(0, 0xFFFF_FFF0);
        timers.set_reference(0, Cpu::A, 0xFFFF_FFEF);
        assert!(timers.reached(0, Cpu::A));
        assert_eq!(timers.late_references(Cpu::A), 1);
        timers.set_reference(0, Cpu::A, 0x10);
        assert!(!timers.reached(0, Cpu::A));
        assert_eq!(Cpu::ALL.map(|cpu| timers.late_references(cpu)), [1, 0]);
        let due = timers.next_deadline(0).unwrap();
        assert_eq!(timers.count(due), 0x10);
        assert_eq!(timers.count(due - 1), 0xF);
    }

    #[test]
    fn a_new_prescaler_moves_the_deadline() {
        let mut timers = timers();
        timers.set_reference(0, Cpu::A, 100);
        let slow = timers.next_deadline(0).unwrap();
        timers.set_prescaler(0, 0);
        let fast = timers.next_deadline(0).unwrap();
        assert!(fast < slow);
        assert_eq!(timers.count(fast), 100);
    }
}
