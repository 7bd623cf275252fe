//! What CPU A works with: the write channel, interrupts and events to the host.
//!
//! Hardware reference, sections 6 and 14. The ring works strictly in order, so an index that
//! is queued behind the data that it announces arrives behind it.

use super::Busy;
use super::deadline::{Deadlines, SlotA};
use super::filter::Filter;
use super::interrupt::Interrupt;
use super::note::WriteNote;
use super::outbox::Outbox;
use super::states::WriteStates;
use crate::memory::layout::STAGING;
use crate::memory::shared::OfA;
use host_interface::event::{Event, EventCode};
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::assist::{DescriptorRing, HostAddress, Position, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// CPU A's io.
#[derive(Debug)]
pub struct IoA<B: Dispatch> {
    /// The chip, and what is pending.
    pub bus: B,
    /// The right to write what CPU A shares.
    pub me: OfA,
    /// State words of transfers.
    pub states: WriteStates,
    /// Transfers to the host.
    pub write_ring: DescriptorRing<B::WriteChannel>,
    /// Transfers whose end is awaited: something follows.
    awaited: u32,
    /// Events that wait for a write descriptor.
    held: u32,
    /// Where the receive buffer is free up to once all in front of `freed_behind` is
    /// written; 0: no matter.
    freed: u32,
    freed_behind: Position,
    /// Interrupts to the host.
    pub interrupt: Interrupt,
    /// When something is due.
    deadlines: Deadlines<1>,
    /// Events to the host.
    pub outbox: Outbox,
    /// Doorbell A has something rare to see to: an event to send, a call to finish.
    pub rare_work: bool,
    /// Which frames are taken.
    pub filter: Filter,
}

impl<B: Dispatch> IoA<B> {
    /// Before anything is known.
    pub const fn new(bus: B, write: B::WriteChannel) -> IoA<B> {
        IoA {
            bus,
            me: OfA::new(),
            states: WriteStates::new(0, true, true),
            write_ring: DescriptorRing::new(write),
            awaited: 0,
            held: 0,
            freed: 0,
            freed_behind: Position::START,
            interrupt: Interrupt::new(),
            deadlines: Deadlines::new(),
            outbox: Outbox::new(),
            rare_work: false,
            filter: Filter::new(),
        }
    }

    /// Places the write ring in the descriptor and buffer block with base K.
    pub fn place(&mut self, block: u32) {
        self.write_ring.place(block + block::DMA_WRITE_RING);
    }

    /// Rings CPU B.
    #[inline(always)]
    pub fn ring_b(&mut self) {
        self.bus.ring(Cpu::B);
    }
}

/// Transfers to the host.
impl<B: Dispatch> IoA<B> {
    /// Queues `words` for the host, padded to the 8 bytes that vendor firmware always moves.
    /// They lie in the staging slot of the descriptor, so they stay until it is reused.
    ///
    /// # Errors
    /// [`Busy`] when no write descriptor is free.
    #[inline(always)]
    pub fn write_words(
        &mut self,
        host: HostAddress,
        words: &[u32],
        note: WriteNote,
    ) -> Result<(), Busy> {
        if !self.has_write_room(1) {
            return Err(Busy);
        }
        self.put_words(host, words, note);
        Ok(())
    }

    /// As [`write_words`](Self::write_words), after [`has_write_room`](Self::has_write_room)
    /// said yes.
    #[inline(always)]
    pub fn put_words(&mut self, host: HostAddress, words: &[u32], note: WriteNote) {
        let slot = STAGING + (self.write_ring.next_index() << 5);
        let mut address = slot;
        for word in words {
            self.bus.store(address, *word);
            address += 4;
        }
        let transfer = Transfer {
            host,
            local: slot,
            length: address - slot,
            state: self.states.words,
            note: note.word(),
        };
        if note != WriteNote::QUIET {
            self.await_next();
        }
        self.write_ring.put(&mut self.bus, &transfer);
    }

    /// The end of the transfer that is queued next is awaited. What is done by now is no
    /// event any more; room and descriptors that are waited for are seen to when it is done.
    #[inline(always)]
    fn await_next(&mut self) {
        if self.awaited == 0 {
            self.pass_writes();
        }
        self.awaited += 1;
        self.await_writes();
    }

    /// The end of a transfer that was awaited has come, or will not.
    #[inline(always)]
    pub fn has_ended(&mut self) {
        self.awaited -= 1;
    }

    /// Whether the end of a transfer is awaited.
    #[inline(always)]
    pub fn awaits_end(&self) -> bool {
        self.awaited != 0
    }

    /// Whether `count` transfers can be queued. The channel is looked at only if there was no
    /// room at the last look; if there is none now, DMA Write Complete looks.
    #[inline(always)]
    pub fn has_write_room(&mut self, count: u32) -> bool {
        self.write_ring.has_room(count) || self.makes_write_room(count)
    }

    #[inline(never)]
    fn makes_write_room(&mut self, count: u32) -> bool {
        if !self.awaits_anything() {
            self.pass_writes();
            if self.write_ring.has_room(count) {
                return true;
            }
        }
        self.await_writes();
        false
    }

    /// Looks at the channel if fewer than `count` descriptors are known to be free and nothing
    /// follows when a transfer is done.
    #[inline(always)]
    pub fn look_for_room(&mut self, count: u32) {
        if !self.write_ring.has_room(count) && !self.awaits_anything() {
            self.pass_writes();
        }
    }

    /// Whether all that was queued has been written.
    pub fn all_written(&mut self) -> bool {
        if !self.awaits_anything() {
            self.pass_writes();
        }
        let now = self.write_ring.position();
        self.write_ring.has_passed(now)
    }

    /// Passes over the transfers that are done, as nothing follows.
    #[inline(always)]
    fn pass_writes(&mut self) {
        let mut walk = self.write_ring.finished(&mut self.bus);
        walk.pass();
        self.write_ring.acknowledge(&mut self.bus, walk);
    }

    /// Whether something follows when a transfer is done.
    #[inline(always)]
    pub fn awaits_anything(&self) -> bool {
        self.awaited | self.held != 0 || self.freed != 0
    }

    /// Has DMA Write Complete look when a transfer to the host is done: for an index, for
    /// room in the receive buffer or for a descriptor.
    #[inline(always)]
    pub fn await_writes(&mut self) {
        self.bus.set(EventBit::DmaWriteComplete);
    }

    /// A software event that finds no write descriptor waits until one is free: what frees
    /// them has a lower priority.
    #[inline(always)]
    pub fn wait_for_descriptor(&mut self, event: EventBit) {
        self.bus.clear(event);
        self.held |= event.mask();
        self.bus.set(EventBit::DmaWriteComplete);
    }

    /// Descriptors are free: those that found none try again.
    #[inline(always)]
    pub fn try_held_again(&mut self) {
        if self.held != 0 {
            let held = core::mem::take(&mut self.held);
            self.bus.core(|core| core.mask |= held);
        }
    }
}

/// Room in the receive buffer that no transfer frees by itself.
impl<B: Dispatch> IoA<B> {
    /// The receive buffer is free up to `end` when all that is queued now has been written.
    pub fn free_later(&mut self, end: u32) {
        self.freed = end;
        self.freed_behind = self.write_ring.position();
    }

    /// A transfer that is queued now frees what was to be freed later.
    #[inline(always)]
    pub fn frees_with_data(&mut self) {
        self.freed = 0;
    }

    /// Whether something is to be freed later.
    pub fn frees_later(&self) -> bool {
        self.freed != 0
    }

    /// Frees what dropped frames took, if nothing older is being read.
    #[inline(always)]
    pub fn free(&mut self) {
        if self.freed != 0 && self.write_ring.has_passed(self.freed_behind) {
            self.bus.write(Register::RxConsumer, self.freed);
            self.freed = 0;
        }
    }
}

/// Deadlines.
impl<B: Dispatch> IoA<B> {
    /// Starts housekeeping.
    pub fn start_timer(&mut self) {
        let now = timer::now(&mut self.bus);
        self.deadlines.start(now);
        self.set_timer(now);
    }

    /// Arms a slot.
    #[inline(always)]
    pub fn arm(&mut self, slot: SlotA, ticks: u32) {
        let now = timer::now(&mut self.bus);
        self.deadlines.arm(slot as usize, now, ticks);
        self.set_timer(now);
    }

    /// Whether a slot is armed.
    #[inline(always)]
    pub fn is_armed(&self, slot: SlotA) -> bool {
        self.deadlines.is_armed(slot as usize)
    }

    /// Takes a slot back.
    #[inline(always)]
    pub fn disarm(&mut self, slot: SlotA) {
        self.deadlines.disarm(slot as usize);
    }

    /// Whether a slot is due; it is not armed any more then.
    #[inline(always)]
    pub fn take_due(&mut self, slot: SlotA, now: u32) -> bool {
        self.deadlines.take(slot as usize, now)
    }

    /// Whether housekeeping is due.
    #[inline(always)]
    pub fn take_period(&mut self, now: u32) -> bool {
        self.deadlines.take_period(now)
    }

    /// Sets the chip's reference to what is due first.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
    #[inline(never)]
    pub fn set_timer(&mut self, now: u32) {
        let first = self.deadlines.first();
        self.bus.arm(Cpu::A, now, first);
    }
}

/// The host.
impl<B: Dispatch> IoA<B> {
    /// Raises the interrupt if the host can take one now, or defers it.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
    #[inline(never)]
    pub fn raise_interrupt(&mut self) {
        self.interrupt.raise(&mut self.bus);
    }

    /// The host may have let go: raises what was deferred.
    #[inline(always)]
    pub fn raise_deferred(&mut self) {
        if self.interrupt.is_deferred() {
            self.raise_interrupt();
        }
    }

    /// Reports an event to the host, soon or when there is room.
    #[inline(never)]
    pub fn post(&mut self, event: EventCode, code: u16) {
        let [word, _] = Event::new(event, code).pack();
        self.post_word(word);
    }

    /// The same with the event's word.
    #[inline(never)]
    pub fn post_word(&mut self, word: u32) {
        self.outbox.post(&mut self.bus, word);
        // CPU A's own doorbell: what it answers sends the event.
        self.rare_work = true;
        self.bus.ring(Cpu::A);
    }

    /// Reports to the host that something is wrong; `code` is one of the error codes.
    #[inline(never)]
    pub fn post_error(&mut self, code: u16) {
        crate::memory::statistics::count!(self.bus, event_error);
        self.post(EventCode::Error, code);
    }
}
