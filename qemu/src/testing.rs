//! A host that only writes down what it is told, for tests.

use crate::host::Host;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tigon2_model::{Board, Cpu};

/// What the machine told QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Arm(Option<u64>),
    Spill(Cpu, u32),
    Start(Cpu, u32),
    Halt(Cpu),
    Park(Cpu),
    Unpark(Cpu),
    Settle,
    Transmit(usize),
    WireReady,
}

pub struct Notes {
    now: AtomicU64,
    sram: Mutex<Vec<u8>>,
    told: Mutex<Vec<Told>>,
    /// What [`Host::transmit`] is to say.
    pub wire_full: AtomicBool,
}

impl Notes {
    /// A host with the memory of this board, at time 1.
    pub fn new(board: &Board) -> Self {
        Notes {
            now: AtomicU64::new(1),
            sram: Mutex::new(vec![0; board.memory.sram_bytes as usize]),
            told: Mutex::default(),
            wire_full: AtomicBool::new(false),
        }
    }

    /// Time passes.
    pub fn pass(&self, nanoseconds: u64) {
        self.now.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Takes out what was told since the last time, but for the timer.
    pub fn told(&self) -> Vec<Told> {
        let mut told = std::mem::take(&mut *self.told.lock().unwrap());
        told.retain(|told| !matches!(told, Told::Arm(_)));
        told
    }

    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Host for Notes {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    fn arm(&self, deadline: Option<u64>) {
        self.tell(Told::Arm(deadline));
    }
    fn sram_read(&self, address: u32, out: &mut [u8]) {
        let at = address as usize;
        out.copy_from_slice(&self.sram.lock().unwrap()[at..at + out.len()]);
    }
    fn sram_write(&self, address: u32, data: &[u8]) {
        let at = address as usize;
        self.sram.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
    }
    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32 {
        offset + cpu as u32
    }
    fn scratch_write(&self, _: Cpu, _: u32, _: u32) {}
    fn spill(&self, cpu: Cpu, offset: u32) {
        self.tell(Told::Spill(cpu, offset));
    }
    fn pc(&self, _: Cpu) -> u32 {
        0
    }
    fn gpr(&self, _: Cpu, number: usize) -> u32 {
        number as u32
    }
    fn start(&self, cpu: Cpu, pc: u32) {
        self.tell(Told::Start(cpu, pc));
    }
    fn halt(&self, cpu: Cpu) {
        self.tell(Told::Halt(cpu));
    }
    fn park(&self, cpu: Cpu) {
        self.tell(Told::Park(cpu));
    }
    fn unpark(&self, cpu: Cpu) {
        self.tell(Told::Unpark(cpu));
    }
    fn settle(&self) {
        self.tell(Told::Settle);
    }
    fn transmit(&self, frame: &[u8]) -> bool {
        self.tell(Told::Transmit(frame.len()));
        !self.wire_full.load(Ordering::Relaxed)
    }
    fn wire_ready(&self) {
        self.tell(Told::WireReady);
    }
    fn thread_begin(&self) {}
    fn thread_end(&self) {}
    fn lock(&self) {}
    fn unlock(&self) {}
}
