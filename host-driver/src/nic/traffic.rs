//! Frames in both directions, the interrupt, and the watchdog.
//!
//! Work in batches: queue many frames and call [`Nic::submit`] once, take many frames with one
//! [`Nic::receive`]; each notifies the card with one mailbox write.

use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use tigon2_chip::registers::Register;

use super::bar::Whole;
use super::error::NicError;
use super::events::Link;
use super::frame::{Received, ReceivedFrame};
use super::send::{InPlace, SendOptions};
use super::{LOOK, Nic, Ring};
use crate::dma::DmaMemory;
use crate::transport::{Access, Transport, Vector};

impl<T: Transport> Nic<T> {
    /// A descriptor that becomes readable when the card has raised its interrupt.
    /// After it, call [`Nic::wait`] with no time, and then [`Nic::service`].
    pub fn interrupt_fd(&self) -> Option<BorrowedFd<'_>> {
        self.control.transport.vector_fd(Vector::INTERRUPT)
    }

    /// Waits until the card may have work, at most for `timeout`. True if it may: an interrupt
    /// came, which is acknowledged here, or polling found that an index moved. Read the rings
    /// afterwards: later work interrupts again.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        if std::mem::take(&mut self.look_first) {
            return Ok(true);
        }
        let rings = &self.receive.rings;
        let has_frames = || Ok(rings.available()? > 0);
        self.control.wait_for(timeout, has_frames)
    }

    /// Deasserts the interrupt on the card and unmasks the next one, before the indices are read.
    /// [`Nic::wait`] does this; call it if interrupts are noticed in another way. Calling it twice
    /// does no harm.
    ///
    /// # Errors
    /// What the transport says.
    pub fn acknowledge(&mut self) -> Result<(), NicError> {
        self.control.acknowledge()
    }

    /// Handles events and takes sent BDs back. Bounded: it reads each index once.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an invalid index, [`NicError::Stuck`] or
    /// [`NicError::FirmwareFatal`] if sent BDs have not returned for too long; the transport's
    /// errors.
    pub fn service(&mut self) -> Result<(), NicError> {
        self.control.take_events()?;
        self.send.reclaim(&mut Whole(&mut self.control.transport))?;
        if self.control.watch(self.send.waiting_for())? {
            self.send.ring.excuse();
        }
        Ok(())
    }

    /// Waits until the card reports a link.
    ///
    /// # Errors
    /// [`NicError::NoLink`] after `timeout`; what the card or the transport says.
    pub fn wait_link(&mut self, timeout: Duration) -> Result<Link, NicError> {
        let start = Instant::now();
        loop {
            self.service()?;
            if self.link() != Link::Down {
                return Ok(self.link());
            }
            if start.elapsed() >= timeout {
                self.check_fatal()?;
                return Err(NicError::NoLink {
                    after: timeout,
                    state: self.card_state()?,
                });
            }
            self.wait(LOOK)?;
        }
    }

    /// Send BDs that are free now.
    pub fn send_room(&self) -> u32 {
        self.send.ring.free()
    }

    /// Send BDs that the card has.
    pub fn send_outstanding(&self) -> u32 {
        self.send.ring.outstanding()
    }

    /// Queues a frame of one or more fragments, copying it once. False if the ring is full.
    /// [`Nic::submit`] notifies the card.
    ///
    /// # Errors
    /// [`NicError::BadFrame`] for a frame that cannot be sent, [`NicError::WrongState`].
    pub fn queue(&mut self, fragments: &[IoSlice<'_>]) -> Result<bool, NicError> {
        self.queue_as(fragments, SendOptions::default())
    }

    /// Queues a frame as [`Nic::queue`] does, with offloads.
    ///
    /// # Errors
    /// As [`Nic::queue`].
    pub fn queue_as(
        &mut self,
        fragments: &[IoSlice<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        self.need_ring()?;
        self.send.queue(fragments, options)
    }

    /// Lets the card read a memory file of someone else, for [`Nic::queue_in_place`].
    ///
    /// # Errors
    /// What the transport says, see [`Transport::map`].
    pub fn map(&mut self, file: OwnedFd) -> Result<DmaMemory, NicError> {
        Ok(self.control.transport.map(file, Access::Read)?)
    }

    /// Takes such memory away from the card; no BD may point there ([`Nic::send_returned`]).
    ///
    /// # Errors
    /// What the transport says, see [`Transport::unmap`].
    pub fn unmap(&mut self, memory: &DmaMemory) -> Result<(), NicError> {
        Ok(self.control.transport.unmap(memory)?)
    }

    /// Queues a frame as [`Nic::queue_as`] does, whose header is copied and whose rest the card
    /// reads where it is: it stays as it is until the card has sent the frame.
    ///
    /// # Errors
    /// As [`Nic::queue`]; [`NicError`] if a part is outside its memory.
    pub fn queue_in_place(
        &mut self,
        header: &[u8],
        rest: &[InPlace<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        self.need_ring()?;
        self.send.queue_in_place(header, rest, options)
    }

    /// A mark of what has been queued: the card reads none of it any more when
    /// [`Nic::send_returned`] has reached it.
    pub fn send_queued(&self) -> u64 {
        self.send.ring.queued()
    }

    /// Send BDs that have come back so far.
    pub fn send_returned(&self) -> u64 {
        self.send.ring.returned()
    }

    /// Makes `fill` write a frame straight into the next send slot: it receives the memory, the
    /// offset and the room, and returns the length (0: there was no frame). None if the ring is
    /// full, otherwise the length.
    ///
    /// # Errors
    /// The errors of `fill`, as [`NicError::Io`]; [`NicError::BadFrame`], [`NicError::WrongState`].
    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<usize>,
    ) -> Result<Option<usize>, NicError> {
        self.queue_with_options(|memory, offset, room| {
            fill(memory, offset, room).map(|bytes| (bytes, SendOptions::default()))
        })
    }

    /// Queues a frame as [`Nic::queue_with`] does; `fill` also returns its offloads.
    ///
    /// # Errors
    /// As [`Nic::queue_with`].
    pub fn queue_with_options(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<(usize, SendOptions)>,
    ) -> Result<Option<usize>, NicError> {
        self.need_ring()?;
        self.send.queue_with(fill)
    }

    /// Notifies the card of everything that was queued, with one mailbox write.
    ///
    /// # Errors
    /// What the transport says.
    pub fn submit(&mut self) -> Result<(), NicError> {
        let memory = self.control.memory_access;
        let transport = &mut self.control.transport;
        for (address, words) in self.send.ring.take_waiting() {
            memory.write(transport, address, &words)?;
        }
        Ok(self.send.submit(&mut Whole(transport))?)
    }

    /// Queues frames in order as long as there is room and notifies the card once. Returns how many
    /// were queued.
    ///
    /// # Errors
    /// As [`Nic::queue`]; frames before a bad one are sent.
    pub fn send_batch(&mut self, frames: &[&[IoSlice<'_>]]) -> Result<usize, NicError> {
        let mut count = 0;
        let mut result = Ok(count);
        for fragments in frames {
            match self.queue(fragments) {
                Ok(true) => count += 1,
                Ok(false) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.submit()?;
        result.map(|_| count)
    }

    /// Passes at most `budget` received frames to `deliver`, in order, and returns their buffers to
    /// the card. Returns how many return BDs were taken.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] or [`NicError::Nonsense`] if the card reports invalid values; the
    /// errors of `deliver` and of the transport.
    pub fn receive(
        &mut self,
        budget: u32,
        deliver: impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<u32, NicError> {
        let mut card = Whole(&mut self.control.transport);
        self.receive.receive(&mut card, budget, deliver)
    }

    /// Copies at most `budget` received frames.
    ///
    /// # Errors
    /// As [`Nic::receive`].
    pub fn receive_batch(&mut self, budget: u32) -> Result<Vec<Vec<u8>>, NicError> {
        let mut frames = Vec::new();
        self.receive(budget, |frame| {
            frames.push(frame.to_vec()?);
            Ok(())
        })?;
        Ok(frames)
    }

    /// Copies at most `budget` received frames, with the card's report about each.
    ///
    /// # Errors
    /// As [`Nic::receive`].
    pub fn receive_described(&mut self, budget: u32) -> Result<Vec<Received>, NicError> {
        let mut frames = Vec::new();
        self.receive(budget, |frame| {
            frames.push(frame.to_received()?);
            Ok(())
        })?;
        Ok(frames)
    }

    /// Waits until every submitted frame has left the card's memory: all BDs are back and the MAC's
    /// transmit ring is empty.
    ///
    /// # Errors
    /// As [`Nic::service`]; [`NicError::Stuck`] if it takes longer than `timeout`.
    pub fn drain(&mut self, timeout: Duration) -> Result<(), NicError> {
        let start = Instant::now();
        loop {
            self.service()?;
            if self.send_outstanding() == 0 && self.transmit_ring_is_empty()? {
                return Ok(());
            }
            if start.elapsed() >= timeout {
                self.check_fatal()?;
                return Err(NicError::Stuck {
                    what: "frames do not leave",
                    after: timeout,
                    state: self.card_state()?,
                });
            }
            self.wait(LOOK / 4)?;
        }
    }

    /// Reference 10.1: `R[F0]` is the producer, `R[F4]` the consumer with flags in bits
    /// 2:0 (C).
    fn transmit_ring_is_empty(&mut self) -> Result<bool, NicError> {
        let transport = &mut self.control.transport;
        let producer = transport.read(Register::TxDescriptorProducer.offset())?;
        let consumer = transport.read(Register::TxDescriptorConsumer.offset())?;
        Ok(producer & !7 == consumer & !7)
    }

    /// Reports returned buffers to the card, if there are enough of them.
    pub(super) fn publish_buffers(&mut self, all: bool) -> Result<(), NicError> {
        let mut card = Whole(&mut self.control.transport);
        Ok(self.receive.publish_buffers(&mut card, all)?)
    }

    /// Receive buffers that the card has.
    pub fn receive_outstanding(&self) -> usize {
        self.receive.rings.outstanding()
    }

    /// Receive buffers of one ring that the card has.
    pub fn receive_outstanding_in(&self, ring: Ring) -> usize {
        self.receive.rings.outstanding_in(ring)
    }
}
