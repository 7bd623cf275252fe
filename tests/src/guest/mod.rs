//! The stage for stories that use an unmodified Linux guest as the judge.
//!
//! ```text
//!   guest: Linux, acenic ── vfio-user ── card, firmware, MAC ══ Cable ══ TAP, Linux peer
//! ```

pub mod cable;
pub mod counts;
pub mod echo;
pub mod frame;
pub mod kernel_log;
pub mod neighbours;
pub mod peer;
pub mod playbill;
pub mod stage;

pub use cable::Cable;
pub use counts::{Count, Counts};
pub use frame::{Sight, Way};
pub use peer::Peer;
pub use stage::GuestStage;
