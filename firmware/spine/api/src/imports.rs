//! The runtime as an extension calls it: all the `unsafe` of this crate.
//!
//! On the card each function is one of the runtime's, found by the linker by its name; elsewhere
//! it is the [model](crate::model::calls)'s. What the runtime hands out as address and length
//! becomes a slice here, bound to the life of the message that it came in.
#![allow(unsafe_code)]

use core::sync::atomic::AtomicU32;

#[cfg(not(target_arch = "mips"))]
pub(crate) use crate::model::calls::{
    accept, add_handler, call, count, export, forward, keep, kept, kept_words, now, patch,
    patch_three, post, release, send, send_message, send_peer, send_wire, transfer, transmit,
    when_cut,
};
#[cfg(target_arch = "mips")]
pub(crate) use card::{
    accept, add_handler, call, count, export, forward, keep, kept, kept_words, now, patch,
    patch_three, post, release, send, send_message, send_peer, send_wire, transfer, transmit,
    when_cut,
};
#[cfg(target_arch = "mips")]
pub use card::{begin, panicked};

/// The words at an address that the runtime has put into `owner`.
#[inline(always)]
pub fn words<T>(owner: &T, address: *const u32, count: u32) -> &[u32] {
    let _ = owner;
    if count == 0 {
        return &[];
    }
    // SAFETY: the fields are private and only the runtime (or the model) writes them: so many
    // words lie there, aligned, and stay until the handler to which `owner` is lent returns.
    unsafe { core::slice::from_raw_parts(address, count as usize) }
}

/// A word that the host writes: the compiler, which sees nobody write it, must load it.
#[inline(always)]
pub fn of_host(word: &AtomicU32) -> u32 {
    // SAFETY: the pointer is a reference's; the host writes whole words.
    unsafe { word.as_ptr().read_volatile() }
}

/// A word that the host reads: the compiler, which sees nobody read it, must store it.
#[inline(always)]
pub fn to_host(word: &AtomicU32, value: u32) {
    // SAFETY: the pointer is a reference's, to a word that may change; the host reads whole words.
    unsafe { word.as_ptr().write_volatile(value) }
}

#[cfg(target_arch = "mips")]
mod card {
    use crate::{Context, Durable, HandlerProc, Procedure};

    // SAFETY: names and signatures are those of `spine_image::interface`. The conventions of handlers
    // and procedures are the compiler's own for pointers and words, and a word in return, which the
    // runtime knows; the build id ties both to one compiler.
    #[expect(improper_ctypes, reason = "see above")]
    unsafe extern "C" {
        #[link_name = "spine.runtime.add_handler"]
        safe fn runtime_add_handler(handler: HandlerProc, number: u32, argument: u32) -> u32;
        #[link_name = "spine.runtime.panic"]
        safe fn runtime_panic() -> !;
        #[link_name = "spine.clock.now"]
        safe fn clock_now() -> u32;
        #[link_name = "spine.network.patch"]
        safe fn network_patch(index: u32, value: u32) -> u32;
        #[link_name = "spine.network.patch_three"]
        safe fn network_patch_three(index: u32, first: u32, second: u32, third: u32) -> u32;
        #[link_name = "spine.network.transmit"]
        safe fn network_transmit() -> u32;
        #[link_name = "spine.buffer.keep"]
        safe fn buffer_keep() -> u32;
        #[link_name = "spine.buffer.kept"]
        safe fn buffer_kept() -> u32;
        #[link_name = "spine.buffer.words"]
        safe fn buffer_words(slot: u32) -> *const u32;
        #[link_name = "spine.buffer.transmit"]
        safe fn buffer_transmit(slot: u32) -> u32;
        #[link_name = "spine.buffer.release"]
        safe fn buffer_release(slot: u32) -> u32;
        #[link_name = "spine.peer.forward"]
        safe fn peer_forward() -> u32;
        #[link_name = "spine.dma.transfer"]
        safe fn dma_transfer(from: u32, bytes: u32, to: u32) -> u32;
        #[link_name = "spine.counter.add"]
        safe fn counter_add(counter: u32) -> u32;
        #[link_name = "spine.message.accept"]
        safe fn message_accept(number: u32, callers: u32) -> u32;
        #[link_name = "spine.runtime.when_cut"]
        safe fn runtime_when_cut(what: u32) -> u32;
        #[link_name = "spine.message.send"]
        fn message_send(to: u32, arguments: *const u32, words: u32) -> u32;
        #[link_name = "spine.message.send_wire"]
        fn message_send_wire(high: u32, low: u32, arguments: *const u32, words: u32) -> u32;
        #[link_name = "spine.peer.send"]
        fn peer_send(to: u32, arguments: *const u32, words: u32) -> u32;
        #[link_name = "spine.message.post"]
        fn message_post(handler: u32, arguments: *const u32, words: u32) -> u32;
        #[link_name = "spine.gate.export"]
        safe fn gate_export(number: u32, procedure: Procedure) -> u32;
        #[link_name = "spine.gate.call"]
        safe fn gate_call(context: &Context, number: u32, arguments: &[u32; 3]) -> u64;
    }

    /// Installs a handler.
    #[inline(always)]
    pub fn add_handler(handler: HandlerProc, number: u8, argument: u32) -> bool {
        runtime_add_handler(handler, u32::from(number), argument) == 0
    }

    /// Microseconds.
    #[inline(always)]
    pub fn now() -> u32 {
        clock_now()
    }

    /// Says what becomes of what runs had that are cut off.
    pub fn when_cut(what: u32) {
        runtime_when_cut(what);
    }

    /// Notes a changed word; 0 if there was room.
    #[inline(always)]
    pub fn patch(index: u32, value: u32) -> u32 {
        network_patch(index, value)
    }

    /// Notes three changed words; 0 if there was room.
    #[inline(always)]
    pub fn patch_three(index: u32, [first, second, third]: [u32; 3]) -> u32 {
        network_patch_three(index, first, second, third)
    }

    /// Notes that the frame goes out; 0 if there was room.
    #[inline(always)]
    pub fn transmit() -> u32 {
        network_transmit()
    }

    /// Notes that the frame is kept; its slot, or `u32::MAX`.
    #[inline(always)]
    pub fn keep() -> u32 {
        buffer_keep()
    }

    /// The slots that the domain keeps, a bit for each.
    #[inline(always)]
    pub fn kept() -> u32 {
        buffer_kept()
    }

    /// Address and bytes of a frame that is kept.
    #[inline(always)]
    pub fn kept_words(slot: u32) -> Option<(*const u32, u32)> {
        let header = buffer_words(slot);
        if header.is_null() {
            return None;
        }
        // SAFETY: a slot of the pool, which stays as long as the domain keeps it: its bytes, a
        // word, and the frame's words.
        unsafe { Some((header.add(2), header.read())) }
    }

    /// Notes that a kept frame goes out; 0 if there was room.
    #[inline(always)]
    pub fn send(slot: u32) -> u32 {
        buffer_transmit(slot)
    }

    /// Notes that a kept frame is given back; 0 if it is kept.
    #[inline(always)]
    pub fn release(slot: u32) -> u32 {
        buffer_release(slot)
    }

    /// Notes that the frame goes to the peer; 0 if it has room.
    #[inline(always)]
    pub fn forward() -> u32 {
        peer_forward()
    }

    /// Notes a transfer from the frame into the lease; 0 if there was room.
    #[inline(always)]
    pub fn transfer(from: u32, bytes: u32, to: u32) -> u32 {
        dma_transfer(from, bytes, to)
    }

    /// Notes a count; 0 if there was room.
    #[inline(always)]
    pub fn count(counter: u32) -> u32 {
        counter_add(counter)
    }

    /// Says whom a handler lets call it.
    #[inline(always)]
    pub fn accept(number: u8, callers: u32) -> bool {
        message_accept(u32::from(number), callers) == 0
    }

    /// Notes a message to an endpoint; 0 if there was room.
    #[inline(always)]
    pub fn send_message(to: u32, arguments: &[u32]) -> u32 {
        // SAFETY: the runtime reads so many words there before it returns, and keeps nothing of it.
        unsafe { message_send(to, arguments.as_ptr(), arguments.len() as u32) }
    }

    /// Notes a message to the wire; 0 if there was room.
    #[inline(always)]
    pub fn send_wire(high: u32, low: u32, arguments: &[u32]) -> u32 {
        // SAFETY: as for `send_message`.
        unsafe { message_send_wire(high, low, arguments.as_ptr(), arguments.len() as u32) }
    }

    /// Notes a message to a domain in bits 15:8 and a handler in bits 7:0 of the other card; 0 if there
    /// was room.
    #[inline(always)]
    pub fn send_peer(to: u32, arguments: &[u32]) -> u32 {
        // SAFETY: as for `send_message`.
        unsafe { peer_send(to, arguments.as_ptr(), arguments.len() as u32) }
    }

    /// Notes a message to the own domain; 0 if there was room.
    #[inline(always)]
    pub fn post(handler: u8, arguments: &[u32]) -> u32 {
        // SAFETY: as for `send_message`.
        unsafe { message_post(handler.into(), arguments.as_ptr(), arguments.len() as u32) }
    }

    /// Exports a procedure.
    #[inline(always)]
    pub fn export(number: u32, procedure: Procedure) -> bool {
        gate_export(number, procedure) == 0
    }

    /// Calls a procedure of another extension: 0 and its word, or why not and 0.
    #[inline(always)]
    pub fn call(context: &Context, number: u32, arguments: &[u32; 3]) -> u64 {
        gate_call(context, number, arguments)
    }

    /// Runs `init`: the only place on the card where a [`Durable`] is made.
    #[inline(always)]
    pub fn begin(init: fn(&mut Durable)) {
        init(&mut Durable::new());
    }

    /// Ends the run of an extension that has panicked.
    #[inline(always)]
    pub fn panicked() -> ! {
        runtime_panic()
    }
}
