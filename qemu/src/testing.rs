//! A host that only records its calls, for tests.

use crate::host::Host;
use crate::parking::NO_PRI;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use tigon2_model::{Board, Cpu};

/// The calls of the machine to QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Arm(Option<u64>),
    Spill(Cpu, u32),
    Start(Cpu, u32),
    Halt(Cpu),
    Settle,
    Transmit(usize),
    WireReady,
    RunErrands,
}

pub struct Notes {
    now: AtomicU64,
    sram: Mutex<Vec<u8>>,
    calls: Mutex<Vec<Call>>,
    /// What [`Host::transmit`] is to say.
    pub wire_full: AtomicBool,
    /// The thread that holds the big lock; at first the creator.
    holder: Mutex<Option<ThreadId>>,
    /// Whether [`Host::try_lock`] is to find the lock taken.
    pub taken: AtomicBool,
    /// [`Host::call_errands`] was called.
    called: AtomicBool,
    /// Called once by [`Host::transmit`].
    answer: Mutex<Option<Answer>>,
}

type Answer = Box<dyn FnOnce() + Send>;

impl Notes {
    /// A host with the memory of this board, at time 1.
    pub fn new(board: &Board) -> Self {
        Notes {
            now: AtomicU64::new(1),
            sram: Mutex::new(vec![0; board.memory.sram_bytes as usize]),
            calls: Mutex::default(),
            wire_full: AtomicBool::new(false),
            holder: Mutex::new(Some(std::thread::current().id())),
            taken: AtomicBool::new(false),
            called: AtomicBool::new(false),
            answer: Mutex::default(),
        }
    }

    /// Time passes.
    pub fn pass(&self, nanoseconds: u64) {
        self.now.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Takes the calls since the last time, except for the timer.
    pub fn calls(&self) -> Vec<Call> {
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls.retain(|call| !matches!(call, Call::Arm(_)));
        calls
    }

    /// Somebody answers the next frame before [`Host::transmit`] returns.
    pub fn on_transmit(&self, answer: impl FnOnce() + Send + 'static) {
        *self.answer.lock().unwrap() = Some(Box::new(answer));
    }

    /// Whether errands were called since the last time.
    pub fn errands_called(&self) -> bool {
        self.called.swap(false, Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        let (me, mut holder) = (std::thread::current().id(), self.holder.lock().unwrap());
        assert_ne!(*holder, Some(me), "it is not taken twice");
        let free = holder.is_none();
        if free {
            *holder = Some(me);
        }
        free
    }

    fn record(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Host for Notes {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    fn arm(&self, deadline: Option<u64>) {
        self.record(Call::Arm(deadline));
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
        self.record(Call::Spill(cpu, offset));
    }
    fn pc(&self, _: Cpu) -> u32 {
        0
    }
    fn gpr(&self, _: Cpu, number: usize) -> u32 {
        number as u32
    }
    fn start(&self, cpu: Cpu, pc: u32) {
        self.record(Call::Start(cpu, pc));
    }
    fn halt(&self, cpu: Cpu) {
        self.record(Call::Halt(cpu));
    }
    fn encoded(&self, _: Cpu) -> [u32; 2] {
        NO_PRI
    }
    fn settle(&self) {
        self.record(Call::Settle);
    }
    fn transmit(&self, frame: &[u8]) -> bool {
        self.record(Call::Transmit(frame.len()));
        let answer = self.answer.lock().unwrap().take();
        if let Some(answer) = answer {
            answer();
        }
        !self.wire_full.load(Ordering::Relaxed)
    }
    fn wire_ready(&self) {
        self.record(Call::WireReady);
    }
    fn thread_begin(&self) {}
    fn thread_end(&self) {}
    fn locked(&self) -> bool {
        *self.holder.lock().unwrap() == Some(std::thread::current().id())
    }
    fn lock(&self) {
        while !self.take() {
            std::thread::yield_now();
        }
    }
    fn try_lock(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && self.take()
    }
    fn unlock(&self) {
        assert!(self.locked(), "only its holder gives it back");
        *self.holder.lock().unwrap() = None;
    }
    fn call_errands(&self) {
        self.called.store(true, Ordering::Relaxed);
        self.record(Call::RunErrands);
    }
}
