//! The queued work: DMA transfers and frames to send.

use super::Card;
use crate::dma::{Direction, HOST_MEMORY_ERROR, Transfer, gather, reverse_words};
use crate::environment::{Environment, Sram};
use crate::faults::{EXCESS, TransmitFault};
use crate::mac::Queued;
use crate::operations::Operation;
use crate::undefined::{Accessor, UndefinedKind};
use tigon2_chip::dma::{DESCRIPTOR_BYTES, DmaDescriptor};
use tigon2_chip::mac::{MacStatistic, RxError};

/// Work of one call of [`Device::run`](super::Device::run), in bytes; a step costs at least [`STEP_COST`].
const BUDGET: u32 = 512 * 1024;

/// The cost of an empty step: with [`BUDGET`] it permits about 2000 steps.
const STEP_COST: u32 = 256;

/// The next work of a DMA channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaWork {
    /// None, or the channel is busy.
    Nothing,
    /// A transfer that software started by the registers.
    Direct,
    /// The next descriptor of its ring.
    Descriptor {
        /// Whether it may only start while the other channel is idle: `R[11C]` bit 2.
        alone: bool,
    },
}

impl Card {
    #[inline]
    pub(crate) fn dma_work(&self, direction: Direction) -> DmaWork {
        if self.dma.channel(direction).waiting() {
            DmaWork::Direct
        } else if self.dma.assist_ready(direction) {
            DmaWork::Descriptor {
                alone: self.dma.assist.state().one_at_a_time(),
            }
        } else {
            DmaWork::Nothing
        }
    }

    pub(crate) fn run(&mut self, env: &mut Environment<'_>) -> bool {
        let mut spent = 0;
        loop {
            let before = spent;
            for direction in Direction::ALL {
                if let Some(transfer) = self.dma_begin(env, direction) {
                    if !env.host.waits(transfer.host, transfer.length as usize) {
                        self.dma_complete(env, direction);
                    }
                    spent += STEP_COST + transfer.length;
                }
            }
            if let Some(length) = self.transmit_begin(env) {
                self.transmit_complete(env);
                spent += STEP_COST + length as u32;
            }
            if spent == before {
                self.flow_control(env);
                return false;
            }
            if spent >= BUDGET {
                return true;
            }
        }
    }

    pub(crate) fn dma_begin(
        &mut self,
        env: &mut Environment<'_>,
        direction: Direction,
    ) -> Option<Transfer> {
        if self.dma.assist_ready(direction) {
            let address = self.descriptor_address(direction);
            let mut bytes = [0; DESCRIPTOR_BYTES as usize];
            self.map.read(env.sram, address, &mut bytes);
            let descriptor = DmaDescriptor::from_nic_bytes(&bytes);
            if !descriptor.state.start() {
                let state = descriptor.state.into_bits();
                self.undefined
                    .note(Accessor::Dma, UndefinedKind::NoStart, address, state);
            }
            self.dma.channel_mut(direction).load(&descriptor);
            self.dma.assist.loaded(direction);
        }
        let transfer = self.dma.channel_mut(direction).begin()?;
        self.dma.begun[direction.index()] += 1;
        if transfer.state.no_swap() && transfer.length % 4 != 0 {
            let (local, length) = (transfer.local, transfer.length);
            self.undefined
                .note(Accessor::Dma, UndefinedKind::PartialWord, local, length);
        }
        Some(transfer)
    }

    #[inline]
    pub(crate) fn dma_transfer(&self, direction: Direction) -> Option<Transfer> {
        self.dma.channel(direction).transfer()
    }

    #[inline]
    pub(crate) fn dma_begun(&self, direction: Direction) -> u64 {
        self.dma.begun[direction.index()]
    }

    pub(crate) fn dma_bytes(&self, sram: &dyn Sram) -> Option<Vec<u8>> {
        let transfer = self.dma.channel(Direction::Write).transfer()?;
        let mut bytes = vec![0; transfer.length as usize];
        gather(sram, self.map, self.mac.buffers, &transfer, &mut bytes);
        if transfer.state.no_swap() {
            reverse_words(&mut bytes);
        }
        Some(bytes)
    }

    pub(crate) fn dma_moved(
        &mut self,
        env: &mut Environment<'_>,
        direction: Direction,
        moved: u32,
    ) {
        let Some(transfer) = self.dma.channel(direction).transfer() else {
            return;
        };
        // The bytes of a word are reversed together.
        let part = if transfer.state.no_swap() {
            moved % 4
        } else {
            0
        };
        let until = moved - part;
        if until <= self.dma.channel(direction).moved() {
            return;
        }
        let (map, buffers) = (self.map, self.mac.buffers);
        let outcome = self
            .dma
            .move_bytes(env, map, buffers, direction, &transfer, until);
        if let Ok(outcome) = outcome {
            let moved = until.min(transfer.length);
            let channel = self.dma.channel_mut(direction);
            channel.set_moved(moved, outcome.checksum);
        }
    }

    pub(crate) fn cuts_through(&self) -> bool {
        let transfer = self.dma.channel(Direction::Read).transfer();
        let (Some(transfer), Some(sending)) = (transfer, &self.mac.sending) else {
            return false;
        };
        self.mac.overlaps(sending, transfer.local, transfer.length)
    }

    pub(crate) fn transmit_fetched(&mut self, env: &mut Environment<'_>, bytes: usize) {
        self.mac.fetch(env.sram, self.map, bytes);
    }

    pub(crate) fn dma_complete(&mut self, env: &mut Environment<'_>, direction: Direction) {
        let Some(transfer) = self.dma.channel(direction).transfer() else {
            return;
        };
        let (map, buffers) = (self.map, self.mac.buffers);
        let outcome = self
            .dma
            .move_bytes(env, map, buffers, direction, &transfer, u32::MAX);
        let channel = self.dma.channel_mut(direction);
        let Ok(outcome) = outcome else {
            // The consumer stays: software repairs the descriptor, and the channel tries it again.
            channel.fail(HOST_MEMORY_ERROR);
            return;
        };
        if let Some(operations) = &mut self.operations {
            operations.push(Operation::dma(direction, &transfer));
        }
        if let Some(target) = channel.finish(outcome.end, outcome.checksum) {
            let bytes = outcome.checksum.to_be_bytes();
            self.map.write(env.sram, target & !1, &bytes);
        }
        match direction {
            Direction::Read if transfer.state.end_of_frame() => {
                self.mac.cover(outcome.end);
            }
            Direction::Write if transfer.state.free_rx_buffer() => {
                self.mac.free(outcome.end);
            }
            _ => {}
        }
        if transfer.assist {
            self.dma.assist.ring_mut(direction).advance();
        }
    }

    pub(crate) fn transmit_begin(&mut self, env: &mut Environment<'_>) -> Option<usize> {
        if self.wire_room == Some(0) {
            return None;
        }
        // At most a ring of empty descriptors, then something else.
        for _ in 0..tigon2_chip::mac::TX_RING_ENTRIES {
            match self.mac.queued(env.now, env.sram, self.map) {
                Queued::Nothing | Queued::Waiting => return None,
                Queued::Empty => {
                    let address = self.mac.tx_descriptor_consumer.get();
                    self.undefined
                        .note(Accessor::Mac, UndefinedKind::EmptyFrame, address, 0);
                    self.mac.tx_descriptor_consumer.advance();
                }
                Queued::Ready(descriptor) => {
                    self.mac.begin_sending(env.sram, self.map, &descriptor);
                    return self.mac.sending.as_ref().map(|sending| sending.frame.len());
                }
            }
        }
        None
    }

    pub(crate) fn sending(&self, now: u64) -> Option<&[u8]> {
        let sending = self.mac.sending.as_ref()?;
        let leaves = !self.link.loopback(now) && self.link.carries_frames(now);
        leaves.then_some(sending.frame.as_slice())
    }

    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        self.mac.sending.is_some()
    }

    pub(crate) fn transmit_complete(&mut self, env: &mut Environment<'_>) {
        let Some(frame) = self.mac.finish_sending() else {
            return;
        };
        self.note(|| Operation::Sent(frame.clone()));
        if self.link.loopback(env.now) {
            self.accept(env, &frame, RxError::NONE);
        } else if self.link.carries_frames(env.now) && self.survives(env) {
            self.put_on_wire(frame);
        }
    }

    /// Applies an injected fault to a frame: counts it, and returns whether the frame reaches the
    /// other end.
    fn survives(&mut self, env: &mut Environment<'_>) -> bool {
        let half_duplex = !self.mac.tx_state().full_duplex();
        let Some(event) = self.faults.transmit(half_duplex) else {
            return true;
        };
        let (counter, collisions) = match event {
            TransmitFault::Collisions(count) => (MacStatistic::collision(count), count),
            TransmitFault::ExcessCollisions => {
                (Some(MacStatistic::ExcessCollisions.nic_address()), EXCESS)
            }
            TransmitFault::LateCollision => (Some(MacStatistic::LateCollisions.nic_address()), 1),
            TransmitFault::Deferral => (Some(MacStatistic::Deferrals.nic_address()), 0),
            TransmitFault::NoCarrier => (Some(MacStatistic::CarrierSenseErrors.nic_address()), 0),
            TransmitFault::Underrun => (Some(MacStatistic::Underruns.nic_address()), 0),
        };
        if let Some(address) = counter {
            self.map.increment(env.sram, address);
        }
        for _ in 0..collisions {
            self.count(env, MacStatistic::Collisions);
        }
        !event.loses_frame()
    }
}
