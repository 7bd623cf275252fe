//! Words that both CPUs see: single words in SRAM, each with one writer.
//!
//! Paper, section 4.2: three variables are enough on the packet path, and none needs a lock. SRAM
//! is not cached for data, and a CPU's stores reach it in order (hardware reference, 3.5), so the
//! other CPU sees a word after the data that it announces. All other words serve rare work.
//!
//! The type names the writer. Only the owner of that token can write, and each side owns one:
//!
//! ```text
//! Shared<OfA>: set(&OfA, ...)   get by anybody
//! Shared<OfB>: set(&OfB, ...)   get by anybody
//! ```

use crate::memory::layout::{
    EUDP_SHARED, EUDP_SHARED_END, QUEUE_SHARED, QUEUE_SHARED_END, SHARED, SHARED_END, SPINE_SHARED,
    SPINE_SHARED_END,
};
use core::marker::PhantomData;
use host_interface::queue::QUEUES_MAX;
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::Bus;

/// The token that permits writes to CPU A's words. Its side owns the only one.
#[derive(Debug)]
pub struct OfA(());

impl OfA {
    pub(crate) const fn new() -> OfA {
        OfA(())
    }
}

/// The token that permits writes to CPU B's words. Its side owns the only one.
#[derive(Debug)]
pub struct OfB(());

impl OfB {
    pub(crate) const fn new() -> OfB {
        OfB(())
    }
}

/// The host's token, which the firmware never has.
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

    /// Its NIC address, for a debugger.
    pub const fn address(self) -> u32 {
        self.address
    }

    /// Its value.
    #[inline(always)]
    pub fn get<B: Bus>(self, bus: &mut B) -> u32 {
        bus.load(self.address)
    }

    /// Sets its value. Only the writer can:
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
    /// The word of one ring or queue.
    #[inline(always)]
    pub const fn of(self, ring: usize) -> Shared<W> {
        Shared::at(self.first.address + ((ring as u32) << 2))
    }
}

macro_rules! shared {
    ($all:ident, $all_doc:literal, $at:ident to $end:ident;
        $( $writer:ident $name:ident $shape:tt, $why:literal; )+) => {
        #[doc = $all_doc]
        pub const $all: &[(&str, &str, u32, &str)] = &[
            $( (stringify!($name), stringify!($writer), shared!(@words $shape), $why), )+
        ];

        shared!(@place $at, $end; $( $writer $name $shape $why; )+);
    };
    (@words one) => { 1 };
    (@words rings) => { 3 };
    (@words queues) => { QUEUES_MAX as u32 };
    (@words host) => { 1 };
    (@place $at:expr, $end:ident;) => {
        const _: () = assert!($at <= $end);
    };
    (@place $at:expr, $end:ident; $writer:ident $name:ident one $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: Shared<$writer> = Shared::at($at);
        shared!(@place $at + 4, $end; $($rest)*);
    };
    (@place $at:expr, $end:ident; $writer:ident $name:ident rings $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: SharedArray<$writer> = SharedArray {
            first: Shared::at($at),
        };
        shared!(@place $at + 12, $end; $($rest)*);
    };
    (@place $at:expr, $end:ident; $writer:ident $name:ident queues $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: SharedArray<$writer> = SharedArray {
            first: Shared::at($at),
        };
        shared!(@place $at + 4 * QUEUES_MAX as u32, $end; $($rest)*);
    };
    (@place $at:expr, $end:ident; $writer:ident $name:ident host $why:literal; $($rest:tt)*) => {
        #[doc = $why]
        pub const $name: Shared<$writer> = Shared::at(Mailbox::SendProducer.nic_address());
        shared!(@place $at, $end; $($rest)*);
    };
}

shared! {
    ALL, "All of them: name, writer, words, what for.", SHARED to SHARED_END;
    OfHost SEND_PRODUCER host, "Packet path: the driver's send producer, in its mailbox; B reads it when A has rung.";
    OfA RECEIVE_PRODUCERS rings, "Packet path: the driver's receive producers, which A has validated; B fetches up to them.";
    OfB RECEIVE_ARRIVED rings, "Packet path: the receive rings' own producers: BDs before them are in NIC memory.";
    OfA STARVED one, "Whether a frame waits for BDs: only then B rings when some have arrived.";
    OfA LINK_UP one, "Whether frames pass: B drops frames while there is no link.";
    OfB SEND_INDEX one, "The send consumer index to report to a host that has an address for it.";
    OfB SEND_INTERRUPTS one, "How many interrupts B has requested: only A raises the interrupt.";
    OfB ERRORS one, "How many error events B has requested: the write channel is A's.";
    OfA CALL one, "A's cross call to B for a command, with a number that makes it new.";
    OfB ANSWER one, "The cross call that B has finished: the command continues.";
    OfA RECOVERS_A one, "Whether A recovers a DMA channel, or wants to; in images with endpoints or extensions.";
    OfB RECOVERS_B one, "Whether B does, or wants to.";
}

shared! {
    OF_QUEUES, "Those of the receive queues.", QUEUE_SHARED to QUEUE_SHARED_END;
    OfA QUEUE_PRODUCERS queues, "Packet path: how far B may fetch a queue's BDs: the driver's producer, or as many as there is room for.";
    OfB QUEUE_ARRIVED queues, "Packet path: a queue's BDs before it are in NIC memory.";
    OfA QUEUE_MOVES one, "How often a queue's producer moved: only then B checks all of them.";
    OfA CLASSIC_NEXT rings, "The first BD of each ring of classic mode that A has not taken, when it is used again.";
    OfA QUEUE_EPOCH one, "Another number for each classifier by which B may classify ahead; 0 for none.";
    OfA QUEUE_HASHES one, "The types of hash that this classifier makes, from bit 16 on the period of its key, from bit 24 on the number of queues.";
    OfA QUEUE_RELEASED one, "Packet path: received frames that A has released, a position in the MAC's ring.";
    OfB QUEUE_AHEAD_FROM one, "Packet path: verdicts stand from this position on.";
    OfB QUEUE_AHEAD one, "Packet path: verdicts stand up to this position. B writes it behind the other one.";
    OfB CONTROL_READ one, "The result of reading the control block: 1 it has arrived, 2 it cannot be read.";
}

shared! {
    OF_SPINE, "Those of SPINE.", SPINE_SHARED to SPINE_SHARED_END;
    OfA SPINE_RUNNING one, "The run of an extension that is in work: its number in bits 31:8, its microseconds in bits 7:0; 0 for none.";
    OfA SPINE_WATCH one, "Microseconds of the shortest watchdog in bits 7:0, those that each run has at least in bits 31:8; 0 while no extension is loaded.";
    OfA SPINE_CALLS one, "How often A had something for B: a frame to transmit, another watchdog.";
    OfA SPINE_QUEUED one, "Frames that A has put into the pool; wraps.";
    OfB SPINE_TAKEN one, "Frames that B has taken out of it; wraps.";
    OfB SPINE_ENDED one, "Why B has ended the run that was ended last.";
    OfB SPINE_FETCHED one, "Requests for messages, or a message's data, that are done; wraps.";
    OfA SPINE_REPORTED one, "Those of them of which the endpoint was told; wraps.";
    OfA SPINE_MESSAGES_RUN one, "Messages of the host's rings that have run, or were dropped; wraps.";
    OfA SPINE_WANTED one, "How often A wanted something for messages: data, or that B sees which endpoints are open; wraps.";
    OfA SPINE_DATA one, "How often A wanted a message's data; wraps.";
    OfA SPINE_ENDPOINTS one, "Endpoints that are open in bits 7:0; the one that was opened or closed last in bits 15:8, and how often one was in bits 31:16.";
    OfB SPINE_ENDPOINTS_SEEN one, "The same as B has seen it: of those closed by then nothing is under way.";
    OfA SPINE_OUT one, "Messages that handlers have sent; wraps.";
    OfA SPINE_OUT_PUT one, "Those that the channel has.";
    OfA SPINE_OUT_MARKED one, "Those that are written when the channel has passed a position.";
    OfA SPINE_OUT_FREED one, "Those that are written.";
    OfA SPINE_OUT_ROOM one, "How many more there is room for.";
    OfA SPINE_LOADING one, "The domain whose `init` runs.";
    OfA SPINE_POSTED one, "Messages of handlers to their own domains; wraps.";
    OfA SPINE_POSTS_RUN one, "Those of them that have run.";
    OfA SPINE_POST_ROOM one, "How many more there is room for.";
    OfA SPINE_PEER one, "The roles of this card beside its peer.";
    OfB SPINE_GRANTS one, "How often B has granted rooms to the peer, or made some void: A tells the peer.";
    OfB SPINE_REQUESTED one, "Messages of the host's rings that B has asked for; wraps.";
}

shared! {
    OF_EUDP, "Those of E-UDP.", EUDP_SHARED to EUDP_SHARED_END;
    OfA EUDP_OPEN one, "The endpoints that are open, a bit each.";
    OfB EUDP_KNOWN one, "The same as B has seen it: what it has let go touches no memory any more.";
    OfB EUDP_SENT one, "Descriptors to send that B is done with, of all endpoints; wraps.";
    OfA EUDP_WANTED one, "Endpoints whose descriptors to receive A wants: a bit that changes each time.";
    OfB EUDP_PULLED one, "The same when they are in NIC memory.";
    OfA EUDP_TRANSMIT_STATE one, "The state that A wants the transmitter to have.";
    OfA EUDP_TRANSMIT_ASKED one, "How often A has asked for one; wraps.";
    OfB EUDP_TRANSMIT_DONE one, "That number when B has set the state.";
}
