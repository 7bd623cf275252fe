//! The last transitions of RECV and RDMA, in firmware that is built for the explorer.
//!
//! [`BlockWord::Arrivals`](super::BlockWord::Arrivals) says where they are.
//!
//! ```text
//!   +0x000  transitions that CPU A's machines took; wraps
//!   +0x020  the last 1024 of them, a byte each as in `frame_pipeline::trace`
//! ```

/// Offset of the word that counts.
pub const STEPS: u32 = 0;
/// Offset of the trace.
pub const TRACE: u32 = 0x20;
/// Bytes of the trace, a power of two.
pub const TRACE_BYTES: u32 = super::TRACE_BYTES;
/// Bytes of all.
pub const BYTES: u32 = TRACE + TRACE_BYTES;

const _: () = {
    assert!(STEPS + 4 <= TRACE);
    assert!(TRACE.is_multiple_of(4) && TRACE_BYTES.is_power_of_two());
    assert!(BYTES.is_multiple_of(32));
};
