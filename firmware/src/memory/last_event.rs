//! What the event of a fatal error needs, kept ready in SRAM.
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
    /// The state word of both transfers; 0: the host's event ring cannot be used.
    pub state: u32,
    /// Where the next event goes: the index that the host was told last.
    pub producer: u32,
    /// The event.
    pub entry: [u32; 2],
    /// The index behind it, as the host gets it.
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
