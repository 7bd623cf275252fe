//! The trace: a ring of entries in NIC memory about what is rare.
//!
//! Hardware reference, section 12: entries of 32 bytes, {label, code, time, arguments},
//! written downwards; gencom says where the ring is. The host chooses topics with the
//! trace mask and reads the ring through its window. After a fatal error the newest entry
//! is "*PANIC*".

use crate::memory::layout::{TRACE, TRACE_BYTES};
use host_interface::gencom::Gencom;
use host_interface::trace::{ENTRY_BYTES, PANIC_LABEL, Topic, label_words};
use tigon2_chip::Register;
use tigon2_hal::events::Dispatch;
use tigon2_hal::{Bus, semaphore};

const ENTRY: u32 = ENTRY_BYTES as u32;

/// Empties the ring and tells the host where it is.
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
///
/// Both CPUs write the ring, so one of them at a time: the only use of the semaphore besides
/// the log and error recovery.
#[inline(never)]
pub fn record<B: Dispatch>(bus: &mut B, topic: Topic, code: u32, arguments: [u32; 4]) {
    let mask = bus.load(Gencom::TraceMask.nic_address()) | Topic::ALWAYS;
    if mask & topic.mask() != 0 {
        semaphore::with(bus, |bus| write(bus, topic.label(), code, arguments));
    }
}

/// Records the end.
pub fn panic<B: Bus>(bus: &mut B, code: u32, arguments: [u32; 4]) {
    const LABEL: [u32; 2] = label_words(PANIC_LABEL);
    write(bus, LABEL, code, arguments);
}

/// The pointer is in gencom, where the host can change it: whatever it says, the entry
/// goes to a place in the ring.
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
