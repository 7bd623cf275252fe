//! Memory of an application, as frames are made of it.

use std::sync::{Arc, OnceLock};

use dti::mapped::Mapping;
use dti::words::{Words, read_bytes_at};
use host_driver::DmaMemory;
use host_driver::stack::Wire;
use host_driver::stack::flows::in_place;

/// A memory file, and what the wire knows of it.
pub(crate) struct Payload {
    memory: Arc<Mapping>,
    /// First byte of the registered part's file or pool.
    start: usize,
    /// The same for the card, once it was asked; none if the wire copies.
    card: OnceLock<Option<DmaMemory>>,
}

impl Payload {
    pub(crate) fn new(memory: Arc<Mapping>, start: usize) -> Self {
        Self {
            memory,
            start,
            card: OnceLock::new(),
        }
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.memory
    }

    /// First byte in the file.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.len() as u64 * 8
    }

    /// Lets a wire read it where it is. One that cannot gets copies.
    pub(crate) fn show(&self, wire: &mut impl Wire) {
        self.card.get_or_init(|| {
            let file = self.memory.file().try_clone_to_owned();
            file.ok().and_then(|file| wire.map(file).ok().flatten())
        });
    }
}

impl in_place::Payload for Payload {
    fn card(&self) -> Option<&DmaMemory> {
        self.card.get().and_then(Option::as_ref)
    }

    fn read(&self, place: usize, bytes: &mut [u8]) {
        read_bytes_at(&*self.memory, place, bytes);
    }
}
