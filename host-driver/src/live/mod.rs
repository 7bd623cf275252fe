//! Live captures: frames of a running card, for readers beside its driver.
//!
//! ```text
//!   Nic ──offer──> queue, bounded ──> thread ──Records──> Unix socket ──> FrameStream
//! ```
//!
//! A card has up to [`MOST_READERS`] readers. The driver copies a frame once for all of them and
//! never waits for one: frames that find no room in a reader's queue are counted, and the last
//! record reports the count ([`Record::End`]). Without readers a frame costs one check of an empty
//! list.

mod readers;
mod record;
mod stream;

pub use readers::{MOST_BYTES, MOST_FRAMES, MOST_READERS, Readers};
pub use record::{Direction, MOST_FRAME, Record};
pub use stream::FrameStream;
