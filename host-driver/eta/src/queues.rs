//! One application's queues, as the engine sees them. Nothing that the application wrote is
//! believed: descriptors are copied once and then judged.
//!
//! ```text
//!   doorbell queue ──┬─ an operation ──────────────► start
//!                    └─ doorbell ─► socket queue ──┬─► start
//!                                                  └─ no place for its event: stalled
//! ```
//!
//! A descriptor is started only if its event queue has a place for its event, which is then its
//! own. One that has none stalls the queue that it stands in: a socket's queue by itself, so other
//! sockets go on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dti::bell;
use dti::layout::{
    BOUND, Descriptor, Direction, ENGINE_SLEEPS, Event, MAGIC, MORE, Operation, QUIET, Sizes,
    Status, event_queue_armed, number_of,
};
use dti::mapped::Mapping;
use dti::ring::{Consumer, Producer, RingError};
use dti::words::Words;

use crate::anonymous::Anonymous;
use crate::regions::Regions;

/// Events that a sleeping application is woken for, however busy the engine is.
const TOGETHER: usize = 256;

/// A work queue of a socket: its handle's number, and the direction.
type Ring = (u32, Direction);

/// What stands in the queues.
pub(crate) enum Taken {
    /// A descriptor to start.
    Work(Descriptor),
    /// A doorbell without one: it was stalled, or taken before.
    Skipped,
    /// Nothing that can be started now.
    Nothing,
}

/// The event queues that a socket's work queues are bound to, by direction.
pub(crate) type Binding = [u16; 2];

/// The queues.
pub(crate) struct Queues {
    pub(crate) memory: Arc<Mapping>,
    pub(crate) sizes: Sizes,
    pub(crate) regions: Regions,
    pub(crate) anonymous: Anonymous,
    work: Consumer,
    rings: HashMap<Ring, Consumer>,
    bindings: HashMap<u32, Binding>,
    events: Vec<Producer>,
    /// Descriptors taken that have no event yet, by event queue.
    reserved: Vec<usize>,
    /// An operation of the doorbell queue whose event queue has no place.
    held: Option<Descriptor>,
    /// The first descriptors of stalled rings, by event queue.
    stalled: Vec<VecDeque<(Ring, Descriptor)>>,
    stalled_rings: HashSet<Ring>,
    /// Closes that wait until their sockets' rings are stalled no more, by number, with a place for
    /// each; and those whose time has come.
    closing: HashMap<u32, Descriptor>,
    due: VecDeque<Descriptor>,
    /// Bit n: event queue n got events since it was last seen whether the application sleeps, and
    /// how many events that are.
    posted: u64,
    untold: usize,
}

impl Queues {
    pub(crate) fn new(memory: Mapping, anonymous: Mapping, sizes: Sizes) -> Self {
        memory.store(0, MAGIC, Ordering::Release);
        let memory = Arc::new(memory);
        let count = sizes.queues as usize;
        let events = (0..count).map(|number| Producer::new(sizes.event_queue(number)));
        Self {
            regions: Regions::new(memory.clone(), sizes),
            anonymous: Anonymous::new(anonymous, sizes),
            memory,
            sizes,
            work: Consumer::new(sizes.work_queue()),
            rings: HashMap::new(),
            bindings: HashMap::new(),
            events: events.collect(),
            reserved: vec![0; count],
            held: None,
            stalled: vec![VecDeque::new(); count],
            stalled_rings: HashSet::new(),
            closing: HashMap::new(),
            due: VecDeque::new(),
            posted: 0,
            untold: 0,
        }
    }

    fn has_place(&self, queue: u16) -> Result<bool, RingError> {
        if queue == QUIET {
            return Ok(true);
        }
        let queue = usize::from(queue);
        Ok(self.events[queue].room(&*self.memory)? > self.reserved[queue])
    }

    fn reserve(&mut self, queue: u16) {
        if queue != QUIET {
            self.reserved[usize::from(queue)] += 1;
        }
    }

    /// Takes a descriptor whose event queue has a place for its event: what has been taken can
    /// always be completed. A full event queue is thus back-pressure.
    pub(crate) fn take(&mut self) -> Result<Taken, RingError> {
        if let Some(close) = self.due.pop_front() {
            return Ok(Taken::Work(close));
        }
        if let Some(work) = self.resume()? {
            return Ok(Taken::Work(work));
        }
        let work = match self.held.take() {
            Some(held) => held,
            None => match self.work.pop(&*self.memory)? {
                Some(entry) => Descriptor::of(entry),
                None => return Ok(Taken::Nothing),
            },
        };
        if Operation::from_number(work.operation) == Some(Operation::Doorbell) {
            return self.answer(work);
        }
        let work = self.judged(work);
        if !self.has_place(work.queue)? {
            self.held = Some(work);
            return Ok(Taken::Nothing);
        }
        self.reserve(work.queue);
        Ok(Taken::Work(work))
    }

    /// Takes what a doorbell was rung for.
    fn answer(&mut self, doorbell: Descriptor) -> Result<Taken, RingError> {
        let direction = match doorbell.argument {
            0 => Direction::Transmit,
            1 => Direction::Receive,
            _ => return Ok(Taken::Skipped),
        };
        let ring = (number_of(doorbell.socket), direction);
        if ring.0 >= self.sizes.handles() || self.stalled_rings.contains(&ring) {
            return Ok(Taken::Skipped);
        }
        let Some(work) = self.next(ring, doorbell.socket)? else {
            return Ok(Taken::Skipped);
        };
        if !self.has_place(work.queue)? {
            self.stalled_rings.insert(ring);
            self.stalled[usize::from(work.queue)].push_back((ring, work));
            return Ok(Taken::Skipped);
        }
        self.reserve(work.queue);
        Ok(Taken::Work(work))
    }

    /// The next descriptor of a socket's queue.
    fn next(&mut self, ring: Ring, handle: u32) -> Result<Option<Descriptor>, RingError> {
        let place = self.sizes.socket_queue(ring.0, ring.1);
        let consumer = self.rings.entry(ring);
        let consumer = consumer.or_insert_with(|| Consumer::new(place));
        let entry = consumer.pop(&*self.memory)?;
        Ok(entry.map(|entry| {
            let work = Descriptor {
                socket: handle,
                ..Descriptor::of(entry)
            };
            self.judged(work)
        }))
    }

    /// Takes a descriptor of a ring that was stalled and is no more. All behind it in that ring
    /// follow by themselves: their doorbells have been taken.
    fn resume(&mut self) -> Result<Option<Descriptor>, RingError> {
        if self.stalled_rings.is_empty() {
            return Ok(None);
        }
        for queue in 0..self.stalled.len() {
            if self.stalled[queue].is_empty() || !self.has_place(queue as u16)? {
                continue;
            }
            let Some((ring, work)) = self.stalled[queue].pop_front() else {
                continue;
            };
            self.reserve(work.queue);
            match self.next(ring, work.socket)? {
                Some(next) if next.queue == QUIET => {
                    // It needs no place, but its turn: behind the one that goes now.
                    self.stalled[queue].push_front((ring, next));
                }
                Some(next) => self.stalled[usize::from(next.queue)].push_back((ring, next)),
                None => {
                    self.stalled_rings.remove(&ring);
                    if !self.is_stalled(ring.0)
                        && let Some(close) = self.closing.remove(&ring.0)
                    {
                        self.due.push_back(close);
                    }
                }
            }
            return Ok(Some(work));
        }
        Ok(None)
    }

    /// Whether a socket has operations that wait for places.
    fn is_stalled(&self, number: u32) -> bool {
        !self.stalled_rings.is_empty()
            && [Direction::Transmit, Direction::Receive]
                .iter()
                .any(|direction| self.stalled_rings.contains(&(number, *direction)))
    }

    /// Puts a close behind the operations of its socket that wait for places: true if it waits.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if another one waits.
    pub(crate) fn close_behind(&mut self, close: &Descriptor) -> Result<bool, Status> {
        let number = number_of(close.socket);
        if !self.is_stalled(number) {
            return Ok(false);
        }
        if self.closing.contains_key(&number) {
            return Err(Status::BadHandle);
        }
        self.closing.insert(number, *close);
        Ok(true)
    }

    /// Announces that the engine sleeps; false if there is something to take after all. `admitted`
    /// is what waits for a place beside the queues.
    pub(crate) fn sleep(&self, admitted: Option<&Descriptor>) -> Result<bool, RingError> {
        let waits = self.held.is_some() || !self.stalled_rings.is_empty();
        if waits || admitted.is_some() {
            bell::announce_for_room(&*self.memory, ENGINE_SLEEPS);
        } else {
            bell::announce(&*self.memory, ENGINE_SLEEPS);
        }
        let mut empty = self.due.is_empty();
        if let Some(work) = admitted {
            empty &= !self.has_place(self.judged(*work).queue)?;
        }
        empty &= match self.held {
            None => self.work.waiting(&*self.memory)? == 0,
            Some(held) => !self.has_place(held.queue)?,
        };
        for (queue, stalled) in self.stalled.iter().enumerate() {
            empty &= stalled.is_empty() || !self.has_place(queue as u16)?;
        }
        Ok(empty)
    }

    /// The engine is awake.
    pub(crate) fn awake(&self) {
        bell::awake(&*self.memory, ENGINE_SLEEPS);
    }

    /// Binds a socket's queues.
    ///
    /// # Errors
    /// [`Status::Invalid`] if there are no such event queues.
    pub(crate) fn bind(&mut self, handle: u32, binding: Binding) -> Result<(), Status> {
        let known = |queue: &u16| u32::from(*queue) < self.sizes.queues;
        if !binding.iter().all(known) {
            return Err(Status::Invalid);
        }
        self.bindings.insert(handle, binding);
        Ok(())
    }

    /// A connection's queues are bound as its listening socket's, unless it was made by itself.
    pub(crate) fn inherit(&mut self, child: u32, parent: u32) {
        if let Some(binding) = self.bindings.get(&parent).copied() {
            self.bindings.entry(child).or_insert(binding);
        }
    }

    /// The socket is closed.
    pub(crate) fn unbind(&mut self, handle: u32) {
        self.bindings.remove(&handle);
    }

    /// A descriptor for a queue that does not exist becomes an unknown operation: its completion,
    /// an error, goes to the first queue. Only registrations and releases may do without an event.
    fn judged(&self, mut work: Descriptor) -> Descriptor {
        if work.operation & MORE != 0 {
            // Only events have it.
            work.operation = 0;
        }
        let operation = Operation::from_number(work.operation);
        if work.queue == BOUND {
            let direction = operation.is_some_and(Operation::receives);
            let binding = self.bindings.get(&work.socket);
            // A handle without a socket is refused as such.
            work.queue = binding.map_or(0, |binding| binding[usize::from(direction)]);
        }
        let quiet = work.queue == QUIET && operation.is_some_and(Operation::may_be_quiet);
        if !quiet && u32::from(work.queue) >= self.sizes.queues {
            work.queue = 0;
            work.operation = 0;
        }
        work
    }

    /// Lets a registration begin that came by the control socket; false if its event has no place.
    pub(crate) fn admit(&mut self, work: Descriptor) -> Result<Option<Descriptor>, RingError> {
        let work = self.judged(work);
        if !self.has_place(work.queue)? {
            return Ok(None);
        }
        self.reserve(work.queue);
        Ok(Some(work))
    }

    /// Posts the one event of an operation that was under way.
    pub(crate) fn complete(
        &mut self,
        work: &Descriptor,
        status: Status,
        length: u32,
        argument: u64,
    ) -> Result<(), RingError> {
        self.complete_as(work, work.argument as u32, status, length, argument)
    }

    /// As [`Self::complete`], with the event's `child`.
    pub(crate) fn complete_as(
        &mut self,
        work: &Descriptor,
        child: u32,
        status: Status,
        length: u32,
        argument: u64,
    ) -> Result<(), RingError> {
        let mut argument = argument;
        if is_transfer(work.operation) {
            argument = work.argument;
            self.regions.unused(work.argument as u32);
        }
        self.post(work, (0, child), status, length, argument)
    }

    /// Posts an event of a multishot operation. True if there is a place for the next one, so that
    /// the operation stays; else this was its last.
    pub(crate) fn complete_one(
        &mut self,
        work: &Descriptor,
        child: u32,
        length: u32,
        argument: u64,
    ) -> Result<bool, RingError> {
        // Beside its own place.
        let stays = self.has_place(work.queue)?;
        if stays {
            self.reserve(work.queue);
        }
        let flags = if stays { MORE } else { 0 };
        self.post(work, (flags, child), Status::Ok, length, argument)?;
        Ok(stays)
    }

    /// Posts the one event of an operation that did not begin.
    pub(crate) fn refuse(&mut self, work: &Descriptor, status: Status) -> Result<(), RingError> {
        let argument = if is_transfer(work.operation) {
            work.argument
        } else {
            0
        };
        self.post(work, (0, work.argument as u32), status, 0, argument)
    }

    fn post(
        &mut self,
        work: &Descriptor,
        (flags, child): (u16, u32),
        status: Status,
        length: u32,
        argument: u64,
    ) -> Result<(), RingError> {
        if work.queue == QUIET {
            return Ok(());
        }
        let event = Event {
            operation: work.operation | flags,
            status: status as u16,
            socket: work.socket,
            tag: work.tag,
            length,
            child,
            argument,
        };
        let queue = usize::from(work.queue);
        self.reserved[queue] -= 1;
        self.posted |= 1 << queue;
        self.untold += 1;
        self.events[queue].push(&*self.memory, event.entry())
    }

    /// Whether the application sleeps and has events now, so that it must be woken. A few events
    /// wait for others until they are `due`: a sleeping application takes them together.
    pub(crate) fn must_wake(&mut self, due: bool) -> bool {
        let waits = self.held.is_some() || !self.stalled_rings.is_empty();
        if !due && !waits && self.untold < TOGETHER {
            return false;
        }
        self.untold = 0;
        let mut wake = false;
        let mut posted = std::mem::take(&mut self.posted);
        while posted != 0 {
            let number = posted.trailing_zeros() as usize;
            posted &= posted - 1;
            wake |= bell::must_wake(&*self.memory, event_queue_armed(number));
        }
        wake
    }
}

fn is_transfer(operation: u16) -> bool {
    Operation::from_number(operation).is_some_and(Operation::is_transfer)
}
