//! Return BDs in queue mode: hash, hash type and queue.
//!
//! ```text
//!   type, bits 31:16 of the word at 12:  15:8 type of hash   7:0 queue
//!   word at 24:                          hash
//! ```
//!
//! In classic mode both are 0, so drivers without queue support see no difference.

use super::ReturnBd;
use crate::queue::HashType;

impl ReturnBd {
    /// The same BD with the classifier's verdict.
    #[must_use]
    pub const fn with_classification(mut self, queue: u8, kind: HashType, hash: u32) -> Self {
        let kind = (kind as u32) << 24 | (queue as u32) << 16;
        self.kind_and_flags = self.kind_and_flags & 0xFFFF | kind;
        self.reserved = hash;
        self
    }

    /// The queue that the card selected.
    pub const fn queue(&self) -> u8 {
        self.kind() as u8
    }

    /// The input of the hash; `None` for an unknown number.
    pub const fn hash_type(&self) -> Option<HashType> {
        HashType::from_number((self.kind() >> 8) as u32)
    }

    /// The hash; meaningful with a type other than [`HashType::None`].
    pub const fn hash(&self) -> u32 {
        self.reserved
    }
}

#[cfg(test)]
mod tests {
    use crate::bd::{BdFlags, ReturnBd};
    use crate::queue::HashType;

    #[test]
    fn a_return_bd_carries_queue_and_hash() {
        let flags = BdFlags::new().with_end(true);
        let bd = ReturnBd::new(0x1_2345_6780, 60, flags, 9, 0xABCD);
        assert_eq!((bd.queue(), bd.hash()), (0, 0));
        assert_eq!(bd.hash_type(), Some(HashType::None));
        let bd = bd.with_classification(5, HashType::TcpIpv4, 0x51CC_C178);
        let words = bd.words();
        assert_eq!(words[3], 0x0205_0004);
        assert_eq!(words[6], 0x51CC_C178);
        assert_eq!((bd.queue(), bd.hash()), (5, 0x51CC_C178));
        assert_eq!(bd.hash_type(), Some(HashType::TcpIpv4));
        assert_eq!((bd.flags(), bd.opaque, bd.index()), (flags, 0xABCD, 9));
        let unknown = ReturnBd::from_words([0, 0, 0, 0x0700_0000, 0, 0, 0, 0]);
        assert_eq!(unknown.hash_type(), None);
    }
}
