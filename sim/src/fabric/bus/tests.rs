//! Tests how cards share the bus, and what each target costs.

use super::super::Bus;
use super::*;
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::timing::dma::Latency;
use std::sync::Arc;
use tigon2_chip::Register;
use tigon2_model::Board;

/// Where each card's piece of host memory lies, and its bytes.
const IOVA: u64 = 0x1_0000;
const BYTES: u32 = 4096;
/// Bit of the write channel's state: start, and busy until the transfer has ended.
const START: u32 = 4;

/// Address on the bus of a card's memory.
fn memory(card: usize) -> u64 {
    IOVA + card as u64 * u64::from(BYTES)
}

/// So many cards on one bus, each with a piece of host memory.
fn cards(count: usize, parameters: &Parameters, bus: Bus) -> Arc<Fabric> {
    let machines = (0..count).map(|card| {
        let mut machine = Machine::timed(Board::default(), parameters.clone(), card as u64);
        machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        machine.map(DmaMemory::new(BYTES as usize, memory(card)).expect("memory"));
        machine
    });
    Fabric::with_bus(machines, &[], Some(bus))
}

/// A card begins to write so many bytes of its SRAM to an address on the bus, if it is not doing so.
fn write(fabric: &Fabric, card: usize, address: u64, length: u32) {
    let mut machine = fabric.slots[card].lock();
    let state = Register::DmaWriteState.offset();
    if machine.bar_read(state) & START != 0 {
        return;
    }
    for (register, value) in [
        (Register::DmaWriteHostHigh, (address >> 32) as u32),
        (Register::DmaWriteHostLow, address as u32),
        (Register::DmaWriteLocal, 0x8000),
        (Register::DmaWriteLength, length),
    ] {
        machine.bar_write(register.offset(), value);
    }
    // Word values kept.
    machine.bar_write(state, START | 2);
}

/// Bytes that each of so many cards has written to host memory in two milliseconds, in which all of
/// them write all the time.
fn shares(count: usize) -> Vec<u64> {
    let fabric = cards(count, &Parameters::default(), Bus::default());
    for _ in 0..10_000 {
        for card in 0..count {
            write(&fabric, card, memory(card), BYTES);
        }
        fabric.card(0).pass(200);
    }
    let bytes = |card| fabric.traffic(card, Target::Memory).bytes;
    (0..count).map(bytes).collect()
}

/// No card starves: the arbiter gives the bus to each in turn, and together they carry as much as one
/// that is alone.
#[test]
fn cards_that_write_at_once_have_equal_shares_of_the_bus() {
    let [alone] = shares(1)[..] else {
        panic!("one card");
    };
    for count in [2, 3] {
        let shares = shares(count);
        let all: u64 = shares.iter().sum();
        let of_alone = all as f64 / alone as f64;
        assert!((0.95..1.05).contains(&of_alone), "{shares:?} of {alone}");
        for share in &shares {
            let of_fair = (share * count as u64) as f64 / all as f64;
            assert!((0.97..1.03).contains(&of_fair), "{shares:?}");
        }
    }
}

/// Cycles for which the bus is used by a card's write of four transactions to an address, and by the
/// write of another card to host memory at the same time; and when the former has ended.
fn times(bus: Bus, target: Target, address: u64) -> [u64; 3] {
    let parameters = Parameters {
        jit: 0.0,
        burst: 64,
        ..Parameters::default()
    };
    let fabric = cards(2, &parameters, bus);
    fabric.allow(0, 1, 0x500..0x1000);
    fabric.frame_buffer(0, 4096, &[0]).expect("memory");
    write(&fabric, 0, address, 256);
    write(&fabric, 1, memory(1), 256);
    let mut ends = 0;
    while fabric.traffic(0, target).transfers == 0 {
        fabric.card(0).pass(12);
        ends = fabric.slots[0].lock().cycle();
        assert!(ends < 100_000, "it ends");
    }
    fabric.card(0).pass(20_000);
    assert_eq!(fabric.traffic(1, Target::Memory).bytes, 256);
    let used = |card: usize| {
        let machine = fabric.slots[card].lock();
        machine.timing().expect("timed").dma.bus_busy()
    };
    [used(0), used(1), ends]
}

/// What speaks to a slow target has the bus for longer; what others say, and the same card to other
/// targets, takes as long as before.
#[test]
fn a_slow_target_delays_what_is_said_to_it() {
    const MORE: u64 = 60;
    let slow = Latency {
        read: 25,
        write: 25 + MORE,
    };
    let usual = Bus::default();
    let buses = [
        Bus {
            registers: slow,
            ..usual
        },
        Bus {
            window: slow,
            ..usual
        },
        Bus {
            frame_buffer: slow,
            ..usual
        },
        Bus {
            memory: Some(slow),
            ..usual
        },
    ];
    let targets = [
        // A mailbox.
        (Target::Card(1), Fabric::bar(1) + 0x500),
        (Target::Card(1), Fabric::bar(1) + 0x800),
        (Target::FrameBuffer(0), FRAME_BUFFERS),
        (Target::Memory, memory(0)),
    ];
    // Four transactions, at 66 of 88 MHz.
    let more = 4 * MORE * 4 / 3;
    for (number, (target, address)) in targets.into_iter().enumerate() {
        let [used, beside, ends] = times(usual, target, address);
        for (other, bus) in buses.into_iter().enumerate() {
            let delayed = if other == number { more } else { 0 };
            let of_memory = if bus.memory.is_some() { more } else { 0 };
            let [used_then, beside_then, ends_then] = times(bus, target, address);
            let what = format!("{target:?} at {address:#x} with {bus:?}");
            assert_eq!(used_then - used, delayed, "{what}");
            assert_eq!(beside_then - beside, of_memory, "{what}");
            // The other card's transactions are between its own.
            let late = ends_then - ends;
            let waits = delayed..=delayed + of_memory + 4;
            assert!(waits.contains(&late), "{late}: {what}");
        }
    }
}
