//! Frames from the wire into NIC memory.
//!
//! Hardware reference, sections 10.3 and 10.5.

use super::Card;
use crate::environment::Environment;
use crate::mac::{DropReason, FrameKind, Reception, pause_quanta};
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME, MacStatistic, RxError};

/// Shortest thing that has a destination, a source and a type.
const HEADER_BYTES: usize = 14;

/// Longest frame whose length with CRC fits into a descriptor.
const MAX_FRAME: usize = 0xFFFF - CRC_BYTES;

/// One unit of a pause frame: 512 bit times at 1 Gb/s, in nanoseconds.
const PAUSE_QUANTUM: u64 = 512;

impl Card {
    /// A frame without CRC arrives from the wire. Frames below 60 bytes are padded with
    /// zeros, as their sender would have done.
    pub fn receive(&mut self, env: &mut Environment<'_>, frame: &[u8]) -> Reception {
        self.receive_damaged(env, frame, RxError::NONE)
    }

    /// The same for a frame in which the receiver finds an error: it is accepted with the
    /// error in its descriptor.
    pub fn receive_damaged(
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
        self.accept(env, frame, error)
    }

    /// Whether the partner may send. A card that sends pause frames (`R[200]` bit 8) holds it
    /// while it is stopped or nearly full; any other card takes what it can and drops the rest.
    pub fn can_receive(&self) -> bool {
        let state = self.mac.rx_state();
        !self.mac.tx_state().send_pause()
            || !state.enable()
            || !state.stop() && self.mac.room_to_go_on()
    }

    /// Whether the engine's wire takes frames. While it does not, the transmitter holds what
    /// is queued, as it does for a partner's pause frames; [`run`](Card::run) goes on when it
    /// does again. A card starts with a wire that takes all.
    pub fn set_wire_ready(&mut self, ready: bool) {
        self.wire_full = !ready;
    }

    /// A frame has begun to arrive (true) or has ended: E0 bit 2 (10.1, I). For engines that
    /// give frames a duration.
    pub fn set_receiving(&mut self, receiving: bool) {
        self.mac.receiving = receiving;
    }

    pub(super) fn accept(
        &mut self,
        env: &mut Environment<'_>,
        frame: &[u8],
        error: RxError,
    ) -> Reception {
        let state = self.mac.rx_state();
        let dropped = Reception::Dropped;
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
            && let Some(quanta) = pause_quanta(frame)
        {
            self.mac.paused_until = env.now + u64::from(quanta) * PAUSE_QUANTUM;
            self.count(env, MacStatistic::DroppedFlowControl);
            return dropped(DropReason::FlowControl);
        }
        let kind = FrameKind::of(destination);
        if !state.promiscuous() && !self.mac.filter.accepts(destination) {
            self.count(env, kind.dropped());
            return dropped(DropReason::Filtered);
        }
        if !self.mac.fits(frame.len().max(MIN_FRAME)) {
            self.mac.buffer_full();
            self.count(env, MacStatistic::DroppedNoSpace);
            return dropped(DropReason::NoSpace);
        }
        if frame.len() < MIN_FRAME {
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

    fn count(&mut self, env: &mut Environment<'_>, statistic: MacStatistic) {
        self.map.increment(env.sram, statistic.nic_address());
    }
}
