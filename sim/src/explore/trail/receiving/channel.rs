//! What the write channel does in a run, and RxCon.

use super::{Finding, Followed, Process, Transfer, World};
use crate::workload::receiver::Receiver;

impl World {
    /// RDMA queues a transfer of its newest frame's bytes up to `end`.
    pub(super) fn queue(&mut self, end: u32, frees: bool, completes: Option<u32>) {
        let Some(job) = self.jobs.back_mut() else {
            return;
        };
        self.queued.push_back(Transfer {
            frame: job.frame,
            local: job.start + job.written,
            slot: job.slot,
            offset: job.written,
            length: end - job.written,
            frees,
            completes,
        });
        job.written = end;
    }

    /// The next transfer begins; whether the card's channel says of it what is expected.
    fn transfer(
        &mut self,
        says: impl FnMut(&mut Receiver) -> bool,
    ) -> Result<Transfer, &'static str> {
        if self.write_failed {
            return Err("the channel has failed");
        }
        let next = self.queued.pop_front().ok_or("nothing is to be written")?;
        let host = Process::address(next.slot, next.offset);
        self.chip.write(next.local, host, next.length, next.frees);
        let ends = self.until(says);
        ends.then_some(next).ok_or("the channel does not end")
    }

    pub(super) fn write(&mut self) -> Followed {
        let done = self.transfer(Receiver::see_written)?;
        self.wrote += 1;
        if done.completes.is_some() {
            self.process.complete(done.slot, done.completes);
        }
        self.look_at_room();
        Ok(())
    }

    /// The buffer's memory is gone for a moment.
    pub(super) fn fail(&mut self) -> Followed {
        let memory = self.process.memory();
        self.chip.machine.unmap(&memory);
        let failed = self.transfer(Receiver::see_failed)?;
        self.chip.machine.map(memory);
        self.process.lose(failed.slot);
        if let Some(job) = self.jobs.get_mut(self.wrote) {
            job.spoiled = true;
        }
        self.write_failed = true;
        Ok(())
    }

    /// A frame's room is free. RxCon goes on when all in front of it is.
    pub(super) fn free(&mut self, frame: usize) {
        for room in self.rooms.iter_mut().filter(|room| room.frame == frame) {
            room.free = true;
        }
        let front = self.rooms.iter().take_while(|room| room.free);
        if let Some(last) = front.last() {
            self.chip.free(last.end);
        }
        self.look_at_room();
    }

    /// RxCon is over nothing that is still to be written.
    fn look_at_room(&mut self) {
        let freed = self.chip.freed();
        let queued = self.queued.iter().map(|it| (it.frame, it.local));
        let whole = self.whole_frames.iter().map(|it| (it.frame, it.start));
        for (frame, start) in queued.chain(whole) {
            if start < freed {
                self.walk.find(Finding::RoomInUse(frame));
            }
        }
    }
}
