//! The link in firmware's registers.

mod copper;

use super::*;
use crate::testing::Bench;
use tigon2_chip::Register;
use tigon2_chip::bits::MacRxState;
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::config_word;

const SYNC: u32 = 1 << 18;
const CODE_WORDS: u32 = 1 << 19;
const ATTENTION_24_OR_25: u32 = 3 << 24;

/// Whether each of the 16 one-bit patterns written to `R[204]` reads back in `R[224]`.
fn loops_back(bench: &mut Bench) -> bool {
    (0..16).all(|bit| {
        bench.write(Register::TxConfigWord, 1 << bit);
        bench.read(Register::RxConfigWord) == 1 << bit
    })
}

/// Reference 11, step 1: the loop of the chip's own SERDES is closed while `R[238]` is
/// 0xC801F6, that of an external one while `R[44]` is 0xF080; the other board's control does
/// nothing (C!), and on copper neither does.
#[test]
fn the_serdes_loopback_test_passes_by_the_boards_own_control_only() {
    for (board, by_register, by_pin) in [
        (Board::default(), true, false),
        (Board::external_serdes(), false, true),
        (Board::copper(), false, false),
    ] {
        let name = board.name.clone();
        let mut bench = Bench::new(board);
        assert!(!loops_back(&mut bench), "{name}: the loop is open");
        bench.write(Register::PhyInterface, 0xC8_01F6);
        assert_eq!(loops_back(&mut bench), by_register, "{name}: R[238]");
        bench.write(Register::PhyInterface, 0xC8_01FE);
        assert!(!loops_back(&mut bench), "{name}: R[238] opens it");
        bench.write(Register::MiscLocalControl, 0xF080);
        assert_eq!(loops_back(&mut bench), by_pin, "{name}: R[44]");
        bench.write(Register::MiscLocalControl, 0xA080);
        assert!(!loops_back(&mut bench), "{name}: R[44] opens it");
    }
}

/// Reference 10.4: after firmware clears the attentions and then bit 1 while a signal is
/// present, bit 24 or 25 is set on the next read (C!); without a signal it is not.
#[test]
fn disabling_the_receiver_with_a_signal_raises_an_attention() {
    for cable in [true, false] {
        let mut bench = Bench::default();
        bench.with(|card, env| card.set_cable(env, cable));
        bench.write(Register::MacRxState, 2);
        bench.write(Register::MacRxState, MacRxState::ATTENTION | 2);
        assert_eq!(bench.read(Register::MacRxState) & MacRxState::ATTENTION, 0);
        bench.write(Register::MacRxState, 0);
        let state = bench.read(Register::MacRxState);
        assert_eq!(state & ATTENTION_24_OR_25 != 0, cable);
        assert_eq!(state & SYNC != 0, cable);
        let event = bench.read(Register::EventA) & EventBit::MacRxAttention.mask();
        assert_eq!(event != 0, cable);
    }
}

/// Reference 11, step 3: the negotiation of the vendor firmware with a partner (C).
#[test]
fn a_negotiating_partner_acknowledges_and_then_sends_data() {
    let mut bench = Bench::default();
    bench.write(Register::MacTxState, 0xE0);
    bench.write(Register::MacRxState, 2);
    bench.write(Register::TxConfigWord, 0);
    bench.write(Register::RxConfigWord, 0);
    assert_eq!(bench.read(Register::RxConfigWord), 0);
    bench.write(Register::TxConfigWord, 0xA000);
    assert_eq!(
        bench.read(Register::MacRxState) & (SYNC | CODE_WORDS),
        SYNC | CODE_WORDS
    );
    assert_ne!(
        bench.read(Register::RxConfigWord) & config_word::FULL_DUPLEX,
        0
    );
    bench.write(Register::TxConfigWord, 0xA040);
    assert_eq!(bench.read(Register::RxConfigWord), 0xA040);
    bench.write(Register::MacTxState, 0xE2);
    assert_eq!(bench.read(Register::MacRxState) & (SYNC | CODE_WORDS), SYNC);
    bench.write(Register::TxConfigWord, 0);
    assert_eq!(
        bench.read(Register::RxConfigWord),
        0xA040,
        "constant while the link is up"
    );
}

/// Reference 10.4: `R[224]` is writable, firmware clears it (C); words are those of
/// 1000BASE-X with their bytes swapped (C).
#[test]
fn firmware_clears_the_received_word() {
    let mut bench = Bench::default();
    bench.write(Register::TxConfigWord, 0xA000);
    bench.write(Register::MacTxState, 0xE2);
    let heard = bench.read(Register::RxConfigWord);
    // Base page of 1000BASE-X: bit 5 full duplex, bit 7 pause, bit 14 acknowledge.
    assert_eq!((heard as u16).swap_bytes(), 1 << 5 | 1 << 7 | 1 << 14);
    bench.write(Register::RxConfigWord, 0);
    assert_eq!(bench.read(Register::RxConfigWord), 0);
}

/// Reference 11: a partner that does not negotiate sends no code words (C); a change of
/// the cable sets attention 25.
#[test]
fn a_silent_partner_and_a_pulled_cable() {
    let mut bench = Bench::default();
    let silent = Partner {
        negotiates: false,
        ..Partner::default()
    };
    bench.with(|card, env| card.set_partner(env, silent));
    bench.write(Register::TxConfigWord, 0xA000);
    assert_eq!(bench.read(Register::MacRxState) & (SYNC | CODE_WORDS), SYNC);
    assert_eq!(bench.read(Register::RxConfigWord), 0);
    bench.with(|card, env| card.set_cable(env, false));
    let state = MacRxState::from_bits(bench.read(Register::MacRxState));
    assert!(state.sync_attention() && !state.synchronised());
    bench.write(Register::MacRxState, MacRxState::ATTENTION);
    bench.with(|card, env| card.set_cable(env, false));
    assert!(!MacRxState::from_bits(bench.read(Register::MacRxState)).sync_attention());
}
