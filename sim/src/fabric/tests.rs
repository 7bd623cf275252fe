//! Tests cards under one clock: frames between them, hosts beside each other, the bus.

use super::*;
use crate::machine::tests::{K, frame, mac};
use crate::timing::Parameters;
use std::sync::Mutex;
use tigon2_chip::Register;
use tigon2_chip::memory::block;
use tigon2_model::Board;

const TX_RING: u32 = K + block::MAC_TX_RING;
const RX_RING: u32 = K + block::MAC_RX_RING;
const DELAY: u64 = 400;
/// When the MACs are on.
const ON: u64 = 1_000_000;

/// Two cards on one wire, their MACs on.
fn pair(timed: bool) -> Arc<Fabric> {
    let machines = (0..2).map(|seed| {
        let mut machine = if timed {
            Machine::timed(Board::default(), Parameters::default(), seed)
        } else {
            Machine::new(Board::default())
        };
        mac(&mut machine);
        machine
    });
    Fabric::new(machines, &[(0, 1, Cable { delay_ns: DELAY })])
}

/// Queues frame `n` of a card.
fn send(machine: &mut Machine, n: u32, length: usize) {
    let data = frame(n as u8, length);
    let start = K + block::PACKET_BUFFERS + 2048 * n;
    machine.load_image(start, &data);
    let descriptor = [start, length as u32].map(u32::to_be_bytes).concat();
    machine.load_image(TX_RING + 8 * n, &descriptor);
    machine.bar_write(Register::TxProducer.offset(), start + length as u32);
    machine.bar_write(
        Register::TxDescriptorProducer.offset(),
        TX_RING + 8 * (n + 1),
    );
}

fn received(machine: &mut Machine) -> u32 {
    let producer = machine.bar_read(Register::RxDescriptorProducer.offset());
    ((producer & !7) - RX_RING) / 8
}

/// A minimum frame has 72 bytes on the wire: it is there 576 ns and the cable's delay after it
/// has begun, and not a cycle before.
#[test]
fn a_frame_arrives_a_delay_after_it_has_left() {
    for timed in [false, true] {
        let fabric = pair(timed);
        let (one, other) = (fabric.card(0), fabric.card(1));
        one.pass(1000);
        let begins = {
            let mut machine = one.lock();
            send(&mut machine, 0, 60);
            machine.now()
        };
        let arrives = begins + 576 + DELAY;
        one.pass(arrives - 24 - begins);
        assert_eq!(received(&mut other.lock()), 0, "timed: {timed}");
        // In the timed engine the transmitter looks a cycle later, and the descriptor and counts
        // follow the last words.
        one.pass(36 + 240 * u64::from(timed));
        let mut machine = other.lock();
        assert_eq!(received(&mut machine), 1, "timed: {timed}");
        let start = machine.word(RX_RING);
        let mut bytes = [0; 60];
        machine.sram().copy_out(start, &mut bytes);
        assert_eq!(bytes[..], frame(0, 60)[..]);
    }
}

/// Both cards send at the same time, frames of several lengths; all arrive whole and in order.
#[test]
fn both_ways_at_once() {
    let fabric = pair(true);
    let lengths = [60, 1514, 61, 400, 1000, 60];
    for card in 0..2 {
        let shared = fabric.card(card);
        let mut machine = shared.lock();
        for (n, length) in (0..).zip(lengths) {
            send(&mut machine, n, length);
        }
    }
    fabric.card(0).pass(100_000);
    for card in 0..2 {
        let shared = fabric.card(card);
        let mut machine = shared.lock();
        assert_eq!(received(&mut machine), 6);
        for (n, length) in (0..).zip(lengths) {
            let start = machine.word(RX_RING + 8 * n);
            let mut bytes = vec![0; length];
            machine.sram().copy_out(start, &mut bytes);
            assert_eq!(bytes, frame(n as u8, length));
        }
    }
}

/// Hosts act in the order of the cards' clock, whatever the computer does.
#[test]
fn hosts_take_turns_by_the_clock() {
    let fabric = pair(false);
    let seen = Mutex::new(Vec::new());
    let host = |number: usize, step: u64| {
        let (shared, seen) = (fabric.card(number), &seen);
        let program = move || {
            for _ in 0..3 {
                shared.pass(step);
                let now = shared.lock().now() - ON;
                seen.lock().expect("no panic").push((now / 1000, number));
            }
            number
        };
        Box::new(program) as Program<'_, usize>
    };
    let ended = fabric.together(vec![host(0, 3000), host(1, 2000)]);
    assert_eq!(ended, [0, 1]);
    let seen = seen.into_inner().expect("no panic");
    assert_eq!(seen, [(2, 1), (3, 0), (4, 1), (6, 0), (6, 1), (9, 0)]);
}

/// A write of one card's DMA reaches the range of the other's BAR that the host has allowed, and
/// nothing else.
#[test]
fn a_card_writes_what_it_is_allowed_to() {
    for timed in [false, true] {
        let machines = (0..2).map(|seed| match timed {
            true => Machine::timed(Board::default(), Parameters::default(), seed),
            false => Machine::new(Board::default()),
        });
        let fabric = Fabric::with_bus(machines, &[], Some(Bus::default()));
        for card in 0..2 {
            let shared = fabric.card(card);
            let mut machine = shared.lock();
            machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
            machine.bar_write(Register::WindowBase.offset(), 0x1_0000);
        }
        fabric.allow(0, 1, 0x800..0x1000);
        let transfer = |offset: u32| {
            let mut machine = fabric.slots[0].lock();
            machine.load_image(0x8000, &[1, 2, 3, 4, 5, 6, 7, 8]);
            let address = Fabric::bar(1) + u64::from(offset);
            for (register, value) in [
                (Register::DmaWriteHostHigh, (address >> 32) as u32),
                (Register::DmaWriteHostLow, address as u32),
                (Register::DmaWriteLocal, 0x8000),
                (Register::DmaWriteLength, 8),
                // Start, word values kept.
                (Register::DmaWriteState, 6),
            ] {
                machine.bar_write(register.offset(), value);
            }
        };
        transfer(0x810);
        fabric.card(0).pass(5000);
        assert_eq!(fabric.card(1).lock().word(0x1_0010), 0x0102_0304);
        assert_eq!(fabric.card(1).lock().word(0x1_0014), 0x0506_0708);
        let told = fabric.traffic(0, Target::Card(1));
        assert_eq!((told.transfers, told.bytes), (1, 8));
        // The bus is free for who asks, also after long.
        for _ in 0..2 {
            fabric.card(0).pass(3_000_000);
            fabric.card(1).lock().load_image(0x1_0010, &[0; 4]);
            transfer(0x810);
            fabric.card(0).pass(1500);
            assert_eq!(fabric.card(1).lock().word(0x1_0010), 0x0102_0304);
        }
        transfer(0x68);
        fabric.card(0).pass(5000);
        let window = Register::WindowBase.offset();
        assert_eq!(fabric.card(1).lock().bar_read(window), 0x1_0000);
        assert_eq!(fabric.refused(0), 1);
        assert_eq!(fabric.refused(1), 0);
    }
}
