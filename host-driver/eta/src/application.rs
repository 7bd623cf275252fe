//! One application's queues and regions, as the engine sees them. Nothing that the application
//! wrote is believed: descriptors are copied once and then judged.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dti::bell;
use dti::layout::{
    Descriptor, ENGINE_SLEEPS, EVENT_QUEUES, Event, MAGIC, Operation, QUIET, REGIONS, Sizes,
    Status, event_queue_armed,
};
use dti::mapped::Mapping;
use dti::ring::{Consumer, Producer, RingError};
use dti::words::{Words, read_bytes, write_bytes};

/// A registered part of the pool.
struct Region {
    offset: u32,
    length: u32,
    tag: u32,
    /// Operations under way that name it.
    uses: u32,
}

/// The queues.
pub(crate) struct Queues {
    pub(crate) memory: Arc<Mapping>,
    pub(crate) sizes: Sizes,
    work: Consumer,
    events: [Producer; EVENT_QUEUES],
    /// Descriptors taken that have no event yet, by event queue.
    reserved: [usize; EVENT_QUEUES],
    /// A descriptor whose event queue has no place for its completion.
    held: Option<Descriptor>,
    /// Event queues that got events since the application was last told.
    posted: [bool; EVENT_QUEUES],
    regions: HashMap<u32, Region>,
}

impl Queues {
    pub(crate) fn new(memory: Mapping, sizes: Sizes) -> Self {
        memory.store(0, MAGIC, Ordering::Release);
        Self {
            memory: Arc::new(memory),
            sizes,
            work: Consumer::new(sizes.work_queue()),
            events: std::array::from_fn(|number| Producer::new(sizes.event_queue(number))),
            reserved: [0; EVENT_QUEUES],
            held: None,
            posted: [false; EVENT_QUEUES],
            regions: HashMap::new(),
        }
    }

    /// Takes a descriptor if its event queue has a place for the completion: what has been taken
    /// can always be completed. A full event queue is thus back-pressure.
    pub(crate) fn take(&mut self) -> Result<Option<Descriptor>, RingError> {
        let work = match self.held.take() {
            Some(held) => held,
            None => match self.work.pop(&*self.memory)? {
                Some(entry) => judged(Descriptor::of(entry)),
                None => return Ok(None),
            },
        };
        if work.queue != QUIET {
            let queue = usize::from(work.queue);
            if self.events[queue].room(&*self.memory)? <= self.reserved[queue] {
                self.held = Some(work);
                return Ok(None);
            }
            self.reserved[queue] += 1;
        }
        Ok(Some(work))
    }

    /// Announces that the engine sleeps; false if there is something to take after all.
    pub(crate) fn sleep(&self) -> Result<bool, RingError> {
        let held = self.held.as_ref().map(|held| usize::from(held.queue));
        match held {
            None => {
                bell::announce(&*self.memory, ENGINE_SLEEPS);
                Ok(self.work.waiting(&*self.memory)? == 0)
            }
            Some(queue) => {
                bell::announce_for_room(&*self.memory, ENGINE_SLEEPS);
                Ok(self.events[queue].room(&*self.memory)? <= self.reserved[queue])
            }
        }
    }

    /// The engine is awake.
    pub(crate) fn awake(&self) {
        bell::awake(&*self.memory, ENGINE_SLEEPS);
    }

    /// Posts the one event of an operation that was under way.
    pub(crate) fn complete(
        &mut self,
        work: &Descriptor,
        status: Status,
        length: u32,
        argument: u64,
    ) -> Result<(), RingError> {
        let mut argument = argument;
        if is_transfer(work.operation) {
            argument = work.argument;
            if let Some(region) = self.regions.get_mut(&(work.argument as u32)) {
                region.uses = region.uses.saturating_sub(1);
            }
        }
        self.post(work, status, length, argument)
    }

    /// Posts the one event of an operation that did not begin.
    pub(crate) fn refuse(&mut self, work: &Descriptor, status: Status) -> Result<(), RingError> {
        let argument = if is_transfer(work.operation) {
            work.argument
        } else {
            0
        };
        self.post(work, status, 0, argument)
    }

    fn post(
        &mut self,
        work: &Descriptor,
        status: Status,
        length: u32,
        argument: u64,
    ) -> Result<(), RingError> {
        if work.queue == QUIET {
            return Ok(());
        }
        let event = Event {
            operation: work.operation,
            status: status as u16,
            socket: work.socket,
            tag: work.tag,
            length,
            // Only an accept has a child.
            child: work.argument as u32,
            argument,
        };
        let queue = usize::from(work.queue);
        self.reserved[queue] -= 1;
        self.posted[queue] = true;
        self.events[queue].push(&*self.memory, event.entry())
    }

    /// Whether the application sleeps and has events now, so that it must be woken.
    pub(crate) fn must_wake(&mut self) -> bool {
        let mut wake = false;
        for (number, posted) in self.posted.iter_mut().enumerate() {
            if std::mem::take(posted) {
                wake |= bell::must_wake(&*self.memory, event_queue_armed(number));
            }
        }
        wake
    }

    /// Registers a region.
    pub(crate) fn register(&mut self, work: &Descriptor) -> Result<(), Status> {
        let (number, tag) = (work.argument as u32, (work.argument >> 32) as u32);
        if number as usize >= REGIONS {
            return Err(Status::BadHandle);
        }
        let end = u64::from(work.offset) + u64::from(work.length);
        if !work.offset.is_multiple_of(8) || end > u64::from(self.sizes.pool) {
            return Err(Status::Protection);
        }
        if self.regions.contains_key(&number) {
            return Err(Status::Busy);
        }
        let region = Region {
            offset: work.offset,
            length: work.length,
            tag,
            uses: 0,
        };
        self.regions.insert(number, region);
        Ok(())
    }

    /// Ends a region that no operation uses.
    pub(crate) fn deregister(&mut self, work: &Descriptor) -> Result<(), Status> {
        let number = work.argument as u32;
        let tag = (work.argument >> 32) as u32;
        match self.regions.get(&number) {
            Some(region) if region.tag != tag => Err(Status::Protection),
            Some(region) if region.uses > 0 => Err(Status::Busy),
            Some(_) => {
                self.regions.remove(&number);
                Ok(())
            }
            None => Err(Status::BadHandle),
        }
    }

    /// Finds a transfer's range: its `offset` becomes the pool's.
    pub(crate) fn locate(&mut self, mut work: Descriptor) -> Result<Descriptor, Status> {
        let (number, tag) = (work.argument as u32, (work.argument >> 32) as u32);
        let region = self.regions.get_mut(&number);
        let region = region.ok_or(Status::Protection)?;
        let end = u64::from(work.offset) + u64::from(work.length);
        let fits = work.offset.is_multiple_of(8) && end <= u64::from(region.length);
        if region.tag != tag || !fits {
            return Err(Status::Protection);
        }
        region.uses += 1;
        work.offset += region.offset;
        Ok(work)
    }

    /// Reads payload, at a multiple of 8 bytes; the range was judged.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        read_bytes(&*self.memory, self.sizes.pool_start() + offset / 8, bytes);
    }

    /// Writes payload, at a multiple of 8 bytes; the range was judged.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        write_bytes(&*self.memory, self.sizes.pool_start() + offset / 8, bytes);
    }
}

fn is_transfer(operation: u16) -> bool {
    matches!(
        Operation::from_number(operation),
        Some(Operation::Transmit | Operation::TransmitInPlace | Operation::Receive)
    )
}

/// A descriptor for a queue that does not exist becomes an unknown operation: its completion, an
/// error, goes to the first queue. Only registrations may do without an event.
fn judged(mut work: Descriptor) -> Descriptor {
    let quiet = work.queue == QUIET
        && matches!(
            Operation::from_number(work.operation),
            Some(Operation::Register | Operation::Deregister)
        );
    if !quiet && usize::from(work.queue) >= EVENT_QUEUES {
        work.queue = 0;
        work.operation = 0;
    }
    work
}
