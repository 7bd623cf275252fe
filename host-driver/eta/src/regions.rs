//! Registered memory: parts of the pool, and parts of the application's own memory files.
//!
//! An operation names a region, its protection tag and a range; only then is memory touched.

use std::sync::Arc;

use dti::layout::{Descriptor, REGIONS, Sizes, Status};
use dti::mapped::Mapping;
use dti::words::{Words, read_bytes_at, write_bytes};

use crate::payload::Payload;

/// A registered part of a memory file.
struct Region {
    memory: Arc<Payload>,
    /// Of the application's own.
    foreign: bool,
    offset: u32,
    length: u32,
    tag: u32,
    /// Operations under way that name it.
    uses: u32,
}

/// An application's regions.
pub(crate) struct Regions {
    pool: Arc<Payload>,
    pool_bytes: u32,
    all: Vec<Option<Region>>,
    count: u32,
    /// Bytes of the application's own files.
    foreign: u64,
}

impl Regions {
    pub(crate) fn new(memory: Arc<Mapping>, sizes: Sizes) -> Self {
        Self {
            pool: Arc::new(Payload::new(memory, sizes.pool_start() * 8)),
            pool_bytes: sizes.pool,
            all: Vec::new(),
            count: 0,
            foreign: 0,
        }
    }

    /// Regions that there are, and bytes of the application's own files in them.
    pub(crate) fn used(&self) -> (u32, u64) {
        (self.count, self.foreign)
    }

    /// Registers a part of the pool.
    pub(crate) fn register(&mut self, work: &Descriptor) -> Result<(), Status> {
        let memory = self.pool.clone();
        self.insert(work, memory, u64::from(self.pool_bytes), false)
    }

    /// Registers a part of a file of the application's, of which at most `most` bytes may be
    /// mapped in all.
    pub(crate) fn register_file(
        &mut self,
        work: &Descriptor,
        file: Mapping,
        most: u64,
    ) -> Result<(), Status> {
        let bytes = file.len() as u64 * 8;
        if self.foreign + bytes > most {
            return Err(Status::Quota);
        }
        let memory = Arc::new(Payload::new(Arc::new(file), 0));
        self.insert(work, memory, bytes, true)?;
        self.foreign += bytes;
        Ok(())
    }

    fn insert(
        &mut self,
        work: &Descriptor,
        memory: Arc<Payload>,
        bytes: u64,
        foreign: bool,
    ) -> Result<(), Status> {
        let (number, tag) = (work.argument as u32 as usize, (work.argument >> 32) as u32);
        if number >= REGIONS {
            return Err(Status::BadHandle);
        }
        let end = u64::from(work.offset) + u64::from(work.length);
        if !work.offset.is_multiple_of(8) || end > bytes {
            return Err(Status::Protection);
        }
        if self.all.len() <= number {
            self.all.resize_with(number + 1, || None);
        }
        let place = &mut self.all[number];
        if place.is_some() {
            return Err(Status::Busy);
        }
        *place = Some(Region {
            memory,
            foreign,
            offset: work.offset,
            length: work.length,
            tag,
            uses: 0,
        });
        self.count += 1;
        Ok(())
    }

    fn get(&self, number: u32) -> Option<&Region> {
        self.all.get(number as usize)?.as_ref()
    }

    /// Ends a region that no operation uses. A file of the application's own that the wire may have
    /// mapped comes back.
    pub(crate) fn deregister(&mut self, work: &Descriptor) -> Result<Option<Arc<Payload>>, Status> {
        let number = work.argument as u32;
        let tag = (work.argument >> 32) as u32;
        match self.get(number) {
            Some(region) if region.tag != tag => Err(Status::Protection),
            Some(region) if region.uses > 0 => Err(Status::Busy),
            Some(_) => {
                let ended = self.all[number as usize].take();
                self.count -= 1;
                let own = ended.filter(|region| region.foreign);
                Ok(own.map(|region| {
                    self.foreign -= region.memory.bytes();
                    region.memory
                }))
            }
            None => Err(Status::BadHandle),
        }
    }

    /// All memory that there is, for who takes it away from the wire.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &Arc<Payload>> {
        let own = self.all.iter().flatten().filter(|region| region.foreign);
        std::iter::once(&self.pool).chain(own.map(|region| &region.memory))
    }

    /// Judges the range of a transfer, which is under way from now on. `writes` says that bytes
    /// will be written there.
    pub(crate) fn begin(&mut self, work: &Descriptor, writes: bool) -> Result<(), Status> {
        let (number, tag) = (work.argument as u32, (work.argument >> 32) as u32);
        let region = self.all.get_mut(number as usize).and_then(Option::as_mut);
        let region = region.ok_or(Status::Protection)?;
        let end = u64::from(work.offset) + u64::from(work.length);
        let fits = end <= u64::from(region.length);
        // Memory is written in whole words.
        let word = work.offset.is_multiple_of(8);
        let allowed = !writes || (word && region.memory.mapping().is_writable());
        if region.tag != tag || !fits || !allowed {
            return Err(Status::Protection);
        }
        region.uses += 1;
        Ok(())
    }

    /// A transfer has ended.
    pub(crate) fn unused(&mut self, number: u32) {
        let region = self.all.get_mut(number as usize).and_then(Option::as_mut);
        if let Some(region) = region {
            region.uses = region.uses.saturating_sub(1);
        }
    }

    /// Where the bytes of a transfer under way stand from `done` on: the memory, and the place in
    /// its file.
    pub(crate) fn place(&self, work: &Descriptor, done: usize) -> Option<(&Arc<Payload>, usize)> {
        let region = self.get(work.argument as u32)?;
        let offset = region.offset as usize + work.offset as usize + done;
        Some((&region.memory, region.memory.start() + offset))
    }

    /// Reads payload of a transfer under way, `done` bytes behind its start.
    pub(crate) fn read(&self, work: &Descriptor, done: usize, bytes: &mut [u8]) {
        if let Some((memory, start)) = self.place(work, done) {
            read_bytes_at(memory.mapping(), start, bytes);
        }
    }

    /// Writes payload of a transfer under way, `done` bytes behind its start, a multiple of 8.
    pub(crate) fn write(&self, work: &Descriptor, done: usize, bytes: &[u8]) {
        if let Some((memory, start)) = self.place(work, done) {
            write_bytes(memory.mapping(), start / 8, bytes);
        }
    }
}
