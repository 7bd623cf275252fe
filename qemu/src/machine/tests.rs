//! Tests the machine on a host that only records its calls.

use super::*;
use crate::parking::PATIENCE;
use crate::testing::{Call, Notes};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};
use tigon2_chip::events::EventBit;

const HALT: u32 = 1 << 16;

fn machine() -> Machine<Notes> {
    machine_with(Client::default())
}

fn machine_with(client: Client) -> Machine<Notes> {
    let board = tigon2_model::Board::default();
    let machine = Machine::new(Notes::new(&board), Card::new(board), client);
    machine.power_on();
    // As every driver: words of NIC memory are not exchanged.
    machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
    machine.host.calls();
    machine
}

fn calls(machine: &Machine<Notes>) -> Vec<Call> {
    machine.host.calls()
}

/// CPU A polls on a thread of its own until it reads something, which this returns.
fn polling<'s>(scope: &'s Scope<'s, '_>, machine: &'s Machine<Notes>) -> ScopedJoinHandle<'s, u32> {
    scope.spawn(|| {
        let poll = || machine.cpu_read(Cpu::A, Register::EventA.offset());
        std::iter::repeat_with(poll)
            .find(|value| *value != 0)
            .unwrap_or(0)
    })
}

fn wait_until_asleep(machine: &Machine<Notes>) {
    while !machine.lock().parking.sleeps(Cpu::A) {
        std::thread::yield_now();
    }
}

#[test]
fn the_host_starts_and_halts_a_cpu_and_waits_for_the_halt() {
    let machine = machine();
    machine.bar_write(Register::CpuAState.offset(), HALT);
    machine.bar_write(Register::CpuAPc.offset(), 0x4000);
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    assert_eq!(calls(&machine), [Call::Start(Cpu::A, 0x4000)]);
    machine.bar_write(Register::CpuAState.offset(), HALT);
    assert_eq!(calls(&machine), [Call::Halt(Cpu::A), Call::Settle]);
    machine.bar_write(Register::CpuAState.offset(), HALT);
    machine.host_done();
    assert_eq!(calls(&machine), [], "it was halted already");
}

#[test]
fn a_cpu_that_halts_itself_does_not_wait_for_itself() {
    let machine = machine();
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    calls(&machine);
    machine.cpu_write(Cpu::A, Register::CpuAState.offset(), HALT);
    assert_eq!(calls(&machine), [Call::Halt(Cpu::A)]);
}

/// The watchdog of SPINE: CPU B reads where CPU A stands, and starts it there or elsewhere.
#[test]
fn a_cpu_that_halts_the_other_waits_until_that_has_stopped() {
    let machine = machine();
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    calls(&machine);
    machine.cpu_write(Cpu::B, Register::CpuAState.offset(), HALT);
    assert_eq!(calls(&machine), [Call::Halt(Cpu::A), Call::Settle]);
    machine.cpu_write(Cpu::B, Register::CpuAState.offset(), HALT);
    assert_eq!(calls(&machine), [], "it was halted already");
}

/// Reference 2: SRAM address = address - R[150], so the window starts at 0x800000 - R[150].
#[test]
fn the_spill_base_becomes_an_offset() {
    let machine = machine();
    machine.cpu_write(
        Cpu::B,
        Register::SpillBaseB.offset(),
        0x00BF_E000 - 0x12_F000,
    );
    let offset = 0x0080_0000_u32.wrapping_sub(0x00BF_E000 - 0x12_F000);
    assert_eq!(calls(&machine), [Call::Spill(Cpu::B, offset)]);
}

/// QEMU takes no part in it: no call reaches it.
#[test]
fn a_mailbox_write_wakes_the_cpu_that_sleeps() {
    let machine = machine();
    std::thread::scope(|scope| {
        let cpu = polling(scope, &machine);
        wait_until_asleep(&machine);
        machine.bar_write(0x504 + 8, 1);
        assert!(!machine.lock().parking.sleeps(Cpu::A));
        assert_eq!(cpu.join().expect("no panic"), EventBit::Mailbox.mask());
    });
    assert_eq!(calls(&machine), []);
    assert_eq!(machine.lock().armed, None);
}

#[test]
fn a_software_event_of_the_other_cpu_wakes() {
    let machine = machine();
    std::thread::scope(|scope| {
        let cpu = polling(scope, &machine);
        wait_until_asleep(&machine);
        machine.cpu_write(Cpu::B, Register::EventA.offset(), 1 << 23);
        assert!(!machine.lock().parking.sleeps(Cpu::A));
        assert_eq!(cpu.join().expect("no panic"), 1 << 23);
    });
}

/// The CPU wakes for the event of reference 7 by itself, without the main loop's timer.
#[test]
fn the_timer_wakes_the_cpu_that_sleeps() {
    let machine = machine();
    let start = machine.cpu_read(Cpu::A, Register::Timer.offset());
    machine.cpu_write(Cpu::A, Register::TimerReferenceA.offset(), start + 500);
    std::thread::scope(|scope| {
        let cpu = polling(scope, &machine);
        wait_until_asleep(&machine);
        machine.host.pass(600_000);
        assert_eq!(cpu.join().expect("no panic"), EventBit::Timer.mask());
    });
    assert_eq!(machine.lock().armed, None);
}

#[test]
fn a_sleep_ends_without_any_event() {
    let machine = machine();
    std::thread::scope(|scope| {
        let polls = scope.spawn(|| {
            for _ in 0..3 * PATIENCE {
                assert_eq!(machine.cpu_read(Cpu::A, Register::EventA.offset()), 0);
            }
        });
        wait_until_asleep(&machine);
        polls.join().expect("no panic");
    });
}

#[test]
fn a_cpu_that_is_to_halt_does_not_sleep_on() {
    let machine = machine();
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    std::thread::scope(|scope| {
        let cpu = polling(scope, &machine);
        wait_until_asleep(&machine);
        machine.bar_write(Register::CpuAState.offset(), HALT);
        machine.bar_write(0x504 + 8, 1);
        cpu.join().expect("no panic");
    });
    assert!(calls(&machine).contains(&Call::Halt(Cpu::A)));
}

/// A debugger, which has the big lock, reads the register and is never kept waiting.
#[test]
fn who_has_the_big_lock_does_not_sleep() {
    let machine = machine();
    for _ in 0..3 * PATIENCE {
        assert_eq!(machine.cpu_read(Cpu::A, Register::EventA.offset()), 0);
        assert!(!machine.lock().parking.sleeps(Cpu::A));
    }
}

#[test]
fn an_interrupt_reaches_the_client_and_is_cleared_by_mailbox_0() {
    let client = Client::default();
    let interrupts = client.interrupts.clone();
    let machine = machine_with(client);
    machine.cpu_write(Cpu::A, Register::MiscLocalControl.offset(), 4);
    assert!(interrupts.level());
    machine.bar_write(0x504, 0);
    assert!(!interrupts.level());
}

/// Firmware that halts itself and a host that starts it again cannot overlap.
#[test]
fn a_cpu_that_has_halted_itself_has_stopped_when_the_host_sees_it() {
    let machine = machine();
    let state = Register::CpuAState.offset();
    machine.bar_write(state, 0);
    machine.host_done();
    calls(&machine);
    machine.cpu_write(Cpu::A, state, HALT);
    assert_eq!(calls(&machine), [Call::Halt(Cpu::A)]);
    assert_eq!(machine.bar_read(state) & HALT, HALT);
    assert_eq!(calls(&machine), [Call::Settle]);
    assert_eq!(machine.bar_read(state) & HALT, HALT);
    assert_eq!(calls(&machine), [], "once");
    machine.bar_write(state, 0);
    machine.host_done();
    calls(&machine);
    machine.cpu_write(Cpu::A, state, HALT);
    machine.bar_write(state, 0);
    machine.host_done();
    let calls = calls(&machine);
    let [Call::Halt(Cpu::A), Call::Settle, Call::Start(Cpu::A, _)] = calls[..] else {
        panic!("{calls:?}");
    };
}

#[test]
fn a_fault_halts_and_a_reset_too() {
    let machine = machine();
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.host_done();
    calls(&machine);
    machine.cpu_fault(Cpu::A, CpuFault::Break, 0x4444);
    assert_eq!(calls(&machine), [Call::Halt(Cpu::A)]);
    assert_eq!(machine.bar_read(Register::CpuAPc.offset()), 0x4444);
    machine.reset();
    let calls = calls(&machine);
    assert!(calls.contains(&Call::Halt(Cpu::A)) && calls.contains(&Call::Halt(Cpu::B)));
    assert_eq!(calls.last(), Some(&Call::Settle));
}

/// A frame that goes out may come back before `transmit` returns: no lock is held then.
#[test]
fn no_lock_of_the_machine_is_held_while_a_frame_leaves() {
    let machine = Arc::new(machine());
    let (other, answered) = (machine.clone(), Arc::new(AtomicBool::new(false)));
    let free = answered.clone();
    machine.host.on_transmit(move || {
        // The answer comes at once, and is kept waiting.
        free.store(other.inner.try_lock().is_ok(), Ordering::Relaxed);
        other.receive(&[0; 60]);
    });
    queue_frame(&machine, 0);
    assert!(answered.load(Ordering::Relaxed));
    assert_eq!(calls(&machine), [Call::Transmit(60)]);
}

/// The access of a CPU does not wait for the big lock; what it leaves behind is done by the
/// main loop, in its order.
#[test]
fn a_cpu_does_not_wait_for_the_big_lock() {
    let machine = machine();
    machine.host.unlock();
    machine.host.taken.store(true, Ordering::Relaxed);
    queue_frame(&machine, 0);
    queue_frame(&machine, 1);
    machine.cpu_write(Cpu::A, Register::CpuBState.offset(), 0);
    let asked = calls(&machine);
    assert!(
        asked.iter().all(|call| *call == Call::RunErrands),
        "{asked:?}"
    );
    assert!(!asked.is_empty());
    // The thread with the lock is done, the main loop has it now.
    machine.host.lock();
    machine.deliver();
    assert_eq!(
        calls(&machine),
        [
            Call::Transmit(60),
            Call::Transmit(60),
            Call::Start(Cpu::B, 0)
        ]
    );
    machine.deliver();
    assert_eq!(calls(&machine), []);
}

/// With the lock free, no other thread is involved.
#[test]
fn a_cpu_takes_the_big_lock_that_is_free() {
    let machine = machine();
    machine.host.unlock();
    queue_frame(&machine, 0);
    assert_eq!(calls(&machine), [Call::Transmit(60)]);
    assert!(!machine.host.locked(), "it gave the lock back");
}

/// Firmware cannot fill this machine's memory with errands that are never delivered.
#[test]
fn a_cpu_waits_for_the_big_lock_when_too_much_has_piled_up() {
    let machine = machine();
    machine.host.unlock();
    machine.host.taken.store(true, Ordering::Relaxed);
    let command = |n: usize| {
        let value = if n.is_multiple_of(2) { 0 } else { HALT };
        machine.cpu_write(Cpu::A, Register::CpuBState.offset(), value);
    };
    let done = || {
        let calls = calls(&machine);
        let done = |call: &&Call| matches!(call, Call::Start(..) | Call::Halt(_));
        calls.iter().filter(done).count()
    };
    for n in 0..super::PATIENCE {
        command(n);
    }
    assert_eq!(done(), 0);
    command(super::PATIENCE);
    assert_eq!(done(), super::PATIENCE + 1);
    let waits = machine.all_counts();
    assert!(waits.contains(" big_lock_waits=1 "), "{waits}");
    let left = format!(" deferred={} ", super::PATIENCE);
    assert!(waits.contains(&left), "{waits}");
}

/// Both CPUs and the main loop at once: every errand is done, once, and in its order.
#[test]
fn threads_that_race_leave_nothing_behind() {
    const ROUNDS: u32 = 5_000;
    let machine = machine();
    machine.host.unlock();
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let machine = &machine;
        let cpus = CPUS.map(|cpu| {
            let other = if cpu == Cpu::A { Cpu::B } else { Cpu::A };
            scope.spawn(move || {
                for n in 0..ROUNDS {
                    machine.cpu_write(cpu, Register::cpu_state(other).offset(), n % 2 * HALT);
                }
            })
        });
        let main_loop = scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                machine.host.lock();
                if machine.host.errands_called() {
                    machine.deliver();
                }
                std::thread::yield_now();
                machine.host.unlock();
            }
        });
        for cpu in cpus {
            cpu.join().expect("no panic");
        }
        running.store(false, Ordering::Relaxed);
        main_loop.join().expect("no panic");
    });
    machine.host.lock();
    if machine.host.errands_called() {
        machine.deliver();
    }
    let calls = calls(&machine);
    for cpu in CPUS {
        let of_cpu = |call: &&Call| matches!(call, Call::Start(c, _) | Call::Halt(c) if *c == cpu);
        let done: Vec<_> = calls.iter().filter(of_cpu).collect();
        assert_eq!(done.len(), ROUNDS as usize);
        for pair in done.chunks_exact(2) {
            assert_eq!(pair, [&Call::Start(cpu, 0), &Call::Halt(cpu)]);
        }
    }
}

#[test]
fn a_dead_machine_has_halted_both_cpus_once() {
    let machine = machine();
    machine.die();
    machine.die();
    assert!(machine.is_dead());
    assert_eq!(calls(&machine), [Call::Halt(Cpu::A), Call::Halt(Cpu::B)]);
}

/// Queues a frame of 60 bytes in ring and buffer (reference 10.2).
fn queue_frame(machine: &Machine<Notes>, n: u32) {
    let write = |register: Register, value| machine.cpu_write(Cpu::A, register.offset(), value);
    let (ring, buffer) = (0x2800, 0x5000);
    if n == 0 {
        write(Register::RxBase, 0x1_0000);
        write(Register::TxBase, buffer);
        write(Register::TxProducer, buffer);
        write(Register::TxConsumer, buffer);
        write(Register::TxDescriptorProducer, ring);
        write(Register::TxDescriptorConsumer, ring);
        write(Register::MacTxState, 0xE2);
    }
    let descriptor = [buffer + 64 * n, 60].map(u32::to_be_bytes).concat();
    machine.host.sram_write(ring + 8 * n, &descriptor);
    write(Register::TxProducer, buffer + 64 * n + 60);
    write(Register::TxDescriptorProducer, ring + 8 * (n + 1));
}

#[test]
fn a_full_wire_stops_the_transmitter_until_it_is_free() {
    let machine = machine();
    machine.host.wire_full.store(true, Ordering::Relaxed);
    queue_frame(&machine, 0);
    assert_eq!(calls(&machine), [Call::Transmit(60)], "this one was taken");
    queue_frame(&machine, 1);
    queue_frame(&machine, 2);
    assert_eq!(calls(&machine), []);
    machine.host.wire_full.store(false, Ordering::Relaxed);
    machine.wire_free();
    assert_eq!(calls(&machine), [Call::Transmit(60), Call::Transmit(60)]);
}

/// Asking for the frames that wait needs nobody's lock, and is no errand that might be
/// delivered while QEMU is still in the middle of the refusal.
#[test]
fn frames_that_were_refused_are_asked_for_without_the_big_lock() {
    let machine = machine();
    let write = |register: Register, value| machine.cpu_write(Cpu::A, register.offset(), value);
    write(Register::MacTxState, 0x1E2);
    write(Register::MacRxState, 0x6);
    assert!(!machine.receive(&[0xFF; 60]) && !machine.can_receive());
    calls(&machine);
    machine.host.unlock();
    machine.host.taken.store(true, Ordering::Relaxed);
    write(Register::RxProducer, 0x18_0000);
    write(Register::RxConsumer, 0x18_0000);
    assert_eq!(calls(&machine), []);
    write(Register::MacRxState, 0x2);
    assert_eq!(calls(&machine), [Call::WireReady]);
    let counts = machine.counts().to_string();
    assert_eq!(counts, "lost=0 full=0 refused=1 pauses=0 offered=1");
}

#[test]
fn what_the_wire_does_with_frames_is_counted() {
    let machine = machine();
    machine.host.wire_full.store(true, Ordering::Relaxed);
    queue_frame(&machine, 0);
    machine.lost(5);
    machine.lost(0);
    let counts = machine.counts().to_string();
    assert_eq!(counts, "lost=2 full=1 refused=0 pauses=0 offered=0");
}

/// The host sees the BDs of a frame come back when it has left the transmitter, so one that
/// hands its whole ring over at once is silent until the last of it is on the wire: with a
/// peer that takes a dozen frames at a time the host's watchdog barked.
#[test]
fn the_transmitter_is_not_far_ahead_of_a_wire_that_is_slow() {
    let machine = machine();
    queue_frame(&machine, 0);
    assert_eq!(calls(&machine), [Call::Transmit(60)]);
    machine.host.wire_full.store(true, Ordering::Relaxed);
    let all = 3 * AHEAD;
    // All are there before anybody delivers.
    machine.host.unlock();
    machine.host.taken.store(true, Ordering::Relaxed);
    for number in 1..=all {
        queue_frame(&machine, number);
    }
    machine.host.lock();
    machine.host.calls();
    machine.deliver();
    let sent = calls(&machine).len();
    assert_eq!(sent, AHEAD as usize, "as many as may be ahead");
    // The wire takes them, and is full again with the next.
    machine.wire_free();
    assert_eq!(calls(&machine).len(), AHEAD as usize);
    machine.host.wire_full.store(false, Ordering::Relaxed);
    machine.wire_free();
    assert_eq!(calls(&machine).len(), AHEAD as usize, "the rest, in one go");
    assert_eq!(calls(&machine), []);
}
