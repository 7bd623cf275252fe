//! What becomes of a frame or a message whose run is cut off.
//!
//! Paper, section 3.3.2: a handler may be cut off at any instruction. Then nothing of what it asked
//! for happens, and what it had goes where its domain has said in `init`.

use crate::Durable;
use crate::imports;
use core::ops::BitOr;

/// What becomes of what a run had that is cut off, or that panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhenCut(u32);

impl WhenCut {
    /// Of a domain that says nothing: a frame goes to the host's stack, as if there were no handler;
    /// a message is dropped and counted.
    pub const DEFAULT: WhenCut = WhenCut(0);
    /// A frame is dropped and counted.
    pub const DROP_FRAME: WhenCut = WhenCut(1);
    /// The arguments of a message go to the process that drives the card, which learns who has sent
    /// them and to which handler. What that process has sent itself, or has no room for, is dropped
    /// and counted.
    pub const PASS_MESSAGE: WhenCut = WhenCut(2);
}

impl BitOr for WhenCut {
    type Output = WhenCut;

    fn bitor(self, other: WhenCut) -> WhenCut {
        WhenCut(self.0 | other.0)
    }
}

/// Says what becomes of what runs of this domain had that are cut off. Who calls procedures of
/// another domain keeps its own word, whoever is to blame for the cut.
pub fn when_cut(durable: &mut Durable, what: WhenCut) {
    let _ = durable;
    imports::when_cut(what.0);
}

#[cfg(not(target_arch = "mips"))]
impl WhenCut {
    pub(crate) const fn of_word(word: u32) -> WhenCut {
        WhenCut(word)
    }
}
