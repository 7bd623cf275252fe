//! Signals between CPUs and host: shared registers and memory, mailboxes, interrupt, semaphore,
//! and the halt after a fatal error.

use crate::testing::{Bench, HOST_BASE, STATION};
use crate::{Cpu, DropReason, Effect, Reception};
use tigon2_chip::bits::MiscLocalControl;
use tigon2_chip::dma::DmaDescriptor;
use tigon2_chip::events::EventBit;
use tigon2_chip::mdio;
use tigon2_chip::{HostAddress, Register as R};

fn read_by(bench: &mut Bench, cpu: Cpu, register: R) -> u32 {
    bench.with(|card, env| card.cpu_read(env, cpu, register.offset()))
}

fn write_by(bench: &mut Bench, cpu: Cpu, register: R, value: u32) {
    bench.with(|card, env| card.cpu_write(env, cpu, register.offset(), value));
}

/// Reference 2: the registers at 0xC0000000 have the same offsets as in the host's BAR (C).
#[test]
fn both_cpus_and_the_host_see_the_same_registers() {
    let mut bench = Bench::default();
    bench.bring_up();
    for register in R::ALL {
        let host = bench.bar_read(register.offset());
        for cpu in Cpu::ALL {
            assert_eq!(read_by(&mut bench, cpu, *register), host, "{register:?}");
        }
    }
    for (n, register) in (1..).zip([R::UnknownEc, R::TimerReferenceB, R::StationAddressLow]) {
        bench.bar_write(register.offset(), n);
        assert_eq!(read_by(&mut bench, Cpu::B, register), n);
        write_by(&mut bench, Cpu::B, register, 2 * n);
        assert_eq!(bench.bar_read(register.offset()), 2 * n);
    }
}

/// Reference 2.1: what the host sees at BAR 400-4FF and 600-7FF (statistics, gencom, command
/// ring) is memory without side effects, defined by software (C). So the word at BAR 618
/// reads back (second section 19, NEW).
#[test]
fn all_but_the_mailboxes_is_plain_memory() {
    let mut bench = Bench::default();
    let plain = (0x400..0x500).chain(0x600..0x800).step_by(4);
    for offset in plain.clone() {
        bench.bar_write(offset, offset ^ 0xA5A5_0000);
    }
    assert_eq!(bench.read(R::MailboxEventA), 0);
    assert_eq!((bench.read(R::EventA), bench.effects()), (0, vec![]));
    for offset in plain {
        assert_eq!(bench.word(offset - 0x400), offset ^ 0xA5A5_0000);
        assert_eq!(bench.bar_read(offset), offset ^ 0xA5A5_0000);
    }
}

/// Reference 8: there are 32 mailboxes of 8 bytes at BAR 500; a write to the low word of each
/// stores it and sets its bit in both registers (C), which is event bit 22 of that CPU until
/// that CPU has cleared it (5, C).
#[test]
fn every_mailbox_rings_both_cpus() {
    let mut bench = Bench::default();
    let event = EventBit::Mailbox.mask();
    for n in 0..32 {
        bench.bar_write(0x500 + 8 * n + 4, 0x100 + n);
        assert_eq!(bench.word(0x100 + 8 * n + 4), 0x100 + n);
        for cpu in Cpu::ALL {
            assert_eq!(read_by(&mut bench, cpu, R::mailbox_event(cpu)), 1 << n);
            assert_eq!(read_by(&mut bench, cpu, R::event(cpu)), event);
            write_by(&mut bench, cpu, R::mailbox_event(cpu), 1 << n);
            assert_eq!(read_by(&mut bench, cpu, R::event(cpu)), 0);
        }
    }
}

/// Reference 8: software clears the bit and reads the word (again); whenever the host writes,
/// either the word is new or the bit is set again (C).
#[test]
fn no_update_of_a_mailbox_is_lost() {
    for moment in 0..4 {
        let mut bench = Bench::default();
        let host = |bench: &mut Bench, now| {
            if now == moment {
                bench.bar_write(0x514, 2);
            }
        };
        bench.bar_write(0x514, 1);
        host(&mut bench, 0);
        assert_eq!(bench.read(R::MailboxEventA), 4);
        host(&mut bench, 1);
        bench.write(R::MailboxEventA, 4);
        host(&mut bench, 2);
        let seen = bench.word(0x114);
        host(&mut bench, 3);
        let rung = bench.read(R::MailboxEventA) & 4 != 0;
        assert!(seen == 2 || rung, "moment {moment}");
        assert_eq!(
            rung,
            moment >= 2,
            "only a write after the clearing rings again"
        );
    }
}

/// Reference 8 and 19: a host write of any value to mailbox 0 takes the interrupt away (C!).
/// A driver writes 0 at the start of its handler: the next one may rise while it still runs.
#[test]
fn any_write_to_mailbox_0_clears_the_interrupt() {
    let mut bench = Bench::default();
    for value in [0, 1, 0xFFFF_FFFF, 0] {
        bench.write(R::MiscLocalControl, 4);
        assert_eq!(
            bench.read(R::MiscHostControl) & 1,
            1,
            "firmware looks (8, C)"
        );
        assert_eq!(bench.bar_read(0x40) & 1, 1);
        bench.bar_write(0x504, value);
        assert_eq!(bench.read(R::MiscHostControl) & 1, 0);
        assert_eq!(bench.word(0x104), value, "firmware finds the value");
        let seen = bench.effects();
        assert_eq!(seen, [Effect::Interrupt(true), Effect::Interrupt(false)]);
    }
    // A write of a NIC CPU to the word is a store to memory and clears nothing (I).
    bench.write(R::MiscLocalControl, 4);
    bench.set_word(0x104, 0);
    assert_eq!(bench.bar_read(0x40) & 1, 1);
}

/// Reference 4: either CPU can access both request registers (C); the value that is written
/// does not count.
#[test]
fn either_cpu_can_use_both_request_registers() {
    let mut bench = Bench::default();
    write_by(&mut bench, Cpu::B, R::SemaphoreA, 0);
    assert_ne!(read_by(&mut bench, Cpu::A, R::SemaphoreA), 0);
    assert_ne!(read_by(&mut bench, Cpu::B, R::SemaphoreA), 0);
    assert_eq!(read_by(&mut bench, Cpu::B, R::SemaphoreB), 0);
    write_by(&mut bench, Cpu::A, R::SemaphoreA, u32::MAX);
    write_by(&mut bench, Cpu::A, R::SemaphoreB, 7);
    assert_ne!(read_by(&mut bench, Cpu::B, R::SemaphoreB), 0);
}

/// Reference 9: with MDIO data in stuck at 0 every PHY register reads 0, by which firmware
/// knows a fibre board (C). The frame is the one of the reference, driven by R[44] bits 16-18.
#[test]
fn no_phy_answers_on_a_fibre_board() {
    let mut bench = Bench::default();
    let line = |bench: &mut Bench, drive: bool, data: bool, clock: bool| {
        let lines = MiscLocalControl::new()
            .with_mdio_drive(drive)
            .with_mdio_out(data)
            .with_mdio_clock(clock)
            .into_bits();
        bench.write(R::MiscLocalControl, lines);
        let stored = bench.read(R::MiscLocalControl);
        assert_eq!(stored & 0x7_0000, lines, "the outputs read back (C)");
        MiscLocalControl::from_bits(stored).mdio_in()
    };
    for (phy, register) in [(1, 0), (1, 1), (1, 2), (0, 1), (31, 31)] {
        let header = mdio::read_header(phy, register);
        for _ in 0..mdio::PREAMBLE_BITS {
            line(&mut bench, true, true, false);
            line(&mut bench, true, true, true);
        }
        for bit in (0..mdio::HEADER_BITS).rev() {
            line(&mut bench, true, header >> bit & 1 != 0, false);
            line(&mut bench, true, header >> bit & 1 != 0, true);
        }
        for _ in 0..2 + 16 {
            assert!(!line(&mut bench, false, false, false));
            assert!(!line(&mut bench, false, false, true));
        }
    }
    assert_eq!(bench.card.inspect().undefined().count(), 0);
}

/// Reference 9 and 11: the values of R[50] for each medium read back, and their prescaler
/// counts (C).
#[test]
fn misc_configuration_of_every_medium() {
    let mut bench = Bench::default();
    for value in [0x10_0055, 0x0710_0055, 0x0A10_0055, 0x0D10_0055] {
        bench.write(R::MiscConfig, value);
        assert_eq!(bench.read(R::MiscConfig), value);
        bench.write(R::Timer, 0);
        bench.pass(9_773);
        assert_eq!(bench.read(R::Timer), 10);
    }
}

/// Reference 3.4: before firmware stops itself it pauses the assist, R[11C] |= 2, and stops
/// the receiver, R[220] |= 4; then it sets bit 16 of R[140] (C). Nothing moves after it.
#[test]
fn a_fatal_end_is_quiet() {
    let mut bench = Bench::default();
    bench.bring_up();
    bench.bar_write(0x140, 0);
    bench.effects();
    for (register, bits) in [
        (R::AssistState, 2),
        (R::MacRxState, 4),
        (R::CpuAState, 0x1_0000),
    ] {
        let value = bench.read(register);
        bench.write(register, value | bits);
    }
    let descriptor = DmaDescriptor {
        host: HostAddress::new(HOST_BASE & !0xFFFF_FFFF),
        local: 0x6000,
        length: 4,
        ..DmaDescriptor::default()
    };
    let address = bench.read(R::AssistWriteNextFree);
    bench.set_bytes(address, &descriptor.to_nic_bytes());
    bench.set_word(0x6000, 7);
    bench.write(R::AssistWriteProducer, address + 32);
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&STATION);
    let stopped = Reception::Dropped(DropReason::Stopped);
    assert_eq!(bench.receive(&frame), stopped);
    bench.run();
    assert_eq!(bench.host.word(HOST_BASE), Ok(0));
    assert_eq!(bench.effects(), [Effect::CpuHalt { cpu: Cpu::A }]);
}
