//! What is wrong with tables.

/// Something that must not be, on the wire, in a process's memory or on the card.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// A frame with a good CRC is none that was posted, or is one for the second time.
    WrongFrame,
    /// A frame is not sent, or is not in a buffer, though nothing speaks against it.
    Lost(usize),
    /// A frame is sent whose descriptor was completed with an error.
    SentAfterError(usize),
    /// A descriptor, or a buffer, was completed so often.
    Completed(usize, u32),
    /// A descriptor, or a buffer, was completed when its endpoint was closed.
    AfterClose(usize),
    /// A frame was given early to a MAC that was at work: its deadlines count from the wrong moment,
    /// and a reset cuts another frame.
    EarlyBehind(usize),
    /// A transfer was queued while another one was.
    TwoMasters,
    /// An event that the table calls impossible has come.
    Impossible(&'static str, &'static str),
    /// A machine has not come to rest.
    Restless(&'static str),
    /// A buffer was completed with bytes that are no good frame for its endpoint, or are one for the
    /// second time.
    WrongBytes(usize),
    /// A buffer was completed with an error, though nothing was wrong with its memory.
    WrongError(usize),
    /// The card wrote into memory that the process has for itself.
    Trespass(usize),
    /// The card has lost a buffer, or has it twice.
    BufferLost(usize),
    /// A frame was counted as refused that had nothing to be refused for, or was not counted.
    Miscounted(usize),
    /// RxCon went over a frame that was still to be written.
    RoomInUse(usize),
    /// RxCon has not come to RxPrd: room was never freed, or some was that is none.
    RoomLost,
    /// RxCon moved back.
    MovedBack,
}
