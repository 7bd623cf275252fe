//! The firmware's trace ring.
//!
//! Hardware reference, section 12 (C): entries of 32 bytes, written downwards from the end; gencom
//! holds the ring's place. [`super::Config::trace_mask`] selects the traced topics.

use host_interface::gencom::Gencom;
use host_interface::trace::{ENTRY_BYTES, TraceEntry};

use super::control::Control;
use super::error::NicError;
use super::window::MemoryAccess;
use crate::transport::Transport;

/// Largest plausible trace ring, in bytes.
const LARGEST_RING: u32 = 256 * 1024;
const ENTRY: u32 = ENTRY_BYTES as u32;

impl<T: Transport> Control<T> {
    /// The trace, from [`read_trace`].
    ///
    /// # Errors
    /// As [`read_trace`].
    pub fn trace(&mut self) -> Result<Vec<TraceEntry>, NicError> {
        read_by(self.memory_access, &mut self.transport)
    }

    /// Sets the firmware's trace mask. Kept across [`super::Nic::recover`].
    ///
    /// # Errors
    /// What the transport says.
    pub fn set_trace_mask(&mut self, mask: u32) -> Result<(), NicError> {
        self.config.trace_mask = mask;
        self.transport.write(Gencom::TraceMask.bar_offset(), mask)?;
        Ok(self.transport.flush()?)
    }
}

/// Reads the trace of a card without a reset, oldest entry first; empty if the firmware has no
/// trace ring. Skips entries that were never written.
///
/// # Errors
/// [`NicError::BadIndex`] if the ring's description is invalid; the transport's errors.
pub fn read_trace<T: Transport>(transport: &mut T) -> Result<Vec<TraceEntry>, NicError> {
    read_by(MemoryAccess::Window, transport)
}

fn read_by<T: Transport>(
    memory: MemoryAccess,
    transport: &mut T,
) -> Result<Vec<TraceEntry>, NicError> {
    let mut word = |word: Gencom| transport.read(word.bar_offset());
    let start = word(Gencom::TraceStart)?;
    let bytes = word(Gencom::TraceLength)?;
    let pointer = word(Gencom::TracePointer)?;
    if start == 0 || bytes == 0 {
        return Ok(Vec::new());
    }
    let bad = |what, value| {
        Err(NicError::BadIndex {
            what,
            value,
            allowed: "within a ring of whole entries in NIC memory".to_owned(),
        })
    };
    if !bytes.is_multiple_of(ENTRY) || bytes > LARGEST_RING {
        return bad("trace ring length", bytes);
    }
    if !start.is_multiple_of(4) || start > tigon2_chip::memory::SRAM_MAX_BYTES - bytes {
        return bad("trace ring start", start);
    }
    let next = pointer.wrapping_sub(start);
    // The end of an empty ring is the same place as its start.
    if next > bytes || !next.is_multiple_of(ENTRY) {
        return bad("trace pointer", pointer);
    }
    let mut words = vec![0; bytes as usize / 4];
    memory.read(transport, start, &mut words)?;
    let mut entries: Vec<TraceEntry> = words.chunks_exact(8).map(entry).collect();
    // The newest entry is the one above the pointer. Older entries follow upwards, and then from
    // the end of the ring down to the pointer.
    let newest = (next / ENTRY) as usize + 1;
    let count = entries.len();
    entries.rotate_left(newest % count.max(1));
    entries.reverse();
    entries.retain(|entry| *entry != TraceEntry::default());
    Ok(entries)
}

fn entry(words: &[u32]) -> TraceEntry {
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    TraceEntry {
        label: [word(0), word(1)],
        code: word(2),
        time: word(3),
        arguments: [word(4), word(5), word(6), word(7)],
    }
}
