//! The operations of a card, in order: register writes, DMA transfers, frames.
//!
//! Two engines that run the same firmware under the same stimuli perform the same operations,
//! except for their timing; a test compares them. Nothing is recorded unless
//! [`Card::record_operations`](crate::Card::record_operations) requests it. Each operation also
//! has a text form of one line, so that an engine in another process can pass it on:
//!
//! ```text
//!   write A 124 00014020                  who, offset and value in hex
//!   read 100024a00 00014000 76 20002      host and NIC address, bytes, state word
//!   sent 0060cf201234...                  a frame without CRC
//! ```

use crate::dma::{Direction, Transfer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use tigon2_chip::Cpu;

/// One operation of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A write to a register of the chip.
    Write {
        /// By this CPU; `None` is the host.
        by: Option<Cpu>,
        /// Byte offset in the register page.
        offset: u32,
        /// The value.
        value: u32,
    },
    /// A DMA transfer that has ended.
    Dma {
        /// The direction.
        direction: Direction,
        /// First host address.
        host: u64,
        /// First NIC address.
        local: u32,
        /// Bytes.
        length: u32,
        /// The state word: its flags.
        state: u32,
    },
    /// A frame without CRC has left.
    Sent(Vec<u8>),
    /// A frame without CRC has arrived; the card may have dropped it.
    Received(Vec<u8>),
}

impl Operation {
    pub(crate) fn dma(direction: Direction, transfer: &Transfer) -> Operation {
        Operation::Dma {
            direction,
            host: transfer.host,
            local: transfer.local,
            length: transfer.length,
            state: transfer.state.into_bits(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = |f: &mut fmt::Formatter<'_>, what: &str, bytes: &[u8]| {
            write!(f, "{what} ")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        match self {
            Operation::Write { by, offset, value } => match by {
                Some(cpu) => write!(f, "write {cpu} {offset:x} {value:08x}"),
                None => write!(f, "write host {offset:x} {value:08x}"),
            },
            Operation::Dma {
                direction,
                host,
                local,
                length,
                state,
            } => {
                let way = match direction {
                    Direction::Read => "read",
                    Direction::Write => "dma-write",
                };
                write!(f, "{way} {host:x} {local:08x} {length} {state:x}")
            }
            Operation::Sent(bytes) => frame(f, "sent", bytes),
            Operation::Received(bytes) => frame(f, "received", bytes),
        }
    }
}

/// A line that describes no [`Operation`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not an operation of a card: {0}")]
pub struct OperationError(String);

impl FromStr for Operation {
    type Err = OperationError;

    fn from_str(line: &str) -> Result<Operation, OperationError> {
        parse(line).ok_or_else(|| OperationError(line.to_owned()))
    }
}

fn parse(line: &str) -> Option<Operation> {
    let words: Vec<&str> = line.split(' ').collect();
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    let dma = |direction, host, local, length: &str, state| {
        Some(Operation::Dma {
            direction,
            host: u64::from_str_radix(host, 16).ok()?,
            local: hex(local)?,
            length: length.parse().ok()?,
            state: hex(state)?,
        })
    };
    match words[..] {
        ["write", by, offset, value] => Some(Operation::Write {
            by: match by {
                "host" => None,
                name => Some(Cpu::ALL.into_iter().find(|cpu| cpu.to_string() == name)?),
            },
            offset: hex(offset)?,
            value: hex(value)?,
        }),
        ["read", host, local, length, state] => dma(Direction::Read, host, local, length, state),
        ["dma-write", host, local, length, state] => {
            dma(Direction::Write, host, local, length, state)
        }
        ["sent", frame] => Some(Operation::Sent(bytes(frame)?)),
        ["received", frame] => Some(Operation::Received(bytes(frame)?)),
        _ => None,
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs
        .map(|pair| u8::from_str_radix(pair?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_lines_and_lines_are_operations() {
        for (operation, line) in [
            (
                Operation::Write {
                    by: Some(Cpu::B),
                    offset: 0x124,
                    value: 0x1_4020,
                },
                "write B 124 00014020",
            ),
            (
                Operation::Write {
                    by: None,
                    offset: 0x40,
                    value: 0x2200_0022,
                },
                "write host 40 22000022",
            ),
            (
                Operation::Dma {
                    direction: Direction::Write,
                    host: 0x1_0000_0010,
                    local: 0x4000,
                    length: 76,
                    state: 6,
                },
                "dma-write 100000010 00004000 76 6",
            ),
            (Operation::Sent(vec![0, 0x60, 0xCF]), "sent 0060cf"),
            (Operation::Received(vec![]), "received "),
        ] {
            assert_eq!(operation.to_string(), line);
            assert_eq!(line.parse(), Ok(operation));
        }
        for line in ["", "write C 0 0", "sent 0", "read 1 2 3", "sent zz"] {
            let error = OperationError(line.to_owned());
            assert_eq!(line.parse::<Operation>(), Err(error));
        }
    }
}
