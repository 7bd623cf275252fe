//! NIC memory for a host whose window is a peer's: [`host_interface::spine::access`].

use host_interface::spine::access::{AccessWord, DATA, WORDS, WRITE};
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;

/// No request yet.
pub fn describe<B: Bus>(bus: &mut B) {
    for word in AccessWord::ALL {
        bus.store(*word as u32, 0);
    }
}

/// Carries out a request, if there is a new one.
#[inline(never)]
pub fn serve<B: Bus>(bus: &mut B) {
    let request = bus.load(AccessWord::Request as u32);
    if request == bus.load(AccessWord::Answer as u32) {
        return;
    }
    let address = bus.load(AccessWord::Address as u32);
    let bytes = (request & 0xFF) << 2;
    let is_refused = bytes > WORDS << 2 || address & 3 != 0 || address > PACKET_MEMORY_END - bytes;
    if !is_refused {
        let (from, to) = if request & WRITE == 0 {
            (address, DATA)
        } else {
            (DATA, address)
        };
        for at in (0..bytes).step_by(4) {
            let word = bus.load(from + at);
            bus.store(to + at, word);
        }
    }
    bus.store(AccessWord::Refused as u32, u32::from(is_refused));
    bus.store(AccessWord::Answer as u32, request);
}
