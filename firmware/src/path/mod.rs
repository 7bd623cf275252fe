//! Layer 4: the paths of frames, which do not know each other.
//!
//! | module | what | CPU |
//! | --- | --- | --- |
//! | [`send`] | host to wire | B |
//! | [`receive`] | wire to host | A |
//! | [`buffer_fetch`] | the BDs of empty buffers, from the host | B |
//! | [`send_index`] | reporting the send consumer index to the host | A |

pub mod ahead;
pub mod buffer_fetch;
pub mod receive;
pub mod send;
pub mod send_index;
