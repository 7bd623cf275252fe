//! How a run is over.

/// How a run is over, or why it has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// It returned this.
    Returned(u32),
    /// It returned, and its frame is on its way to the peer: that transfer frees it.
    Forwarded,
    /// It returned, and its frame was handed to the peer, or dropped. Or it was cut off, and its
    /// domain has said what becomes of what it had, which has been done.
    Settled,
    /// It was cut off.
    Cut,
    /// It has not begun: there is no such handler.
    NoHandler,
    /// It has not begun: its domain is suspended.
    Suspended,
    /// It has not begun: the handler does not take such a message from its sender.
    NotAllowed,
}

impl Over {
    /// Whether the handler has returned, or what it had is seen to as if it had.
    #[inline(always)]
    pub const fn is_to_the_end(self) -> bool {
        matches!(self, Over::Returned(_) | Over::Forwarded | Over::Settled)
    }
}
