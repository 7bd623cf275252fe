//! The copper board: PHY, speeds, and frames.

use crate::testing::{Bench, STATION};
use crate::{Board, DropReason, Effect, Partner, Reception};
use tigon2_chip::Register as R;
use tigon2_chip::bits::MacRxState;
use tigon2_chip::phy::{PhyMode, control, status};

/// Longer than the board's negotiation.
const SETTLE: u64 = 3_000_000;

fn partner(words: &str) -> Partner {
    words.parse().expect("words of a partner")
}

/// A card configured for gigabit copper (reference 11: final values).
fn bench() -> Bench {
    let mut bench = Bench::new(Board::copper());
    bench.bring_up();
    bench.write(R::MiscConfig, 0x0D10_0055);
    bench.write(R::PhyInterface, 1);
    bench.write(R::MacTxState, 0x72);
    bench.write(R::MacRxState, 0x802);
    bench
}

fn frame() -> Vec<u8> {
    let mut frame = vec![0x5A; 60];
    frame[..6].copy_from_slice(&STATION);
    frame
}

/// Register 0x19 bits 10:8 through the bus, after the link has settled.
fn negotiated(bench: &mut Bench) -> Option<PhyMode> {
    bench.pass(SETTLE);
    PhyMode::from_summary(bench.mdio_read(1, 0x19))
}

/// Reference 9 and 11: a PHY at address 1 with 0x0020, 0x604x is found over three lines of
/// `R[44]`; reset, 9 = 0x200, 0x1200; 0x19 says 7; status bit 2 is the link and `R[220]` bit
/// 18 reads 1 (C).
#[test]
fn firmware_finds_the_phy_and_negotiates_gigabit() {
    let mut bench = bench();
    assert_eq!(bench.mdio_read(1, 2), 0x0020);
    assert_eq!(bench.mdio_read(1, 3) & 0xFFF0, 0x6040);
    assert_eq!(bench.mdio_read(2, 2), 0xFFFF, "nobody else is there");
    bench.mdio_write(1, 0, control::RESET);
    bench.mdio_write(1, 4, 0x0DE1);
    bench.mdio_write(1, 9, 0x0200);
    bench.mdio_write(1, 0, 0x1200);
    assert_eq!(bench.mdio_read(1, 1) & status::LINK, 0);
    assert_eq!(negotiated(&mut bench), Some(PhyMode::Full1000));
    bench.mdio_read(1, 1);
    assert_ne!(bench.mdio_read(1, 1) & status::LINK, 0);
    let state = MacRxState::from_bits(bench.read(R::MacRxState));
    assert!(state.synchronised() && !state.code_words());
    assert_eq!(bench.card.inspect().undefined().count(), 0);
}

/// Reference 9: some writes go to address 0 (C).
#[test]
fn writes_to_address_0_are_heard() {
    let mut bench = bench();
    bench.mdio_write(0, 4, 0x0061);
    assert_eq!(bench.mdio_read(1, 4), 0x0061);
    bench.mdio_write(2, 4, 0x0021);
    assert_eq!(bench.mdio_read(1, 4), 0x0061);
}

/// Reference 11: with a 10/100 partner the result is not 1000, and the interface becomes
/// MII: `R[50]` = 0x07100055, `R[200]` = 0x22 (C). Frames need the interface of their speed.
#[test]
fn frames_pass_at_the_speed_that_was_negotiated() {
    let mut bench = bench();
    let no_link = Reception::Dropped(DropReason::NoLink);
    bench.pass(SETTLE);
    assert_eq!(bench.receive(&frame()), Reception::Accepted);
    assert_eq!(bench.card.link_megabits(bench.now), 1000);
    for (words, mode) in [
        ("100-full 10-half pause", PhyMode::Full100),
        ("100-half 10-half", PhyMode::Half100),
        ("10-full", PhyMode::Full10),
        ("10-half silent", PhyMode::Half10),
    ] {
        bench.write(R::MiscConfig, 0x0D10_0055);
        bench.write(R::MacTxState, 0x72);
        bench.with(|card, env| card.set_partner(env, partner(words)));
        assert_eq!(bench.receive(&frame()), no_link, "it negotiates");
        assert_eq!(negotiated(&mut bench), Some(mode));
        assert_eq!(bench.card.link_megabits(bench.now), mode.megabits());
        assert_eq!(bench.receive(&frame()), no_link, "GMII at {words}");
        bench.write(R::MiscConfig, 0x0710_0055);
        bench.write(R::MacTxState, 0x22);
        assert_eq!(bench.receive(&frame()), Reception::Accepted);
    }
}

/// A pulled cable shows in the PHY's status and as attention 25; after plugging it in again the
/// link comes back by itself.
#[test]
fn the_cable_goes_out_and_in() {
    let mut bench = bench();
    bench.pass(SETTLE);
    bench.mdio_read(1, 1);
    bench.write(R::MacRxState, 0x802 | MacRxState::ATTENTION);
    for plugged in [false, true] {
        bench.with(|card, env| card.set_cable(env, plugged));
        let state = MacRxState::from_bits(bench.read(R::MacRxState));
        assert!(state.sync_attention());
        assert_eq!(state.synchronised(), plugged);
        bench.write(R::MacRxState, 0x802 | MacRxState::ATTENTION);
        assert_eq!(negotiated(&mut bench), plugged.then_some(PhyMode::Full1000));
        assert_eq!(bench.mdio_read(1, 1) & status::LINK, 0, "it was lost");
        let link = bench.mdio_read(1, 1) & status::LINK != 0;
        assert_eq!(link, plugged);
        let accepted = bench.receive(&frame()) == Reception::Accepted;
        assert_eq!(accepted, plugged);
    }
}

/// Reference 11: the loop of the PHY: what is sent comes back, the cable does not matter.
#[test]
fn the_loop_of_the_phy_returns_frames() {
    let mut bench = bench();
    bench.with(|card, env| card.set_cable(env, false));
    bench.mdio_write(1, 0, 0x4140);
    let before = bench.read(R::RxDescriptorProducer);
    bench.send(&frame());
    assert_eq!(bench.effects(), Vec::<Effect>::new());
    assert_eq!(bench.read(R::RxDescriptorProducer), before + 8);
    bench.with(|card, env| card.set_cable(env, true));
    assert_eq!(
        bench.receive(&frame()),
        Reception::Dropped(DropReason::NoLink)
    );
    // Out of the loop the frame goes to the wire.
    bench.mdio_write(1, 0, 0x1200);
    bench.pass(SETTLE);
    bench.send(&frame());
    assert_eq!(bench.sent(), [frame()]);
}

/// The PHY is no part of the chip: a chip reset leaves its registers, power-on does not.
#[test]
fn a_chip_reset_leaves_the_phy() {
    let mut bench = bench();
    bench.mdio_write(1, 4, 0x0021);
    bench.with(|card, env| card.reset(env));
    assert_eq!(bench.mdio_read(1, 4), 0x0021);
    bench.with(|card, env| card.power_on(env));
    assert_eq!(bench.mdio_read(1, 4), 0x01E1);
}
