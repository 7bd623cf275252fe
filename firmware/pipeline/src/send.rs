//! SEND: hands frames to the MAC, and watches one that leaves before it is whole.
//!
//! The MAC trusts TxPrd. Once SEND has set it to the end of a frame whose rest is still to come,
//! the MAC would send old bytes with a good CRC if it overtook the bus. So SEND certifies each part,
//! and resets the transmitter while the frame is on the wire if it cannot: the frame ends cut, with
//! a bad CRC. TX descriptor and pointers stay, so the MAC sends it again, whole.

crate::machine! {
    /// The machine that sends frames.
    machine Send "SEND";
    states {
        /// The MAC has no frame of ours.
        Idle,
        /// Frames that were whole when the MAC got them leave.
        CoarseGrainedSend,
        /// A frame leaves, and not all of its parts are certified.
        Watched,
        /// A frame that was cut through leaves, and all of its parts are certified.
        FineGrainedSend,
        /// The transmitter is stopped until the rest of the frame is there.
        Aborted,
    }
    events {
        /// SDMA has a part that failed.
        PartFailed: Signal,
        /// SDMA has another part.
        PartArrived: Signal,
        /// SDMA has the last part.
        LastArrived: Signal,
        /// SDMA has a whole frame.
        OfferedWhole: Signal,
        /// SDMA has a frame's first part.
        OfferedEarly: Signal,
        /// The MAC may have come to a part that is not certified.
        Deadline: External,
        /// The MAC has sent a frame.
        Sent: External,
    }
    conditions {
        /// The part was there before the MAC can have been at it.
        InTime,
        /// The MAC has another frame of ours.
        MacHasMore,
    }
    actions {
        /// Nothing.
        Nothing,
        /// Writes the frame's TX descriptor, and TxPrd.
        Queue,
        /// Writes both before the frame is whole, and sets the deadline of the next part.
        QueueEarly,
        /// Sets the deadline of the part after this one.
        Certify,
        /// Sets no deadline any more.
        CertifyLast,
        /// Resets the transmitter and stops it; sets no deadline any more.
        Abort,
        /// Resets the transmitter: the frame is whole now. Sets no deadline any more.
        Repeat,
        /// Lets the transmitter send the frame, which is whole now.
        Resume,
        /// Frees the frame's room.
        Free,
    }
    rows {
        Idle + OfferedWhole => Queue, CoarseGrainedSend;
        Idle + OfferedEarly => QueueEarly, Watched;
        CoarseGrainedSend + OfferedWhole => Queue, CoarseGrainedSend;
        CoarseGrainedSend + Sent if MacHasMore => Free, CoarseGrainedSend;
        CoarseGrainedSend + Sent unless MacHasMore => Free, Idle;
        Watched + PartArrived if InTime => Certify, Watched;
        Watched + PartArrived unless InTime => Abort, Aborted;
        Watched + LastArrived if InTime => CertifyLast, FineGrainedSend;
        Watched + LastArrived unless InTime => Repeat, CoarseGrainedSend;
        Watched + PartFailed => Abort, Aborted;
        Watched + Deadline => Abort, Aborted;
        FineGrainedSend + OfferedWhole => Queue, FineGrainedSend;
        FineGrainedSend + Sent if MacHasMore => Free, CoarseGrainedSend;
        FineGrainedSend + Sent unless MacHasMore => Free, Idle;
        Aborted + PartArrived => Nothing, Aborted;
        Aborted + PartFailed => Nothing, Aborted;
        Aborted + LastArrived => Resume, CoarseGrainedSend;
    }
    deferred {}
    impossible {
        Idle: PartArrived, LastArrived, PartFailed, Deadline, Sent;
        CoarseGrainedSend: OfferedEarly, PartArrived, LastArrived, PartFailed, Deadline;
        Watched: OfferedWhole, OfferedEarly, Sent;
        FineGrainedSend: OfferedEarly, PartArrived, LastArrived, PartFailed, Deadline;
        Aborted: OfferedWhole, OfferedEarly, Deadline, Sent;
    }
}
