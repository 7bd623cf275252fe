//! What connections send, and when they must be looked at again.

use std::time::Duration;

use crate::stack::Wire;
use smoltcp::iface::PollResult;
use smoltcp::time::Instant as StackInstant;

use super::in_place::Egress;
use super::{Id, Stack};

/// Packets that a connection sends before others have their turn.
const BURST: usize = 16;

impl Stack {
    /// Sets the time.
    pub fn at(&mut self, now: StackInstant) {
        self.now = now;
        let mut expired = std::mem::take(&mut self.expired);
        let tick = self.tick();
        self.wheel.advance(tick, &mut expired);
        for (id, due) in expired.drain(..) {
            // A timer that was set before another one, or for who had the place before.
            let counts = |timer: &mut Option<u64>| timer.take_if(|timer| *timer == due).is_some();
            if self.slot(id).is_some_and(|slot| counts(&mut slot.timer)) {
                self.make_ready(id);
            }
        }
        self.expired = expired;
    }

    /// How long nothing is to be done if nobody asks; none if nothing is ever to be done.
    pub fn delay(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let next = self.wheel.next()?;
        let micros = u64::try_from(self.now.total_micros()).unwrap_or(0);
        Some(Duration::from_micros(
            next.saturating_mul(1000).saturating_sub(micros),
        ))
    }

    /// Sends what a connection has to send, and sets its timer.
    pub fn transmit(&mut self, wire: &mut impl Wire, id: Id) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        self.statistics.looked_at += 1;
        let wants = |due: Option<StackInstant>| due.is_some_and(|due| due <= now);
        let before = wants(self.interface.poll_at(now, &slot.set));
        let mut sent = 0;
        let mut egress = Egress {
            wire,
            stream: &mut slot.stream,
            statistics: &mut self.statistics,
            scratch: &mut self.scratch,
        };
        while sent < BURST
            && self.interface.poll_egress(now, &mut egress, &mut slot.set)
                == PollResult::SocketStateChanged
        {
            sent += 1;
        }
        let due = self.interface.poll_at(now, &slot.set);
        let tick = u64::try_from(now.total_millis()).unwrap_or(0);
        let mut timer = due.map(|due| {
            u64::try_from(due.total_micros())
                .unwrap_or(0)
                .div_ceil(1000)
        });
        if wants(due) {
            if sent == BURST {
                self.make_ready(id);
                return;
            }
            // The wire is full: a little later.
            timer = Some(tick + 1);
        } else if before && sent == 0 && due.is_some() {
            self.unresolved.push(id);
        }
        let Some(slot) = self.slots.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        let soonest = timer.into_iter().chain(slot.deadline).min();
        if let Some(soonest) = soonest.map(|due| due.max(tick + 1))
            && slot.timer.is_none_or(|timer| soonest < timer)
        {
            slot.timer = Some(soonest);
            self.wheel.set((id, soonest));
        }
    }
}
