//! Fatal errors: publish the reason, then halt the CPUs.

use super::trace;
use crate::io::direct;
use crate::memory::last_event::LAST_EVENT;
use crate::memory::layout::INFORMATION;
use host_interface::event::{self, Event, EventCode};
use host_interface::extension::{Extension, FatalCode, State};
use host_interface::gencom::Gencom;
use host_interface::info::InformationAt;
use host_interface::ring::{EVENT_BYTES, EVENT_ENTRIES, advance};
use tigon2_chip::bits::{AssistState, CpuState, MacRxState, MiscLocalControl};
use tigon2_chip::{Cpu, Register};
use tigon2_hal::events::Dispatch;

/// Writes the reason, notifies the host by an event and an interrupt, and halts both CPUs. Either
/// CPU may call it: it halts the other one first and then uses everything alone. The order follows
/// vendor firmware: pause DMA and stop the receiver first (hardware reference, section 3.4).
#[inline(never)]
pub fn stop<B: Dispatch>(bus: &mut B, code: FatalCode, argument: u32) {
    let cpu = bus.core(|core| {
        core.stop();
        core.cpu()
    });
    let halt = CpuState::new().with_halt(true).into_bits();
    bus.modify(Register::cpu_state(cpu.other()), halt, halt);
    let pause = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, pause, pause);
    let quiet = MacRxState::new().with_stop(true).into_bits();
    bus.modify(Register::MacRxState, MacRxState::ATTENTION | quiet, quiet);
    let pc = match cpu {
        Cpu::A => bus.read(Register::CpuAPc),
        _ => bus.read(Register::CpuBPc) | 1,
    };
    trace::panic(bus, code as u32, [argument, pc, 0, 0]);
    // Before the event: a host that gets the event reads these words.
    bus.store(Extension::FatalCode.nic_address(), code as u32);
    bus.store(Extension::FatalArgument.nic_address(), argument);
    bus.store(Extension::FatalCpuPc.nic_address(), pc);
    bus.store(Extension::State.nic_address(), State::Fatal as u32);
    last_event(bus, code);
    let raise = MiscLocalControl::new()
        .with_raise_interrupt(true)
        .into_bits();
    bus.modify(Register::MiscLocalControl, raise, raise);
    bus.modify(Register::cpu_state(cpu), halt, halt);
}

/// Writes the error event without the assist, which is paused: its queued transfers never run. The
/// event therefore goes to the slot after the last one that the host knows.
fn last_event<B: Dispatch>(bus: &mut B, code: FatalCode) {
    let state = bus.load(LAST_EVENT.state());
    let producer = bus.load(LAST_EVENT.producer());
    let next = advance(producer, 1, EVENT_ENTRIES);
    if state == 0 || next == bus.load(Gencom::EventConsumer.nic_address()) {
        return;
    }
    let event = if matches!(code, FatalCode::Configuration) {
        Event::new(EventCode::Error, event::ERROR_BAD_CONFIGURATION)
    } else {
        Event {
            index: code as u16,
            ..Event::new(EventCode::Error, event::ERROR_FATAL)
        }
    };
    let [word, reserved] = event.pack();
    let words = [word, reserved, next, 0];
    for (address, word) in (LAST_EVENT.entry()..).step_by(4).zip(words) {
        bus.store(address, word);
    }
    let information = InformationAt(INFORMATION);
    let ring = bus.load_host_address(information.event());
    let index = bus.load_host_address(information.event_producer());
    let entry = ring.plus(advance(producer, 0, EVENT_ENTRIES) * EVENT_BYTES);
    direct::finished(bus, direct::WRITE);
    direct::reset(bus, direct::WRITE);
    for (host, local) in [(entry, LAST_EVENT.entry()), (index, LAST_EVENT.index())] {
        if direct::transfer(bus, direct::WRITE, host, local, 8, state).is_err() {
            return;
        }
    }
}
