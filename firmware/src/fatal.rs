//! The end: words for the host, then the CPU halts.

use crate::Firmware;
use crate::log::log_error;
use host_interface::extension::{Extension, FatalCode, State};
use tigon2_chip::Register;
use tigon2_chip::bits::{AssistState, CpuState, MacRxState, MiscLocalControl};
use tigon2_hal::Bus;

/// Reports a fatal error and stops the firmware. On the chip nothing runs after it.
#[inline(never)]
pub fn report<B: Bus>(firmware: &mut Firmware<B>, code: FatalCode, argument: u32) {
    log_error!(
        "fatal: code {=u32}, argument {=u32:#x}",
        code as u32,
        argument
    );
    firmware.mask = 0;
    firmware.stopped = true;
    crate::statistics::publish(firmware);
    stop(&mut firmware.bus, code, argument);
}

/// Writes the words, tells the host by an interrupt, and halts both CPUs. The order of
/// vendor firmware: DMA is paused and the receiver stopped first (hardware reference,
/// section 3.4).
#[inline(never)]
pub fn stop<B: Bus>(bus: &mut B, code: FatalCode, argument: u32) {
    let pause = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, pause, pause);
    let quiet = MacRxState::new().with_stop(true).into_bits();
    bus.modify(Register::MacRxState, MacRxState::ATTENTION | quiet, quiet);
    let pc = bus.read(Register::CpuAPc);
    bus.store(Extension::FatalCode.nic_address(), code as u32);
    bus.store(Extension::FatalArgument.nic_address(), argument);
    bus.store(Extension::FatalCpuPc.nic_address(), pc);
    bus.store(Extension::State.nic_address(), State::Fatal as u32);
    let raise = MiscLocalControl::new()
        .with_raise_interrupt(true)
        .into_bits();
    bus.modify(Register::MiscLocalControl, raise, raise);
    let halt = CpuState::new().with_halt(true).into_bits();
    bus.modify(Register::CpuBState, halt, halt);
    bus.modify(Register::CpuAState, halt, halt);
}
