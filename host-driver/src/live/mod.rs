//! Frames of a card that works, for whoever reads beside its driver.
//!
//! ```text
//!   Nic ──offer──> queue, bounded ──> thread ──Records──> Unix socket ──> FrameStream
//! ```
//!
//! A card has any number of readers up to [`MOST_READERS`]. The driver copies a frame once
//! for all of them and never waits for one: what finds no room in a reader's queue is
//! counted, and the count is the last thing that the reader hears ([`Record::End`]). Without
//! readers a frame costs one look at an empty list.

mod readers;
mod record;
mod stream;

pub use readers::{MOST_BYTES, MOST_FRAMES, MOST_READERS, Readers};
pub use record::{Direction, MOST_FRAME, Record};
pub use stream::FrameStream;
