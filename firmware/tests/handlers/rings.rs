//! The mini and jumbo rings of the host in [`crate::machine`].

use crate::machine::{Machine, Setup, words_to_host};
use host_interface::bd::{BdFlags, ExtendedReceiveBd, ReceiveBd, ReturnBd};
use host_interface::info::{HostAddress, RcbFlags, RingControlBlock};
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::testing::HOST_BASE;
use zerocopy::IntoBytes;

// The host's memory, as offsets from HOST_BASE, between that of the other rings.
const JUMBO_RING: u64 = 0x5_0000;
const MINI_RING: u64 = 0x5_4000;
const MINI_BUFFERS: u64 = 0x6_0000;
const JUMBO_BUFFERS: u64 = 0xA_0000;

/// Longest frame of the standard ring, as Linux has it.
pub const STANDARD_MAX: usize = 1518;
/// Longest frame of the mini ring, as Linux has it.
pub const MINI_MAX: usize = 100;
/// Bytes of a jumbo buffer.
pub const JUMBO_ROOM: usize = 9018;
const MINI_PLACES: u32 = 64;
const JUMBO_PLACES: u32 = 32;
/// Bytes between two jumbo buffers.
const JUMBO_STRIDE: u64 = 0x2800;

/// RCB flags of rings that ask for no offload.
pub const NO_FLAGS: RcbFlags = RcbFlags::new();

/// The ring that a return BD is from.
pub fn ring_of(bd: &ReturnBd) -> &'static str {
    match (bd.flags().mini_ring(), bd.flags().jumbo_ring()) {
        (false, false) => "standard",
        (true, false) => "mini",
        (false, true) => "jumbo",
        (true, true) => panic!("both"),
    }
}

/// All rings with buffers, and the link up.
pub fn full(setup: &Setup) -> Machine {
    let mut machine = Machine::up(setup);
    machine.give_mini_buffers(16);
    machine.give_jumbo_buffers(16);
    machine
}

impl Setup {
    /// All three receive rings, with these flags, and the return ring of 2048.
    pub fn with_rings(flags: RcbFlags) -> Setup {
        let mut setup = Setup::with_receive_flags(flags);
        setup.information.jumbo = RingControlBlock::new(HOST_BASE + JUMBO_RING, 0, flags);
        setup.information.mini =
            RingControlBlock::new(HOST_BASE + MINI_RING, MINI_MAX as u16, flags);
        setup.mtu = JUMBO_ROOM as u32;
        setup
    }

    /// The standard ring alone, with these flags.
    pub fn with_receive_flags(flags: RcbFlags) -> Setup {
        let mut setup = Setup::default();
        let address = setup.information.standard.address.get();
        setup.information.standard = RingControlBlock::new(address, STANDARD_MAX as u16, flags);
        let address = setup.information.receive_return.address.get();
        setup.information.receive_return = RingControlBlock::new(address, 2048, RcbFlags::new());
        setup.mtu = STANDARD_MAX as u32;
        setup
    }

    /// All three receive rings, the jumbo ring of extended BDs.
    pub fn with_extended_jumbo(flags: RcbFlags) -> Setup {
        let mut setup = Setup::with_rings(flags);
        let flags = flags.with_extended_bd(true);
        setup.information.jumbo = RingControlBlock::new(HOST_BASE + JUMBO_RING, 0, flags);
        setup
    }
}

impl Machine {
    /// Gives mini buffers: BD n has index n and opaque 0x1000 + n.
    pub fn give_mini_buffers(&mut self, count: u32) {
        for _ in 0..count {
            let [at, _] = self.extra_producers;
            let address = HOST_BASE + MINI_BUFFERS + u64::from(at % MINI_PLACES) * 128;
            let bd = ReceiveBd::new(
                address,
                MINI_MAX as u16,
                BdFlags::new().with_mini_ring(true),
                at as u16,
                0x1000 + at,
            );
            self.host_write(
                MINI_RING + u64::from(at) * 32,
                &words_to_host(bd.as_bytes()),
            );
            self.extra_producers[0] = (at + 1) % 1024;
        }
        self.ring(Mailbox::MiniProducer, self.extra_producers[0]);
        self.settle();
    }

    /// Gives jumbo buffers: BD n has index n and opaque 0x2000 + n.
    pub fn give_jumbo_buffers(&mut self, count: u32) {
        for _ in 0..count {
            let [_, at] = self.extra_producers;
            let bd = jumbo_bd(at, JUMBO_ROOM as u16);
            self.host_write(
                JUMBO_RING + u64::from(at) * 32,
                &words_to_host(bd.as_bytes()),
            );
            self.extra_producers[1] = (at + 1) % 256;
        }
        self.ring(Mailbox::JumboProducer, self.extra_producers[1]);
        self.settle();
    }

    /// Gives one extended jumbo BD whose buffers have these lengths; they lie 0x1000 apart.
    pub fn give_extended_buffer(&mut self, lengths: [u16; 4]) {
        let [_, at] = self.extra_producers;
        let address = |n: u64| HostAddress::new(extended_buffer(at, n));
        let bd = ExtendedReceiveBd {
            address1: address(1),
            address2: address(2),
            address3: address(3),
            lengths_1_2: u32::from(lengths[1]) << 16 | u32::from(lengths[2]),
            length_3: u32::from(lengths[3]) << 16,
            base: ReceiveBd {
                address: address(0),
                ..jumbo_bd(at, lengths[0])
            },
        };
        self.host_write(
            JUMBO_RING + u64::from(at) * 64,
            &words_to_host(bd.as_bytes()),
        );
        self.extra_producers[1] = (at + 1) % 256;
        self.ring(Mailbox::JumboProducer, self.extra_producers[1]);
        self.settle();
    }

    /// What lies in the buffers of an extended BD, `lengths` bytes in each.
    pub fn extended_bytes(&self, bd: u32, lengths: [usize; 4]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (n, length) in lengths.into_iter().enumerate() {
            bytes.extend(self.host_bytes(extended_buffer(bd, n as u64), length));
        }
        bytes
    }
}

fn jumbo_bd(at: u32, room: u16) -> ReceiveBd {
    let address = HOST_BASE + JUMBO_BUFFERS + u64::from(at % JUMBO_PLACES) * JUMBO_STRIDE;
    let flags = BdFlags::new().with_jumbo_ring(true);
    ReceiveBd::new(address, room, flags, at as u16, 0x2000 + at)
}

/// Host address of buffer `n` of extended BD `bd`.
fn extended_buffer(bd: u32, n: u64) -> u64 {
    HOST_BASE + JUMBO_BUFFERS + u64::from(bd % 8) * 0x8000 + n * 0x1000
}
