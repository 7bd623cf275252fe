//! Tests configurations: valid ones, and those that stop the firmware with a reason.

use crate::machine::{Machine, Setup};
use host_interface::event::{self, EventCode};
use host_interface::extension::{BadConfig, Extension, FatalCode, State};
use host_interface::info::{GeneralInformationBlock, HostAddress, RcbFlags, RingControlBlock};
use tigon2_chip::Register;
use tigon2_model::testing::HOST_BASE;

const JUMBO_RING: u64 = HOST_BASE + 0x4_0000;
const MINI_RING: u64 = HOST_BASE + 0x5_0000;

fn changed(change: impl FnOnce(&mut GeneralInformationBlock)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup.information);
    setup
}

fn flags(bits: u16) -> RcbFlags {
    RcbFlags::from_bits(bits)
}

fn with_flags(block: &mut RingControlBlock, bits: u16) {
    block.max_len_and_flags |= u32::from(bits);
}

fn mini(block: &mut GeneralInformationBlock, max_len: u16, bits: u16) {
    block.mini = RingControlBlock::new(MINI_RING, max_len, flags(bits));
    block.receive_return.max_len_and_flags = 2048 << 16;
}

fn stops_with(name: &str, setup: &Setup, bad: BadConfig) -> Machine {
    let mut machine = Machine::boot(setup);
    assert!(machine.is_stopped() && machine.is_halted(), "{name}");
    let word = |word| machine.extension(word);
    assert_eq!(word(Extension::State), State::Fatal as u32, "{name}");
    let code = FatalCode::Configuration as u32;
    assert_eq!(word(Extension::FatalCode), code, "{name}");
    assert_eq!(word(Extension::FatalArgument), bad as u32, "{name}");
    let entry = *machine.trace().last().expect("an entry");
    assert!(entry.is_panic(), "{name}");
    assert_eq!(
        (entry.code, entry.arguments[0]),
        (code, bad as u32),
        "{name}"
    );
    assert_eq!(machine.interrupts, 1, "{name}");
    machine
}

/// What the firmware could not work with stops it, with a code that a driver can read,
/// and an event for drivers that only know events.
#[test]
fn configurations_that_cannot_work_are_fatal_and_reported() {
    use BadConfig as Bad;
    let none = HostAddress::default();
    let host = RcbFlags::new().with_host_ring(true);
    let nic = |address, entries| {
        changed(|block| block.send = RingControlBlock::new(address, entries, RcbFlags::new()))
    };
    let cases = [
        ("a send ring of 100", Bad::SendRingSize, {
            changed(|block| block.send = RingControlBlock::new(HOST_BASE, 100, host))
        }),
        ("a send ring nowhere", Bad::NoSendRing, {
            changed(|block| block.send = RingControlBlock::new(0, 128, host))
        }),
        ("below 0x2000", Bad::NicSendRing, nic(0x1FF8, 128)),
        ("over 0x4000", Bad::NicSendRing, nic(0x3808, 128)),
        ("at 0x4000", Bad::NicSendRing, nic(0x4000, 128)),
        ("512 in the upper half", Bad::NicSendRing, nic(0x3000, 512)),
        (
            "with a high word",
            Bad::NicSendRing,
            nic(0x1_0000_3000, 128),
        ),
        ("odd place", Bad::NicSendRing, nic(0x3004, 128)),
        ("no standard ring", Bad::NoStandardRing, {
            changed(|block| block.standard.address = none)
        }),
        ("standard ring disabled", Bad::NoStandardRing, {
            changed(|block| with_flags(&mut block.standard, 0x200))
        }),
        ("tiny frames", Bad::StandardRingSize, {
            changed(|block| block.standard.max_len_and_flags = 59 << 16)
        }),
        (
            "mini without size",
            Bad::MiniRingSize,
            changed(|block| mini(block, 0, 0)),
        ),
        (
            "large mini",
            Bad::MiniRingSize,
            changed(|block| mini(block, 1519, 0)),
        ),
        ("no return ring", Bad::NoReturnRing, {
            changed(|block| block.receive_return.address = none)
        }),
        (
            "no return index",
            Bad::NoReturnRing,
            changed(|block| block.return_producer = none),
        ),
        ("odd return ring", Bad::ReturnRingSize, {
            changed(|block| block.receive_return.max_len_and_flags = 17 << 16)
        }),
        ("small return ring with mini", Bad::ReturnRingSize, {
            changed(|block| {
                mini(block, 100, 0);
                block.receive_return.max_len_and_flags = 1024 << 16;
            })
        }),
        ("send index at an odd place", Bad::Misaligned, {
            changed(|block| block.send_consumer.low += 2)
        }),
        ("statistics at an odd place", Bad::Misaligned, {
            changed(|block| block.refresh_statistics.low += 1)
        }),
    ];
    for (name, bad, setup) in cases {
        let mut machine = stops_with(name, &setup, bad);
        let events: Vec<_> = machine.events().iter().map(|e| (e.event, e.code)).collect();
        let reported = (EventCode::Error, event::ERROR_BAD_CONFIGURATION);
        assert_eq!(events, [reported], "{name}");
    }
}

/// Without an event ring the extension words and the interrupt remain.
#[test]
fn without_an_event_ring_nothing_is_written_to_the_host() {
    let cases = [
        changed(|block| block.event.address = HostAddress::default()),
        changed(|block| block.event_producer = HostAddress::default()),
    ];
    for setup in cases {
        stops_with("no event ring", &setup, BadConfig::NoEventRing);
    }
    let misaligned = changed(|block| block.event_producer.low += 1);
    stops_with("odd index", &misaligned, BadConfig::Misaligned);
    // An event ring that is nowhere: the firmware stops all the same.
    let nowhere = changed(|block| {
        block.event.address = HostAddress::new(1 << 40);
        with_flags(&mut block.standard, 0x200);
    });
    stops_with("unmapped", &nowhere, BadConfig::NoStandardRing);
}

/// Reference 12: checksum and VLAN flags (mask 0x9B) of the enabled standard, jumbo and
/// mini rings must be identical, else fatal (C).
#[test]
fn receive_rings_must_agree_on_their_offloads() {
    for bit in [0x01, 0x02, 0x08, 0x10, 0x80] {
        let jumbo = changed(|block| {
            block.jumbo = RingControlBlock::new(JUMBO_RING, 9018, flags(bit));
        });
        stops_with("jumbo", &jumbo, BadConfig::InconsistentFlags);
        let mini = changed(|block| mini(block, 100, bit));
        stops_with("mini", &mini, BadConfig::InconsistentFlags);
        let standard = changed(|block| {
            with_flags(&mut block.standard, bit);
            block.jumbo = RingControlBlock::new(JUMBO_RING, 9018, RcbFlags::new());
        });
        stops_with("standard", &standard, BadConfig::InconsistentFlags);
        // A ring that is disabled does not count, nor do the other flags.
        let fine = changed(|block| {
            with_flags(&mut block.standard, bit);
            block.jumbo = RingControlBlock::new(JUMBO_RING, 9018, flags(bit | 0x120));
            block.mini = RingControlBlock::new(MINI_RING, 100, flags(0x200));
        });
        assert!(!Machine::boot(&fine).is_stopped(), "{bit:#x}");
    }
}

/// Reference, second section 19: the settings of the Linux driver.
#[test]
fn the_linux_settings_are_accepted() {
    let setup = changed(|block| {
        block.send.max_len_and_flags = 256 << 16 | 0x79;
        with_flags(&mut block.standard, 0x19);
        block.jumbo = RingControlBlock::new(JUMBO_RING, 0, flags(0x19));
        mini(block, 100, 0x19);
    });
    let mut machine = Machine::boot(&setup);
    assert!(!machine.is_stopped());
    let events: Vec<_> = machine.events().iter().map(|e| e.event).collect();
    assert_eq!(events, [EventCode::FirmwareOperational]);
}

/// Reference 2.1 and 12: a send ring in NIC memory anywhere in 0x2000..0x4000 (C).
#[test]
fn send_rings_in_nic_memory_are_accepted_in_their_room() {
    for (address, entries) in [(0x3800, 128), (0x2000, 512), (0x2000, 128), (0x2008, 256)] {
        let setup = changed(|block| {
            block.send = RingControlBlock::new(address, entries, RcbFlags::new());
        });
        assert!(!Machine::boot(&setup).is_stopped(), "{address:#x}");
    }
}

/// Reference 9: R[5C] bit 23 together with receive checksums is fatal (C).
#[test]
fn byte_enables_are_refused_with_receive_checksums() {
    for (bits, refused) in [(0, false), (0x01, true), (0x02, true)] {
        let setup = changed(|block| with_flags(&mut block.standard, bits));
        let mut machine = Machine::boot_after(&setup, |bench| {
            bench.bar_write(Register::PciState.offset(), 0x0080_0000);
        });
        assert_eq!(machine.is_stopped(), refused, "{bits:#x}");
    }
}
