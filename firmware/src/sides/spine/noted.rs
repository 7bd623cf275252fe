//! The transfers that a run has noted, and the descriptors of the write channel that they become:
//! see [`transfer`](super::transfer).

use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::memory::layout::PEER_PAGE;
use host_interface::spine::lease::{self, LeaseWord, NOTED, NOTED_BYTES, NOTED_COUNT};
use tigon2_chip::bits::DmaState;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// Bytes stay in their order, at any address.
const STATE: u32 = DmaState::new()
    .with_start(true)
    .with_end_of_frame(true)
    .into_bits();
/// NIC address of how many transfers the run in work has noted.
pub const COUNT: u32 = PEER_PAGE + NOTED_COUNT;

/// NIC address of a lease that counts.
pub const fn lease(domain: u32) -> u32 {
    PEER_PAGE + lease::current(domain)
}

/// NIC address of a transfer that is noted.
pub const fn noted(number: u32) -> u32 {
    PEER_PAGE + NOTED + (number << 3) + (number << 2)
}

const _: () = assert!(NOTED_BYTES == (1 << 3) + (1 << 2));

/// A run was cut off: it has noted nothing.
pub fn forget<B: Bus>(bus: &mut B) {
    bus.store(COUNT, 0);
}

/// Queues the transfers that a run of a domain's has noted, in front of its messages: who gets an
/// answer finds them done.
#[inline(always)]
pub fn carry_out<B: Dispatch>(io: &mut IoA<B>, domain: u32) {
    let count = io.bus.load(COUNT);
    if count != 0 {
        put_all(io, domain, count);
    }
}

#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn put_all<B: Dispatch>(io: &mut IoA<B>, domain: u32, count: u32) {
    io.bus.store(COUNT, 0);
    for number in 0..count {
        put(io, domain, noted(number));
    }
}

/// Queues a transfer that was noted.
#[inline(always)]
fn put<B: Dispatch>(io: &mut IoA<B>, domain: u32, noted: u32) {
    let lease = lease(domain);
    let bus = &mut io.bus;
    let low = bus.load(lease + LeaseWord::Low as u32);
    let (low, carry) = low.overflowing_add(bus.load(noted));
    let high = bus.load(lease + LeaseWord::High as u32);
    let transfer = Transfer {
        host: HostAddress {
            high: high.wrapping_add(u32::from(carry)),
            low,
        },
        local: bus.load(noted + 4),
        length: bus.load(noted + 8),
        state: STATE,
        note: WriteNote::EXTENSION.word(),
    };
    io.write_ring.put(bus, &transfer);
}
