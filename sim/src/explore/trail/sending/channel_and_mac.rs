//! What the read channel and the MAC do in a run: parts arrive, frames begin, go on and end.

use super::{BYTE, Followed, PART, PLAIN, PREAMBLE, World};
use crate::workload::transmitter::Transmitter;

impl World {
    pub(super) fn arrive(&mut self) -> Followed {
        let transfer = self.queued.pop_front().ok_or("nothing is to be fetched")?;
        self.chip.fetch([transfer]);
        if !self.until(Transmitter::see_fetched) {
            return Err("the channel does not end");
        }
        self.here = if self.transfers == 1 {
            self.parts_of(self.fetching)
        } else {
            self.here + 1
        };
        let leaving = self.at_the_mac.front() == Some(&self.fetching);
        self.late.push(leaving && self.position >= self.here);
        self.arrived += 1;
        Ok(())
    }

    pub(super) fn begin(&mut self) -> Followed {
        if self.stopped || self.plain || self.position != 0 || self.at_the_mac.is_empty() {
            return Err("the MAC has no frame to begin");
        }
        self.chip.machine.hold_transmitter(false);
        if !self.until(|chip| chip.machine.is_sending()) {
            return Err("the MAC does not begin");
        }
        self.chip.machine.hold_transmitter(true);
        self.begun = self.chip.machine.now();
        self.position = 1;
        Ok(())
    }

    pub(super) fn advance(&mut self) -> Followed {
        let leaving = *self.at_the_mac.front().ok_or("no frame leaves")?;
        if self.position == 0 || self.position == self.parts_of(leaving) {
            return Err("there is no part behind this one");
        }
        // The first bytes of the part have left.
        let there = PREAMBLE + u64::from(self.position * PART + 64) * BYTE;
        let at = self.begun + there;
        if !self.until(|chip| chip.machine.now() >= at) {
            return Err("time stands");
        }
        self.position += 1;
        Ok(())
    }

    pub(super) fn end(&mut self) -> Followed {
        let leaving = *self.at_the_mac.front().ok_or("no frame leaves")?;
        if self.position != self.parts_of(leaving) {
            return Err("the frame is not at its end");
        }
        if self.is_overdue() {
            return Err("the deadline is served before");
        }
        if !self.until(Transmitter::see_sent) {
            return Err("the frame does not end");
        }
        self.at_the_mac.pop_front();
        self.position = 0;
        self.sent += 1;
        Ok(())
    }

    /// The margin: a deadline is served before the CRC leaves.
    pub(super) const fn is_overdue(&self) -> bool {
        self.armed && !self.fired && self.position > self.certified
    }

    pub(super) fn begin_plain(&mut self) -> Followed {
        if !self.mac_is_idle() {
            return Err("the MAC is at work");
        }
        let start = self.chip.place(PLAIN);
        self.chip.machine.load_image(start, &[0x11; PLAIN as usize]);
        self.chip.give(start, PLAIN);
        self.chip.machine.hold_transmitter(false);
        let begins = self.until(|chip| chip.machine.is_sending());
        self.chip.machine.hold_transmitter(true);
        self.plain = true;
        begins.then_some(()).ok_or("the MAC does not begin")
    }

    pub(super) fn end_plain(&mut self) -> Followed {
        if !self.plain || !self.until(Transmitter::see_sent) {
            return Err("no plain frame ends");
        }
        self.plain = false;
        Ok(())
    }

    pub(super) fn mac_is_idle(&self) -> bool {
        self.position == 0 && self.at_the_mac.is_empty() && !self.plain
    }
}
