//! What both CPUs see: single words in SRAM, each with one writer.
//!
//! Paper, section 4.2: on the packet path three variables are enough, and none of them
//! needs a lock. SRAM is not cached for data and a CPU's stores reach it in their order
//! (hardware reference, 3.5), so a word that is stored behind what it announces is seen
//! behind it. All others are for what is rare.
//!
//! The writer is a type. Only who has that value, which each side has one of, can write:
//!
//! ```text
//! Shared<OfA>: set(&OfA, ...)   get by anybody
//! Shared<OfB>: set(&OfB, ...)   get by anybody
//! ```

use crate::memory::layout::{QUEUE_SHARED, SHARED};
use core::marker::PhantomData;
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::Bus;

/// The right to write what CPU A shares. Its side has the only one.
#[derive(Debug)]
pub struct OfA(());

impl OfA {
    pub(crate) const fn new() -> OfA {
        OfA(())
    }
}

/// The right to write what CPU B shares. Its side has the only one.
#[derive(Debug)]
pub struct OfB(());

impl OfB {
    pub(crate) const fn new() -> OfB {
        OfB(())
    }
}

/// The host's right, which the firmware never has.
#[derive(Debug)]
pub enum OfHost {}

/// A word that `W` writes and others read.
#[derive(Debug)]
pub struct Shared<W> {
    address: u32,
    writer: PhantomData<W>,
}

impl<W> Clone for Shared<W> {
    fn clone(&self) -> Shared<W> {
        *self
    }
}

impl<W> Copy for Shared<W> {}

impl<W> Shared<W> {
    const fn at(address: u32) -> Shared<W> {
        Shared {
            address,
            writer: PhantomData,
        }
    }

    /// Where it is in NIC memory, for a debugger.
    pub const fn address(self) -> u32 {
        self.address
    }

    /// Its value.
    #[inline(always)]
    pub fn get<B: Bus>(self, bus: &mut B) -> u32 {
        bus.load(self.address)
    }

    /// Gives it a value. Only the writer can:
    ///
    /// ```compile_fail,E0308
    /// use tigon2_hal::Bus;
    /// use tigon_firmware::memory::shared::{self, OfA, OfB};
    ///
    /// fn of_b<B: Bus>(me: &OfB, bus: &mut B) {
    ///     shared::LINK_UP.set(me, bus, 1);
    /// }
    /// ```
    ///
    /// ```
    /// use tigon2_hal::Bus;
    /// use tigon_firmware::memory::shared::{self, OfA, OfB};
    ///
    /// fn of_a<B: Bus>(me: &OfA, bus: &mut B) {
    ///     shared::LINK_UP.set(me, bus, 1);
    /// }
    /// ```
    #[inline(always)]
    pub fn set<B: Bus>(self, _writer: &W, bus: &mut B, value: u32) {
        bus.store(self.address, value);
    }
}

/// Words of which each receive ring or queue has one.
#[derive(Debug)]
pub struct SharedArray<W> {
    first: Shared<W>,
}

impl<W> Clone for SharedArray<W> {
    fn clone(&self) -> SharedArray<W> {
        *self
    }
}

impl<W> Copy for SharedArray<W> {}

impl<W> SharedArray<W> {
    /// The word of the ring or queue with this number.
    #[inline(always)]
    pub const fn of(self, ring: usize) -> Shared<W> {
        Shared::at(self.first.address + ((ring as u32) << 2))
    }
}

macro_rules! shared {
    ($all:ident, $all_doc:literal, $at:expr;
        $( $writer:ident $name:ident $shape:tt, $why:literal; )+) => {
        #[doc = $all_doc]
        pub const $all: &[(&str, &str, u32, &str)] = &[
            $( (stringify!($name), stringify!($writer), shared!(@words $shape), $why), )+
        ];

        shared!(@place $at; $( $writer $name $shape $why; )+);
    };
    (@words one) => { 1 };
    (@words rings) => { 3 };
    (@words queues) => { 8 };
    (@words host) => { 1 };
    (@place $at:expr;) => {
        const _: () = {
            use crate::memory::layout::{QUEUE_SHARED_END, SHARED_END};
            assert!($at <= SHARED_END && $at > SHARED || $at <= QUEUE_SHARED_END);
        };
    };
    (@place $at:expr; $writer:ident $name:ident one $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: Shared<$writer> = Shared::at($at);
        shared!(@place $at + 4; $($rest)*);
    };
    (@place $at:expr; $writer:ident $name:ident rings $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: SharedArray<$writer> = SharedArray {
            first: Shared::at($at),
        };
        shared!(@place $at + 12; $($rest)*);
    };
    (@place $at:expr; $writer:ident $name:ident queues $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: SharedArray<$writer> = SharedArray {
            first: Shared::at($at),
        };
        shared!(@place $at + 32; $($rest)*);
    };
    (@place $at:expr; $writer:ident $name:ident host $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: Shared<$writer> = Shared::at(Mailbox::SendProducer.nic_address());
        shared!(@place $at; $($rest)*);
    };
}

shared! {
    ALL, "All of them: name, writer, words, what for.", SHARED;
    OfHost SEND_PRODUCER host, "Packet path: the driver's send producer, in its mailbox; B reads it when A has rung.";
    OfA RECEIVE_PRODUCERS rings, "Packet path: the driver's receive producers, which A has judged; B fetches up to them.";
    OfB RECEIVE_ARRIVED rings, "Packet path: the receive rings' own producers: BDs in front of them are in NIC memory.";
    OfA STARVED one, "Whether a frame waits for BDs: only then B rings when some have arrived.";
    OfA LINK_UP one, "Whether frames pass: B drops frames while there is no link.";
    OfB SEND_INDEX one, "The send consumer index that a host with an address for it is to be told.";
    OfB SEND_INTERRUPTS one, "How often B wanted the host interrupted: the interrupt is raised by A alone.";
    OfB ERRORS one, "How many error events B wanted: the write channel is A's.";
    OfA CALL one, "What A has B do for a command, with a number that makes it another one.";
    OfB ANSWER one, "The call that B has done: the command goes on.";
}

shared! {
    OF_QUEUES, "Those of the receive queues.", QUEUE_SHARED;
    OfA QUEUE_PRODUCERS queues, "Packet path: how far B may fetch a queue's BDs: the driver's producer, or as many as there is room for.";
    OfB QUEUE_ARRIVED queues, "Packet path: a queue's BDs in front of it are in NIC memory.";
    OfA QUEUE_MOVES one, "How often a queue's producer moved, so that B looks at all of them only then.";
    OfA CLASSIC_NEXT rings, "The first BD of each ring of classic mode that A has not taken, when it is used again.";
    OfB CONTROL_READ one, "What came of reading the control block: 1 it is there, 2 it cannot be read.";
}
