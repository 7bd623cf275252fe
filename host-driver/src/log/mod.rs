//! The firmware's log: from the card's rings to lines.
//!
//! Each CPU writes defmt frames (rzCOBS) to a ring of its own on the card
//! ([`host_interface::log`]). The texts are not on the card but in the firmware's ELF file.
//!
//! ```text
//!  card: ring A, ring B ──LogReader──> LogFrame ──Backlog──> whoever asks, each at his place
//!                                                   └─LogDecoder + ELF──> LogLine ──LevelFilter
//! ```
//!
//! [`LogReader`] reads any memory that shows the card's: the window of a driver's card, the
//! memory of the simulator, QEMU's through its monitor.

mod backlog;
mod filter;
mod reader;
mod texts;

pub use backlog::Backlog;
pub use filter::{LevelFilter, WrongFilter, level_named};
pub use reader::{LogBlock, LogCounts, LogFrame, LogReadError, LogReader, NicMemory};
pub use texts::{LogDecoder, LogError, LogLine, LogTexts, by_time};

use host_interface::log::BUILD_ID_BYTES;

/// Names one build of a firmware.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BuildId(pub [u8; BUILD_ID_BYTES]);

impl std::fmt::Display for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for BuildId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut id = [0; BUILD_ID_BYTES];
        for (index, byte) in id.iter_mut().enumerate() {
            let digits = text.get(2 * index..2 * index + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16)?;
        }
        Ok(BuildId(id))
    }
}
