use super::*;

const NEGOTIATION: u64 = 2_000_000;

fn phy() -> Phy {
    let part = PhyPart {
        address: 1,
        id: tigon2_chip::phy::ID,
        negotiation_us: 2000,
    };
    Phy::new(part, 0)
}

fn partner(words: &str) -> Far {
    Some(words.parse().expect("good words"))
}

fn read(phy: &mut Phy, now: u64, far: Far, register: PhyRegister) -> u16 {
    phy.read(now, far, register as u8)
}

/// Writes register 0 and lets the link settle; the mode of register 0x19.
fn settled(phy: &mut Phy, control: u16, far: Far) -> Option<PhyMode> {
    phy.write(0, 0, control);
    PhyMode::from_summary(read(phy, NEGOTIATION, far, PhyRegister::Summary))
}

/// Reference 11: registers 2 and 3 read 0x0020, 0x604x (C).
#[test]
fn the_identifier_is_the_one_that_firmware_knows() {
    let mut phy = phy();
    assert_eq!(phy.read(0, None, 2), 0x0020);
    assert_eq!(phy.read(0, None, 3) & 0xFFF0, 0x6040);
}

/// Reference 11: reset, advertisement, 0x200 in register 9, 0x1200; after negotiation
/// 0x19 has the result and status bit 2 the link (C).
#[test]
fn gigabit_is_negotiated_as_the_vendor_does() {
    let mut phy = phy();
    let far = Some(Partner::default());
    phy.write(0, 0, 0x8000);
    assert_eq!(phy.read(0, far, 0) & 0x8000, 0, "reset clears itself");
    phy.write(0, 4, 0x05E1);
    phy.write(0, 9, 0x0200);
    phy.write(1_000, 0, 0x1200);
    assert_eq!(phy.read(1_000, far, 0), 0x1000, "the restart clears itself");
    assert_eq!(
        phy.read(1_000, far, 1) & (status::LINK | status::NEGOTIATED),
        0
    );
    assert_eq!(phy.read(1_000, far, 0x19), 0);
    let later = 1_000 + NEGOTIATION;
    assert_eq!(phy.read(later - 1, far, 0x19), 0);
    assert_eq!(phy.read(later, far, 0x19) & summary::MODE_MASK, 0x0700);
    phy.read(later, far, 1);
    assert_eq!(phy.read(later, far, 1), 0x792D);
    assert_eq!(
        phy.read(later, far, 5),
        0x45E1,
        "all speeds, pause, acknowledged"
    );
    assert_eq!(phy.read(later, far, 10), 0x3C00);
    assert_eq!(phy.read(later, far, 6), 3);
}

/// Reference 11: the codes of register 0x19 (C), by the best of what both offer.
#[test]
fn the_result_is_the_best_of_both() {
    for (theirs, offered, gigabit, expected) in [
        ("1000-full 100-full", 0x1E1, 0x300, Some(PhyMode::Full1000)),
        ("1000-half 100-full", 0x1E1, 0x300, Some(PhyMode::Half1000)),
        ("1000-full 100-full", 0x1E1, 0x000, Some(PhyMode::Full100)),
        ("100-half 10-full", 0x1E1, 0x300, Some(PhyMode::Half100)),
        ("100-half 10-full", 0x061, 0x300, Some(PhyMode::Full10)),
        ("10-half", 0x1E1, 0x300, Some(PhyMode::Half10)),
        ("1000-full", 0x1E1, 0x000, None),
    ] {
        let mut phy = phy();
        phy.write(0, 4, offered);
        phy.write(0, 9, gigabit);
        assert_eq!(
            settled(&mut phy, 0x1200, partner(theirs)),
            expected,
            "{theirs}"
        );
    }
}

#[test]
fn sides_that_do_not_negotiate_meet_by_speed() {
    for (control, theirs, expected) in [
        // Parallel detection: half duplex, never gigabit.
        (0x1200, "100-full silent", Some(PhyMode::Half100)),
        (0x1200, "10-half silent", Some(PhyMode::Half10)),
        (0x1200, "1000-full silent", None),
        // Forced against a partner that negotiates.
        (0x2100, "1000-full 100-half pause", Some(PhyMode::Full100)),
        (0x0000, "10-full 100-half", Some(PhyMode::Half10)),
        (0x0140, "1000-full 100-half", None),
        (0x2100, "10-full", None),
        // Both forced.
        (0x0140, "1000-full silent", Some(PhyMode::Full1000)),
        (0x2100, "1000-full 100-full silent", None),
        (0x2140, "1000-full silent", None),
    ] {
        let mut phy = phy();
        let found = settled(&mut phy, control, partner(theirs));
        assert_eq!(found, expected, "{control:#06x} with {theirs}");
        let link = phy.read(NEGOTIATION, partner(theirs), 0x19) & summary::LINK != 0;
        assert_eq!(link, expected.is_some());
    }
}

/// IEEE 802.3 22.2.4.2.13: link status stays 0 until read once after a loss.
#[test]
fn a_lost_link_is_seen_once() {
    let mut phy = phy();
    let far = Some(Partner::default());
    let link = |phy: &mut Phy, now, far| phy.read(now, far, 1) & status::LINK != 0;
    assert!(!link(&mut phy, NEGOTIATION, far), "it was down before");
    assert!(link(&mut phy, NEGOTIATION, far));
    phy.disturb(NEGOTIATION);
    assert!(!link(&mut phy, 3 * NEGOTIATION, far), "out and in again");
    assert!(link(&mut phy, 3 * NEGOTIATION, far));
    phy.disturb(3 * NEGOTIATION);
    assert!(!link(&mut phy, 9 * NEGOTIATION, None));
    assert_eq!(phy.read(9 * NEGOTIATION, None, 0x19), 0);
    assert_eq!(phy.read(9 * NEGOTIATION, None, 5), 0);
}

#[test]
fn power_down_isolation_and_the_loop() {
    let far = Some(Partner::default());
    let mut phy = phy();
    assert_eq!(settled(&mut phy, 0x1A00, far), None, "power down");
    assert_eq!(settled(&mut phy, 0x1600, far), None, "isolated");
    assert_eq!(settled(&mut phy, 0x1200, far), Some(PhyMode::Full1000));
    assert!(!phy.loopback());
    assert_eq!(settled(&mut phy, 0x4140, None), Some(PhyMode::Full1000));
    assert!(phy.loopback());
}

#[test]
fn other_registers_store_and_read_only_ones_do_not() {
    let mut phy = phy();
    for register in 0..=0xFF {
        let before = phy.read(0, None, register);
        phy.write(0, register, 0x2AAA);
        let stores = match register & 31 {
            0 => continue,
            1 | 2 | 3 | 5 | 6 | 10 | 15 | 0x19 => before,
            _ => 0x2AAA,
        };
        assert_eq!(phy.read(0, None, register), stores, "register {register}");
    }
    phy.write(0, 0, 0x8000);
    assert_eq!(
        (phy.read(0, None, 4), phy.read(0, None, 0)),
        (0x01E1, 0x1140)
    );
    assert_eq!(phy.read(0, None, 0x1C), 0);
}
