//! The log of undefined accesses.
//!
//! The card never rejects an access: an undefined read returns 0, an undefined write is ignored.
//! Each is counted, and the latest are kept, because in firmware and drivers they are almost
//! always mistakes.

use std::collections::VecDeque;
use tigon2_chip::Cpu;

/// Entries kept; the memory is allocated once.
const KEPT: usize = 256;

/// The origin of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accessor {
    /// A CPU of the card.
    Cpu(Cpu),
    /// The host, through BAR 0.
    Host,
    /// A DMA channel.
    Dma,
    /// The MAC.
    Mac,
}

/// Why an access is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndefinedKind {
    /// A read of an unused offset or address.
    Read,
    /// A write to an unused offset or address.
    Write,
    /// A write to a read-only register.
    ReadOnly,
    /// A register access that is not aligned to 32 bits; it accesses the whole word.
    Unaligned,
    /// A state word without the start bit in an assist descriptor; the transfer runs anyway.
    NoStart,
    /// A word-order transfer whose length is no multiple of 4; trailing bytes keep their order.
    PartialWord,
    /// A write to the program counter, or a start of a transfer, while it was running.
    Busy,
    /// A frame descriptor with length 0; it is skipped.
    EmptyFrame,
}

/// One undefined access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndefinedAccess {
    /// Its origin.
    pub by: Accessor,
    /// The reason.
    pub kind: UndefinedKind,
    /// Register or BAR offset, or NIC address.
    pub address: u32,
    /// The value written; 0 for reads.
    pub value: u32,
}

impl std::fmt::Display for UndefinedAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.by {
            Accessor::Cpu(cpu) => write!(f, "CPU {cpu}")?,
            Accessor::Host => write!(f, "host")?,
            Accessor::Dma => write!(f, "DMA")?,
            Accessor::Mac => write!(f, "MAC")?,
        }
        let (address, value) = (self.address, self.value);
        match self.kind {
            UndefinedKind::Read => write!(f, " read {address:#x}, where nothing is"),
            UndefinedKind::Write => {
                write!(f, " wrote {value:#x} to {address:#x}, where nothing is")
            }
            UndefinedKind::ReadOnly => write!(f, " wrote {value:#x} to read-only {address:#x}"),
            UndefinedKind::Unaligned => write!(f, " accessed {address:#x}, which is not aligned"),
            UndefinedKind::NoStart => {
                write!(
                    f,
                    ": descriptor at {address:#x}: state {value:#x} has no start bit"
                )
            }
            UndefinedKind::PartialWord => {
                write!(f, ": word-order transfer of {value} bytes at {address:#x}")
            }
            UndefinedKind::Busy => write!(f, " wrote {value:#x} to {address:#x} while it was busy"),
            UndefinedKind::EmptyFrame => write!(f, ": descriptor at {address:#x}: length 0"),
        }
    }
}

/// Count of all undefined accesses and the latest 256 of them.
#[derive(Clone, Debug)]
pub struct UndefinedLog {
    count: u64,
    latest: VecDeque<UndefinedAccess>,
}

impl Default for UndefinedLog {
    fn default() -> Self {
        UndefinedLog {
            count: 0,
            latest: VecDeque::with_capacity(KEPT),
        }
    }
}

impl UndefinedLog {
    /// All undefined accesses since power-on.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latest accesses, oldest first.
    pub fn latest(&self) -> impl Iterator<Item = &UndefinedAccess> {
        self.latest.iter()
    }

    /// Logs an access.
    #[cold]
    pub fn note(&mut self, by: Accessor, kind: UndefinedKind, address: u32, value: u32) {
        self.count += 1;
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(UndefinedAccess {
            by,
            kind,
            address,
            value,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_counts_all_and_keeps_the_latest() {
        let mut log = UndefinedLog::default();
        for n in 0..1000 {
            log.note(Accessor::Host, UndefinedKind::Write, n, 7);
        }
        assert_eq!(log.count(), 1000);
        assert_eq!(log.latest().count(), KEPT);
        assert_eq!(log.latest().last().map(|access| access.address), Some(999));
        assert_eq!(
            log.latest().last().map(ToString::to_string).as_deref(),
            Some("host wrote 0x7 to 0x3e7, where nothing is")
        );
    }
}
