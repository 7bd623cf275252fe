//! The trace: a ring in NIC memory that records rare events.
//!
//! Hardware reference, section 12: entries of 32 bytes, {label, code, time, arguments}, written
//! downwards; gencom holds the ring's place. The host selects topics with the trace mask and reads
//! the ring through its window. After a fatal error the newest entry is "*PANIC*".

use crate::memory::layout::{TRACE, TRACE_BYTES};
use crate::memory::region::{Regions, Trace};
use host_interface::gencom::Gencom;
use host_interface::trace::{ENTRY_BYTES, PANIC_LABEL, Topic, label_words};
use spin::Mutex;
use tigon2_chip::Register;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

const ENTRY: u32 = ENTRY_BYTES as u32;

/// The ring. Both CPUs write it, so one of them at a time.
static RING: Mutex<Trace> = Mutex::new(Regions::of_sram().trace);

/// Empties the ring and reports its address to the host.
pub fn start<B: Bus>(bus: &mut B) {
    for address in (TRACE..TRACE + TRACE_BYTES).step_by(4) {
        bus.store(address, 0);
    }
    bus.store(Gencom::TraceStart.nic_address(), TRACE);
    bus.store(Gencom::TraceLength.nic_address(), TRACE_BYTES);
    let last = TRACE + TRACE_BYTES - ENTRY;
    bus.store(Gencom::TracePointer.nic_address(), last);
}

/// Records an entry if the host wants the topic traced.
#[inline(never)]
pub fn record<B: Dispatch>(bus: &mut B, topic: Topic, code: u32, arguments: [u32; 4]) {
    let mask = bus.load(Gencom::TraceMask.nic_address()) | Topic::ALWAYS;
    if mask & topic.mask() != 0 {
        let _ring = RING.lock();
        write(bus, topic.label(), code, arguments);
    }
}

/// Records the end. The other CPU is halted, perhaps with the ring locked: all is this one's.
pub fn panic<B: Bus>(bus: &mut B, code: u32, arguments: [u32; 4]) {
    const LABEL: [u32; 2] = label_words(PANIC_LABEL);
    write(bus, LABEL, code, arguments);
}

/// Writes one entry. The pointer is in gencom, where the host can change it; any value of it
/// yields a slot in the ring.
fn write<B: Bus>(bus: &mut B, label: [u32; 2], code: u32, arguments: [u32; 4]) {
    const MASK: u32 = (TRACE_BYTES - 1) & !(ENTRY - 1);
    let pointer = bus.load(Gencom::TracePointer.nic_address());
    let offset = pointer.wrapping_sub(TRACE) & MASK;
    let next = TRACE + (offset.wrapping_sub(ENTRY) & MASK);
    let time = bus.read(Register::Timer);
    let [first, second] = label;
    let [w, x, y, z] = arguments;
    let words = [first, second, code, time, w, x, y, z];
    for (address, word) in (TRACE + offset..).step_by(4).zip(words) {
        bus.store(address, word);
    }
    bus.store(Gencom::TracePointer.nic_address(), next);
}
