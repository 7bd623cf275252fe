//! Tests the boot from reset to link-up, and invalid configurations.

use crate::machine::{Machine, Setup};
use host_interface::event::EventCode;
use host_interface::extension::{self, Extension, State};
use tigon2_chip::Register;

/// Reference 19: FIRMWARE_UP by DMA, then the interrupt.
#[test]
fn boot_announces_the_firmware_by_event_and_interrupt() {
    let mut machine = Machine::boot(&Setup::default());
    assert_eq!(machine.interrupts, 1);
    let events = machine.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event, EventCode::FirmwareOperational);
    assert_eq!(machine.extension(Extension::Magic), extension::MAGIC);
    assert_eq!(machine.extension(Extension::Version), extension::VERSION);
    assert_eq!(machine.extension(Extension::State), State::Running as u32);
    assert_eq!(machine.extension(Extension::SramBytes), 0x10_0000);
}

/// Reference 2.2, 6.3, 18: the layout that makes every rule for the ring base agree.
#[test]
fn the_registers_name_the_layout_of_the_reference() {
    let machine = Machine::boot(&Setup::default());
    let k = 0x12_F000;
    assert_eq!(machine.bar(Register::SpillBaseA.offset()), 0x00BF_F000 - k);
    assert_eq!(machine.bar(Register::SpillBaseB.offset()), 0x00BF_E000 - k);
    assert_eq!(machine.bar(Register::TxBase.offset()), k + 0x5000);
    assert_eq!(
        machine.bar(Register::AssistReadConsumer.offset()) & !0x7FF,
        k + 0x4000
    );
    assert_eq!(
        machine.bar(Register::AssistWriteConsumer.offset()) & !0x7FF,
        k + 0x4800
    );
    assert_eq!(machine.bar(Register::MiscConfig.offset()) & 0x7F, 0x55);
}
