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

/// Repetitions of what can fail once in many times: `TIGON_ROUNDS` times the usual number.
///
/// # Panics
/// If the variable is not a number above 0.
pub fn repetitions(usual: u32) -> u32 {
    let Ok(rounds) = std::env::var("TIGON_ROUNDS") else {
        return usual;
    };
    match rounds.parse() {
        Ok(rounds @ 1..) => usual.saturating_mul(rounds),
        _ => panic!("TIGON_ROUNDS={rounds}: not a number above 0"),
    }
}
