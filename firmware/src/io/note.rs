//! The purpose of a transfer: a word that stays with its descriptor in the scratch pad.
//!
//! Each path declares its kinds here, in one table for each channel.
//! [`completion`](crate::sides::completion) alone acts on completed transfers; the compiler
//! requires an arm for each kind. Paper, section 4.2; hardware reference, section 6.3.
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
        /// BDs that did not arrive: no action follows.
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
        /// BDs of a receive queue; its number stands in bits 8 to 15.
        QueueBds = 0x28 of "buffer fetch",
        /// The queue control block.
        QueueControl = 0x30 of "buffer fetch",
    }
}

kinds! {
    /// Kinds of transfers to the host.
    WriteKind, otherwise Quiet {
        /// No action follows.
        Quiet = 0 of "all",
        /// The last data of a received frame.
        ReceiveData = 1 of "receive",
        /// The send consumer index: an interrupt follows if the host wants it.
        SendIndex = 2 of "send index",
        /// The receive return producer index: likewise.
        ReturnIndex = 3 of "receive",
        /// The event producer index: likewise.
        EventIndex = 4 of "events to the host",
        /// The status line of a receive queue, or a message to an endpoint, with an interrupt.
        QueueStatus = 5 of "receive",
    }
}

/// The note of a transfer from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadNote(u32);

impl ReadNote {
    /// The bits of a kind. Data of frames has more flags there.
    const KIND: u32 = 0x3C;
    /// Shift of the index that follows the last BD.
    const AFTER_SHIFT: u32 = 16;
    /// Shift of a queue's number.
    const QUEUE_SHIFT: u32 = 8;
    /// Shift of a frame's NIC address, a multiple of 8.
    const START_SHIFT: u32 = 8;
    const DATA: u32 = ReadKind::SendData as u32;
    const FIRST: u32 = 1;
    const NOW: u32 = 2;
    const HELD: u32 = 8;
    const SUMS_SHIFT: u32 = 4;
    const ABANDONED: u32 = 0x100;

    /// No action follows.
    pub const NOTHING: ReadNote = ReadNote(ReadKind::Nothing as u32);

    /// BDs up to index `after`, exclusive.
    #[inline(always)]
    pub const fn bds(kind: ReadKind, after: u32) -> ReadNote {
        ReadNote(after << Self::AFTER_SHIFT | kind as u32)
    }

    /// BDs of a receive queue up to index `after`, exclusive.
    #[inline(always)]
    pub const fn queue_bds(queue: u32, after: u32) -> ReadNote {
        let kind = ReadKind::QueueBds as u32;
        ReadNote(after << Self::AFTER_SHIFT | queue << Self::QUEUE_SHIFT | kind)
    }

    /// The last transfer of a part of an endpoint's frame. No path of the plain frames has this
    /// kind.
    pub const PART: ReadNote = ReadNote(0x38);
    /// Another transfer of it.
    pub const PIECE: ReadNote = ReadNote(0x138);

    /// Messages for extensions, or their data. No path of the plain frames has this kind.
    pub const MESSAGE: ReadNote = ReadNote(0x238);

    /// Whether it is [`MESSAGE`](Self::MESSAGE).
    pub const fn is_message(self) -> bool {
        self.0 == Self::MESSAGE.0
    }

    /// Descriptors of an endpoint's queue, `which` of them.
    pub const fn pull(which: u32) -> ReadNote {
        ReadNote(Self::PULL | which << Self::AFTER_SHIFT)
    }

    const PULL: u32 = 0x338;

    /// The queue whose descriptors these are, if they are such.
    #[inline(always)]
    pub const fn pulled(self) -> Option<u32> {
        if self.0 & 0xFFFF == Self::PULL {
            Some(self.after())
        } else {
            None
        }
    }

    /// Whether it is [`PART`](Self::PART) or [`PIECE`](Self::PIECE).
    #[inline(always)]
    pub const fn is_of_part(self) -> bool {
        self.0 & !0x100 == Self::PART.0
    }

    /// Whether it is [`PART`](Self::PART).
    #[inline(always)]
    pub const fn is_part(self) -> bool {
        self.0 == Self::PART.0
    }

    /// The queue control block.
    pub const CONTROL: ReadNote = ReadNote(ReadKind::QueueControl as u32);

    /// Data of a frame; `flag` in a word of its BD requests that the host be notified at once.
    #[inline(always)]
    pub const fn data(word: u32, flag: u32) -> ReadNote {
        let shift = flag.trailing_zeros() - Self::NOW.trailing_zeros();
        ReadNote(Self::DATA | (word & flag) >> shift)
    }

    /// Marks the first data of a frame, which begins at NIC address `start`.
    #[inline(always)]
    pub const fn first(self, start: u32) -> ReadNote {
        ReadNote(self.0 | start << Self::START_SHIFT | Self::FIRST)
    }

    /// Marks the last data of a frame that is held in the MAC's ring, with the sums that it needs:
    /// two bits.
    #[inline(always)]
    pub const fn held(self, sums: u32) -> ReadNote {
        ReadNote(self.0 | Self::HELD | (sums & 3) << Self::SUMS_SHIFT)
    }

    /// Marks the data of a dropped frame.
    pub const fn abandoned(self) -> ReadNote {
        ReadNote(self.0 & (Self::DATA | Self::NOW) | Self::ABANDONED)
    }

    /// The word beside the descriptor.
    #[inline(always)]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// From the word beside a descriptor.
    #[inline(always)]
    pub const fn of_word(word: u32) -> ReadNote {
        ReadNote(word)
    }

    /// Whether it is data of a frame that needs no further action.
    #[inline(always)]
    pub const fn is_plain_data(self) -> bool {
        self.0 & (Self::DATA | Self::HELD) == Self::DATA
    }

    /// The kind of the transfer.
    #[inline(always)]
    pub const fn kind(self) -> ReadKind {
        if self.0 & Self::DATA != 0 {
            ReadKind::SendData
        } else {
            ReadKind::of_bits(self.0 & Self::KIND)
        }
    }

    /// For BDs: the index that follows the last one.
    #[inline(always)]
    pub const fn after(self) -> u32 {
        self.0 >> Self::AFTER_SHIFT
    }

    /// For BDs of a receive queue: its number.
    #[inline(always)]
    pub const fn queue(self) -> u32 {
        self.0 >> Self::QUEUE_SHIFT & 0xFF
    }

    /// For data: where the frame begins, if this is its first data.
    #[inline(always)]
    pub const fn start(self) -> Option<u32> {
        if self.0 & Self::FIRST != 0 {
            Some(self.0 >> Self::START_SHIFT & !7)
        } else {
            None
        }
    }

    /// For the words of several data notes, OR-ed together: not 0 if the host requested to be
    /// notified of one of them at once.
    #[inline(always)]
    pub const fn now_of(words: u32) -> u32 {
        words & Self::NOW
    }

    /// For the last data of a held frame: the sums that it needs.
    #[inline(always)]
    pub const fn sums(self) -> u32 {
        self.0 >> Self::SUMS_SHIFT & 3
    }

    /// For data: whether its frame was dropped.
    pub const fn is_abandoned(self) -> bool {
        self.0 & Self::ABANDONED != 0
    }
}

/// The note of a transfer to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteNote(u32);

impl WriteNote {
    const KIND: u32 = 7;
    /// The bits of a NIC address, a multiple of 32.
    const ADDRESS: u32 = !31;

    /// No action follows.
    pub const QUIET: WriteNote = WriteNote::of(WriteKind::Quiet);

    /// The last data of a frame for an endpoint; no kind of the plain frames.
    pub const DATAGRAM: WriteNote = WriteNote(6);

    /// Data of it before the last.
    pub const DATAGRAM_PIECE: WriteNote = WriteNote(6 | 32);

    /// The completion of a datagram, which may be right behind its data. No action follows.
    pub const COMPLETION: WriteNote = WriteNote(6 | 64);

    /// Data of a frame that an extension has sent elsewhere than to the host; no action follows.
    pub const EXTENSION: WriteNote = WriteNote(WriteKind::Quiet as u32 | 32);

    /// Whether it is [`EXTENSION`](Self::EXTENSION).
    pub const fn is_of_extension(self) -> bool {
        self.0 == Self::EXTENSION.0
    }

    /// Whether it is [`DATAGRAM`](Self::DATAGRAM) or [`DATAGRAM_PIECE`](Self::DATAGRAM_PIECE).
    pub const fn is_of_datagram(self) -> bool {
        self.0 & !32 == Self::DATAGRAM.0
    }

    /// Whether it is [`COMPLETION`](Self::COMPLETION).
    pub const fn is_completion(self) -> bool {
        self.0 == Self::COMPLETION.0
    }

    /// Whether it is [`DATAGRAM`](Self::DATAGRAM).
    #[inline(always)]
    pub const fn is_datagram(self) -> bool {
        self.0 == Self::DATAGRAM.0
    }

    /// A kind without further data.
    #[inline(always)]
    pub const fn of(kind: WriteKind) -> WriteNote {
        WriteNote(kind as u32)
    }

    /// The last data of a frame, with its return BD at NIC address `slot`.
    #[inline(always)]
    pub const fn receive_data(slot: u32) -> WriteNote {
        WriteNote(slot | WriteKind::ReceiveData as u32)
    }

    /// The word beside the descriptor.
    #[inline(always)]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// From the word beside a descriptor.
    #[inline(always)]
    pub const fn of_word(word: u32) -> WriteNote {
        WriteNote(word)
    }

    /// The kind of the transfer.
    #[inline(always)]
    pub const fn kind(self) -> WriteKind {
        WriteKind::of_bits(self.0 & Self::KIND)
    }

    /// For data: the NIC address of the return BD.
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
        let pull = ReadNote::of_word(ReadNote::pull(31).word());
        assert_eq!((pull.pulled(), pull.kind()), (Some(31), ReadKind::Nothing));
        assert!(!pull.is_plain_data() && !pull.is_of_part());
        assert_eq!(ReadNote::PIECE.pulled(), None);
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
        assert!(WriteNote::COMPLETION.is_completion() && !WriteNote::COMPLETION.is_of_datagram());
        assert_eq!(WriteNote::COMPLETION.kind(), WriteKind::Quiet);
        let data = WriteNote::receive_data(0x1_B0E0);
        assert_eq!(
            (data.kind(), data.slot()),
            (WriteKind::ReceiveData, 0x1_B0E0)
        );
    }
}
