//! The firmware's log: from the card's rings to lines.
//!
//! Each CPU writes defmt frames (rzCOBS) to its own ring on the card ([`host_interface::log`]).
//! The texts are not on the card but in the firmware's ELF file.
//!
//! ```text
//!  card: ring A, ring B ──LogReader──> LogFrame ──Backlog──> clients, each at its position
//!                                                   └─LogDecoder + ELF──> LogLine ──LevelFilter
//! ```
//!
//! [`LogReader`] reads the card's memory through any [`NicMemory`]: the window of a driver's card,
//! the memory of the simulator, or QEMU's through its monitor.

mod backlog;
mod build;
mod filter;
mod reader;
mod texts;

pub use backlog::Backlog;
pub use build::BuildId;
pub use filter::{LevelFilter, WrongFilter, level_named};
pub use reader::{LogBlock, LogCounts, LogFrame, LogReadError, LogReader, NicMemory};
pub use texts::{LogDecoder, LogError, LogLine, LogTexts, by_time};
