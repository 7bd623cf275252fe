//! CPUs halt: one by itself, one asleep by the host; and each is started by the other one. A CPU
//! that the host has halted or has seen halted must execute nothing more.

use crate::glue::machine::Machine;
use crate::qemu::Qemu;
use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tigon2_chip::registers::Register;
use tigon2_model::Cpu;

const HALT: u32 = 1 << 16;
/// Looks of the host before it gives up waiting for a CPU that is not its matter.
const LOOKS: u32 = 20;

type Shared = Arc<Machine<Qemu>>;

fn cpu(
    machine: &Shared,
    cpu: Cpu,
    mut step: impl FnMut(&Machine<Qemu>) + Send + 'static,
) -> JoinHandle<()> {
    let machine = machine.clone();
    thread::spawn(move || machine.host().cpu_thread(cpu, || step(&machine)))
}

/// The main loop, until `done`.
fn main_loop(machine: &Shared, done: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (machine, done) = (machine.clone(), done.clone());
    thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            machine.host().turn();
        }
    })
}

/// Firmware halts its own CPU: an exact access, so with the big lock.
pub fn by_itself() {
    let machine = Qemu::machine();
    let ended = Arc::new(AtomicBool::new(false));
    let mut halted = false;
    let a = cpu(&machine, Cpu::A, move |machine| {
        if !halted {
            let halt = || machine.cpu_write(Cpu::A, Register::CpuAState.offset(), HALT);
            machine.host().with_lock(halt);
            halted = true;
        } else {
            thread::yield_now();
        }
    });
    let b = cpu(&machine, Cpu::B, |_| ());
    let main = main_loop(&machine, &ended);
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    for _ in 0..LOOKS {
        if machine.bar_read(Register::CpuAState.offset()) & HALT != 0 {
            assert!(
                !machine.host().runs(Cpu::A),
                "it is seen halted and has not stopped"
            );
            break;
        }
    }
    end(&machine, &ended, [a, b, main]);
}

/// The host halts a CPU that polls, asleep or not.
pub fn by_the_host() {
    let machine = Qemu::machine();
    let (ended, polls) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let count = polls.clone();
    let a = cpu(&machine, Cpu::A, move |machine| {
        machine.cpu_read(Cpu::A, Register::EventA.offset());
        count.fetch_add(1, Ordering::Relaxed);
    });
    let b = cpu(&machine, Cpu::B, |_| ());
    let main = main_loop(&machine, &ended);
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    thread::yield_now();
    machine.bar_write(Register::CpuAState.offset(), HALT);
    assert!(
        !machine.host().runs(Cpu::A),
        "the write is done before the CPU has stopped"
    );
    let before = polls.load(Ordering::Relaxed);
    thread::yield_now();
    assert_eq!(before, polls.load(Ordering::Relaxed), "it goes on");
    end(&machine, &ended, [a, b, main]);
}

/// CPU B halts CPU A, which polls: an exact access, so with the big lock. Then it reads where
/// CPU A stands.
pub fn by_the_other() {
    let machine = Qemu::machine();
    let ended = Arc::new(AtomicBool::new(false));
    let a = cpu(&machine, Cpu::A, move |machine| {
        machine.cpu_read(Cpu::A, Register::EventA.offset());
    });
    let halted = Arc::new(AtomicBool::new(false));
    let done = halted.clone();
    let b = cpu(&machine, Cpu::B, move |machine| {
        if !done.load(Ordering::Relaxed) {
            let halt = || machine.cpu_write(Cpu::B, Register::CpuAState.offset(), HALT);
            machine.host().with_lock(halt);
            assert!(
                !machine.host().runs(Cpu::A),
                "CPU B goes on before CPU A has stopped"
            );
            done.store(true, Ordering::Relaxed);
        } else {
            thread::yield_now();
        }
    });
    let main = main_loop(&machine, &ended);
    for state in [Register::CpuAState, Register::CpuBState] {
        machine.bar_write(state.offset(), 0);
    }
    machine.host_done();
    while !halted.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    end(&machine, &ended, [a, b, main]);
}

/// Each CPU starts and halts the other one without the big lock. Every errand is done, in
/// the end by the main loop if nobody else had the lock to do it.
pub fn by_each_other() {
    let machine = Qemu::machine();
    // Two halts are from power-on, and not all of them are of one CPU.
    let before = [Cpu::A, Cpu::B].map(|cpu| machine.host().asked(cpu));
    let threads = [(Cpu::A, Cpu::B), (Cpu::B, Cpu::A)].map(|(me, other)| {
        let machine = machine.clone();
        thread::spawn(move || {
            let state = Register::cpu_state(other).offset();
            machine.cpu_write(me, state, 0);
            machine.cpu_write(me, state, HALT);
        })
    });
    let all = || {
        let done = |cpu: Cpu| machine.host().asked(cpu) == before[cpu.index()] + 2;
        done(Cpu::A) && done(Cpu::B)
    };
    // Somebody else has the lock now and then, and does what he finds; at last for long.
    for _ in 0..2 {
        machine.host().with_lock(|| machine.deliver());
    }
    machine.host().with_lock(|| {
        machine.deliver();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    // Who waits in vain here waits for ever, which the checker reports.
    while !all() {
        machine.host().turn();
    }
}

fn end(machine: &Shared, ended: &Arc<AtomicBool>, threads: [JoinHandle<()>; 3]) {
    use crate::glue::host::Host;
    ended.store(true, Ordering::Relaxed);
    machine.host().end();
    machine.host().call_errands();
    machine.bar_write(0x504 + 8, 1);
    for thread in threads {
        thread.join().expect("no panic");
    }
}
