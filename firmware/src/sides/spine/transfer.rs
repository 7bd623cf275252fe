//! Transfers from frames into a domain's lease: [`host_interface::spine::lease`].
//!
//! SPINE paper, section 5.1. A handler notes which bytes of its frame go where in the range of the
//! bus that the host leases to its domain; both ends are judged then. When the run is over, each
//! becomes a descriptor of the write channel, from where the frame lies in the receive buffer, which
//! is free behind them:
//!
//! ```text
//!  guard, domain with a lease ──► descriptors free? ── no: the frame waits
//!                                      │ yes
//!                                      ▼
//!  NOTED ◄── Context::transfer ── run of the handler ──► descriptors ──► bus
//!                                      │ cut off: none
//! ```
//!
//! All of it lies in SRAM, the count of what is noted too: CPU A's pad is full. Of domains without a
//! lease no frame comes here.

use super::noted::{COUNT, carry_out, lease, noted};
use super::{Fate, Runtime, message};
use crate::io::IoA;
use crate::memory::layout::{OUT_SLOTS, PEER_PAGE};
use crate::sides::spine::effects::Status;
use host_interface::spine::lease::{self, LONGEST, LeaseWord, TRANSFERS, WORK};
use host_interface::spine::{DOMAINS, GUARDS_MESSAGES, Outcome};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Descriptors that a run may need: its transfers, and the messages that wait for one.
const DESCRIPTORS: u32 = TRANSFERS + OUT_SLOTS;

/// NIC address of the lease of the run in work; 0 for none.
const LEASE: u32 = PEER_PAGE + WORK;
/// NIC address of its frame.
const FRAME: u32 = PEER_PAGE + WORK + 4;
/// Bytes of that.
const FRAME_BYTES: u32 = PEER_PAGE + WORK + 8;
/// Domains by whose leases transfers may be under way that were withdrawn: a bit each.
const WITHDRAWN: u32 = PEER_PAGE + WORK + 12;

/// Whether a domain has a lease.
pub fn has_lease<B: Bus>(bus: &mut B, domain: u32) -> bool {
    bus.load(lease(domain) + LeaseWord::Bytes as u32) != 0
}

/// Notes a transfer: `bytes` bytes of the frame, from byte `from` on, to byte `to` of the lease.
#[inline(always)]
pub fn note<B: Bus>(bus: &mut B, from: u32, bytes: u32, to: u32) -> Status {
    let lease = bus.load(LEASE);
    let number = bus.load(COUNT);
    if lease == 0 || number >= TRANSFERS || bytes == 0 {
        return Status::Full;
    }
    let frame = bus.load(FRAME_BYTES);
    let room = bus.load(lease + LeaseWord::Bytes as u32);
    if bytes > frame || from > frame - bytes || bytes > room || to > room - bytes {
        return Status::Full;
    }
    let from = bus.load(FRAME) + from;
    let at = noted(number);
    bus.store(at, to);
    bus.store(at + 4, from);
    bus.store(at + 8, bytes);
    bus.store(COUNT, number + 1);
    Status::Noted
}

/// Before the run for a frame that is a message, or that is for a domain with a lease; its words lie
/// at `at`. Returns what becomes of it, or nothing if the handler runs now.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
#[inline(never)]
pub(super) fn begin<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    length: u32,
    at: u32,
    to: u32,
) -> Option<Fate> {
    let domain = to >> 8;
    if to & GUARDS_MESSAGES != 0 {
        message::of_wire(runtime, io, domain, at, length);
        return Some(Fate::Done);
    }
    if !io.has_write_room(DESCRIPTORS) {
        return Some(Fate::Later);
    }
    let bus = &mut io.bus;
    bus.store(FRAME, at);
    bus.store(FRAME_BYTES, length);
    bus.store(COUNT, 0);
    bus.store(LEASE, lease(domain));
    None
}

/// Behind the run for a frame of a domain with a lease.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low"))]
#[inline(never)]
pub(super) fn end<B: Dispatch>(io: &mut IoA<B>, to: u32) {
    io.bus.store(LEASE, 0);
    carry_out(io, to >> 8);
}

impl Runtime {
    /// Takes over a domain's lease as the host asks for it; the one before is withdrawn first.
    #[inline(never)]
    pub(super) fn set_lease<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        domain: u32,
    ) -> Result<(), Outcome> {
        let loaded = self.domains.get(domain as usize);
        if loaded.is_none_or(|domain| domain.watchdog == 0) {
            return Err(Outcome::WrongState);
        }
        let asked = PEER_PAGE + lease::asked(domain);
        let [high, low, bytes] = [LeaseWord::High, LeaseWord::Low, LeaseWord::Bytes]
            .map(|word| io.bus.load(asked + word as u32));
        // What is refused leaves the one before as it is.
        if bytes > LONGEST {
            return Err(Outcome::TooLong);
        }
        self.withdraw(io, domain);
        if !self.is_withdrawn(io, domain) {
            return Err(Outcome::Busy);
        }
        let bus = &mut io.bus;
        let at = lease(domain);
        bus.store(at + LeaseWord::High as u32, high);
        bus.store(at + LeaseWord::Low as u32, low);
        bus.store(at + LeaseWord::Bytes as u32, bytes);
        self.guards.mark(bus, domain, bytes != 0);
        Ok(())
    }

    /// Nothing is noted by a domain's lease any more.
    pub(super) fn withdraw<B: Dispatch>(&mut self, io: &mut IoA<B>, domain: u32) {
        let at = lease(domain) + LeaseWord::Bytes as u32;
        if io.bus.load(at) != 0 {
            io.bus.store(at, 0);
            self.guards.mark(&mut io.bus, domain, false);
            let withdrawn = io.bus.load(WITHDRAWN) | 1 << domain;
            io.bus.store(WITHDRAWN, withdrawn);
        }
    }

    /// Whether what was queued by a lease that was withdrawn has been written.
    pub(super) fn is_withdrawn<B: Dispatch>(&mut self, io: &mut IoA<B>, domain: u32) -> bool {
        let withdrawn = io.bus.load(WITHDRAWN);
        if withdrawn >> domain & 1 == 0 {
            return true;
        }
        if !io.all_written() {
            return false;
        }
        // All of all domains is.
        io.bus.store(WITHDRAWN, 0);
        true
    }
}

const _: () = assert!(DOMAINS <= 32);
