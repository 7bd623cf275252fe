//! The wire: received frames, frames that QEMU could not take, the cable and the link partner.
//!
//! A frame for which the card has no room stays in QEMU's queue:
//!
//! ```text
//!   main loop, or whoever has the big lock         CPU, under the machine's lock
//!   receive: no room, refused = true
//!   returns 0: QEMU stops reception                frees room: refused = false,
//!            <──────── wire_ready ──────────       has the main loop called
//!   nothing else under way: offers it again
//! ```
//! The two can happen in either order. So the main loop makes the call, never `receive` itself:
//! QEMU would stop reception after that call, and reception would stay stopped.

use super::{Inner, Machine, Work};
use crate::counts::Counts;
use crate::host::Host;
use std::io;
use tigon2_model::{Fault, Partner, Reception};

/// Frames that may be on their way from the transmitter to the wire: in the outbox, or in
/// QEMU's queue because the wire is full.
///
/// The card's buffer space is free as soon as a frame has left the transmitter, so this is
/// by how much the host is told of sent BDs in one go. Few, so that a slow wire is seen to
/// go on; enough for one turn of whoever delivers.
pub(super) const AHEAD: u32 = 32;

impl<H: Host> Machine<H> {
    /// Whether the card takes a frame from the wire.
    pub fn can_receive(&self) -> bool {
        let mut inner = self.lock();
        let can = inner.card.inspect().can_receive();
        if !can {
            self.refuse(&mut inner);
        }
        can
    }

    /// A frame comes from the wire, without CRC. False if it has to wait.
    pub fn receive(&self, frame: &[u8]) -> bool {
        self.enter(Work::Now, |inner, env| {
            let held = matches!(inner.card.device(env).receive(frame), Reception::Held);
            if held {
                self.refuse(inner);
            }
            !held
        })
    }

    /// A frame has to wait outside; [`leave`](Self::leave) asks for it when there is room.
    fn refuse(&self, inner: &mut Inner) {
        if !inner.refused {
            inner.refused = true;
            self.counts.refused.add();
        }
    }

    /// The wire has lost a frame: an errno of the netdev, or 0 if it was thrown away because
    /// the machine stopped. The first is reported, all are counted.
    pub fn lost(&self, error: i32) {
        if self.counts.lost.add() > 0 {
            return;
        }
        let why = match error {
            0 => "the machine stood still".to_owned(),
            error => io::Error::from_raw_os_error(error).to_string(),
        };
        eprintln!("tigon2: the wire has lost a frame of the card: {why}; others are only counted");
    }

    /// What went wrong or had to wait.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The cable is plugged in or pulled out.
    pub fn set_cable(&self, plugged: bool) {
        self.enter(Work::Now, |inner, env| inner.card.set_cable(env, plugged));
    }

    /// Another partner is at the end of the cable.
    pub fn set_partner(&self, partner: Partner) {
        self.enter(Work::Now, |inner, env| inner.card.set_partner(env, partner));
    }

    /// What is at the end of the cable.
    pub fn partner(&self) -> Partner {
        self.lock().card.inspect().partner()
    }

    /// The link in words: `down`, `up`, or with a PHY `up 100 full`.
    pub fn link(&self) -> String {
        let now = self.host.now();
        let inner = self.lock();
        match inner.card.inspect().copper_mode(now) {
            Some(mode) => {
                let duplex = if mode.full_duplex() { "full" } else { "half" };
                format!("up {} {duplex}", mode.megabits())
            }
            None if inner.card.inspect().carries_frames(now) => "up".to_owned(),
            None => "down".to_owned(),
        }
    }

    /// Asks for faults of the wire.
    pub fn inject(&self, fault: Fault) {
        self.lock().card.inject(fault);
    }

    /// The wire was full, and takes frames again: all that waited have left.
    pub fn wire_free(&self) {
        self.enter(Work::Now, |inner, _| {
            inner.on_way = inner.on_way.saturating_sub(inner.queued);
            inner.queued = 0;
            inner.make_room();
        });
    }

    /// The wire has taken a frame, but is full now.
    pub(super) fn wire_full(&self) {
        self.counts.full.add();
        let mut inner = self.lock();
        inner.queued += 1;
        inner.make_room();
    }

    /// Reports the number of frames on the wire: the transmitter continues if it had to wait.
    pub(super) fn frames_left(&self, frames: u32) {
        let mut inner = self.lock();
        inner.on_way = inner.on_way.saturating_sub(frames);
        let waited = inner.card.inspect().wire_room() == Some(0);
        inner.make_room();
        drop(inner);
        if waited {
            self.enter_and_tell(Work::Now, |_, _| ());
        }
    }
}

impl Inner {
    /// Tells the transmitter how far it may be ahead of the wire.
    fn make_room(&mut self) {
        let full = self.queued > 0;
        let room = if full {
            0
        } else {
            AHEAD.saturating_sub(self.on_way)
        };
        self.card.set_wire_room(Some(room));
    }
}
