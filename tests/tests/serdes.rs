//! Tests that a fibre board uses its one SERDES: the chip's, or an external one.
//!
//! Hardware reference, section 11. Firmware detects it by closing the loop of each in turn; the
//! control of the missing one has no effect in any state.

use host_driver::Config;
use host_driver::nic::LinkSettings;
use integration_tests::programs::{Bare, Program, RESULTS};
use integration_tests::{Engine, Stage, frames, stories};
use std::path::PathBuf;
use std::time::Duration;
use tigon2_chip::Register;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_chip::mac::phy_interface::{SERDES_LOOPBACK, SERDES_RESET, SERDES_RUN};
use tigon2_chip::mac::{DESCRIPTOR_BYTES, POINTER_FLAGS};
use tigon2_chip::memory::{REGISTERS_BASE, block};
use tigon2_sim::asm::*;

stories!(
    both_loops_are_probed_and_frames_pass_on_chip,
    both_loops_are_probed_and_frames_pass_outside,
    our_firmware_runs_the_chips_own,
    our_firmware_runs_an_external_one,
);

/// Block and buffers of the probing firmware, in the first turn of 1 MB of SRAM.
const K: u32 = 0x2_F000;
const TX_RING: u32 = K + block::MAC_TX_RING;
const RX_RING: u32 = K + block::MAC_RX_RING;
const TX_BASE: u32 = K + block::PACKET_BUFFERS;
const RX_BASE: u32 = 0x9_0000;
const STATION: [u8; 6] = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];

/// `R[44]`: pin 0 is driven low, or high, or not at all; pin 1 is high.
const PINS_LOW: u32 = 0xB080;
const PINS_HIGH: u32 = 0xF080;
const PINS_IDLE: u32 = 0xA080;

fn on_chip() -> PathBuf {
    board("tigon2.toml")
}

fn outside() -> PathBuf {
    board("tigon2-external-serdes.toml")
}

fn board(name: &str) -> PathBuf {
    testbed::paths::root().join("boards/tigon2").join(name)
}

fn set(program: &mut Program, register: Register, value: u32) {
    program
        .constant(V0, value)
        .constant(V1, REGISTERS_BASE | register.offset())
        .add(&[sw(V0, 0, V1)]);
}

/// Leaves 1 in a register and in word `result` if each of the 16 one-bit patterns that are
/// written to `R[204]` reads back in `R[224]`, else 0.
fn probe(program: &mut Program, result: u32, passed: u32) {
    let back = Register::RxConfigWord.offset() - Register::TxConfigWord.offset();
    program.small(T1, 0);
    for bit in 0..16 {
        set(program, Register::TxConfigWord, 1 << bit);
        program.add(&[
            lw(T0, back as i32, V1),
            special(0x26, T0, T0, V0, 0), // xor
            special(0x25, T1, T1, T0, 0), // or
        ]);
    }
    program.constant(V1, RESULTS + 4 * result).add(&[
        immediate(0x0B, passed, T1, 1), // sltiu
        sw(passed, 0, V1),
    ]);
}

/// What firmware of that time does: it probes the chip's own SERDES, and then always the
/// external one. Each board's frames then go by its SERDES, with the other's control where it
/// would close a loop.
fn firmware() -> Program {
    let mut program = Program::default();
    let it = &mut program;
    set(it, Register::MacTxState, 1);
    set(it, Register::MacRxState, 1);
    set(it, Register::MacTxState, MacTxState::FIBRE);
    set(it, Register::MacRxState, 0x802);
    set(it, Register::PhyInterface, SERDES_RESET);
    set(it, Register::PhyInterface, SERDES_LOOPBACK);
    probe(it, 0, A0);
    set(it, Register::PhyInterface, SERDES_RUN);
    set(it, Register::MiscLocalControl, PINS_LOW);
    set(it, Register::MiscLocalControl, PINS_HIGH);
    probe(it, 1, A1);

    let (mut own, mut external) = (Program::default(), Program::default());
    set(&mut own, Register::PhyInterface, SERDES_RUN);
    set(&mut external, Register::PhyInterface, SERDES_LOOPBACK);
    set(&mut external, Register::MiscLocalControl, PINS_IDLE);
    let over = |words: &[u32]| 1 + words.len() as i32;
    own.add(&[beq(ZERO, ZERO, over(&external.words)), NOP]);
    it.add(&[beq(A0, ZERO, over(&own.words)), NOP]);
    it.add(&own.words).add(&external.words);

    for (registers, value) in [
        (
            [Register::RxBase, Register::RxProducer, Register::RxConsumer],
            RX_BASE,
        ),
        (
            [Register::TxBase, Register::TxProducer, Register::TxConsumer],
            TX_BASE,
        ),
        (
            [
                Register::RxDescriptorProducer,
                Register::RxDescriptorConsumer,
                Register::RxDescriptorReference,
            ],
            RX_RING,
        ),
        (
            [
                Register::TxDescriptorProducer,
                Register::TxDescriptorConsumer,
                Register::TxDescriptorReference,
            ],
            TX_RING,
        ),
    ] {
        for register in registers {
            set(it, register, value);
        }
    }
    let [a, b, c, d, e, f] = STATION;
    set(
        it,
        Register::StationAddressHigh,
        u32::from_be_bytes([0, 0, a, b]),
    );
    set(
        it,
        Register::StationAddressLow,
        u32::from_be_bytes([c, d, e, f]),
    );
    set(it, Register::TxConfigWord, 0xA040);
    set(it, Register::MacTxState, MacTxState::FIBRE | 2);
    it.add(&[BREAK]);
    program
}

/// A card on which [`firmware`] has come to its end; which loops it has found.
fn probed<E: Engine>(file: PathBuf) -> (Bare<E>, [bool; 2]) {
    let (engine, transport) = E::start_board(&file);
    let mut card = Bare::on(engine, transport);
    let found = card.results(&firmware(), 2);
    (card, [0, 1].map(|n| found[n] == 1))
}

/// The link is up as far as registers tell, and a frame passes each way.
fn frames_pass<E: Engine>(card: &mut Bare<E>) {
    let state = MacRxState::from_bits(card.get(Register::MacRxState));
    assert!(state.synchronised() && !state.code_words());

    let out = frames::of_length(frames::PEER, STATION, 1, 400);
    card.write(TX_BASE, &words(&out));
    card.write(TX_RING, &[TX_BASE, out.len() as u32]);
    card.set(Register::TxProducer, TX_BASE + out.len() as u32);
    card.set(Register::TxDescriptorProducer, TX_RING + DESCRIPTOR_BYTES);
    // Writes are posted: a read behind them has them arrive.
    card.get(Register::TxDescriptorProducer);
    assert_eq!(card.engine.receive(), Some(out), "out");

    let into = frames::of_length(STATION, frames::PEER, 2, 400);
    card.engine.send(&into);
    let arrived = (0..1000).any(|_| {
        card.engine.pass(Duration::from_millis(1));
        card.get(Register::RxDescriptorProducer) & !POINTER_FLAGS != RX_RING
    });
    assert!(arrived, "no frame came in");
    assert_eq!(card.read(RX_BASE, into.len() / 4), words(&into), "in");
}

fn words(frame: &[u8]) -> Vec<u32> {
    let (words, rest) = frame.as_chunks();
    assert!(rest.is_empty(), "whole words");
    words.iter().map(|word| u32::from_be_bytes(*word)).collect()
}

/// Reference 11 (C!): the pins are left as the failed test had them.
fn both_loops_are_probed_and_frames_pass_on_chip<E: Engine>() {
    let (mut card, found) = probed::<E>(on_chip());
    assert_eq!(found, [true, false], "by R[238], by the pins");
    let pins = card.get(Register::MiscLocalControl);
    assert_eq!(pins & PINS_HIGH, PINS_HIGH, "{pins:#x}");
    frames_pass(&mut card);
}

fn both_loops_are_probed_and_frames_pass_outside<E: Engine>() {
    let (mut card, found) = probed::<E>(outside());
    assert_eq!(found, [false, true], "by R[238], by the pins");
    assert_eq!(card.get(Register::PhyInterface), SERDES_LOOPBACK);
    frames_pass(&mut card);
}

fn our_firmware_runs_the_chips_own<E: Engine>() {
    our_firmware_runs::<E>(on_chip());
}

fn our_firmware_runs_an_external_one<E: Engine>() {
    our_firmware_runs::<E>(outside());
}

/// Frames pass; in the loop that the host asks for they come back.
fn our_firmware_runs<E: Engine>(file: PathBuf) {
    for looped in [false, true] {
        let (engine, transport) = E::start_board(&file);
        let config = Config {
            link: LinkSettings::default().with_loopback(looped),
            ..Config::default()
        };
        let mut stage = Stage::on(engine, transport, config);
        stage.load_and_open();
        let out = stage.inbound(1);
        stage.transmit(&[&out]);
        if looped {
            assert_eq!(stage.receive(1), [out], "it comes back");
            assert_eq!(stage.wire_now(), None, "nothing leaves the card");
        } else {
            assert_eq!(stage.wire(), out);
            let into = stage.inbound(2);
            stage.engine.send(&into);
            assert_eq!(stage.receive(1), [into]);
        }
    }
}
