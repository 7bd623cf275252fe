//! What fragments of one datagram have in common.

/// What tells one datagram from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The source's address.
    pub source: u32,
    /// The destination's.
    pub destination: u32,
    /// The identification.
    pub identification: u32,
}

impl Key {
    /// That of no datagram.
    pub(in crate::sides::eudp) const NONE: Key = Key {
        source: 0,
        destination: 0,
        identification: 0,
    };
}
