//! What a transfer is for: a word that stays with it in the scratch pad.
//!
//! Each path declares its kinds here, in one table for each channel; what follows when a
//! transfer is done is [`completion`](crate::sides::completion)'s alone, which has to have an
//! arm for each kind. Paper, section 4.2; hardware reference, section 6.3.
//!
//! ```text
//! read:   31        16            6  5..2   1 0
//!         | after    |            |  kind  |  |    BDs: index behind the last one
//!         | start of the frame | A | S S H 1 N F |  data of a frame: see ReadNote
//! write:  31                      5     2..0
//!         | NIC address of the return BD | kind |
//! ```

/// Declares the kinds of a channel with the path that queues each.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident, otherwise $otherwise:ident {
        $( $(#[$kind_doc:meta])* $kind:ident = $number:literal of $path:literal, )+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $( $(#[$kind_doc])* $kind = $number, )+
        }

        impl $name {
            /// All kinds, each with the path that queues it.
            pub const ALL: &[($name, &str)] = &[ $( ($name::$kind, $path), )+ ];

            #[inline(always)]
            const fn of_bits(bits: u32) -> $name {
                match bits {
                    $( $number => $name::$kind, )+
                    _ => $name::$otherwise,
                }
            }
        }
    };
}

kinds! {
    /// Kinds of transfers from the host.
    ReadKind, otherwise Nothing {
        /// BDs that did not arrive: nothing follows.
        Nothing = 0x00 of "recovery",
        /// Data of a send BD.
        SendData = 0x04 of "send",
        /// Send BDs, and the index behind the last one.
        SendBds = 0x08 of "send",
        /// Standard receive BDs; likewise.
        StandardBds = 0x10 of "buffer fetch",
        /// Mini receive BDs; likewise.
        MiniBds = 0x18 of "buffer fetch",
        /// Jumbo receive BDs; likewise, extended ones count twice.
        JumboBds = 0x20 of "buffer fetch",
        /// BDs of a receive queue; its number stands in bits 8 to 10.
        QueueBds = 0x28 of "buffer fetch",
        /// The queue control block.
        QueueControl = 0x30 of "buffer fetch",
    }
}

kinds! {
    /// Kinds of transfers to the host.
    WriteKind, otherwise Quiet {
        /// Nothing follows.
        Quiet = 0 of "all",
        /// The last data of a received frame.
        ReceiveData = 1 of "receive",
        /// The send consumer index: an interrupt follows unless the host wants none of these.
        SendIndex = 2 of "send index",
        /// The receive return producer index: likewise.
        ReturnIndex = 3 of "receive",
        /// The event producer index: likewise.
        EventIndex = 4 of "events to the host",
        /// The status line of a receive queue, with an interrupt.
        QueueStatus = 5 of "receive",
    }
}

/// The note of a transfer from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadNote(u32);

impl ReadNote {
    /// The bits that hold a kind. Data of frames has more flags in them.
    const KIND: u32 = 0x3C;
    /// How far the index behind the last BD is shifted.
    const AFTER_SHIFT: u32 = 16;
    /// How far the number of a queue is shifted.
    const QUEUE_SHIFT: u32 = 8;
    /// How far the NIC address of a frame, a multiple of 8, is shifted.
    const START_SHIFT: u32 = 8;
    const DATA: u32 = ReadKind::SendData as u32;
    const FIRST: u32 = 1;
    const NOW: u32 = 2;
    const HELD: u32 = 8;
    const SUMS_SHIFT: u32 = 4;
    const ABANDONED: u32 = 0x100;

    /// Nothing follows.
    pub const NOTHING: ReadNote = ReadNote(ReadKind::Nothing as u32);

    /// BDs, up to the one in front of index `after`.
    #[inline(always)]
    pub const fn bds(kind: ReadKind, after: u32) -> ReadNote {
        ReadNote(after << Self::AFTER_SHIFT | kind as u32)
    }

    /// BDs of a receive queue, up to the one in front of index `after`.
    #[inline(always)]
    pub const fn queue_bds(queue: u32, after: u32) -> ReadNote {
        let kind = ReadKind::QueueBds as u32;
        ReadNote(after << Self::AFTER_SHIFT | queue << Self::QUEUE_SHIFT | kind)
    }

    /// The queue control block.
    pub const CONTROL: ReadNote = ReadNote(ReadKind::QueueControl as u32);

    /// Data of a frame; `flag` in a word of its BD says whether the host wants to hear of it
    /// at once.
    #[inline(always)]
    pub const fn data(word: u32, flag: u32) -> ReadNote {
        let shift = flag.trailing_zeros() - Self::NOW.trailing_zeros();
        ReadNote(Self::DATA | (word & flag) >> shift)
    }

    /// The frame begins with this data, at NIC address `start`.
    #[inline(always)]
    pub const fn first(self, start: u32) -> ReadNote {
        ReadNote(self.0 | start << Self::START_SHIFT | Self::FIRST)
    }

    /// The last data of a frame that is held in the MAC's ring, and which sums it wants: two
    /// bits.
    #[inline(always)]
    pub const fn held(self, sums: u32) -> ReadNote {
        ReadNote(self.0 | Self::HELD | (sums & 3) << Self::SUMS_SHIFT)
    }

    /// The data of a frame that was dropped.
    pub const fn abandoned(self) -> ReadNote {
        ReadNote(self.0 & (Self::DATA | Self::NOW) | Self::ABANDONED)
    }

    /// As it stands with its descriptor.
    #[inline(always)]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// From a descriptor.
    #[inline(always)]
    pub const fn of_word(word: u32) -> ReadNote {
        ReadNote(word)
    }

    /// Whether it is data of a frame that needs nothing more.
    #[inline(always)]
    pub const fn is_plain_data(self) -> bool {
        self.0 & (Self::DATA | Self::HELD) == Self::DATA
    }

    /// What it is for.
    #[inline(always)]
    pub const fn kind(self) -> ReadKind {
        if self.0 & Self::DATA != 0 {
            ReadKind::SendData
        } else {
            ReadKind::of_bits(self.0 & Self::KIND)
        }
    }

    /// Of BDs: the index behind the last one.
    #[inline(always)]
    pub const fn after(self) -> u32 {
        self.0 >> Self::AFTER_SHIFT
    }

    /// Of BDs of a receive queue: its number.
    #[inline(always)]
    pub const fn queue(self) -> u32 {
        self.0 >> Self::QUEUE_SHIFT & 7
    }

    /// Of data: where the frame begins, if it begins with this.
    #[inline(always)]
    pub const fn start(self) -> Option<u32> {
        if self.0 & Self::FIRST != 0 {
            Some(self.0 >> Self::START_SHIFT & !7)
        } else {
            None
        }
    }

    /// Of the words of several notes of data, put together: not 0 if the host asked to hear
    /// of one of these at once.
    #[inline(always)]
    pub const fn now_of(words: u32) -> u32 {
        words & Self::NOW
    }

    /// Of the last data of a frame that is held: which sums it wants.
    #[inline(always)]
    pub const fn sums(self) -> u32 {
        self.0 >> Self::SUMS_SHIFT & 3
    }

    /// Of data: whether its frame was dropped.
    pub const fn is_abandoned(self) -> bool {
        self.0 & Self::ABANDONED != 0
    }
}

/// The note of a transfer to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteNote(u32);

impl WriteNote {
    const KIND: u32 = 7;
    /// The bits that are a NIC address, a multiple of 32.
    const ADDRESS: u32 = !31;

    /// Nothing follows.
    pub const QUIET: WriteNote = WriteNote::of(WriteKind::Quiet);

    /// A kind that needs nothing more.
    #[inline(always)]
    pub const fn of(kind: WriteKind) -> WriteNote {
        WriteNote(kind as u32)
    }

    /// The last data of a frame, whose return BD is at NIC address `slot`.
    #[inline(always)]
    pub const fn receive_data(slot: u32) -> WriteNote {
        WriteNote(slot | WriteKind::ReceiveData as u32)
    }

    /// As it stands with its descriptor.
    #[inline(always)]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// From a descriptor.
    #[inline(always)]
    pub const fn of_word(word: u32) -> WriteNote {
        WriteNote(word)
    }

    /// What it is for.
    #[inline(always)]
    pub const fn kind(self) -> WriteKind {
        WriteKind::of_bits(self.0 & Self::KIND)
    }

    /// Of data: the NIC address of the return BD.
    #[inline(always)]
    pub const fn slot(self) -> u32 {
        self.0 & Self::ADDRESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_they_were_made_of() {
        for (kind, _) in ReadKind::ALL {
            let note = ReadNote::of_word(ReadNote::bds(*kind, 0x1FF).word());
            assert_eq!((note.kind(), note.after()), (*kind, 0x1FF));
        }
        let data = ReadNote::data(0x800, 0x800).first(0x13_0008);
        assert!(data.is_plain_data() && ReadNote::now_of(data.word()) != 0);
        assert_eq!(data.start(), Some(0x13_0008));
        let held = data.held(3);
        assert_eq!((held.kind(), held.sums()), (ReadKind::SendData, 3));
        assert_eq!(held.start(), Some(0x13_0008));
        assert!(!held.is_plain_data() && !held.is_abandoned());
        let dropped = held.abandoned();
        assert!(dropped.is_plain_data() && dropped.is_abandoned());
        assert_eq!(dropped.start(), None);

        for (kind, _) in WriteKind::ALL {
            assert_eq!(
                WriteNote::of_word(WriteNote::of(*kind).word()).kind(),
                *kind
            );
        }
        let data = WriteNote::receive_data(0x1_B0E0);
        assert_eq!(
            (data.kind(), data.slot()),
            (WriteKind::ReceiveData, 0x1_B0E0)
        );
    }
}
