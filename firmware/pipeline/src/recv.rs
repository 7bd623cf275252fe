//! RECV: follows frames that come in from the wire.
//!
//! The MAC takes RxPrd back when it gives a frame up for lack of room, and the next frame begins at
//! the same place. What is left of it is an attention bit that stays set, so [`Event::GaveUp`] is
//! looked at before all others: otherwise the second frame's end would complete a buffer that has
//! the first one's beginning.

crate::machine! {
    /// The machine that follows received frames.
    machine Recv "RECV";
    states {
        /// No frame is followed.
        Idle,
        /// A frame comes in; RDMA gets it when it is whole.
        Recv,
        /// A frame comes in, and RDMA is writing it out already.
        RecvThrough,
    }
    events {
        /// The MAC gave a frame up for lack of room.
        GaveUp: External,
        /// A frame has ended: its RX descriptor is there.
        Ended: External,
        /// More of the frame is there.
        Grown: External,
        /// A frame has begun.
        Begun: External,
    }
    conditions {
        /// Its headers are right and name an endpoint with a buffer, and RDMA has nothing to do.
        MayCut,
        /// The frame has no error, CRC included.
        Good,
    }
    actions {
        /// Nothing.
        Nothing,
        /// Notes where the frame begins.
        Follow,
        /// Chooses the endpoint's next buffer, and gives RDMA the frame.
        Open,
        /// Tells RDMA that there is more.
        TellMore,
        /// Tells RDMA that the frame is whole and good.
        TellLast,
        /// Tells RDMA that the frame is bad: its room is to be freed.
        TellBad,
        /// Tells RDMA that the frame is none: it has no room any more.
        TellGone,
        /// Puts the whole frame into RDMA's queue.
        QueueWhole,
        /// Frees the room of a bad frame, and counts it.
        Discard,
    }
    rows {
        Idle + Begun => Follow, Recv;
        Idle + Ended if Good => QueueWhole, Idle;
        Idle + Ended unless Good => Discard, Idle;
        Idle + GaveUp => Nothing, Idle;
        Recv + Grown if MayCut => Open, RecvThrough;
        Recv + Grown unless MayCut => Nothing, Recv;
        Recv + Ended if Good => QueueWhole, Idle;
        Recv + Ended unless Good => Discard, Idle;
        Recv + GaveUp => Nothing, Idle;
        RecvThrough + Grown => TellMore, RecvThrough;
        RecvThrough + Ended if Good => TellLast, Idle;
        RecvThrough + Ended unless Good => TellBad, Idle;
        RecvThrough + GaveUp => TellGone, Idle;
    }
    deferred {}
    impossible {
        Idle: Grown;
        Recv: Begun;
        RecvThrough: Begun;
    }
}
