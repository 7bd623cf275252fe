//! The processes with their buffers: they judge what the card completes.

use super::super::Finding;
use host_driver::DmaMemory;

/// Where the buffers are in host memory, bytes of each, and how many there may be.
const HOST: u64 = 0x1_0000_0000;
const SLOT: usize = 0x8000;
const SLOTS: usize = 16;
/// What a process has there for itself.
const OWN: u8 = 0xEE;
/// A place of memory that is never posted: what the next entry of an empty queue names.
pub(super) const STALE: usize = SLOTS - 1;

struct Buffer {
    endpoint: usize,
    /// It is the card's.
    posted: bool,
    completed: u32,
    /// A transfer into it has failed.
    failed: bool,
}

/// A frame that belongs into a buffer.
struct Expected {
    frame: usize,
    endpoint: usize,
    bytes: Vec<u8>,
    delivered: bool,
}

/// All processes.
pub(super) struct Process {
    memory: DmaMemory,
    buffers: Vec<Buffer>,
    expected: Vec<Expected>,
    closed: [bool; 2],
    found: Vec<Finding>,
}

impl Process {
    pub fn new() -> Process {
        let memory = DmaMemory::new(SLOT * SLOTS, HOST).expect("memory for the buffers");
        let process = Process {
            memory,
            buffers: Vec::new(),
            expected: Vec::new(),
            closed: [false; 2],
            found: Vec::new(),
        };
        (0..SLOTS).for_each(|slot| process.reuse(slot));
        process
    }

    /// What the card may write to.
    pub fn memory(&self) -> DmaMemory {
        self.memory.clone()
    }

    /// The host address of a byte of a buffer.
    pub const fn address(slot: usize, offset: u32) -> u64 {
        HOST + (slot * SLOT) as u64 + offset as u64
    }

    pub fn post(&mut self, endpoint: usize) -> Result<usize, &'static str> {
        let slot = self.buffers.len();
        if slot == STALE {
            return Err("the host has memory for fewer buffers");
        }
        self.buffers.push(Buffer {
            endpoint,
            posted: true,
            completed: 0,
            failed: false,
        });
        Ok(slot)
    }

    /// A frame has ended that belongs into a buffer.
    pub fn expect(&mut self, frame: usize, endpoint: usize, bytes: Vec<u8>) {
        self.expected.push(Expected {
            frame,
            endpoint,
            bytes,
            delivered: false,
        });
    }

    pub fn was_delivered(&self, frame: usize) -> bool {
        let mut delivered = self.expected.iter().filter(|it| it.delivered);
        delivered.any(|it| it.frame == frame)
    }

    /// The endpoint is closed: its memory is its process's again.
    pub fn close(&mut self, endpoint: usize) {
        self.closed[endpoint] = true;
        for slot in 0..self.buffers.len() {
            if self.buffers[slot].endpoint == endpoint && self.buffers[slot].posted {
                self.buffers[slot].posted = false;
                self.reuse(slot);
            }
        }
    }

    /// A transfer into a buffer fails: its memory was gone for a moment.
    pub fn lose(&mut self, slot: usize) {
        if let Some(buffer) = self.buffers.get_mut(slot) {
            buffer.failed = true;
        }
    }

    /// The card completes a buffer with so many bytes, or with an error.
    pub fn complete(&mut self, slot: usize, length: Option<u32>) {
        let bytes = length.map(|length| self.read(slot, length as usize));
        let Some(buffer) = self.buffers.get_mut(slot) else {
            return self.found.push(Finding::Completed(slot, 1));
        };
        buffer.completed += 1;
        if self.closed[buffer.endpoint] {
            self.found.push(Finding::AfterClose(slot));
        } else if buffer.completed > 1 {
            self.found.push(Finding::Completed(slot, buffer.completed));
        }
        match bytes {
            None if buffer.failed => {}
            None => self.found.push(Finding::WrongError(slot)),
            Some(bytes) => {
                let endpoint = buffer.endpoint;
                let frame = self
                    .expected
                    .iter_mut()
                    .find(|it| !it.delivered && it.endpoint == endpoint && it.bytes == bytes);
                match frame {
                    Some(frame) => frame.delivered = true,
                    None => self.found.push(Finding::WrongBytes(slot)),
                }
            }
        }
        buffer.posted = false;
        self.reuse(slot);
    }

    fn read(&self, slot: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length.min(SLOT)];
        let read = self.memory.read_bytes(slot * SLOT, &mut bytes);
        read.expect("a frame fits into its buffer");
        bytes
    }

    /// A process uses a buffer's memory for something else.
    fn reuse(&self, slot: usize) {
        let written = self.memory.write_bytes(slot * SLOT, &[OWN; SLOT]);
        written.expect("it is there");
    }

    /// What was wrong, and what is: `posted` are the buffers that the card has for other frames.
    pub fn findings(mut self, posted: &[usize]) -> Vec<Finding> {
        for slot in 0..SLOTS {
            let buffer = self.buffers.get(slot);
            let is_posted = buffer.is_some_and(|buffer| buffer.posted);
            let count = posted.iter().filter(|it| **it == slot).count();
            if count != usize::from(is_posted) {
                self.found.push(Finding::BufferLost(slot));
            }
            if !is_posted && self.read(slot, SLOT).iter().any(|byte| *byte != OWN) {
                self.found.push(Finding::Trespass(slot));
            }
        }
        self.found
    }
}
