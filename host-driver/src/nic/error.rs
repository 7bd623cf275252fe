//! Errors of the driver and of its card.

use std::fmt;
use std::time::Duration;

use host_interface::extension::{BadConfig, FatalCode};
use host_interface::image::{ImageError, Version};
use host_interface::queue::QueueResult;
use thiserror::Error;

use crate::dma::DmaError;
use crate::eeprom::EepromError;
use crate::transport::TransportError;

/// The firmware's report of a fatal error, from the extension words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FatalReport {
    /// The firmware's code.
    pub code: u32,
    /// An argument whose meaning depends on the code.
    pub argument: u32,
    /// Code address near the error; bit 0 is set for CPU B.
    pub cpu_pc: u32,
}

impl fmt::Display for FatalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Code addresses are even: bit 0 says which CPU.
        let cpu = if self.cpu_pc & 1 == 0 { 'A' } else { 'B' };
        match FatalCode::from_number(self.code) {
            Some(code) => write!(f, "{}", code.name())?,
            None => write!(f, "unknown fatal code {}", self.code)?,
        }
        if self.code == FatalCode::Configuration.number()
            && let Some(bad) = BadConfig::from_number(self.argument)
        {
            write!(f, ": {}", bad.name())?;
        }
        write!(
            f,
            " (argument {:#x}) on CPU {cpu} near {:#x}",
            self.argument,
            self.cpu_pc & !1
        )
    }
}

/// The state of a card that does not respond as it should; every timeout error ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardState {
    /// CPU A's state register, `R[140]`.
    pub cpu_a_state: u32,
    /// CPU A's program counter, `R[144]`.
    pub cpu_a_pc: u32,
    /// The main event register of CPU A, `R[60]`.
    pub events: u32,
    /// The state of the firmware.
    pub firmware: FirmwareSaid,
    /// The counts of the card's emulator, if there is one.
    pub emulator: Option<String>,
}

/// A firmware's own report of its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirmwareSaid {
    /// This project's: its state word.
    State(u32),
    /// This project's, but its extension words are not valid yet.
    NotSignedIn,
    /// Another firmware, without a state word.
    Foreign {
        /// The version in its file.
        version: Version,
        /// Whether its event "operational" has come.
        operational: bool,
    },
}

impl fmt::Display for FirmwareSaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => write!(f, "firmware state {state}"),
            Self::NotSignedIn => write!(f, "firmware has not signed in"),
            Self::Foreign {
                version,
                operational,
            } => {
                let not = if *operational { "" } else { "not " };
                write!(
                    f,
                    "the firmware is another's, version {version}, and has {not}reported that it \
                     is operational"
                )
            }
        }
    }
}

impl fmt::Display for CardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = if self.cpu_a_state >> 16 == 0 {
            "runs"
        } else {
            "is halted"
        };
        write!(
            f,
            "CPU A {running} at {:#x}, events {:#010x}, {}",
            self.cpu_a_pc, self.events, self.firmware
        )?;
        match &self.emulator {
            Some(counts) => write!(f, "; emulator: {counts}"),
            None => Ok(()),
        }
    }
}

/// Why an operation of the driver failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NicError {
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// An access outside DMA memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The PCI function is something else.
    #[error("PCI function {vendor:04x}:{device:04x} is not a Tigon II card")]
    UnknownDevice {
        /// PCI vendor.
        vendor: u16,
        /// PCI device.
        device: u16,
    },
    /// The right function, but another chip.
    #[error("the chip reports revision {found}, not 6 (Tigon II)")]
    WrongRevision {
        /// Bits 31:28 of `R[40]`.
        found: u8,
    },
    /// The station address could not be read.
    #[error(transparent)]
    Eeprom(#[from] EepromError),
    /// The card has not started its own firmware.
    #[error(
        "the card has not booted{}: {why} ({state})",
        if *.prom_failed { " (PROM failed)" } else { "" }
    )]
    NotBooted {
        /// The boot code's report.
        why: String,
        /// Whether it has set the chip's "PROM failed".
        prom_failed: bool,
        /// The state of the card.
        state: CardState,
    },
    /// The images in the EEPROM.
    #[error(transparent)]
    Flash(#[from] crate::flash::FlashError),
    /// The firmware image is not usable; the card was not touched.
    #[error("firmware image: {0}")]
    Image(#[from] ImageError),
    /// CPU A continues although it was halted.
    #[error("CPU A does not halt, firmware cannot be loaded ({state})")]
    NotHalted {
        /// The state of the card.
        state: CardState,
    },
    /// The firmware did not come up in time and left no report.
    #[error("firmware is not operational after {} ms: {state}", after.as_millis())]
    FirmwareSilent {
        /// How long the driver waited.
        after: Duration,
        /// The state of the card.
        state: CardState,
    },
    /// The firmware stopped with a report.
    #[error("the firmware stopped: {0}")]
    FirmwareFatal(FatalReport),
    /// The firmware rejects the configuration or a command.
    #[error("the firmware reports an error: {reason} (command {command:#04x})")]
    FirmwareRefused {
        /// The meaning of the event's code.
        reason: &'static str,
        /// The last command.
        command: u8,
    },
    /// The card reported an invalid index.
    #[error("the card reports {what} {value}, which must be {allowed}")]
    BadIndex {
        /// The name of the index.
        what: &'static str,
        /// Its value.
        value: u32,
        /// The permitted values.
        allowed: String,
    },
    /// The card repeatedly reports invalid descriptors.
    #[error("the card reports {count} {what}, which is impossible")]
    Nonsense {
        /// What was reported.
        what: &'static str,
        /// How many times.
        count: u32,
    },
    /// No progress for too long; [`super::Nic::recover`] may help.
    #[error("the card is stuck: {what} for {} ms ({state})", after.as_millis())]
    Stuck {
        /// What makes no progress.
        what: &'static str,
        /// For how long.
        after: Duration,
        /// The state of the card.
        state: CardState,
    },
    /// A command was not taken, or its event did not arrive.
    #[error("no completion of command {command} within {} ms ({state})", after.as_millis())]
    CommandTimeout {
        /// The command's name.
        command: &'static str,
        /// How long the driver waited.
        after: Duration,
        /// The state of the card.
        state: CardState,
    },
    /// The link did not come up in time.
    #[error("no link after {} ms: is the wire connected? ({state})", after.as_millis())]
    NoLink {
        /// How long the driver waited.
        after: Duration,
        /// The state of the card.
        state: CardState,
    },
    /// Words of NIC memory are not read or written while the window is leased to a peer.
    #[error(transparent)]
    Access(spine_linker::access::AccessError<TransportError>),
    /// The send ring is another device's: [`super::SendConsumer::At`].
    #[error("the send ring is lent to another device")]
    RingLent,
    /// The send ring is the driver's own, or on the card.
    #[error("the send ring is not one in host memory that is lent")]
    RingNotLent,
    /// The call needs a card in another state.
    #[error("the card is {is}, but must be {needs} for this")]
    WrongState {
        /// The current state.
        is: &'static str,
        /// The required state.
        needs: &'static str,
    },
    /// A setting that this card or its configuration does not support.
    #[error("{what} {value}: must be {allowed}")]
    BadSetting {
        /// The setting.
        what: &'static str,
        /// The requested value.
        value: u32,
        /// The permitted values.
        allowed: String,
    },
    /// The firmware has no receive queues besides the classic one.
    #[error("this firmware has no receive queues (the variant parallel has)")]
    NoQueues,
    /// Classification settings that no card accepts.
    #[error(transparent)]
    Classification(#[from] crate::rss::RssError),
    /// The firmware rejects a command of queue mode.
    #[error("the firmware refuses to {command}: {result} (queue or entry {index})")]
    QueuesRefused {
        /// The command's name.
        command: &'static str,
        /// The reason.
        result: QueueResult,
        /// The queue or table entry with the error.
        index: u16,
    },
    /// A frame that cannot be sent.
    #[error("cannot send {bytes} bytes in {fragments} fragments: {limit}")]
    BadFrame {
        /// Bytes of the frame.
        bytes: usize,
        /// Its fragments.
        fragments: usize,
        /// The violated limit.
        limit: &'static str,
    },
    /// A source or target of frames failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl NicError {
    /// Whether resetting the card and loading it again may help.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        matches!(
            self,
            Self::Stuck { .. }
                | Self::FirmwareFatal(_)
                | Self::FirmwareSilent { .. }
                | Self::CommandTimeout { .. }
                | Self::BadIndex { .. }
                | Self::Nonsense { .. }
        )
    }
}
