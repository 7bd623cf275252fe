//! The steps of a run, as the model prints them.

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A machine takes a row.
    Row {
        /// Which machine, in the order of [`frame_pipeline::TABLES`].
        machine: usize,
        /// The row of its table.
        row: usize,
    },
    /// The host posts a descriptor.
    Posted {
        /// Whether its frame has several parts.
        long: bool,
        /// Whether it wants a sum.
        summed: bool,
        /// Whose it is.
        endpoint: usize,
    },
    /// CPU B clears an endpoint's doorbell.
    Cleared(usize),
    /// CPU B looks at what the endpoint's mailbox says.
    Looked(usize),
    /// The next descriptor is skipped: its endpoint is closed.
    Skipped,
    /// The host wants endpoint 1 closed.
    Closing,
    /// The read channel has brought the next transfer, or failed with it.
    Arrived,
    /// See [`Arrived`](Self::Arrived).
    Failed,
    /// The MAC begins its next frame.
    Begun,
    /// It comes to the next part.
    Advanced,
    /// The frame ends.
    Ended,
    /// A frame of the plain path begins, and ends.
    Plain,
    /// See [`Plain`](Self::Plain).
    PlainEnded,
    /// The host posts a buffer of an endpoint.
    Buffer(usize),
    /// The wire has brought the first part of a frame for an endpoint.
    Incoming(usize),
    /// It has brought another one.
    Part,
    /// The frame that comes in ends.
    Received {
        /// Whether its CRC is right.
        good: bool,
        /// Whether it has a sum.
        summed: bool,
        /// Whether that is right, too.
        right: bool,
    },
    /// The MAC gives the frame that comes in up.
    GivenUp,
    /// The write channel has done the next transfer, or failed in it.
    Written,
    /// See [`Written`](Self::Written).
    Unwritten,
}

impl Step {
    /// As the model prints it: `row SEND 3`, `post 1 0 1`, `arrive`.
    pub fn of_line(line: &str) -> Option<Step> {
        let mut words = line.split_whitespace();
        let flag = |word: Option<&str>| Some(word? == "1");
        let step = words.next()?;
        let mut next = || flag(words.next());
        Some(match step {
            "post" => Step::Posted {
                long: next()?,
                summed: next()?,
                endpoint: usize::from(next()?),
            },
            "clear" => Step::Cleared(usize::from(next()?)),
            "look" => Step::Looked(usize::from(next()?)),
            "skip" => Step::Skipped,
            "close" => Step::Closing,
            "arrive" => Step::Arrived,
            "fail" => Step::Failed,
            "begin" => Step::Begun,
            "advance" => Step::Advanced,
            "end" => Step::Ended,
            "plain" => Step::Plain,
            "plain-end" => Step::PlainEnded,
            "buffer" => Step::Buffer(usize::from(next()?)),
            "frame" => Step::Incoming(usize::from(next()?)),
            "part" => Step::Part,
            "ended" => Step::Received {
                good: next()?,
                summed: next()?,
                right: next()?,
            },
            "give-up" => Step::GivenUp,
            "write-end" => Step::Written,
            "write-fail" => Step::Unwritten,
            "row" => {
                let name = words.next()?;
                let mut tables = frame_pipeline::TABLES.iter();
                let machine = tables.position(|table| table.name == name)?;
                let row = words.next()?.parse().ok()?;
                Step::Row { machine, row }
            }
            _ => return None,
        })
    }
}
