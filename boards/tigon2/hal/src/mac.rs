//! MAC descriptor rings and the transmit buffer.
//!
//! Hardware reference, section 10. The MAC sends from and receives into two ring buffers in SRAM;
//! a descriptor of 8 bytes holds a frame's start and length.

mod buffer;
mod receive;
mod transmit;

pub use buffer::TransmitBuffer;
pub use receive::{Arrivals, Arriving, ReceiveRing, ReceivedFrame, ReceivedView};
pub use transmit::{Frames, TransmitRing};
