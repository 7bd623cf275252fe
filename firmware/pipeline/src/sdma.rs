//! SDMA: fetches frames from host memory into the TX buffer.
//!
//! A frame that may be cut through is fetched in parts: the first one is long enough that the rest
//! stays ahead of the wire, the others are a few bus transactions each. At least one of them is queued
//! with the first, and the others no later than when that has arrived.

crate::machine! {
    /// The machine that fetches frames.
    machine Sdma "SDMA";
    states {
        /// No descriptor is in work.
        Idle,
        /// A frame is being fetched; it leaves when it is whole.
        Sdma,
        /// The first part of a frame that may be cut through is being fetched.
        SdmaFirst,
        /// SEND has the frame; the rest of it is being fetched.
        SdmaRest,
        /// The frame is whole but for its checksum, which stands in front of the data.
        HeldForSum,
    }
    events {
        /// The read channel failed in a transfer.
        Failed: External,
        /// The read channel has completed a transfer.
        Arrived: External,
        /// The checksum stands in the frame.
        SumStored: External,
        /// The broker takes the endpoint back.
        Closed: External,
        /// A descriptor waits, and the TX buffer has room for its frame.
        Posted: External,
    }
    conditions {
        /// The frame is long, carries no sum of its data, and the MAC has nothing to send.
        MayCut,
        /// The checksum has to go into the frame before it leaves.
        SumWanted,
        /// More transfers of this frame are to come.
        MoreParts,
    }
    actions {
        /// Nothing.
        Nothing,
        /// Queues one transfer for the whole frame.
        FetchWhole,
        /// Queues the first part and what comes behind it, a transfer each.
        FetchParts,
        /// Gives SEND the whole frame, and completes its descriptor.
        Offer,
        /// Gives SEND the frame whose first part is there.
        OfferEarly,
        /// Tells SEND that a part is there.
        Pass,
        /// Tells SEND that the last part is there, and completes the descriptor.
        PassLast,
        /// Tells SEND that a part failed, and queues it again.
        FetchAgain,
        /// Stores the checksum into the frame.
        StoreSum,
        /// Takes the frame's transfers back, and completes its descriptor with an error.
        Fail,
        /// Gives the endpoint's descriptors back.
        Close,
    }
    rows {
        Idle + Posted if MayCut => FetchParts, SdmaFirst;
        Idle + Posted unless MayCut => FetchWhole, Sdma;
        Idle + Closed => Close, Idle;
        Sdma + Arrived if MoreParts => Nothing, Sdma;
        Sdma + Arrived if SumWanted unless MoreParts => StoreSum, HeldForSum;
        Sdma + Arrived unless SumWanted | MoreParts => Offer, Idle;
        Sdma + Failed => Fail, Idle;
        SdmaFirst + Arrived if MayCut => OfferEarly, SdmaRest;
        SdmaFirst + Arrived unless MayCut => Nothing, Sdma;
        SdmaFirst + Failed => Fail, Idle;
        SdmaRest + Arrived if MoreParts => Pass, SdmaRest;
        SdmaRest + Arrived unless MoreParts => PassLast, Idle;
        SdmaRest + Failed => FetchAgain, SdmaRest;
        HeldForSum + SumStored => Offer, Idle;
    }
    deferred {
        Sdma: Posted, Closed;
        SdmaFirst: Posted, Closed;
        SdmaRest: Posted, Closed;
        HeldForSum: Posted, Closed;
    }
    impossible {
        Idle: Arrived, Failed, SumStored;
        Sdma: SumStored;
        SdmaFirst: SumStored;
        SdmaRest: SumStored;
        HeldForSum: Arrived, Failed;
    }
}
