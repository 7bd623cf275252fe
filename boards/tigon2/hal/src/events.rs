//! What is pending on a CPU, how the other CPU rings it, and the priority encoder.
//!
//! Hardware reference, sections 3.2, 5 and 7. The event register mixes levels that
//! hardware makes with bits of software's; PRI takes a mask, and vendor firmware uses a bit
//! of the mask as the gate of a software bit that is always on. Here all software bits of
//! both event registers are always on, and a CPU's mask, in its own scratch pad, says of
//! each event either "let through" (hardware) or "pending" (software):
//!
//! ```text
//! event register   level level   1     1     1   <- bit of its doorbell: stored by the
//! mask (private)   want  want  pend. pend.   1      other CPU, cleared by its owner
//! ```
//!
//! So nobody reads, modifies and writes an event register, which both CPUs could do at the
//! same time: setting an event is private, and a [doorbell](Dispatch::ring) is a plain
//! store of a constant. Its owner turns it off *before* it looks at what the other has
//! written; when both store at the same time, either the bell stays on or its owner has
//! yet to look.

use crate::Bus;
use crate::assist::Direction;
use tigon2_chip::events::{EventBit, SOFTWARE_BITS};
use tigon2_chip::{Cpu, Register};

/// What the dispatch loop of a CPU works on.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Core {
    /// Hardware events that are let through, and software events that are pending. The
    /// first field: the chip's loop reads it at the address of the whole.
    pub mask: u32,
    /// Turns of the loop that found nothing. The second field: the loop counts here.
    pub idle: u32,
    /// Number of the CPU that this is. Words, since the chip cannot store to places that are
    /// not aligned, which compilers make of several bytes.
    cpu: u32,
    /// 1 if the handlers of both sides run here; else the other CPU has its own.
    alone: u32,
    /// 1 if a fatal error was reported; nothing is dispatched any more.
    stopped: u32,
    /// When the timer event of either side is due; of the other side only if alone.
    deadlines: [u32; 2],
}

impl Core {
    /// Nothing pending, nothing let through.
    pub const fn new(cpu: Cpu, alone: bool) -> Core {
        Core {
            mask: 0,
            idle: 0,
            cpu: cpu as u32,
            alone: alone as u32,
            stopped: 0,
            deadlines: [0; 2],
        }
    }

    /// The CPU that this is.
    #[inline(always)]
    pub const fn cpu(&self) -> Cpu {
        if self.cpu == Cpu::A as u32 {
            Cpu::A
        } else {
            Cpu::B
        }
    }

    /// Whether the handlers of both sides run here.
    #[inline(always)]
    pub const fn is_alone(&self) -> bool {
        self.alone != 0
    }

    /// Dispatches nothing any more.
    pub const fn stop(&mut self) {
        self.mask = 0;
        self.stopped = 1;
    }

    /// Whether it was stopped.
    pub const fn is_stopped(&self) -> bool {
        self.stopped != 0
    }
}

/// A CPU as its handlers see it: the chip, and what is pending.
pub trait Dispatch: Bus + Sized {
    /// The channel from the host: the chip's, or one that more CPUs share.
    type ReadChannel: Direction;
    /// The channel to the host.
    type WriteChannel: Direction;

    /// The core of the CPU that runs.
    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R;

    /// Makes a software event pending, or lets a hardware event through.
    #[inline(always)]
    fn set(&mut self, event: EventBit) {
        self.core(|core| core.mask |= event.mask());
    }

    /// Takes a pending software event back, or holds a hardware event back.
    #[inline(always)]
    fn clear(&mut self, event: EventBit) {
        self.core(|core| core.mask &= !event.mask());
    }

    /// Whether a software event is pending, or a hardware event let through.
    #[inline(always)]
    fn is_set(&mut self, event: EventBit) -> bool {
        self.core(|core| core.mask & event.mask() != 0)
    }

    /// Turns all software bits of the register of `side` on but for its doorbell, and lets
    /// the doorbell through.
    fn prepare(&mut self, side: Cpu) {
        if self.core(|core| core.is_alone()) {
            self.write(Register::event(Cpu::A), SOFTWARE_BITS);
        } else {
            self.set(EventBit::doorbell(side));
            self.answer(side);
        }
    }

    /// Has the CPU with the handlers of `side` look at what was shared with it before.
    #[inline(always)]
    fn ring(&mut self, side: Cpu) {
        if self.core(|core| core.is_alone()) {
            return self.set(EventBit::doorbell(side));
        }
        // Register accesses are not ordered behind buffered stores; a load is.
        let _ = self.load(tigon2_chip::memory::MAILBOXES);
        self.write(Register::event(side), SOFTWARE_BITS);
    }

    /// Turns the doorbell of `side`, one's own, off: before one looks.
    #[inline(always)]
    fn answer(&mut self, side: Cpu) {
        let bell = EventBit::doorbell(side);
        if self.core(|core| core.is_alone()) {
            return self.clear(bell);
        }
        self.write(Register::event(side), SOFTWARE_BITS & !bell.mask());
    }

    /// Sets the timer event of `side`, one's own, see [`timer::arm`](crate::timer::arm).
    #[inline(always)]
    fn arm(&mut self, side: Cpu, now: u32, deadline: u32) {
        let (cpu, deadline) = self.core(|core| {
            if !core.is_alone() {
                return (side, deadline);
            }
            let [a, b] = &mut core.deadlines;
            match side {
                Cpu::A => *a = deadline,
                _ => *b = deadline,
            }
            let first = if a.wrapping_sub(*b) as i32 <= 0 {
                *a
            } else {
                *b
            };
            (Cpu::A, first)
        });
        crate::timer::arm(self, cpu, now, deadline);
    }
}

/// The number of the most significant set bit of `events & mask`, plus one; 0 if there
/// is none. On the chip it is the instruction PRI (reference 3.2, C!).
#[inline(always)]
pub fn priority(events: u32, mask: u32) -> u32 {
    u32::BITS - (events & mask).leading_zeros()
}
