//! RDMA: writes received frames into the buffers of host memory.
//!
//! A buffer is completed after the frame's CRC and sums are known to be right. Until then it stays
//! posted, and the next frame may be written over what is there.
//!
//! Of whole frames some may be in the write channel's queue, which works in order: what has been
//! written, or has failed, is the oldest one of them. A frame that still comes in is alone.

crate::machine! {
    /// The machine that writes frames out.
    machine Rdma "RDMA";
    states {
        /// No frame is being written.
        Idle,
        /// Frames that were whole before are being written.
        CoarseGrainedRdma,
        /// A part of a frame that still comes in is being written.
        FineGrainedRdma,
        /// A part was written, and more is to come.
        FineGrainedRdmaDone,
        /// The rest of a frame that has ended is being written.
        RdmaLastFragment,
        /// A part is being written of a frame that turned out to be none.
        Vanished,
        /// The write channel failed; the rest of the frame is let pass.
        Aborted,
    }
    events {
        /// RECV found that the frame is none.
        Gone: Signal,
        /// RECV saw the frame end well.
        LastGood: Signal,
        /// RECV opened a frame that still comes in.
        Opened: Signal,
        /// RECV saw more of it.
        More: Signal,
        /// The write channel has completed a transfer.
        Written: External,
        /// The write channel failed in a transfer, behind those that it has completed.
        Failed: External,
        /// A whole frame waits, and the channel's queue has room.
        Waiting: External,
        /// The broker takes the endpoint back.
        Closed: External,
    }
    conditions {
        /// The frame's endpoint has a buffer.
        BufferPosted,
        /// More of the frame than the threshold is there and not written.
        EnoughHere,
        /// The oldest frame's sums are right.
        SumRight,
        /// Other whole frames are queued behind the oldest one.
        MoreQueued,
    }
    actions {
        /// Nothing.
        Nothing,
        /// Writes the whole frame into the endpoint's next buffer.
        WriteWhole,
        /// Writes what is there of a frame.
        WriteChunk,
        /// Writes the rest, and frees the frame's room with it.
        WriteRest,
        /// Completes the oldest frame's buffer.
        Complete,
        /// Leaves the oldest frame's buffer posted, frees the frame's room and counts it as refused.
        Leave,
        /// Leaves the buffer posted for a frame that is none: who frees its room counts it.
        Forget,
        /// Frees the room of a frame that has no buffer, and counts it.
        Drop,
        /// Gives the endpoint's buffers back.
        Close,
    }
    rows {
        Idle + Waiting if BufferPosted => WriteWhole, CoarseGrainedRdma;
        Idle + Waiting unless BufferPosted => Drop, Idle;
        Idle + Opened => WriteChunk, FineGrainedRdma;
        Idle + Closed => Close, Idle;
        CoarseGrainedRdma + Waiting if BufferPosted => WriteWhole, CoarseGrainedRdma;
        CoarseGrainedRdma + Waiting unless BufferPosted => Drop, CoarseGrainedRdma;
        CoarseGrainedRdma + Written if SumRight & MoreQueued => Complete, CoarseGrainedRdma;
        CoarseGrainedRdma + Written if SumRight unless MoreQueued => Complete, Idle;
        CoarseGrainedRdma + Written if MoreQueued unless SumRight => Leave, CoarseGrainedRdma;
        CoarseGrainedRdma + Written unless SumRight | MoreQueued => Leave, Idle;
        CoarseGrainedRdma + Failed if MoreQueued => Leave, CoarseGrainedRdma;
        CoarseGrainedRdma + Failed unless MoreQueued => Leave, Idle;
        FineGrainedRdma + Written => Nothing, FineGrainedRdmaDone;
        FineGrainedRdma + Gone => Nothing, Vanished;
        FineGrainedRdma + Failed => Nothing, Aborted;
        FineGrainedRdmaDone + More if EnoughHere => WriteChunk, FineGrainedRdma;
        FineGrainedRdmaDone + More unless EnoughHere => Nothing, FineGrainedRdmaDone;
        FineGrainedRdmaDone + LastGood => WriteRest, RdmaLastFragment;
        FineGrainedRdmaDone + Gone => Forget, Idle;
        RdmaLastFragment + Written if SumRight => Complete, Idle;
        RdmaLastFragment + Written unless SumRight => Leave, Idle;
        RdmaLastFragment + Failed => Leave, Idle;
        Vanished + Written => Forget, Idle;
        Vanished + Failed => Forget, Idle;
        Aborted + More => Nothing, Aborted;
        Aborted + LastGood => Leave, Idle;
        Aborted + Gone => Forget, Idle;
    }
    deferred {
        CoarseGrainedRdma: Closed;
        FineGrainedRdma: More, LastGood, Waiting, Closed;
        FineGrainedRdmaDone: Waiting, Closed;
        RdmaLastFragment: Waiting, Closed;
        Vanished: Waiting, Closed;
        Aborted: Waiting, Closed;
    }
    impossible {
        Idle: More, LastGood, Gone, Written, Failed;
        CoarseGrainedRdma: Opened, More, LastGood, Gone;
        FineGrainedRdma: Opened;
        FineGrainedRdmaDone: Opened, Written, Failed;
        RdmaLastFragment: Opened, More, LastGood, Gone;
        Vanished: Opened, More, LastGood, Gone;
        Aborted: Opened, Written, Failed;
    }
}
