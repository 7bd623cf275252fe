//! The pool of payload memory, handed out in regions.

use std::collections::HashMap;

use dti::layout::REGIONS;

use crate::DusiError;

/// A registered piece of the pool, or of a memory file of the application's own.
#[derive(Debug, PartialEq, Eq)]
pub struct Region {
    number: u32,
    offset: u32,
    length: u32,
    tag: u32,
    foreign: bool,
}

/// A region that cannot be given back yet.
#[derive(Debug)]
pub struct Busy(pub Region);

impl Region {
    /// Bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Its number: operations name it by this.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its protection tag.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Whether it is of a memory file of the application's own.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    pub(crate) fn offset(&self) -> u32 {
        self.offset
    }

    /// A range of it as a descriptor names it; one that is written begins at a multiple of 8.
    pub(crate) fn range(
        &self,
        offset: usize,
        length: usize,
        writes: bool,
    ) -> Result<(u32, u32), DusiError> {
        let fits = offset
            .checked_add(length)
            .is_some_and(|end| end <= self.len());
        if fits && (offset.is_multiple_of(8) || !writes) {
            Ok((offset as u32, length as u32))
        } else {
            Err(DusiError::Range)
        }
    }
}

/// The pool.
pub(crate) struct Pool {
    /// Free parts, in order, none adjacent to another.
    free: Vec<(u32, u32)>,
    /// Numbers of regions that ended.
    numbers: Vec<u32>,
    next: u32,
    /// Operations under way, by region.
    uses: HashMap<u32, u32>,
}

fn rounded(length: u32) -> u32 {
    length.next_multiple_of(64).max(64)
}

impl Pool {
    pub(crate) fn new(bytes: u32) -> Self {
        Self {
            free: vec![(0, bytes)],
            numbers: Vec::new(),
            next: 0,
            uses: HashMap::new(),
        }
    }

    pub(crate) fn take(&mut self, bytes: usize, tag: u32) -> Option<Region> {
        let length = u32::try_from(bytes)
            .ok()
            .filter(|one| *one <= u32::MAX - 64)?;
        if self.numbers.is_empty() && self.next as usize >= REGIONS {
            return None;
        }
        let need = rounded(length);
        let found = self.free.iter().position(|(_, room)| *room >= need)?;
        let (start, room) = &mut self.free[found];
        let offset = *start;
        *start += need;
        *room -= need;
        if *room == 0 {
            self.free.remove(found);
        }
        Some(Region {
            number: self.number()?,
            offset,
            length,
            tag,
            foreign: false,
        })
    }

    /// A name for a part of a memory file of the application's own.
    pub(crate) fn name(&mut self, offset: u32, length: u32, tag: u32) -> Option<Region> {
        Some(Region {
            number: self.number()?,
            offset,
            length,
            tag,
            foreign: true,
        })
    }

    fn number(&mut self) -> Option<u32> {
        if let Some(number) = self.numbers.pop() {
            return Some(number);
        }
        let fresh = ((self.next as usize) < REGIONS).then_some(self.next)?;
        self.next += 1;
        Some(fresh)
    }

    pub(crate) fn give(&mut self, region: Region) {
        self.numbers.push(region.number);
        if region.foreign {
            return;
        }
        let place = self
            .free
            .partition_point(|(offset, _)| *offset < region.offset);
        self.free
            .insert(place, (region.offset, rounded(region.length)));
        self.free.dedup_by(|next, first| {
            let adjacent = first.0 + first.1 == next.0;
            if adjacent {
                first.1 += next.1;
            }
            adjacent
        });
    }

    pub(crate) fn used(&mut self, region: &Region) {
        *self.uses.entry(region.number).or_default() += 1;
    }

    pub(crate) fn unused(&mut self, number: u32) {
        if let Some(uses) = self.uses.get_mut(&number) {
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&number);
            }
        }
    }

    pub(crate) fn in_use(&self, region: &Region) -> bool {
        self.uses.contains_key(&region.number)
    }
}
