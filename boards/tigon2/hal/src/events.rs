//! Pending events, the doorbells between the CPUs, and the priority encoder.
//!
//! Hardware reference, sections 3.2, 5 and 7. The event register mixes hardware levels with
//! software bits. PRI takes a mask, and vendor firmware uses a mask bit as the gate of a software
//! bit that is always on. Here all software bits of both event registers are always on; a CPU's
//! mask, in its own scratch pad, says "enabled" for hardware events and "pending" for software
//! events:
//!
//! ```text
//! event register   level level   1     1     1   <- bit of its doorbell: stored by the
//! mask (private)   want  want  pend. pend.   1      other CPU, cleared by its owner
//! ```
//!
//! So no CPU has to read, modify and write an event register, which both could do at the same
//! time: setting an event is private, and a [doorbell](Dispatch::ring) is a plain store of a
//! constant. The owner clears the doorbell *before* it reads what the other CPU has written; if
//! both store at the same time, either the doorbell stays on or its owner has yet to read.

use crate::Bus;
use crate::assist::Direction;
use tigon2_chip::events::{EventBit, SOFTWARE_BITS};
use tigon2_chip::{Cpu, Register};

/// The state of a CPU's dispatch loop.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Core {
    /// Enabled hardware events and pending software events. It must be the first field: the chip's
    /// loop reads it at the address of the structure.
    pub mask: u32,
    /// Iterations without an event. It must be the second field: the loop counts here.
    pub idle: u32,
    /// This CPU's number. The fields are words because the chip cannot store to unaligned places,
    /// and compilers merge stores of several bytes.
    cpu: u32,
    /// 1 if this CPU runs the handlers of both sides; otherwise the other CPU has its own.
    alone: u32,
    /// 1 after a fatal error was reported; no event is dispatched any more.
    stopped: u32,
    /// The deadline of each side's timer event; of the other side only if alone.
    deadlines: [u32; 2],
}

impl Core {
    /// Nothing pending, nothing enabled.
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

    /// This CPU.
    #[inline(always)]
    pub const fn cpu(&self) -> Cpu {
        if self.cpu == Cpu::A as u32 {
            Cpu::A
        } else {
            Cpu::B
        }
    }

    /// Whether this CPU runs the handlers of both sides.
    #[inline(always)]
    pub const fn is_alone(&self) -> bool {
        self.alone != 0
    }

    /// Stops dispatching events.
    pub const fn stop(&mut self) {
        self.mask = 0;
        self.stopped = 1;
    }

    /// Whether dispatching has stopped.
    pub const fn is_stopped(&self) -> bool {
        self.stopped != 0
    }
}

/// A CPU for its handlers: the chip, and the pending events.
pub trait Dispatch: Bus + Sized {
    /// The channel from the host: the chip's, or a channel that more CPUs share.
    type ReadChannel: Direction;
    /// The channel to the host.
    type WriteChannel: Direction;

    /// The core of the running CPU.
    fn core<R>(&mut self, use_it: impl FnOnce(&mut Core) -> R) -> R;

    /// Calls the function at NIC address `entry`, code that came into NIC memory behind the
    /// image, with an argument; returns what it returns.
    fn call(&mut self, entry: u32, argument: u32) -> u32;

    /// Makes a software event pending, or lets a hardware event through.
    #[inline(always)]
    fn set(&mut self, event: EventBit) {
        self.core(|core| core.mask |= event.mask());
    }

    /// [`set`](Self::set)s or [`clear`](Self::clear)s it, without a branch.
    #[inline(always)]
    fn set_to(&mut self, event: EventBit, is_set: bool) {
        let bit = u32::from(is_set) << event as u32;
        self.core(|core| core.mask = core.mask & !event.mask() | bit);
    }

    /// Clears a pending software event, or masks a hardware event.
    #[inline(always)]
    fn clear(&mut self, event: EventBit) {
        self.core(|core| core.mask &= !event.mask());
    }

    /// Whether a software event is pending, or a hardware event enabled.
    #[inline(always)]
    fn is_set(&mut self, event: EventBit) -> bool {
        self.core(|core| core.mask & event.mask() != 0)
    }

    /// The events of `side` that are pending and enabled, besides this one.
    #[inline(always)]
    fn others(&mut self, side: Cpu, event: EventBit) -> u32 {
        let mask = self.core(|core| core.mask) & !event.mask();
        self.read(Register::event(side)) & mask
    }

    /// Whether the doorbell of `side` is pending and enabled.
    #[inline(always)]
    fn is_rung(&mut self, side: Cpu) -> bool {
        let mask = self.core(|core| core.mask) & EventBit::doorbell(side).mask();
        self.read(Register::event(side)) & mask != 0
    }

    /// Sets all software bits in the register of `side` except its doorbell, and enables the
    /// doorbell.
    fn prepare(&mut self, side: Cpu) {
        if self.core(|core| core.is_alone()) {
            self.write(Register::event(Cpu::A), SOFTWARE_BITS);
        } else {
            self.set(EventBit::doorbell(side));
            self.answer(side);
        }
    }

    /// Rings the CPU with the handlers of `side`, after a write to shared memory.
    #[inline(always)]
    fn ring(&mut self, side: Cpu) {
        if self.core(|core| core.is_alone()) {
            return self.set(EventBit::doorbell(side));
        }
        // Register accesses are not ordered after buffered stores; a load is.
        let _ = self.load(tigon2_chip::memory::MAILBOXES);
        self.write(Register::event(side), SOFTWARE_BITS);
    }

    /// Clears the doorbell of this CPU's `side`, before it reads shared memory.
    #[inline(always)]
    fn answer(&mut self, side: Cpu) {
        let bell = EventBit::doorbell(side);
        if self.core(|core| core.is_alone()) {
            return self.clear(bell);
        }
        self.write(Register::event(side), SOFTWARE_BITS & !bell.mask());
    }

    /// Sets the timer event of this CPU's `side`, see [`timer::arm`](crate::timer::arm).
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

/// The number of the most significant set bit of `events & mask`, plus one; 0 if there is none. On
/// the chip this is the instruction PRI (reference 3.2, C!).
#[inline(always)]
pub fn priority(events: u32, mask: u32) -> u32 {
    u32::BITS - (events & mask).leading_zeros()
}
