//! Frames both ways, the interrupt, and the watchdog.
//!
//! Batches are the rule: queue many frames and [`Nic::submit`] once, take many frames
//! with one [`Nic::receive`], and the card is told with a mailbox write each.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use host_interface::bar;
use host_interface::extension::Extension;
use host_interface::gencom::Gencom;
use tigon2_chip::registers::Register;

use super::config::{GiveBack, Notice, SendConsumer};
use super::error::NicError;
use super::events::Link;
use super::frame::{Received, ReceivedFrame};
use super::send::SendOptions;
use super::{LOOK, Nic, Phase, Ring, window};
use crate::dma::DmaMemory;
use crate::live::Direction;
use crate::transport::{Transport, Vector};

/// Longest sleep of a polling driver between two looks.
const POLL_PAUSE: Duration = Duration::from_micros(50);

impl<T: Transport> Nic<T> {
    /// A descriptor that becomes readable when the card has raised its interrupt.
    /// After it, call [`Nic::wait`] with no time, and then [`Nic::service`].
    pub fn interrupt_fd(&self) -> Option<BorrowedFd<'_>> {
        self.transport.vector_fd(Vector::INTERRUPT)
    }

    /// Waits until the card may have something, at most for `timeout`. True if it
    /// has: an interrupt, which is acknowledged here, or, when polling, an index that
    /// moved. Look at the rings after it: what comes later interrupts again.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        self.transport.flush()?;
        match self.config.notice {
            Notice::Interrupt => {
                let came = self.transport.wait(Vector::INTERRUPT, timeout)?;
                if came {
                    self.counters.interrupts += 1;
                    self.acknowledge()?;
                }
                Ok(came)
            }
            Notice::Polling => {
                let start = Instant::now();
                loop {
                    if self.has_work()? {
                        return Ok(true);
                    }
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    // An in-process engine gets its time in here.
                    self.transport
                        .wait(Vector::INTERRUPT, left.min(POLL_PAUSE))?;
                }
            }
        }
    }

    /// Takes the interrupt away on the card and lets the next one through, before the
    /// indices are looked at. [`Nic::wait`] does it; this is for those who learn of
    /// interrupts in another way, and does no harm twice.
    ///
    /// # Errors
    /// What the transport says.
    pub fn acknowledge(&mut self) -> Result<(), NicError> {
        if self.config.notice == Notice::Interrupt {
            self.transport.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
            self.transport.unmask(Vector::INTERRUPT)?;
            // The write may be posted. Until it has arrived the firmware keeps quiet
            // about what it does meanwhile, and whoever looked at the indices before
            // that would sleep through it. Reading the mailbox back waits for it.
            self.transport.read(bar::MAILBOX_HOST_INTERRUPT)?;
        }
        Ok(())
    }

    fn has_work(&self) -> Result<bool, NicError> {
        Ok(self.receive.available()? > 0 || self.events.pending(&self.memory)?)
    }

    /// Handles events and takes sent BDs back. Bounded: it looks at each index once.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an index that cannot be,
    /// [`NicError::Stuck`] or [`NicError::FirmwareFatal`] if sent BDs have not come
    /// back for too long; what the transport says.
    pub fn service(&mut self) -> Result<(), NicError> {
        self.take_events()?;
        self.reclaim()?;
        self.watch()
    }

    pub(super) fn take_events(&mut self) -> Result<(), NicError> {
        if let Some(consumer) = self.events.take(&self.memory)? {
            self.transport
                .write(Gencom::EventConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    fn reclaim(&mut self) -> Result<(), NicError> {
        if self.send.outstanding() == 0 {
            return Ok(());
        }
        let reported = if self.ours && self.config.send_consumer == SendConsumer::Register {
            self.extension(Extension::SendConsumer)?
        } else {
            self.send.reported()?
        };
        self.send.reclaim(reported)?;
        Ok(())
    }

    /// The watchdog: sent BDs must come back while there is a link.
    fn watch(&mut self) -> Result<(), NicError> {
        let after = self.send.waiting_for();
        if self.send.outstanding() == 0 || after < self.config.watchdog {
            return Ok(());
        }
        self.check_fatal()?;
        if self.events.link == Link::Down {
            // Nothing leaves a card without a link; the clock starts when it is back.
            self.send.excuse();
            return Ok(());
        }
        Err(NicError::Stuck {
            what: "sent BDs do not come back",
            after,
            state: self.card_state()?,
        })
    }

    /// Send BDs that are free now.
    pub fn send_room(&self) -> u32 {
        self.send.free()
    }

    /// Send BDs that are with the card.
    pub fn send_outstanding(&self) -> u32 {
        self.send.outstanding()
    }

    /// Queues a frame of one or more fragments, copying it once. False if the ring is
    /// full. The card learns of it with [`Nic::submit`].
    ///
    /// # Errors
    /// [`NicError::BadFrame`] for a frame that cannot be sent, [`NicError::WrongState`].
    pub fn queue(&mut self, fragments: &[IoSlice<'_>]) -> Result<bool, NicError> {
        self.queue_as(fragments, SendOptions::default())
    }

    /// Queues a frame as [`Nic::queue`] does, with more for the card to do.
    ///
    /// # Errors
    /// As [`Nic::queue`].
    pub fn queue_as(
        &mut self,
        fragments: &[IoSlice<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        self.need(Phase::Open)?;
        let queued = self.send.queue(fragments, options)?;
        if queued {
            self.counters.frames_sent += 1;
            self.counters.bytes_sent += fragments
                .iter()
                .map(|fragment| fragment.len() as u64)
                .sum::<u64>();
            self.readers.offer(Direction::Out, || {
                let bytes = fragments.iter().flat_map(|fragment| fragment.iter());
                Some(bytes.copied().collect())
            });
        }
        Ok(queued)
    }

    /// Lets `fill` put a frame straight into the next send slot: it gets the memory,
    /// the offset and the room, and gives the length (0: there was no frame). None if
    /// the ring is full, else the length.
    ///
    /// # Errors
    /// What `fill` says, as [`NicError::Io`]; [`NicError::BadFrame`],
    /// [`NicError::WrongState`].
    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<usize>,
    ) -> Result<Option<usize>, NicError> {
        self.queue_with_options(|memory, offset, room| {
            fill(memory, offset, room).map(|bytes| (bytes, SendOptions::default()))
        })
    }

    /// Queues a frame as [`Nic::queue_with`] does; `fill` says also what more the card
    /// shall do with it.
    ///
    /// # Errors
    /// As [`Nic::queue_with`].
    pub fn queue_with_options(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<(usize, SendOptions)>,
    ) -> Result<Option<usize>, NicError> {
        self.need(Phase::Open)?;
        let mut place = 0;
        let queued = self.send.queue_with(|memory, offset, room| {
            place = offset;
            fill(memory, offset, room)
        })?;
        if let Some(bytes) = queued.filter(|bytes| *bytes > 0) {
            self.counters.frames_sent += 1;
            self.counters.bytes_sent += bytes as u64;
            self.readers.offer(Direction::Out, || {
                let mut frame = vec![0; bytes];
                self.send.memory().read_bytes(place, &mut frame).ok()?;
                Some(frame)
            });
        }
        Ok(queued)
    }

    /// Tells the card of everything that was queued, with one mailbox write.
    ///
    /// # Errors
    /// What the transport says.
    pub fn submit(&mut self) -> Result<(), NicError> {
        for (address, words) in self.send.take_waiting() {
            window::write(&mut self.transport, address, &words)?;
        }
        if let Some(producer) = self.send.ring_due() {
            self.transport.write(bar::MAILBOX_SEND_PRODUCER, producer)?;
            self.counters.send_rings += 1;
        }
        self.transport.flush()?;
        Ok(())
    }

    /// Queues frames in order as long as there is room and tells the card once.
    /// Gives how many were queued.
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

    /// Hands at most `budget` received frames to `deliver`, in order, and gives their
    /// buffers back to the card. Gives how many return BDs were taken.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] or [`NicError::Nonsense`] if the card reports what
    /// cannot be, what `deliver` says, or what the transport says.
    pub fn receive(
        &mut self,
        budget: u32,
        mut deliver: impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<u32, NicError> {
        let available = self.receive.available()?;
        let taken = available.min(budget);
        for _ in 0..taken {
            let readers = &mut self.readers;
            let mut deliver = |frame: ReceivedFrame<'_>| {
                readers.offer(Direction::In, || frame.to_vec().ok());
                deliver(frame)
            };
            let bytes = self.receive.take(&mut self.drops, &mut deliver)?;
            if bytes > 0 {
                self.counters.frames_received += 1;
                self.counters.bytes_received += bytes as u64;
            }
        }
        if taken > 0 {
            self.tell_receive(taken == available)?;
        }
        Ok(taken)
    }

    /// Copies at most `budget` received frames out.
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

    /// Copies at most `budget` received frames out, with all that the card says about
    /// each.
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

    /// Waits until every frame that was submitted has left the card's memory: all
    /// BDs are back and the MAC's transmit ring is empty.
    ///
    /// # Errors
    /// As [`Nic::service`]; [`NicError::Stuck`] if it takes longer than `timeout`.
    pub fn drain(&mut self, timeout: Duration) -> Result<(), NicError> {
        let start = Instant::now();
        loop {
            self.service()?;
            if self.send.outstanding() == 0 && self.transmit_ring_is_empty()? {
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
        let producer = self
            .transport
            .read(Register::TxDescriptorProducer.offset())?;
        let consumer = self
            .transport
            .read(Register::TxDescriptorConsumer.offset())?;
        Ok(producer & !7 == consumer & !7)
    }

    /// Tells the card which buffers and return BDs it has back.
    fn tell_receive(&mut self, all: bool) -> Result<(), NicError> {
        self.tell_buffers(all && self.config.give_back == GiveBack::EachTime)?;
        if let Some(consumer) = self.receive.tell_due(all) {
            self.transport
                .write(Gencom::ReceiveReturnConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    /// Tells the card of the buffers that wait for it, if there are enough of them.
    pub(super) fn tell_buffers(&mut self, all: bool) -> Result<(), NicError> {
        for (mailbox, producer) in self.receive.rings_due(all) {
            self.transport.write(mailbox, producer)?;
        }
        Ok(())
    }

    /// Receive buffers that are with the card.
    pub fn receive_outstanding(&self) -> usize {
        self.receive.outstanding()
    }

    /// Receive buffers of one ring that are with the card.
    pub fn receive_outstanding_in(&self, ring: Ring) -> usize {
        self.receive.outstanding_in(ring)
    }
}
