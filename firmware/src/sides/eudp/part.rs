//! The fragment that RDMA writes.

use super::assembly::Assembly;

/// The fragment that RDMA writes.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its datagram; none if RDMA writes no fragment.
    pub(super) assembly: Assembly,
    /// Where its data begins in NIC memory.
    pub(super) local: u32,
    /// Where it belongs in the datagram's data.
    pub(super) at: u32,
    /// Its bytes of data.
    pub(super) bytes: u32,
    /// Whether the datagram is whole with it.
    pub(super) is_last: bool,
}

impl Part {
    /// None.
    pub const NONE: Part = Part {
        assembly: Assembly::NONE,
        local: 0,
        at: 0,
        bytes: 0,
        is_last: false,
    };

    /// There is none any more. The rest stays: a compiler would call to clear it.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.assembly = Assembly::NONE;
    }

    /// Whether there is one.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.assembly != Assembly::NONE
    }
}
