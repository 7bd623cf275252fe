//! Performs DMA that has to wait for the client, on a separate thread.
//!
//! Memory that the client has not shared, or could take away, is transferred by messages or system
//! calls. The client decides how long that takes, so no lock is held:
//!
//! ```text
//!   card                        this thread                client
//!   a transfer begins,
//!   its channel is busy ──────► takes note of it
//!                               moves its bytes  ◄───────► as long as it takes
//!   the transfer is complete ◄─ if it is still the same
//! ```
//!
//! So firmware and driver see a channel that waits as a slow one.

use crate::host::Host;
use crate::machine::Machine;
use tigon2_model::dma::{Direction, Transfer};
use tigon2_model::{HostMemory, HostMemoryError};
use vfio_user_nic::{DmaTable, Ticket};

/// A transfer that waits.
pub struct Job {
    /// Which way.
    pub direction: Direction,
    /// Which one of this direction.
    pub number: u64,
    /// What is to be moved.
    pub transfer: Transfer,
    /// For the memory of the client that is there now.
    pub ticket: Ticket,
    /// The bytes: what goes to the host, or room for what comes from it.
    pub bytes: Vec<u8>,
}

/// What the client has made of a job, as host memory that answers at once.
struct Moved<'a> {
    job: &'a mut Job,
    done: bool,
}

impl Moved<'_> {
    fn check(&self, address: u64, length: usize) -> Result<(), HostMemoryError> {
        // Firmware may have changed the registers meanwhile.
        let same = self.job.transfer.host == address && self.job.bytes.len() == length;
        (self.done && same)
            .then_some(())
            .ok_or(HostMemoryError { address, length })
    }
}

impl HostMemory for Moved<'_> {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), HostMemoryError> {
        self.check(address, out.len())?;
        out.copy_from_slice(&self.job.bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), HostMemoryError> {
        self.check(address, data.len())
    }
}

impl Job {
    /// Moves the bytes, however long that takes.
    fn carry_out(&mut self, memory: &DmaTable) -> bool {
        let moved = match self.direction {
            Direction::Read => memory.read_with(self.ticket, self.transfer.host, &mut self.bytes),
            Direction::Write => memory.write_with(self.ticket, self.transfer.host, &self.bytes),
        };
        moved.is_ok()
    }
}

impl<H: Host> Machine<H> {
    /// Carries out the transfers that have to wait, until the end. For a thread that
    /// nobody waits for, and that QEMU knows.
    pub fn wait_for_clients(&self) {
        while self.waiting().wait() {
            for direction in Direction::ALL {
                if let Some(mut job) = self.job(direction) {
                    let done = job.carry_out(self.memory());
                    let number = job.number;
                    let mut moved = Moved {
                        job: &mut job,
                        done,
                    };
                    self.complete(direction, number, &mut moved);
                }
            }
        }
    }

    /// Ends [`wait_for_clients`](Self::wait_for_clients).
    pub fn end_waiting(&self) {
        self.waiting().end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Client;
    use crate::testing::Notes;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::time::{Duration, Instant};
    use tigon2_chip::registers::Register;
    use tigon2_model::{Board, Card};
    use vfio_user_nic::DmaRange;

    const BASE: u64 = 0x1000;
    const BYTES: u32 = 256;
    const START: u32 = 4;

    /// A machine whose client has mapped a memory file that may shrink.
    fn machine() -> (Machine<Notes>, File) {
        let file = File::from(memfd_create("loose", MemfdFlags::CLOEXEC).expect("a memfd"));
        file.set_len(0x1000).expect("a size");
        let client = Client::default();
        let shared = file.as_fd().try_clone_to_owned().expect("a descriptor");
        let range = DmaRange::read_write(BASE, 0x1000);
        client.dma.map(range, Some((shared, 0))).expect("a range");
        let board = Board::default();
        let machine = Machine::new(Notes::new(&board), Card::new(board), client);
        machine.power_on();
        machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        (machine, file)
    }

    fn start_read(machine: &Machine<Notes>) {
        for (register, value) in [
            (Register::DmaReadHostHigh, 0),
            (Register::DmaReadHostLow, BASE as u32),
            (Register::DmaReadLocal, 0x2_0000),
            (Register::DmaReadLength, BYTES),
            (Register::DmaReadState, START),
        ] {
            machine.bar_write(register.offset(), value);
        }
        machine.host_done();
    }

    fn start_write(machine: &Machine<Notes>) {
        for (register, value) in [
            (Register::DmaWriteHostHigh, 0),
            (Register::DmaWriteHostLow, BASE as u32 + 0x800),
            (Register::DmaWriteLocal, 0x2_0000),
            (Register::DmaWriteLength, BYTES),
            (Register::DmaWriteState, START),
        ] {
            machine.bar_write(register.offset(), value);
        }
        machine.host_done();
    }

    fn state(machine: &Machine<Notes>, register: Register) -> u32 {
        machine.bar_read(register.offset())
    }

    /// Runs `during` while a thread waits for clients, with the big lock free.
    fn with_thread(machine: &Machine<Notes>, during: impl FnOnce()) {
        machine.host().unlock();
        std::thread::scope(|scope| {
            scope.spawn(|| machine.wait_for_clients());
            during();
            machine.end_waiting();
        });
        machine.host().lock();
    }

    fn until(what: impl Fn() -> bool) {
        let start = Instant::now();
        while !what() {
            assert!(start.elapsed() < Duration::from_secs(10), "waited in vain");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_channel_is_busy_until_the_thread_has_moved_the_bytes() {
        let (machine, file) = machine();
        let data: Vec<u8> = (0..=255).collect();
        file.write_all_at(&data, 0).expect("it can be written");
        start_read(&machine);
        assert_eq!(state(&machine, Register::DmaReadState), START, "it is busy");
        let mut nic = [0; BYTES as usize];
        machine.host().sram_read(0x2_0000, &mut nic);
        assert_eq!(nic, [0; BYTES as usize], "nothing has come yet");
        with_thread(&machine, || {
            until(|| state(&machine, Register::DmaReadState) == 0);
            start_write(&machine);
            until(|| state(&machine, Register::DmaWriteState) == 0);
        });
        let mut back = [0; BYTES as usize];
        file.read_exact_at(&mut back, 0x800)
            .expect("it can be read");
        assert_eq!(back[..], data);
    }

    #[test]
    fn memory_that_has_gone_is_an_error_of_the_channel() {
        let (machine, file) = machine();
        file.set_len(0).expect("it shrinks");
        start_read(&machine);
        start_write(&machine);
        with_thread(&machine, || {
            until(|| state(&machine, Register::DmaReadState) >> 24 != 0);
            until(|| state(&machine, Register::DmaWriteState) >> 24 != 0);
        });
    }

    /// What was moved for a transfer that is no more is forgotten, also if an equal one has
    /// begun meanwhile.
    #[test]
    fn a_reset_makes_it_nobodys_transfer() {
        let (machine, file) = machine();
        start_read(&machine);
        let mut job = machine.job(Direction::Read).expect("it waits");
        assert!(job.carry_out(machine.memory()));
        machine.reset();
        machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        file.write_all_at(&[9; BYTES as usize], 0)
            .expect("it can be written");
        start_read(&machine);
        let number = job.number;
        let mut moved = Moved {
            job: &mut job,
            done: true,
        };
        machine.complete(Direction::Read, number, &mut moved);
        assert_eq!(state(&machine, Register::DmaReadState), START, "still busy");
        with_thread(&machine, || {
            until(|| state(&machine, Register::DmaReadState) == 0)
        });
        let mut nic = [0; 4];
        machine.host().sram_read(0x2_0000, &mut nic);
        assert_eq!(nic, [9; 4], "the bytes of the second one");
    }

    /// A client's memory is not touched for what another one has begun.
    #[test]
    fn a_ticket_ends_with_its_client() {
        let (machine, _file) = machine();
        start_write(&machine);
        let mut job = machine.job(Direction::Write).expect("it waits");
        machine.memory().cancel();
        assert!(!job.carry_out(machine.memory()));
    }
}
