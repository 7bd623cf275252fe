//! The boot code: what CPU A runs after a reset, from the boot memory.
//!
//! It reads the serial EEPROM, puts the image that is to be started into NIC memory and
//! jumps to it; or it says "PROM failed" and halts for the host, as the chip's own does
//! (hardware reference 3.4, `R[140]` bit 4). Which image that is decides
//! [`boot_slots::select`]; here is the way to the EEPROM and to NIC memory.
//!
//! ```text
//!  reset ─> clear the EEPROM's bus ─> give the host time to halt us
//!        ─> choose: image into NIC memory, CRC-32, trial counted
//!        ├─> start:  BootSource = slot          jump to the image
//!        ├─> blank:  BootReport = blank         halt
//!        └─> failed: BootReport = why           R[140] = PROM failed, halt
//! ```
//!
//! No variables, no heap: everything is on the stack, at the end of CPU A's scratch pad.
#![no_std]
#![cfg_attr(target_arch = "mips", feature(asm_experimental_arch))]

pub mod eeprom;
#[cfg(target_arch = "mips")]
mod start;

use boot_slots::BoardId;
use boot_slots::select::{Choice, Memory, choose};
use eeprom::Part;
use embedded_hal::delay::DelayNs;
use host_interface::extension::{BootReport, BootSource, Extension};
use tigon2_chip::Register;
use tigon2_chip::bits::{CpuState, MiscConfig, MiscLocalControl};
use tigon2_hal::Bus;
use tigon2_hal::timer::Delay;

/// SRAM bank size code that drivers write: 512 KB (9).
const SRAM_BANK: u8 = 2;
/// The counter's tick is 8 core clocks, 91 ns: what the EEPROM's bus holds for five ticks
/// lasts 0.45 us, as parts for 1 MHz ask for.
const PRESCALER: u8 = 7;
/// Ticks in a millisecond, nearly.
const TICKS_PER_MS: u32 = 11_000;
/// How long the EEPROM is left alone after a reset. A driver resets the chip and then
/// halts the CPUs to load firmware of its own; it must find the bus free.
const GRACE_MS: u32 = 50;

/// Boots. Gives the address to jump to, or `None` when the CPU has halted itself.
pub fn run<B: Bus>(bus: &mut B, board: BoardId) -> Option<u32> {
    let config = MiscConfig::new()
        .with_synchronous_sram(true)
        .with_timer_prescaler(PRESCALER);
    bus.write(Register::MiscConfig, config.into_bits());
    let local = MiscLocalControl::new().with_sram_bank(SRAM_BANK);
    bus.write(Register::MiscLocalControl, local.into_bits());
    bus.store(Extension::BootSource.nic_address(), 0);
    bus.store(Extension::BootReport.nic_address(), 0);
    // A reset may have come in the middle of a transfer.
    eeprom::clear(bus);
    for _ in 0..GRACE_MS {
        Delay(bus).delay_us(TICKS_PER_MS);
    }
    let choice = {
        let bus = core::cell::RefCell::new(&mut *bus);
        choose(&mut Part::new(&bus), board, &mut NicMemory(&bus))
    };
    let halt = CpuState::new().with_halt(true);
    match choice {
        Choice::Start { slot, start, trial } => {
            let source = BootSource::new()
                .with_slot(slot.index() as u8)
                .with_trial(trial)
                .with_handed_over(true);
            bus.store(Extension::BootSource.nic_address(), source.signed());
            return Some(start);
        }
        Choice::Blank => {
            let report = BootReport::new().with_blank(true);
            bus.store(Extension::BootReport.nic_address(), report.signed());
            bus.write(Register::CpuAState, halt.into_bits());
        }
        Choice::Failed([zero, one]) => {
            let report = BootReport::new()
                .with_slot_0(zero as u8)
                .with_slot_1(one as u8);
            bus.store(Extension::BootReport.nic_address(), report.signed());
            let failed = halt.with_rom_failed(true);
            bus.write(Register::CpuAState, failed.into_bits());
        }
    }
    None
}

/// NIC memory, where the image goes.
struct NicMemory<'a, 'b, B: Bus>(&'a core::cell::RefCell<&'b mut B>);

impl<B: Bus> Memory for NicMemory<'_, '_, B> {
    fn place(&mut self, address: u32, bytes: &[u8]) {
        let mut bus = self.0.borrow_mut();
        // By the byte: a word from bytes of unknown alignment would be an unaligned load.
        for (at, byte) in (address..).zip(bytes) {
            bus.store_byte(at, *byte);
        }
    }
}
