//! The state that reporting a fatal error needs, kept ready in SRAM.
//!
//! ```text
//!   +0  state of its two transfers    +4  producer of the host's event ring
//!   +8  the event, two words         +16  the producer index behind it, two words
//! ```

use crate::memory::layout;

/// The words at [`LAST_EVENT`].
#[derive(Debug)]
#[repr(C)]
pub struct LastEvent {
    /// The state word of both transfers; 0 if the host's event ring is unusable.
    pub state: u32,
    /// The index of the next event, which the host received last.
    pub producer: u32,
    /// The event.
    pub entry: [u32; 2],
    /// The index that follows it, as written to the host.
    pub index: [u32; 2],
}

tigon2_chip::place! {
    /// A [`LastEvent`] in NIC memory.
    LastEventAt: LastEvent { state, producer, entry, index }
}

/// Where they are.
pub const LAST_EVENT: LastEventAt = LastEventAt(layout::LAST_EVENT);

const _: () = {
    assert!(LAST_EVENT.index() == LAST_EVENT.entry() + 8);
    assert!(layout::LAST_EVENT + size_of::<LastEvent>() as u32 <= layout::PROFILE);
};
