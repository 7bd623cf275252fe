//! Frames from the wire into NIC memory, flow control, faults.
//!
//! Hardware reference, sections 10.3 to 10.5.

use super::Card;
use crate::environment::{Effect, Environment};
use crate::faults::{Fault, remains};
use crate::mac::{DropReason, FrameKind, Reception, pause_frame, pause_quanta, pause_time};
use crate::operations::Operation;
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME, MacStatistic, RxError};

/// Shortest frame with a destination, a source and a type.
const HEADER_BYTES: usize = 14;

/// Longest frame whose length with CRC fits into a descriptor.
const MAX_FRAME: usize = 0xFFFF - CRC_BYTES;

impl Card {
    pub(crate) fn receive(&mut self, env: &mut Environment<'_>, frame: &[u8]) -> Reception {
        self.receive_damaged(env, frame, RxError::NONE)
    }

    pub(crate) fn receive_damaged(
        &mut self,
        env: &mut Environment<'_>,
        frame: &[u8],
        error: RxError,
    ) -> Reception {
        if !self.link.carries_frames(env.now) {
            return Reception::Dropped(DropReason::NoLink);
        }
        if !self.can_receive() {
            return Reception::Held;
        }
        self.receive_unheld(env, frame, error)
    }

    pub(crate) fn receive_unheld(
        &mut self,
        env: &mut Environment<'_>,
        frame: &[u8],
        error: RxError,
    ) -> Reception {
        if !self.link.carries_frames(env.now) {
            return Reception::Dropped(DropReason::NoLink);
        }
        self.note(|| Operation::Received(frame.to_vec()));
        let (frame, fault) = self.faults.receive(frame);
        let error = error.with(fault);
        let reception = self.accept(env, remains(&frame, error), error);
        self.flow_control(env);
        reception
    }

    /// Injects a fault of the wire.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.inject(fault);
    }

    pub(crate) fn can_receive(&self) -> bool {
        let state = self.mac.rx_state();
        !self.mac.tx_state().send_pause()
            || !self.link.partner().pause
            || !state.enable()
            || !state.stop() && !self.mac.short_of_room()
    }

    pub(crate) fn flow_control(&mut self, env: &mut Environment<'_>) {
        let tx = self.mac.tx_state();
        if !tx.send_pause() && self.mac.pause.asked.is_none() {
            return;
        }
        let sends = tx.send_pause()
            && tx.enable()
            && self.mac.rx_state().enable()
            && self.link.carries_frames(env.now);
        let megabits = self.link.megabits(env.now);
        if let Some(quanta) = self.mac.next_pause(env.now, sends, megabits) {
            let frame = pause_frame(&self.mac.filter.station(), quanta);
            self.put_on_wire(frame);
        }
    }

    /// Sets how many frames the engine's wire accepts; each frame that leaves takes one. At 0 the
    /// transmitter holds the queued frames, as it does for a partner's pause frames;
    /// [`run`](super::Device::run) continues when there is room again. Initially the wire accepts all
    /// frames, which is `None`.
    pub fn set_wire_room(&mut self, frames: Option<u32>) {
        self.wire_room = frames;
    }

    pub(crate) fn wire_room(&self) -> Option<u32> {
        self.wire_room
    }

    /// Pause frames leave regardless of room, because the MAC itself makes them.
    pub(super) fn put_on_wire(&mut self, frame: Vec<u8>) {
        if let Some(room) = &mut self.wire_room {
            *room = room.saturating_sub(1);
        }
        self.effects.push(Effect::Transmit(frame));
    }

    pub(crate) fn set_receiving(&mut self, receiving: bool) {
        self.mac.receiving = receiving;
        self.mac.forget_arrived();
    }

    pub(crate) fn is_receiving(&self) -> bool {
        self.mac.receiving
    }

    /// So many bytes have come of the frame that arrives. What is sure to be dropped is not stored; the
    /// frame's end decides about the rest.
    pub(crate) fn received_so_far(
        &mut self,
        env: &mut Environment<'_>,
        frame: &[u8],
        bytes: usize,
    ) {
        let state = self.mac.rx_state();
        let frame = self.faults.arriving(frame);
        let bytes = &frame[..bytes.min(frame.len())];
        let Some(destination) = bytes
            .first_chunk::<6>()
            .filter(|_| bytes.len() >= HEADER_BYTES)
        else {
            return;
        };
        if self.mac.receiving
            && state.enable()
            && !state.stop()
            && self.link.carries_frames(env.now)
            && (state.promiscuous() || self.mac.filter.accepts(destination))
        {
            self.mac.store_so_far(env.sram, self.map, bytes);
        }
    }

    pub(super) fn accept(
        &mut self,
        env: &mut Environment<'_>,
        frame: &[u8],
        error: RxError,
    ) -> Reception {
        let state = self.mac.rx_state();
        let dropped = Reception::Dropped;
        self.mac.forget_arrived();
        if !state.enable() {
            return dropped(DropReason::Disabled);
        }
        if state.stop() {
            return dropped(DropReason::Stopped);
        }
        if frame.len() > MAX_FRAME {
            return dropped(DropReason::TooLong);
        }
        let Some(destination) = frame
            .first_chunk::<6>()
            .filter(|_| frame.len() >= HEADER_BYTES)
        else {
            return dropped(DropReason::TooShort);
        };
        if state.obey_pause()
            && error.is_none()
            && let Some(quanta) = pause_quanta(frame, &self.mac.filter.station())
        {
            let time = pause_time(quanta, self.link.megabits(env.now));
            self.mac.pause.held_until = env.now.saturating_add(time);
            self.count(env, MacStatistic::DroppedFlowControl);
            return dropped(DropReason::FlowControl);
        }
        let kind = FrameKind::of(destination);
        if !state.promiscuous() && !self.mac.filter.accepts(destination) {
            self.count(env, kind.dropped());
            return dropped(DropReason::Filtered);
        }
        let cut = error.contains(RxError::RUNT) || error.contains(RxError::TRUNCATED);
        let padded_length = if cut { 0 } else { MIN_FRAME };
        if !self.mac.fits(frame.len().max(padded_length)) {
            self.mac.buffer_full();
            self.count(env, MacStatistic::DroppedNoSpace);
            return dropped(DropReason::NoSpace);
        }
        if frame.len() < padded_length {
            let mut padded = [0; MIN_FRAME];
            padded[..frame.len()].copy_from_slice(frame);
            self.mac.store(env.sram, self.map, &padded, error);
        } else {
            self.mac.store(env.sram, self.map, frame, error);
        }
        if error.contains(RxError::CRC) {
            self.count(env, MacStatistic::CrcErrors);
        }
        self.count(env, kind.accepted());
        Reception::Accepted
    }

    pub(super) fn count(&mut self, env: &mut Environment<'_>, statistic: MacStatistic) {
        self.map.increment(env.sram, statistic.nic_address());
    }
}
