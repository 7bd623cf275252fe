//! The whole card: reset, stored registers, and the register sequences of the vendor firmware and
//! of the real driver, none of which may contain an undefined access.

use crate::testing::{Bench, HOST_BASE, K, RX_BASE, STATION, TX_BASE};
use crate::{Accessor, Cpu, Effect, UndefinedKind};
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_chip::{Access, Register as R};

mod boot;
mod signals;

/// Reference 19, "Boot register sequence of the vendor firmware": every register of it
/// exists, takes its value, and the result is a card in its normal state (C).
#[test]
fn the_vendor_boot_sequence() {
    let mut bench = Bench::default();
    bench.write(R::UnknownEc, 3);
    let state = bench.read(R::CpuAState);
    bench.write(R::CpuAState, state | 4);
    bench.write(R::SpillBaseA, 0x00BF_F000 - K);
    bench.write(R::SpillBaseB, 0x00BF_E000 - K);
    let state = bench.read(R::CpuBState);
    bench.write(R::CpuBState, state | 0x1_0000);
    bench.write(R::SemaphoreA, 1);
    assert_ne!(bench.read(R::SemaphoreA), 0);
    bench.write(R::SemaphoreA, 1);
    for (register, value) in [
        (R::Timer, 0),
        (R::AssistState, 0),
        (R::DmaWriteState, 1),
        (R::DmaReadState, 1),
        (R::TxBase, 0),
        (R::RxBase, 0),
        (R::DmaReadHostHigh, (HOST_BASE >> 32) as u32),
        (R::DmaReadHostLow, HOST_BASE as u32),
        (R::DmaReadLocal, 0x6000),
        (R::DmaReadLength, 0x490),
        (R::DmaReadState, 0x86),
    ] {
        bench.write(register, value);
    }
    bench.run();
    assert_eq!(
        bench.read(R::DmaReadState) & 0xEF00_0004,
        0,
        "done, without errors"
    );
    bench.write(R::MacThresholds, 0);
    bench.write(R::MacTxState, 1);
    bench.write(R::MacRxState, 1);
    assert_eq!(bench.read(R::MacTxState) & 1, 0, "resets clear themselves");
    assert_eq!(bench.read(R::MacRxState) & 1, 0);
    for register in [
        R::RxBase,
        R::RxProducer,
        R::RxConsumer,
        R::TxBase,
        R::TxProducer,
        R::TxConsumer,
    ] {
        bench.write(register, TX_BASE);
        assert_eq!(bench.read(register), TX_BASE);
    }
    for register in [
        R::RxDescriptorProducer,
        R::RxDescriptorConsumer,
        R::RxDescriptorReference,
    ] {
        bench.write(register, K + block::MAC_RX_RING);
        assert_eq!(bench.read(register), K + block::MAC_RX_RING);
    }
    for register in [
        R::TxDescriptorProducer,
        R::TxDescriptorConsumer,
        R::TxDescriptorReference,
    ] {
        bench.write(register, K + block::MAC_TX_RING);
        assert_eq!(bench.read(register), K + block::MAC_TX_RING);
    }
    bench.write(R::Unknown23c, 0);
    for register in [R::RxBase, R::RxProducer, R::RxConsumer] {
        bench.write(register, RX_BASE);
    }
    bench.write(R::AssistState, 0x20);
    for register in [
        R::AssistReadProducer,
        R::AssistReadConsumer,
        R::AssistReadReference,
        R::AssistRead110,
        R::AssistRead114,
        R::AssistRead118,
        R::AssistWriteProducer,
        R::AssistWriteConsumer,
        R::AssistWriteReference,
        R::AssistWrite130,
        R::AssistWrite134,
        R::AssistWrite138,
    ] {
        bench.write(register, 0);
    }
    bench.write(R::AssistState, 0x21);
    bench.write(R::AssistState, 0x25);
    assert_eq!(bench.read(R::AssistState), 0x25);
    for register in [
        R::MulticastHash0,
        R::MulticastHash1,
        R::MulticastHash2,
        R::MulticastHash3,
    ] {
        bench.write(register, 0);
    }
    bench.write(R::EventA, 0x0800_0080);
    bench.write(R::MailboxEventA, u32::MAX);
    let config = bench.read(R::MiscConfig);
    bench.write(R::MiscConfig, config & !0x7F | 0x55);
    let now = bench.read(R::Timer);
    bench.write(R::TimerReferenceA, now + 1000);
    bench.write(R::CpuBPc, 0x5000);
    bench.write(R::CpuBState, 0);
    assert_eq!(bench.read(R::EventA), 0x0800_0080);
    let [a, b, c, d, e, f] = STATION;
    bench.write(R::StationAddressHigh, u32::from_be_bytes([0, 0, a, b]));
    bench.write(R::StationAddressLow, u32::from_be_bytes([c, d, e, f]));
    bench.write(R::BackoffSeed, u32::from_be_bytes([c, d, e, f]));
    bench.write(R::MacThresholds, 0x100B_07E3);
    bench.write(R::MiscLocalControl, 4);
    assert_eq!(
        bench.card.inspect().undefined().count(),
        0,
        "{:?}",
        bench.card.inspect().undefined()
    );
    let effects = bench.effects();
    assert!(effects.contains(&Effect::SpillBase {
        cpu: Cpu::A,
        base: 0x00BF_F000 - K
    }));
    assert!(effects.contains(&Effect::SpillBase {
        cpu: Cpu::B,
        base: 0x00BF_E000 - K
    }));
    assert!(effects.contains(&Effect::CpuStart {
        cpu: Cpu::B,
        pc: 0x5000
    }));
    assert_eq!(effects.last(), Some(&Effect::Interrupt(true)));
    assert_eq!(
        bench.card.inspect().sram_address(Cpu::A, 0x00BF_F000),
        Some(K & 0xF_FFFF)
    );
    assert_eq!(
        bench.card.inspect().sram_address(Cpu::B, 0x00BF_E000),
        Some(K & 0xF_FFFF)
    );
    assert_eq!(bench.card.inspect().sram_address(Cpu::A, 0x00C0_0000), None);
}

/// Reference 19 and 6.2: the accesses of the real driver up to the start of CPU A, its 1 in
/// R[11C] among them (C); host interface, "What an unmodified driver does at start".
#[test]
fn the_driver_start_sequence() {
    let mut bench = Bench::default();
    bench.bar_write(0x40, 0x0800_0008);
    bench.bar_read(0x40);
    bench.bar_write(0x40, 0x2200_0022);
    assert_eq!(bench.bar_read(0x40) >> 28, 6);
    for state in [0x140, 0x240] {
        let value = bench.bar_read(state);
        bench.bar_write(state, value | 0x1_0000);
    }
    bench.bar_write(0x504, 0);
    bench.bar_write(0x44, 0x200);
    bench.bar_write(0x50, 0x10_0000);
    bench.bar_write(0x618, 0x4000_021C);
    assert_eq!(bench.bar_read(0x618), 0x4000_021C, "reads back (19, NEW)");
    assert_eq!(bench.bar_read(0x50), 0x10_0000);
    assert_eq!(
        bench.bar_read(0x5C) & 0x18_0000,
        0x8_0000,
        "64 bits, 66 MHz"
    );
    bench.bar_write(0x5C, 0x7602_0000);
    assert_ne!(bench.bar_read(0x140) & 0xFFFF_0000, 0, "halted");
    for address in (0x2000..0x8000).step_by(4) {
        bench.bar_write(0x68, address & !0x7FF);
        bench.bar_write(0x800 + (address & 0x7FF), address ^ 0x5555_0000);
    }
    assert_eq!(bench.word(0x7FFC), 0x7FFC ^ 0x5555_0000);
    bench.bar_write(0x144, 0x4000);
    for producer in [0x504, 0x514, 0x680, 0x51C, 0x524, 0x52C] {
        bench.bar_write(producer, 0);
    }
    bench.bar_write(0x11C, 1);
    let value = bench.bar_read(0x140);
    bench.bar_write(0x140, value & !0x1_0002);
    assert_eq!(
        bench.effects(),
        [Effect::CpuStart {
            cpu: Cpu::A,
            pc: 0x4000
        }]
    );
    assert_eq!(
        bench.card.inspect().undefined().count(),
        0,
        "{:?}",
        bench.card.inspect().undefined()
    );
}

/// Reference 19: at unload the driver halts both CPUs by read-modify-write (C!) and writes 1
/// to mailbox 0; the next load finds a card that can be started again.
#[test]
fn the_driver_unloads_and_loads_again() {
    let mut bench = Bench::default();
    for _ in 0..3 {
        bench.bar_write(0x144, 0x4000);
        bench.bar_write(0x140, 0);
        bench.write(R::CpuAState, 4);
        assert_eq!(bench.bar_read(0x140), 4, "running; bit 2 is firmware's");
        for state in [0x140, 0x240] {
            let value = bench.bar_read(state);
            bench.bar_write(state, value | 0x1_0000);
        }
        assert_eq!(bench.bar_read(0x140), 0x1_0004);
        bench.bar_write(0x504, 1);
        let kinds = bench.effects();
        let start = Effect::CpuStart {
            cpu: Cpu::A,
            pc: 0x4000,
        };
        assert_eq!(kinds, [start, Effect::CpuHalt { cpu: Cpu::A }]);
    }
}

/// Reference 19: the bus-master bit is stored and gates nothing.
#[test]
fn dma_does_not_ask_for_the_bus_master_bit() {
    let mut bench = Bench::default();
    bench.bring_up();
    bench.with(|card, env| card.config_write(env, 4, &[0, 0]));
    bench.set_word(0x6000, 0x1234_5678);
    bench.write(R::DmaWriteHostHigh, (HOST_BASE >> 32) as u32);
    bench.write(R::DmaWriteHostLow, 0);
    bench.write(R::DmaWriteLocal, 0x6000);
    bench.write(R::DmaWriteLength, 4);
    bench.write(R::DmaWriteState, 6);
    bench.run();
    assert_eq!(bench.host.word(HOST_BASE), Ok(0x1234_5678));
    bench.with(|card, env| card.config_write(env, 4, &[6, 0]));
    let mut command = [0; 2];
    bench.card.config_read(4, &mut command);
    assert_eq!(command, [6, 0]);
}

/// Reference 7 and 5: bit 28 of each CPU follows its own reference (C).
#[test]
fn timer_events_are_per_cpu() {
    let mut bench = Bench::default();
    let timer = EventBit::Timer.mask();
    bench.write(R::MiscConfig, 0x55);
    bench.write(R::Timer, 0);
    assert_eq!(bench.read(R::EventA) | bench.read(R::EventB), 0);
    bench.write(R::TimerReferenceA, 1000);
    bench.write(R::TimerReferenceB, 5);
    let due = bench.card.next_deadline(bench.now).unwrap_or_default();
    bench.pass(due);
    assert_eq!(bench.read(R::Timer), 5);
    assert_eq!(bench.read(R::EventA), 0);
    assert_eq!(bench.read(R::EventB), timer);
    bench.write(R::TimerReferenceB, 10);
    assert_eq!(bench.read(R::EventB), 0);
    bench.pass(1_000_000);
    assert_eq!(
        (bench.read(R::EventA), bench.read(R::EventB)),
        (timer, timer)
    );
}

/// Reference 9 and 10.4: registers that only store, among them all of unknown purpose (U).
#[test]
fn stored_registers_give_back_what_was_written() {
    let mut bench = Bench::default();
    let stored = [
        R::Serial,
        R::UnknownEc,
        R::AssistRead110,
        R::AssistRead114,
        R::AssistRead118,
        R::AssistWrite130,
        R::AssistWrite134,
        R::AssistWrite138,
        R::SpillBaseA,
        R::SpillBaseB,
        R::BackoffSeed,
        R::TxLengths,
        R::MacThresholds,
        R::Unknown23c,
        R::MiscConfig,
        R::StationAddressHigh,
        R::StationAddressLow,
        R::MulticastHash0,
        R::MulticastHash1,
        R::MulticastHash2,
        R::MulticastHash3,
        R::TxConfigWord,
        R::PhyInterface,
        R::ScratchAddressA,
        R::ScratchAddressB,
        R::TimerReferenceA,
        R::TimerReferenceB,
    ];
    for (n, register) in stored.iter().enumerate() {
        bench.write(*register, 0x0D10_0000 + n as u32);
    }
    for (n, register) in stored.iter().enumerate() {
        assert_eq!(
            bench.read(*register),
            0x0D10_0000 + n as u32,
            "{register:?}"
        );
    }
}

/// Reference 9 and 19: chip reset (C that it may do this): registers to their reset values, CPUs halted, interrupt line
/// down; memory, EEPROM, cable and configuration space stay.
#[test]
fn a_chip_reset_leaves_only_what_is_not_the_chip() {
    let mut bench = Bench::default();
    bench.bring_up();
    bench.card.set_mac_address(STATION);
    bench.with(|card, env| card.config_write(env, 4, &[6, 0]));
    bench.bar_write(0x140, 0);
    bench.write(R::MiscLocalControl, 4);
    bench.bar_write(0x50C, 9);
    bench.effects();
    bench.bar_write(0x40, 0x0800_0008);
    let effects = bench.effects();
    assert!(effects.contains(&Effect::CpuHalt { cpu: Cpu::A }));
    assert!(
        !effects.contains(&Effect::CpuHalt { cpu: Cpu::B }),
        "B was halted"
    );
    assert!(effects.contains(&Effect::Interrupt(false)));
    assert!(effects.contains(&Effect::SpillBase {
        cpu: Cpu::A,
        base: 0
    }));
    for register in R::ALL {
        let expected = match register {
            R::MiscHostControl => 0x6000_0000,
            R::MiscLocalControl => 1 << 23,
            R::PciState => 0x8_0000,
            R::CpuAState | R::CpuBState => 0x1_0000,
            R::MacRxState => 0xC_0000,
            // The rings' bases follow from TxBase, which is 0.
            R::AssistReadProducer
            | R::AssistReadConsumer
            | R::AssistReadReference
            | R::AssistReadNextFree => 0x7F_F000,
            R::AssistWriteProducer
            | R::AssistWriteConsumer
            | R::AssistWriteReference
            | R::AssistWriteNextFree => 0x7F_F800,
            _ => 0,
        };
        assert_eq!(bench.read(*register), expected, "{register:?}");
    }
    assert_eq!(bench.word(0x10C), 9, "NIC memory stays");
    assert_eq!(bench.card.inspect().eeprom().mac_address(), STATION);
    let mut command = [0; 2];
    bench.card.config_read(4, &mut command);
    assert_eq!(command, [6, 0]);
    bench.with(|card, env| card.power_on(env));
    bench.card.config_read(4, &mut command);
    assert_eq!(command, [0, 0]);
}

/// Undefined accesses are counted with their origin, and read 0.
#[test]
fn undefined_accesses_are_noted() {
    let mut bench = Bench::default();
    assert_eq!(bench.bar_read(0x88), 0);
    bench.with(|card, env| card.cpu_write(env, Cpu::B, 0x10C, 5));
    bench.with(|card, env| card.cpu_write(env, Cpu::A, 0x61, 8));
    bench.write(R::EventA, 0);
    let log: Vec<_> = bench.card.inspect().undefined().latest().copied().collect();
    let noted: Vec<_> = log
        .iter()
        .map(|access| (access.by, access.kind, access.address))
        .collect();
    assert_eq!(
        noted,
        [
            (Accessor::Host, UndefinedKind::Read, 0x88),
            (Accessor::Cpu(Cpu::B), UndefinedKind::ReadOnly, 0x10C),
            (Accessor::Cpu(Cpu::A), UndefinedKind::Unaligned, 0x61),
        ]
    );
    assert_eq!(bench.card.inspect().undefined().count(), 3);
}

/// The card follows the chip's access table: a write to a read-only register is counted and
/// changes nothing.
#[test]
fn registers_can_be_written_as_the_table_says() {
    for register in R::ALL {
        let mut bench = Bench::default();
        bench.bring_up();
        let noted = bench.card.inspect().undefined().count();
        let before = bench.read(*register);
        bench.write(*register, !before);
        let read_only = bench
            .card
            .inspect()
            .undefined()
            .latest()
            .any(|access| access.kind == UndefinedKind::ReadOnly);
        assert_eq!(read_only, register.access() == Access::R, "{register:?}");
        if read_only {
            assert_eq!(bench.read(*register), before, "{register:?}");
            assert_eq!(
                bench.card.inspect().undefined().count(),
                noted + 1,
                "{register:?}"
            );
        }
    }
}

/// Reference 8: ones clear, zeros leave.
#[test]
fn ones_clear_where_the_table_says_so() {
    let clearing = R::ALL.iter().filter(|one| one.access() == Access::W1C);
    let clearing: Vec<_> = clearing.copied().collect();
    assert_eq!(clearing, [R::MailboxEventA, R::MailboxEventB]);
    for register in clearing {
        let mut bench = Bench::default();
        bench.bar_write(0x50C, 0);
        bench.bar_write(0x514, 0);
        assert_eq!(bench.read(register), 0b110, "{register:?}");
        bench.write(register, 0b010);
        assert_eq!(bench.read(register), 0b100, "{register:?}");
        bench.write(register, 0);
        assert_eq!(bench.read(register), 0b100, "{register:?}");
    }
}
