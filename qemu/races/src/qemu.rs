//! A small model of QEMU: its big lock, its main loop, the queue in front of a network
//! card, and the two CPUs' threads.
//!
//! The model covers these rules of QEMU 10.0, in our own words:
//!
//! - A frame for the card is queued if the card cannot receive, if reception is stopped, or if
//!   another frame is being delivered. A delivery that the card answers with 0 stops reception.
//!   Only a flush resumes it; a flush from within a delivery resumes reception and does nothing
//!   else.
//! - A bottom half runs in the main loop with the big lock held. Scheduling it again before it
//!   runs has no effect: it runs once.
//! - A CPU starts, halts and moves its window on its own thread, with the big lock held, between
//!   two instructions. A thread that waits for this releases the big lock, and does not wait for
//!   itself.

use crate::glue::host::Host;
use crate::glue::machine::Machine;
use crate::seeds;
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use shuttle::thread::{self, ThreadId};
use std::collections::VecDeque;
use tigon2_chip::registers::Register;
use tigon2_model::{Board, Card, Cpu};

type Device = std::sync::Weak<Machine<Qemu>>;

/// What the main loop is to do.
#[derive(Default)]
pub struct Main {
    pub errands: bool,
    pub offer: bool,
    pub timer: bool,
}

/// The queue in front of the card; changes under the big lock only.
#[derive(Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    delivering: bool,
    disabled: bool,
    taken: usize,
}

#[derive(Clone, Copy)]
enum Order {
    Start,
    Halt,
    Nothing,
}

/// A CPU's thread.
#[derive(Default)]
struct Thread {
    orders: VecDeque<Order>,
    id: Option<ThreadId>,
    runs: bool,
    ends: bool,
    asked: usize,
    done: usize,
}

pub struct Qemu {
    holder: Mutex<Option<ThreadId>>,
    free: Condvar,
    main: Mutex<Main>,
    news: Condvar,
    queue: Mutex<Queue>,
    cpus: [Mutex<Thread>; 2],
    orders: [Condvar; 2],
    clock: std::sync::atomic::AtomicU64,
    device: std::sync::OnceLock<Device>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody has panicked")
}

impl Qemu {
    /// A machine that has been switched on, its big lock free.
    pub fn machine() -> std::sync::Arc<Machine<Qemu>> {
        let machine = Self::machine_off();
        machine.host().with_lock(|| machine.power_on());
        // As every driver: words of NIC memory are not exchanged.
        machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        machine
    }

    /// A machine that is being made.
    pub fn machine_off() -> std::sync::Arc<Machine<Qemu>> {
        let qemu = Qemu {
            holder: Mutex::new(None),
            free: Condvar::new(),
            main: Mutex::new(Main::default()),
            news: Condvar::new(),
            queue: Mutex::new(Queue::default()),
            cpus: Default::default(),
            orders: Default::default(),
            clock: std::sync::atomic::AtomicU64::new(1),
            device: std::sync::OnceLock::new(),
        };
        let card = Card::new(Board::default());
        let machine = std::sync::Arc::new(Machine::new(qemu, card, Default::default()));
        let known = std::sync::Arc::downgrade(&machine);
        assert!(machine.host().device.set(known).is_ok(), "set once");
        machine
    }

    fn device(&self) -> std::sync::Arc<Machine<Qemu>> {
        let device = self.device.get().and_then(Device::upgrade);
        device.expect("the machine is there as long as its host")
    }

    /// Does something with the big lock.
    pub fn with_lock<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock();
        let result = f();
        self.unlock();
        result
    }

    fn call(&self, what: impl FnOnce(&mut Main)) {
        what(&mut held(&self.main));
        self.news.notify_one();
    }

    // Main loop ------------------------------------------------------------

    /// Waits until there is something to do, and does it.
    pub fn turn(&self) {
        let mut main = held(&self.main);
        while !(main.errands || main.offer || main.timer) {
            main = self.news.wait(main).expect("nobody has panicked");
        }
        let now = std::mem::take(&mut *main);
        drop(main);
        self.with_lock(|| {
            if now.errands {
                self.device().deliver();
            }
            if now.timer {
                self.device().timer();
            }
            if now.offer {
                self.flush();
            }
        });
    }

    // Wire -----------------------------------------------------------------

    /// A netdev sends a frame to the card. With the big lock.
    pub fn send(&self, frame: &[u8]) {
        let can = {
            let queue = held(&self.queue);
            !queue.delivering && !queue.disabled
        };
        if !can || !self.device().can_receive() || !self.hand_over(frame) {
            held(&self.queue).frames.push_back(frame.to_vec());
            return;
        }
        self.flush_queue();
    }

    /// Lets reception go on and offers what waits. With the big lock.
    pub fn flush(&self) {
        held(&self.queue).disabled = false;
        self.flush_queue();
    }

    fn flush_queue(&self) {
        loop {
            let frame = {
                let mut queue = held(&self.queue);
                if queue.delivering {
                    return;
                }
                queue.frames.pop_front()
            };
            let Some(frame) = frame else { return };
            if !self.hand_over(&frame) {
                held(&self.queue).frames.push_front(frame);
                return;
            }
        }
    }

    fn hand_over(&self, frame: &[u8]) -> bool {
        {
            let mut queue = held(&self.queue);
            if queue.disabled {
                return false;
            }
            queue.delivering = true;
        }
        let taken = self.device().receive(frame);
        let mut queue = held(&self.queue);
        queue.delivering = false;
        queue.disabled |= !taken;
        queue.taken += usize::from(taken);
        taken
    }

    /// Frames that the card has taken.
    pub fn taken(&self) -> usize {
        held(&self.queue).taken
    }

    // CPUs -----------------------------------------------------------------

    /// The thread of a CPU: carries out orders between two instructions, waits while it is
    /// halted, and is `step` while it runs. Ends with [`end`](Self::end).
    pub fn cpu_thread(&self, cpu: Cpu, mut step: impl FnMut()) {
        held(&self.cpus[cpu.index()]).id = Some(thread::current().id());
        loop {
            let mut thread = held(&self.cpus[cpu.index()]);
            while thread.orders.is_empty() && !thread.runs && !thread.ends {
                let orders = &self.orders[cpu.index()];
                thread = orders.wait(thread).expect("nobody has panicked");
            }
            if thread.ends {
                return;
            }
            if thread.orders.is_empty() {
                drop(thread);
                step();
                continue;
            }
            drop(thread);
            self.with_lock(|| {
                let mut thread = held(&self.cpus[cpu.index()]);
                while let Some(order) = thread.orders.pop_front() {
                    match order {
                        Order::Start => thread.runs = true,
                        Order::Halt => thread.runs = false,
                        Order::Nothing => {}
                    }
                    thread.done += 1;
                }
                self.orders[cpu.index()].notify_all();
            });
        }
    }

    fn order(&self, cpu: Cpu, order: Order) -> usize {
        let mut thread = held(&self.cpus[cpu.index()]);
        thread.orders.push_back(order);
        thread.asked += 1;
        self.orders[cpu.index()].notify_all();
        thread.asked
    }

    /// Whether a CPU runs.
    pub fn runs(&self, cpu: Cpu) -> bool {
        held(&self.cpus[cpu.index()]).runs
    }

    /// Orders that a CPU has got since the start.
    pub fn asked(&self, cpu: Cpu) -> usize {
        held(&self.cpus[cpu.index()]).asked
    }

    /// Ends the threads of the CPUs.
    pub fn end(&self) {
        for (cpu, orders) in self.cpus.iter().zip(&self.orders) {
            held(cpu).ends = true;
            orders.notify_all();
        }
    }
}

impl Host for Qemu {
    fn now(&self) -> u64 {
        self.clock
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
    fn arm(&self, deadline: Option<u64>) {
        if deadline.is_some() {
            self.call(|main| main.timer = true);
        }
    }
    fn sram_read(&self, _: u32, out: &mut [u8]) {
        out.fill(0);
    }
    fn sram_write(&self, _: u32, _: &[u8]) {}
    fn scratch_read(&self, _: Cpu, _: u32) -> u32 {
        0
    }
    fn scratch_write(&self, _: Cpu, _: u32, _: u32) {}
    fn spill(&self, cpu: Cpu, _: u32) {
        self.order(cpu, Order::Nothing);
    }
    fn pc(&self, _: Cpu) -> u32 {
        0
    }
    fn gpr(&self, _: Cpu, _: usize) -> u32 {
        0
    }
    fn start(&self, cpu: Cpu, _: u32) {
        self.order(cpu, Order::Start);
    }
    fn halt(&self, cpu: Cpu) {
        self.order(cpu, Order::Halt);
    }
    fn encoded(&self, _: Cpu) -> [u32; 2] {
        crate::glue::parking::NO_PRI
    }
    fn settle(&self) {
        for cpu in [Cpu::A, Cpu::B] {
            if held(&self.cpus[cpu.index()]).id == Some(thread::current().id()) {
                continue;
            }
            let ticket = self.order(cpu, Order::Nothing);
            let mut thread = held(&self.cpus[cpu.index()]);
            if thread.done >= ticket {
                continue;
            }
            self.unlock();
            while thread.done < ticket {
                let orders = &self.orders[cpu.index()];
                thread = orders.wait(thread).expect("nobody has panicked");
            }
            drop(thread);
            self.lock();
        }
    }
    fn transmit(&self, _: &[u8]) -> bool {
        true
    }
    fn wire_ready(&self) {
        if seeds::on("flush_in_mid_call") {
            self.flush();
        } else {
            self.call(|main| main.offer = true);
        }
    }
    fn thread_begin(&self) {}
    fn thread_end(&self) {}
    fn locked(&self) -> bool {
        *held(&self.holder) == Some(thread::current().id())
    }
    fn lock(&self) {
        let mut holder = held(&self.holder);
        assert_ne!(
            *holder,
            Some(thread::current().id()),
            "it is not taken twice"
        );
        while holder.is_some() {
            holder = self.free.wait(holder).expect("nobody has panicked");
        }
        *holder = Some(thread::current().id());
    }
    fn try_lock(&self) -> bool {
        let mut holder = held(&self.holder);
        let free = holder.is_none();
        if free {
            *holder = Some(thread::current().id());
        }
        free
    }
    fn unlock(&self) {
        let mut holder = held(&self.holder);
        assert_eq!(
            *holder,
            Some(thread::current().id()),
            "only its holder gives it back"
        );
        *holder = None;
        drop(holder);
        self.free.notify_one();
    }
    fn call_errands(&self) {
        self.call(|main| main.errands = true);
    }
}
