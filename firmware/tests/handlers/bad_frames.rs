//! Tests received frames with errors, and the CRC, for hosts that ask for them.

use crate::machine::{MAC, Machine, PEER, Setup, frame};
use crate::rings::{MINI_MAX, NO_FLAGS, STANDARD_MAX, full, ring_of};
use host_interface::OperatingMode;
use host_interface::bd::BdErrors;
use host_interface::extension::DropReason;
use tigon2_chip::mac::RxError;
use tigon2_model::Reception;

fn with_mode(mode: OperatingMode) -> Setup {
    let mut setup = Setup::with_rings(NO_FLAGS);
    setup.mode = OperatingMode::from_bits(setup.mode.into_bits() | mode.into_bits());
    setup.mtu = STANDARD_MAX as u32;
    setup
}

fn arrive_damaged(machine: &mut Machine, bytes: &[u8], error: RxError) {
    let reception = machine
        .bench()
        .with(|card, env| card.device(env).receive_damaged(bytes, error));
    assert_eq!(reception, Reception::Accepted);
    machine.settle();
}

/// Reference 10.3, 12: bad frames are dropped and counted unless the mode 0x800 asks for
/// them; then the error flags say what was wrong. A runt is no error (I).
#[test]
fn bad_frames_are_passed_when_asked_for() {
    let errors = [
        RxError::CRC,
        RxError::COLLISION,
        RxError::LINK_LOST,
        RxError::PHY_DECODE,
        RxError::ODD_NIBBLES,
        RxError::MAC_ABORT,
    ];
    let mut machine = full(&with_mode(OperatingMode::new()));
    for error in errors {
        arrive_damaged(&mut machine, &frame(MAC, PEER, 500, 1), error);
    }
    arrive_damaged(&mut machine, &frame(MAC, PEER, 500, 2), RxError::RUNT);
    machine.pass(2000);
    let received = machine.received();
    assert_eq!(received.len(), 1);
    assert!(!received[0].0.flags().error());
    assert_eq!(machine.drops(DropReason::BadFrame), errors.len() as u32);

    let mut machine = full(&with_mode(OperatingMode::new().with_bad_frames(true)));
    for error in errors {
        arrive_damaged(&mut machine, &frame(MAC, PEER, 500, 1), error);
    }
    // Longer than the MTU: "giant", if a ring takes it.
    machine.arrive(&frame(MAC, PEER, 2000, 3));
    machine.pass(2000);
    let received = machine.received();
    assert_eq!(received.len(), errors.len() + 1);
    for ((bd, bytes), error) in received.iter().zip(errors) {
        assert!(bd.flags().error());
        assert_eq!(bd.errors().into_bits(), error.0);
        assert_eq!(bytes.len(), 500);
    }
    let (giant, bytes) = &received[errors.len()];
    assert_eq!(giant.errors(), BdErrors::new().with_giant(true));
    assert!(giant.flags().error() && giant.flags().jumbo_ring());
    assert_eq!(bytes.len(), 2000);
    assert_eq!(machine.drops(DropReason::BadFrame), 0);
}

/// The return BDs of plain frames are made without the words that are 0 in all of them.
#[test]
fn what_was_wrong_with_a_frame_is_not_said_of_later_ones() {
    let mut machine = full(&with_mode(OperatingMode::new().with_bad_frames(true)));
    let mut received = Vec::new();
    for seed in 0..400 {
        if seed % 150 == 20 {
            arrive_damaged(&mut machine, &frame(MAC, PEER, 500, seed), RxError::CRC);
        } else {
            machine.arrive(&frame(MAC, PEER, 500, seed));
        }
        if seed % 7 == 0 {
            machine.pass(2000);
            let more = machine.received();
            machine.give_buffers(more.len() as u32);
            received.extend(more);
        }
    }
    machine.pass(2000);
    received.extend(machine.received());
    assert_eq!(received.len(), 400);
    for (seed, (bd, bytes)) in (0..).zip(&received) {
        let errors = if seed % 150 == 20 { RxError::CRC.0 } else { 0 };
        assert_eq!(bd.errors().into_bits(), errors, "{seed}");
        assert_eq!(*bytes, frame(MAC, PEER, 500, seed));
    }
}

/// Reference 10.3, 12: mode 0x400 hands the CRC on. The ring is chosen without it, but for
/// the mini ring, whose buffers have no room for it.
#[test]
fn the_crc_is_handed_on_when_asked_for() {
    let mut machine = full(&with_mode(OperatingMode::new().with_include_crc(true)));
    let lengths = [60, MINI_MAX - 4, MINI_MAX, STANDARD_MAX];
    for length in lengths {
        machine.arrive(&frame(MAC, PEER, length, 7));
    }
    machine.pass(60);
    let received = machine.received();
    let rings: Vec<_> = received.iter().map(|(bd, _)| ring_of(bd)).collect();
    assert_eq!(rings, ["mini", "mini", "standard", "standard"]);
    for ((bd, bytes), length) in received.iter().zip(lengths) {
        let sent = frame(MAC, PEER, length, 7);
        assert!(!bd.flags().error());
        assert_eq!(bytes[..length], sent);
        assert_eq!(bytes[length..], crc(&sent));
    }
}

/// The CRC of Ethernet, bit by bit.
fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 };
        }
    }
    (!crc).to_le_bytes()
}
