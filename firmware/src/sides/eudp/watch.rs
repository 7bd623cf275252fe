//! Whether a part of a frame was there before the wire came to it.
//!
//! The MAC sends what stands in the transmit buffer once TxPrd covers a frame. Part [a, b) is in
//! time if it is seen before the MAC can have read a and the bus could have brought b - a:
//!
//! ```text
//!   (time of TxPrd) + (a - 80) * wire byte + (b - a) * fastest bus byte
//! ```
//!
//! The chip's counter has microseconds of 86 cycles. What it shows when TxPrd is written may be
//! almost one too old, and what it shows when a part is seen almost one too new: both are rounded
//! against ourselves. So is the deadline: a microsecond for 1024 ns. A part
//! is seen when the channel is looked at, not when its turn comes.
//!
//! A deadline is of use only if the frame is still on the wire when CPU B comes to cut it off. So
//! no deadline is later than [`RUN`] before the frame's end, and CPU B compares the clock with that
//! ([`Watch::is_over`]) behind each part as well as when the timer's turn comes.

/// Bytes that the MAC reads ahead of the wire, and its alignment.
pub const READ_AHEAD: u32 = 80;
/// The longest time from CPU B's last look at the clock to the reset, in nanoseconds: the rest of
/// the handler that is in work, and cutting off. Both are in SRAM, whose port the channels and the
/// MAC have before CPU B: of 11 000 frames on the busiest port the worst took 14.4 us.
pub const RUN: u32 = 26_000;

/// The watch over the frame that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The counter when TxPrd was set.
    since: u32,
    /// Microseconds after which the part to be certified next is late; 0 for no part.
    within: u32,
    /// Microseconds after which the frame has to be cut off if any part is missing.
    until: u32,
}

impl Watch {
    /// Over nothing.
    pub const NONE: Watch = Watch {
        since: 0,
        within: 0,
        until: 0,
    };

    /// Begins to watch a frame of `length` bytes: `now` is from before TxPrd was written.
    pub const fn begin(&mut self, now: u32, length: u32) {
        self.since = now;
        self.until = until(length);
        // Until it is known over what.
        self.within = 1;
    }

    /// When it ends at the latest.
    #[inline(always)]
    pub const fn ends_by(&self) -> u32 {
        self.since.wrapping_add(self.until)
    }

    /// The part of the bytes from `from` to `to` of the frame is to be certified next. Returns when
    /// it is late.
    #[inline(always)]
    pub const fn over(&mut self, from: u32, to: u32) -> u32 {
        self.within = earlier(within(from, to), self.until);
        self.since.wrapping_add(self.within)
    }

    /// No part is to be certified any more.
    pub const fn end(&mut self) {
        self.within = 0;
    }

    /// Whether a part is to be certified.
    #[inline(always)]
    pub const fn is_on(&self) -> bool {
        self.within != 0
    }

    /// Whether CPU B would come too late from now on.
    #[inline(always)]
    pub const fn is_over(&self, now: u32) -> bool {
        now.wrapping_sub(self.since) as i32 >= self.until as i32
    }

    /// Whether a part that is seen at `now` is in time; it may have been seen before TxPrd was
    /// written.
    #[inline(always)]
    pub const fn is_in_time(&self, now: u32) -> bool {
        (now.wrapping_sub(self.since) as i32) < self.within as i32
    }
}

/// Microseconds from TxPrd after which the part of these bytes is late. It begins behind the first
/// [`READ_AHEAD`] bytes.
#[inline(always)]
pub const fn within(from: u32, to: u32) -> u32 {
    let bytes = to - from;
    let read = (from - READ_AHEAD) << 3;
    // 1.75 ns a byte: 8 bytes take 14 ns of a bus of 64 bits and 66 MHz, and 15 in truth.
    let brought = (bytes << 1) - (bytes >> 2);
    (read + brought) >> 10
}

/// Microseconds from TxPrd after which a frame of `length` bytes would leave before CPU B has cut
/// it off.
#[inline(always)]
pub const fn until(length: u32) -> u32 {
    (length << 3).saturating_sub(RUN) >> 10
}

/// The earlier of two times.
#[inline(always)]
pub const fn earlier(one: u32, other: u32) -> u32 {
    if one < other { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest of a frame of 1514 bytes behind 640: the wire comes to it after 4.5 us.
    #[test]
    fn a_part_is_late_when_the_wire_may_have_come_to_it() {
        let mut watch = Watch::NONE;
        watch.begin(u32::MAX, 9014);
        assert_eq!(watch.over(640, 1077), 4, "5244 ns are five microseconds");
        assert!(watch.is_in_time(3) && !watch.is_in_time(4));
        assert!(watch.is_in_time(u32::MAX - 5), "before it began");
        watch.end();
        assert!(!watch.is_on());
    }

    /// No deadline is later than the wire: counted in nanoseconds, with the counter's longest error.
    #[test]
    fn rounding_is_against_ourselves() {
        for from in (256..9000).step_by(8) {
            for bytes in [256, 347, 512, 767] {
                let mut watch = Watch::NONE;
                watch.begin(0, 1 << 20);
                let last = watch.over(from, from + bytes) - 1;
                // The latest moment at which the counter still shows `last`.
                let seen = f64::from(last + 1) * 86.0 / 0.088;
                let wire = f64::from(from - 80) * 8.0 + f64::from(bytes) * 15.0 / 8.0;
                assert!(seen <= wire, "{from} {bytes}: {seen} {wire}");
            }
        }
    }

    /// The last part's deadline leaves CPU B its time: 72 us less 26 for a frame of 9014 bytes.
    #[test]
    fn a_frame_is_cut_off_while_it_is_on_the_wire() {
        let mut watch = Watch::NONE;
        watch.begin(5, 9014);
        assert_eq!(watch.over(6784, 9014), 5 + 45);
        assert!(!watch.is_over(49) && watch.is_over(50));
    }
}
