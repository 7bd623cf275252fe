//! One turn of the loop of the engine, and how the engine sleeps.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use dti::control;
use dti::ring::RingError;
use host_driver::stack::Wire;
use host_driver::stack::flows::{Holder, Id, Owner};
use smoltcp::time::Instant as StackInstant;

use super::{Application, Engine, EngineError};
use crate::connection::advance;
use crate::queues::Taken;
use crate::sockets::Role;

/// Frames taken in one turn.
const FRAME_BUDGET: usize = 64;
/// Descriptors of one application taken in one turn.
const WORK_BUDGET: usize = 64;
/// How often a busy engine looks at the door.
const DOOR_PERIOD: Duration = Duration::from_millis(1);
/// How long a busy engine lets events wait for others before it wakes an application.
const TELL_PERIOD: Duration = Duration::from_micros(500);
/// Longest sleep on a wire that cannot be waited for together with the door.
const LONGEST_ALONE: Duration = Duration::from_micros(200);

impl<W: Wire> Engine<W> {
    /// Does a bounded part of all that is to be done. If there was nothing, it waits as its
    /// [`IdleMode`] says, at most for `limit`.
    ///
    /// # Errors
    /// [`EngineError::Wire`] if the wire failed; an application's faults are its own.
    pub fn turn(&mut self, limit: Duration) -> Result<(), EngineError> {
        let now = Instant::now();
        if self.work(now)? {
            self.idle.worked(now);
            return Ok(());
        }
        self.statistics.idle += 1;
        if limit.is_zero() {
            return Ok(());
        }
        if self.idle.must_sleep(now) {
            self.sleep(limit)?;
        } else if self.idle.must_yield(now) {
            // On few processors, those whom the engine waits for may need this one.
            self.statistics.calls += 1;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// One turn; true if anything was done.
    fn work(&mut self, now: Instant) -> Result<bool, EngineError> {
        let micros = now.saturating_duration_since(self.epoch).as_micros();
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        self.stack.at(StackInstant::from_micros(micros));
        let mut any = self.stack.receive(&mut self.wire, FRAME_BUDGET) > 0;
        for number in 0..self.applications.len() {
            match self.take(number) {
                Ok(taken) => any |= taken,
                Err(_) => self.expel(number),
            }
        }
        for _ in 0..self.stack.ready() {
            let Some(id) = self.stack.next_ready() else {
                break;
            };
            any = true;
            self.serve(id);
        }
        self.wire.flush()?;
        any |= self.stack.returned(self.wire.returned());
        self.let_go()?;
        // Before the engine idles or sleeps everyone is told.
        let due = !any || now.saturating_duration_since(self.told) >= TELL_PERIOD;
        if due {
            self.told = now;
        }
        for application in self.applications.iter_mut().flatten() {
            if application.queues.must_wake(due) {
                control::wake(application.control.as_fd());
                self.statistics.wakes += 1;
                self.statistics.calls += 1;
            }
        }
        if now.saturating_duration_since(self.looked) >= DOOR_PERIOD {
            self.look(now)?;
        }
        Ok(any)
    }

    /// Takes an application's descriptors; true if there were any.
    fn take(&mut self, number: usize) -> Result<bool, RingError> {
        let mut any = self.register_files(number)?;
        for _ in 0..WORK_BUDGET {
            let Some(application) = self.application(number) else {
                return Ok(any);
            };
            let work = match application.queues.take()? {
                Taken::Nothing => break,
                Taken::Skipped => {
                    any = true;
                    continue;
                }
                Taken::Work(work) => work,
            };
            any = true;
            self.statistics.descriptors += 1;
            self.start(number, work)?;
        }
        if let Some(application) = self.application(number) {
            for id in application.queues.anonymous.fed() {
                self.stack.make_ready(id);
            }
        }
        Ok(any)
    }

    /// Moves a connection on: its operations, then what it has to send.
    fn serve(&mut self, id: Id) {
        match self.stack.holder(id) {
            None => return,
            Some(Holder::Owner(owner)) => {
                if self.advance(id, owner).is_err() {
                    self.expel(owner.application as usize);
                }
            }
            Some(_) => {
                if let Some(port) = self.stack.settle(id) {
                    self.offer(port);
                }
            }
        }
        self.stack.transmit(&mut self.wire, id);
        // A reset that has gone out now was the last of an abandoned connection.
        if matches!(
            self.stack.holder(id),
            Some(Holder::Nobody | Holder::Port(_))
        ) {
            self.stack.settle(id);
        }
    }

    fn advance(&mut self, id: Id, owner: Owner) -> Result<(), RingError> {
        let number = owner.application as usize;
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(());
        };
        let Application {
            queues, sockets, ..
        } = application;
        match sockets.get_mut(&owner.socket).map(|one| &mut one.role) {
            Some(Role::Connected(connection)) if connection.id == id => {
                let returned = self.wire.returned();
                advance(
                    &mut self.stack,
                    queues,
                    connection,
                    &mut self.statistics,
                    returned,
                )
            }
            _ => Ok(()),
        }
    }

    /// Sleeps until there is work, at most for `limit`.
    fn sleep(&mut self, limit: Duration) -> Result<(), EngineError> {
        let limit = self.stack.delay().map_or(limit, |due| due.min(limit));
        let mut empty = !limit.is_zero();
        let mut nonsense = Vec::new();
        for (number, application) in self.applications.iter().enumerate() {
            let Some(one) = application else {
                continue;
            };
            let admitted = one.registrations.front().map(|(work, _)| work);
            match one.queues.sleep(admitted) {
                Ok(nothing) => empty &= nothing,
                Err(_) => nonsense.push(number),
            }
        }
        if empty && nonsense.is_empty() {
            self.statistics.sleeps += 1;
            self.statistics.calls += 1;
            if self.wire.descriptor().is_some() {
                self.door.sleep(self.wire.descriptor(), limit)?;
                self.wire.wait(Duration::ZERO)?;
            } else {
                self.wire.wait(limit.min(LONGEST_ALONE))?;
            }
        }
        for application in self.applications.iter().flatten() {
            application.queues.awake();
        }
        for number in nonsense {
            self.expel(number);
        }
        self.look(Instant::now())
    }
}
