//! Hot code that shares a part of CPU A's scratch pad.
//!
//! One of two loops sorts frames, never both, and there is room for one:
//!
//! ```text
//!   0xC00400  run_by_source | run_ahead   1 KB, `.scratch_a.low` of `linker/parallel.x`
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
