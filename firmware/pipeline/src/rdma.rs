//! RDMA: writes received frames into the buffers of host memory.
//!
//! A buffer is completed after the frame's CRC and sums are known to be right. Until then it stays
//! posted, and the next frame may be written over what is there. The write channel makes the sum, so
//! the completion of a frame with a checksum waits for the end of its data. That of a frame without
//! one is queued right behind its data: the channel works in order.
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
        /// The frame that is taken has no sum, and none in front of it waits for its own.
        Sumless,
        /// The oldest frame's completion was queued behind its data.
        Completed,
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
        /// Writes the whole frame into the endpoint's next buffer, and the completion behind it.
        WriteWholeAndComplete,
        /// Writes what is there of a frame.
        WriteChunk,
        /// Writes the rest, and frees the frame's room with it.
        WriteRest,
        /// Writes the rest, and the completion behind it, and frees the frame's room.
        WriteRestAndComplete,
        /// Completes the oldest frame's buffer.
        Complete,
        /// Nothing is left to do for the oldest frame.
        Finish,
        /// Completes the oldest frame's buffer with an error.
        Fail,
        /// Leaves the oldest frame's buffer posted, and counts the frame as refused.
        Leave,
        /// Leaves the buffer posted for a frame that is none: who frees its room counts it.
        Forget,
        /// Frees the room of a frame that has no buffer, and counts it.
        Drop,
        /// Gives the endpoint's buffers back.
        Close,
    }
    rows {
        Idle + Waiting if BufferPosted & Sumless => WriteWholeAndComplete, CoarseGrainedRdma;
        Idle + Waiting if BufferPosted unless Sumless => WriteWhole, CoarseGrainedRdma;
        Idle + Waiting unless BufferPosted => Drop, Idle;
        Idle + Opened => WriteChunk, FineGrainedRdma;
        Idle + Closed => Close, Idle;
        CoarseGrainedRdma + Waiting if BufferPosted & Sumless => WriteWholeAndComplete, CoarseGrainedRdma;
        CoarseGrainedRdma + Waiting if BufferPosted unless Sumless => WriteWhole, CoarseGrainedRdma;
        CoarseGrainedRdma + Waiting unless BufferPosted => Drop, CoarseGrainedRdma;
        CoarseGrainedRdma + Written if Completed & MoreQueued => Finish, CoarseGrainedRdma;
        CoarseGrainedRdma + Written if Completed unless MoreQueued => Finish, Idle;
        CoarseGrainedRdma + Written if SumRight & MoreQueued unless Completed => Complete, CoarseGrainedRdma;
        CoarseGrainedRdma + Written if SumRight unless Completed | MoreQueued => Complete, Idle;
        CoarseGrainedRdma + Written if MoreQueued unless Completed | SumRight => Leave, CoarseGrainedRdma;
        CoarseGrainedRdma + Written unless Completed | SumRight | MoreQueued => Leave, Idle;
        CoarseGrainedRdma + Failed if MoreQueued => Fail, CoarseGrainedRdma;
        CoarseGrainedRdma + Failed unless MoreQueued => Fail, Idle;
        FineGrainedRdma + Written => Nothing, FineGrainedRdmaDone;
        FineGrainedRdma + Gone => Nothing, Vanished;
        FineGrainedRdma + Failed => Nothing, Aborted;
        FineGrainedRdmaDone + More if EnoughHere => WriteChunk, FineGrainedRdma;
        FineGrainedRdmaDone + More unless EnoughHere => Nothing, FineGrainedRdmaDone;
        FineGrainedRdmaDone + LastGood if Sumless => WriteRestAndComplete, RdmaLastFragment;
        FineGrainedRdmaDone + LastGood unless Sumless => WriteRest, RdmaLastFragment;
        FineGrainedRdmaDone + Gone => Forget, Idle;
        RdmaLastFragment + Written if Completed => Finish, Idle;
        RdmaLastFragment + Written if SumRight unless Completed => Complete, Idle;
        RdmaLastFragment + Written unless Completed | SumRight => Leave, Idle;
        RdmaLastFragment + Failed => Fail, Idle;
        Vanished + Written => Forget, Idle;
        Vanished + Failed => Forget, Idle;
        Aborted + More => Nothing, Aborted;
        Aborted + LastGood => Fail, Idle;
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
