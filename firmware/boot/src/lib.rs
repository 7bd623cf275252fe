//! The boot code, which CPU A runs from the boot memory after a reset.
//!
//! It reads the serial EEPROM, copies the image to start into NIC memory and jumps to it;
//! otherwise it reports "PROM failed" and halts for the host, like the chip's own boot code
//! (hardware reference 3.4, `R[140]` bit 4). [`boot_slots::select`] selects the image; this crate
//! gives it access to the EEPROM and to NIC memory.
//!
//! ```text
//!  reset ─> clear the EEPROM's bus ─> give the host time to halt us
//!        ─> choose: image into NIC memory, CRC-32, trial counted
//!        ├─> start:  BootSource = slot          jump to the image
//!        ├─> blank:  BootReport = blank         halt
//!        └─> failed: BootReport = why           R[140] = PROM failed, halt
//! ```
//!
//! It has no variables and no heap: everything is on the stack, at the end of CPU A's scratch pad.
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
/// The counter's tick is 8 core clocks, 91 ns: five ticks of the EEPROM's bus last 0.45 us, as
/// parts for 1 MHz require.
const PRESCALER: u8 = 7;
/// Ticks in a millisecond, nearly.
const TICKS_PER_MS: u32 = 11_000;
/// How long the boot code leaves the EEPROM alone after a reset. A driver resets the chip and then
/// halts the CPUs to load its own firmware; it must find the bus free.
const GRACE_MS: u32 = 50;

/// Boots. Returns the address to jump to, or `None` when the CPU has halted itself.
pub fn run<B: Bus>(bus: &mut B, board: BoardId) -> Option<u32> {
    let config = MiscConfig::new()
        .with_synchronous_sram(true)
        .with_timer_prescaler(PRESCALER);
    bus.write(Register::MiscConfig, config.into_bits());
    let local = MiscLocalControl::new().with_sram_bank(SRAM_BANK);
    bus.write(Register::MiscLocalControl, local.into_bits());
    bus.store(Extension::BootSource.nic_address(), 0);
    bus.store(Extension::BootReport.nic_address(), 0);
    // The reset may have interrupted a transfer.
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

/// NIC memory, the destination of the image.
struct NicMemory<'a, 'b, B: Bus>(&'a core::cell::RefCell<&'b mut B>);

impl<B: Bus> Memory for NicMemory<'_, '_, B> {
    fn place(&mut self, address: u32, bytes: &[u8]) {
        let mut bus = self.0.borrow_mut();
        // Byte by byte: a word from bytes of unknown alignment would be an unaligned load.
        for (at, byte) in (address..).zip(bytes) {
            bus.store_byte(at, *byte);
        }
    }
}
