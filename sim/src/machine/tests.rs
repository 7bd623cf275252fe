//! Tests programs on the whole machine: start, halt, faults, interrupts, frames, determinism.

use super::Machine;
use super::waits::{count_turns, state, timers};
use crate::asm::*;
use tigon2_chip::memory::block;
use tigon2_chip::{Cpu, Register};
use tigon2_model::{Board, CpuFault};

/// Where CPU A's program is.
pub(super) const A: u32 = 0x4000;
/// Where CPU B's program is.
pub(super) const B: u32 = 0x5000;
/// Words that programs write results to: first of gencom.
pub(super) const RESULT: u32 = 0x200;
/// Base of the descriptor/buffer block.
pub(crate) const K: u32 = 0x12_F000;

/// A machine with programs for both CPUs; CPU A has been started.
pub(super) fn started(a: &[u32], b: &[u32]) -> Machine {
    let mut machine = Machine::new(Board::default());
    machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
    machine.load_image(A, &bytes(a));
    machine.load_image(B, &bytes(b));
    machine.bar_write(Register::MiscConfig.offset(), 0x10_0055);
    machine.bar_write(Register::CpuAPc.offset(), A);
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine
}

/// `T1` = the register page.
pub(super) const REGISTERS: u32 = 0x0F << 26 | T1 << 16 | 0xC000;

/// `sw rt, register(T1)`
pub(super) fn put(rt: u32, register: Register) -> u32 {
    sw(rt, register.offset() as i32, T1)
}

/// `lw rt, register(T1)`
pub(super) fn get(rt: u32, register: Register) -> u32 {
    lw(rt, register.offset() as i32, T1)
}

/// Counts in `RESULT + 4 * n` for ever: 4 instructions a round.
fn counter(n: u32) -> Vec<u32> {
    vec![
        addiu(A0, ZERO, (RESULT + 4 * n) as i32),
        addiu(V0, V0, 1),
        sw(V0, 0, A0),
        j(A + 4),
        NOP,
    ]
}

/// One instruction is one core cycle, and time starts for a CPU when it is started.
#[test]
fn an_instruction_takes_a_cycle() {
    let mut machine = started(&counter(0), &[]);
    let start = machine.cycle();
    machine.run(1 + 4 * 1000);
    assert_eq!(machine.cycle() - start, 4001);
    assert_eq!(machine.cpus().core(Cpu::A).retired(), 4000);
    assert_eq!(machine.word(RESULT), 1000);
    assert_eq!(
        machine.bar_read(0x600),
        1000,
        "the host sees NIC memory in the BAR"
    );
}

/// As in QEMU: a program that touches nothing goes on, and the card knows of it.
#[test]
fn an_access_to_nowhere_is_counted_and_reads_zero() {
    let program = [
        lui(T0, 0x4000),
        addiu(V0, ZERO, 7),
        lw(V0, 0x10, T0),
        sw(V0, RESULT as i32, ZERO),
        sw(T0, 0x20, T0),
        BREAK,
    ];
    let mut machine = started(&program, &[]);
    machine.load_image(RESULT, &[0xFF; 4]);
    machine.run(100);
    assert_eq!(machine.word(RESULT), 0);
    assert_eq!(machine.fault(Cpu::A), Some((CpuFault::Break, A + 20)));
    let log = machine.card().undefined();
    let said: Vec<String> = log.latest().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "CPU A read 0x40000010, where nothing is",
            "CPU A wrote 0x40000000 to 0x40000020, where nothing is",
        ]
    );
}

/// Reference 3.4: `R[240]` |= 0x10000; `R[244]` = entry; `R[240]` = 0 starts CPU B (C); both
/// scratch pads are at the same address and are private (2, C).
#[test]
fn cpu_a_starts_cpu_b_and_scratch_pads_are_private() {
    let scratch = 0x00C0;
    let a = [
        REGISTERS,
        lui(T0, scratch),
        lui(V0, 1),
        put(V0, Register::CpuBState),
        ori(V0, ZERO, B),
        put(V0, Register::CpuBPc),
        put(ZERO, Register::CpuBState),
        addiu(V1, ZERO, 0xA),
        sw(V1, 0x10, T0),
        NOP,
        NOP,
        NOP,
        lw(V0, 0x10, T0),
        sw(V0, RESULT as i32, ZERO),
        beq(ZERO, ZERO, -1),
        NOP,
    ];
    let b = [
        lui(T0, scratch),
        addiu(V1, ZERO, 0xB),
        sw(V1, 0x10, T0),
        lw(V0, 0x10, T0),
        sw(V0, RESULT as i32 + 4, ZERO),
        BREAK,
    ];
    let mut machine = started(&a, &b);
    machine.run(100);
    assert_eq!((machine.word(RESULT), machine.word(RESULT + 4)), (0xA, 0xB));
    assert_eq!(machine.fault(Cpu::A), None);
    assert_eq!(machine.fault(Cpu::B), Some((CpuFault::Break, B + 20)));
    assert!(machine.cpus().core(Cpu::A).running() && !machine.cpus().core(Cpu::B).running());
    assert_eq!(
        machine.bar_read(Register::CpuBState.offset()) & 0x1_0000,
        0x1_0000
    );
}

/// Reference 3.4: bit 16 stops a CPU and it continues where it stopped (C).
#[test]
fn the_host_halts_and_resumes_a_cpu() {
    let mut machine = started(&counter(0), &[]);
    for rest in 0..4 {
        machine.run(401 + rest);
        machine.bar_write(Register::CpuAState.offset(), 0x1_0000);
        let halted_at = machine.bar_read(Register::CpuAPc.offset());
        let count = machine.word(RESULT);
        machine.run(10_000);
        assert_eq!(machine.word(RESULT), count);
        assert_eq!(machine.cpus().core(Cpu::A).pc(), halted_at);
        machine.bar_write(Register::CpuAState.offset(), 0);
        machine.run(401);
        assert_eq!(
            machine.word(RESULT),
            count + 100,
            "also when it stood in a delay slot"
        );
    }
}

/// Reference 3.5: no data cache is visible to a CPU that polls a word of the other one (C).
/// One CPU that works keeps the other's waiting from being skipped wrongly: the store of
/// CPU B ends the wait of CPU A in the same cycle, whatever the chunks.
#[test]
fn a_store_of_the_other_cpu_is_seen_by_a_waiting_cpu() {
    let a = [
        REGISTERS,
        get(V0, Register::EventA),
        lw(V1, RESULT as i32, ZERO),
        beq(V1, ZERO, -3),
        NOP,
        sw(V1, RESULT as i32 + 8, ZERO),
        BREAK,
    ];
    let b = [
        REGISTERS,
        addiu(A0, ZERO, 200),
        addiu(A0, A0, -1),
        get(V0, Register::EventB),
        bne(A0, ZERO, -3),
        NOP,
        addiu(V1, ZERO, 99),
        sw(V1, RESULT as i32, ZERO),
        BREAK,
    ];
    let mut runs = Vec::new();
    for chunk in [1, 7, 1_000_000] {
        let mut machine = started(&a, &b);
        machine.bar_write(Register::CpuBPc.offset(), B);
        machine.bar_write(Register::CpuBState.offset(), 0);
        while machine.cpus().any_running() {
            machine.run(chunk);
        }
        assert_eq!(machine.word(RESULT + 8), 99);
        assert_eq!(machine.fault(Cpu::A), Some((CpuFault::Break, A + 24)));
        runs.push(Cpu::ALL.map(|cpu| machine.cpus().core(cpu).retired()));
    }
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0], runs[2]);
}

/// Reference 8: a host write to a mailbox raises event bit 22; `R[44]` bit 2 raises INTA#; a
/// write to mailbox 0 takes it away (C).
#[test]
fn a_mailbox_goes_to_the_cpu_and_an_interrupt_comes_back() {
    let a = [
        REGISTERS,
        lui(A1, 0x0040),
        get(V0, Register::EventA),
        special(0x24, V0, V0, A1, 0),
        beq(V0, ZERO, -3),
        NOP,
        get(V1, Register::MailboxEventA),
        put(V1, Register::MailboxEventA),
        immediate(0x0C, V1, V1, 4),
        beq(V1, ZERO, -8),
        NOP,
        lw(V0, 0x114, ZERO),
        sw(V0, RESULT as i32, ZERO),
        put(V1, Register::MiscLocalControl),
        beq(ZERO, ZERO, -13),
        NOP,
    ];
    let mut machine = started(&a, &[]);
    assert!(!machine.run_until(100_000, Machine::interrupt));
    assert_eq!(machine.cycle(), 100_000);
    machine.bar_write(0x514, 77);
    assert!(machine.run_until(200_000, Machine::interrupt));
    assert!(machine.cycle() < 100_020, "a few instructions later");
    assert_eq!(machine.word(RESULT), 77);
    machine.bar_write(0x504, 0);
    assert!(!machine.interrupt());
    assert!(
        !machine.run_until(200_000, Machine::interrupt),
        "mailbox 0 asks for none"
    );
}

/// A fibre MAC in the block at `K`, switched on by register writes in the order of
/// reference 10.1 and 10.4, up to a link with the ideal partner.
pub(crate) fn mac(machine: &mut Machine) -> (u32, u32) {
    let (tx, rx) = (K + block::PACKET_BUFFERS, 0x18_0000);
    let mut write = |register: Register, value| machine.bar_write(register.offset(), value);
    write(Register::MacTxState, 1);
    write(Register::MacRxState, 1);
    for register in [Register::RxBase, Register::RxProducer, Register::RxConsumer] {
        write(register, rx);
    }
    for register in [Register::TxBase, Register::TxProducer, Register::TxConsumer] {
        write(register, tx);
    }
    for register in [
        Register::RxDescriptorProducer,
        Register::RxDescriptorConsumer,
        Register::RxDescriptorReference,
    ] {
        write(register, K + block::MAC_RX_RING);
    }
    for register in [
        Register::TxDescriptorProducer,
        Register::TxDescriptorConsumer,
        Register::TxDescriptorReference,
    ] {
        write(register, K + block::MAC_TX_RING);
    }
    write(
        Register::PhyInterface,
        tigon2_chip::mac::phy_interface::SERDES_RUN,
    );
    write(Register::StationAddressHigh, 0x0060);
    write(Register::StationAddressLow, 0xCF20_1234);
    write(Register::TxConfigWord, 0xA040);
    write(Register::MacRxState, 0x802);
    write(Register::MacTxState, 0xE2);
    machine.run(88_000);
    (tx, rx)
}

/// A frame for the station of [`mac`], with a number in it.
pub(crate) fn frame(number: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![number; length];
    bytes[..6].copy_from_slice(&[0x00, 0x60, 0xCF, 0x20, 0x12, 0x34]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[0x88, 0xB5]);
    bytes
}

/// Reference 10.3: data with CRC in the RX buffer, descriptor {start, length} (C), at the
/// end of the frame's time on the wire.
#[test]
fn a_frame_from_the_wire_lands_in_nic_memory_when_its_time_has_come() {
    let mut machine = Machine::new(Board::default());
    let (_, rx) = mac(&mut machine);
    let sent = frame(7, 100);
    let arrival = machine.send_frame(0, sent.clone());
    let limit = machine.clock().cycle_at(arrival);
    machine.run(limit - machine.cycle());
    assert_eq!(machine.received().accepted, 0);
    machine.run(1);
    assert_eq!(machine.received().accepted, 1);
    let ring = K + block::MAC_RX_RING;
    assert_eq!((machine.word(ring), machine.word(ring + 4)), (rx, 104));
    let mut stored = vec![0; 100];
    machine.sram().copy_out(rx, &mut stored);
    assert_eq!(stored, sent);
    machine.send_frame(0, [&[0x02; 6], &sent[6..]].concat());
    machine.run(10_000);
    assert_eq!(
        machine.received().dropped,
        1,
        "the filter does not know the address"
    );
}

/// Reference 10.2: the MAC sends what the descriptor says and pads short frames (C).
#[test]
fn a_frame_in_the_transmit_buffer_goes_to_the_wire() {
    let mut machine = Machine::new(Board::default());
    let (tx, _) = mac(&mut machine);
    let data = frame(9, 42);
    machine.load_image(tx, &data);
    let ring = K + block::MAC_TX_RING;
    machine.load_image(ring, &bytes(&[tx, 42]));
    machine.bar_write(Register::TxProducer.offset(), tx + 42);
    machine.bar_write(Register::TxDescriptorProducer.offset(), ring + 8);
    machine.run(1);
    let sent = machine.take_frame().expect("one frame");
    assert_eq!(sent.bytes[..42], data);
    assert_eq!(sent.bytes[42..], [0; 18]);
    assert_eq!(machine.take_frame(), None);
    let consumer = machine.bar_read(Register::TxDescriptorConsumer.offset());
    assert_eq!(consumer & !7, ring + 8);
}

/// The same inputs give the same outputs, also when the host reads at other times in between.
#[test]
fn a_run_can_be_repeated_to_the_instruction() {
    let run = |chunks: &[u64]| {
        let mut machine = timers(50, 7, &count_turns(0x280), &[]);
        mac(&mut machine);
        for number in 0..20 {
            machine.send_frame(
                u64::from(number) * 3000,
                frame(number, 60 + usize::from(number)),
            );
        }
        for chunk in chunks {
            machine.run(*chunk);
        }
        let received = machine.received();
        let words: Vec<u32> = (0..64)
            .map(|n| machine.word(K + block::MAC_RX_RING + 4 * n))
            .collect();
        (state(&mut machine), received, words)
    };
    let whole = run(&[200_000]);
    assert_eq!(whole.1.accepted, 20);
    assert_eq!(whole, run(&[200_000]));
    assert_eq!(whole, run(&[1, 99_999, 50_000, 49_999, 1]));
}
