//! What the wire and the MAC do in a run: frames come in part by part, end, or are given up.

use super::plan::{Ending, Plan};
use super::{AHEAD, Followed, Frame, LONG_TAIL, PART, Room, TAIL, World};
use crate::workload::receiver::{Receiver, room_end};
use tigon2_chip::mac::{CRC_BYTES, RxError};

impl World {
    /// Bytes of a frame, without its CRC.
    const fn length(plan: &Plan) -> u32 {
        let tail = match plan.ending {
            Ending::Received { .. } => TAIL,
            Ending::GivenUp => LONG_TAIL,
        };
        plan.parts * PART + tail
    }

    /// Frame `number` as its sender has it.
    fn data(number: usize, plan: &Plan) -> Vec<u8> {
        let byte = |at: u32| (at * 7 + at / 256) as u8 ^ (number as u8 + 1).wrapping_mul(37);
        (0..Self::length(plan)).map(byte).collect()
    }

    pub(super) fn begin(&mut self) -> Followed {
        if self.coming.is_some() {
            return Err("another frame comes in");
        }
        let plan = self.plans.pop_front().ok_or("the run has no such frame")?;
        let number = self.frames.len();
        let start = self.chip.filled();
        let mut data = Self::data(number, &plan);
        let now = self.chip.machine.now();
        if matches!(plan.ending, Ending::Received { good: false, .. }) {
            // The last byte is another one.
            data.last_mut().into_iter().for_each(|byte| *byte = !*byte);
            let machine = &mut self.chip.machine;
            machine.send_damaged_frame(now, data, RxError::CRC);
        } else {
            self.chip.machine.send_frame(now, data);
        }
        self.frames.push(Frame {
            plan,
            start,
            parts: 0,
            ended: false,
            accounts: Vec::new(),
        });
        self.coming = Some(number);
        (self.followed, self.grown) = (false, false);
        self.grow()
    }

    /// The next part comes.
    pub(super) fn grow(&mut self) -> Followed {
        let number = self.coming.ok_or("no frame comes in")?;
        let frame = &mut self.frames[number];
        frame.parts += 1;
        let is_last = frame.parts == frame.plan.parts;
        let given_up = frame.plan.ending == Ending::GivenUp;
        let there = frame.start + frame.parts * PART + AHEAD;
        self.grown = self.followed;
        if !self.until(|chip| chip.filled() >= there) {
            return Err("the part does not come");
        }
        if is_last && given_up {
            self.chip.fill_ring(true);
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Followed {
        let number = self.coming.take().ok_or("no frame comes in")?;
        let before = self.ended.len();
        if !self.until(|chip| chip.ended() > before) {
            return Err("the frame does not end");
        }
        let frame = &mut self.frames[number];
        frame.ended = true;
        let (plan, start) = (frame.plan, frame.start);
        let length = Self::length(&plan) + CRC_BYTES as u32;
        self.rooms.push(Room {
            frame: number,
            end: room_end(start, length),
            free: false,
        });
        if plan.is_right() {
            let data = Self::data(number, &plan);
            self.process.expect(number, plan.endpoint, data);
        }
        self.ended.push_back(number);
        Ok(())
    }

    pub(super) fn give_up(&mut self) -> Followed {
        self.coming.take().ok_or("no frame comes in")?;
        let is_over = |chip: &mut Receiver| chip.machine.pending_frames() == 0;
        if !self.until(is_over) || !self.chip.gave_up() {
            return Err("the MAC does not give it up");
        }
        self.chip.fill_ring(false);
        self.gave_up = true;
        Ok(())
    }
}
