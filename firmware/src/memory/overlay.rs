//! Hot code that shares a part of a scratch pad.
//!
//! Of CPU A's: one of two loops sorts frames, never both, and there is room for one:
//!
//! ```text
//!   0xC00400  run_by_source | run_ahead   1 KB, `.scratch_a.low` of `linker/parallel.x`
//! ```
//!
//! A row of CPU A's jump table leads to one of two handlers, too: that of Receive Complete. In the
//! variants with extensions or endpoints this handler makes room while it is not in use:
//!
//! ```text
//!   receive_complete | what extensions or endpoints need for each frame    5 KB, `.scratch_a.host`
//!                    |                                                        `.scratch_a.system`
//! ```
//!
//! In the variant with extensions CPU B's jump table leads to a handler of mailboxes, which is called
//! while the card [grants rooms](crate::sides::spine::peer) to another one.
//!
//! Of CPU B's, in the variant with endpoints: the code of the host's frames, or that of the
//! endpoints' while one is open.
//!
//! ```text
//!   stack, state | host's frames          6 KB, `.scratch_b.text`
//!                | endpoints' frames      `.scratch_b.endpoints`
//! ```
//!
//! The bytes of both stay in SRAM. Code that is copied is executed at the next call, since nothing
//! caches instructions of the scratch pad (hardware reference, section 3).

/// Which loop is in the scratch pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Frames go by source address.
    BySource,
    /// CPU B classifies.
    Ahead,
}

#[cfg(all(target_arch = "mips", feature = "parallel"))]
#[allow(unsafe_code)]
mod copy {
    // SAFETY: both are written beside the start code (`start/two.rs`). They copy code to where it
    // is linked for, and nothing of that is under way while CPU A runs another handler.
    unsafe extern "C" {
        pub safe fn place_run_by_source();
        pub safe fn place_run_ahead();
    }
}

/// Places a loop. It must be the one that runs next.
pub fn place(overlay: Overlay) {
    #[cfg(all(target_arch = "mips", feature = "parallel"))]
    match overlay {
        Overlay::BySource => copy::place_run_by_source(),
        Overlay::Ahead => copy::place_run_ahead(),
    }
    #[cfg(not(all(target_arch = "mips", feature = "parallel")))]
    let _ = overlay;
}

/// Which handler Receive Complete leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Classic mode's.
    Classic,
    /// That of queue mode, or of frames beside extensions or endpoints.
    Other,
}

/// Whether the jump table leads to the right handler. On a host, which has no such table, classic
/// mode's handler asks each time.
pub const LEADS: bool = cfg!(target_arch = "mips");

#[cfg(all(target_arch = "mips", feature = "parallel"))]
#[allow(unsafe_code)]
mod row {
    // SAFETY: both are written beside the start code (`start/two.rs`). They store a jump to a
    // handler into its row of CPU A's jump table, while CPU A runs another handler.
    unsafe extern "C" {
        pub safe fn lead_to_classic();
        pub safe fn lead_to_other();
    }
}

/// Lets CPU A's jump table lead to a handler from the next event on.
pub fn lead(receiver: Receiver) {
    #[cfg(all(target_arch = "mips", feature = "parallel"))]
    match receiver {
        Receiver::Classic => row::lead_to_classic(),
        Receiver::Other => row::lead_to_other(),
    }
    #[cfg(not(all(target_arch = "mips", feature = "parallel")))]
    let _ = receiver;
}

#[cfg(all(target_arch = "mips", feature = "spine"))]
#[allow(unsafe_code)]
mod row_b {
    // SAFETY: it is written beside the start code (`start/two.rs`). It stores a jump to a handler into
    // a row of CPU B's jump table that leads back to the loop, before CPU B is in that.
    unsafe extern "C" {
        pub safe fn lead_to_bell();
    }
}

/// Lets CPU B's jump table lead to the handler of the other card's bell.
pub fn lead_to_bell() {
    #[cfg(all(target_arch = "mips", feature = "spine"))]
    row_b::lead_to_bell();
}

#[cfg(all(target_arch = "mips", feature = "parallel", not(receive_queues)))]
#[allow(unsafe_code)]
mod copy_a {
    // SAFETY: both are written beside the start code (`start/two.rs`). They copy code to where it
    // is linked for, while CPU A runs a handler that lies elsewhere.
    unsafe extern "C" {
        pub safe fn place_host_code_a();
        pub safe fn place_system_code_a();
    }
}

/// Places the code of a receiver in CPU A's scratch pad, and leads to it. A handler in SRAM calls
/// it.
pub fn place_a(receiver: Receiver) {
    #[cfg(all(target_arch = "mips", feature = "parallel", not(receive_queues)))]
    match receiver {
        Receiver::Classic => copy_a::place_host_code_a(),
        Receiver::Other => copy_a::place_system_code_a(),
    }
    lead(receiver);
}

/// Whose frames have their code in CPU B's scratch pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayB {
    /// The host's.
    Host,
    /// The endpoints'.
    Endpoints,
}

#[cfg(all(target_arch = "mips", feature = "eudp"))]
#[allow(unsafe_code)]
mod copy_b {
    // SAFETY: both are written beside the start code (`start/two.rs`). They copy code to where it
    // is linked for, and go on in CPU B's dispatch loop: nothing that was under way is returned
    // to, and handlers leave nothing behind on the stack.
    unsafe extern "C" {
        pub safe fn place_host_code() -> !;
        pub safe fn place_endpoint_code() -> !;
    }
}

/// Places code in CPU B's scratch pad. On the chip it does not return: CPU B goes on in its
/// dispatch loop.
pub fn place_b(overlay: OverlayB) {
    #[cfg(all(target_arch = "mips", feature = "eudp"))]
    match overlay {
        OverlayB::Host => copy_b::place_host_code(),
        OverlayB::Endpoints => copy_b::place_endpoint_code(),
    }
    #[cfg(not(all(target_arch = "mips", feature = "eudp")))]
    let _ = overlay;
}
