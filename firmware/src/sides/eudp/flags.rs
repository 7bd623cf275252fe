//! What is to be done with a frame: the bits of [`Frame::flags`](super::frame::Frame::flags).

/// The read channel sums that.
pub const SUMMED: u32 = 1;
/// It has the UDP header, and gets the datagram's sum when its data is there.
pub const WANTS_SUM: u32 = 2;
/// It is the descriptor's last one.
pub const LAST: u32 = 4;
/// Its data is gathered from the job's pieces.
pub const GATHERED: u32 = 8;
/// It is its descriptor's only one, and not fetched in parts.
pub const WHOLE: u32 = 16;
/// It is gathered, and the data of the frames behind it is fetched in front of its own, for the sum.
pub const LEADS: u32 = 32;
/// Its transfer is queued already.
pub const AHEAD: u32 = 64;
