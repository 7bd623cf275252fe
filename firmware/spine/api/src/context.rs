//! Who runs, and the effects that it asks for.
//!
//! Effects are a transaction: they are noted, and carried out in their order when the handler
//! has returned. What is noted when it is cut off is thrown away. The list is bounded; beyond
//! it a call answers [`Full`], and the handler decides.

use crate::HandlerNumber;
use crate::endpoint::{Endpoint, PeerHandler, WireAddress};
use crate::imports;
use crate::message::Buffer;
use crate::procedure::{Import, NotCalled};
use core::marker::PhantomData;

/// Words of a frame that one run can change.
pub const PATCHES: usize = 16;

/// The runtime has no room for one more effect of the run, or none of that kind now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Names a frame that a domain keeps. It may be stored in the region: a number that names none
/// does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptNumber(pub u32);

/// The frames that a domain keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(u32);

impl Iterator for Kept {
    type Item = KeptNumber;

    #[inline(always)]
    fn next(&mut self) -> Option<KeptNumber> {
        if self.0 == 0 {
            return None;
        }
        let mut number = 0;
        while self.0 >> (number & 31) & 1 == 0 {
            number += 1;
        }
        self.0 &= self.0.wrapping_sub(1);
        Some(KeptNumber(number))
    }
}

/// Who runs.
///
/// ```text
/// +0  argument that the handler was installed with
/// +4  domain
/// +8  number of the run; wraps
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Context {
    argument: u32,
    domain: u32,
    run: u32,
    not_sync: PhantomData<*mut ()>,
}

impl Context {
    /// The word that the handler was installed with.
    #[inline(always)]
    pub fn argument(&self) -> u32 {
        self.argument
    }

    /// The domain's number.
    #[inline(always)]
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// Microseconds since the firmware started; wraps.
    #[inline(always)]
    pub fn now(&self) -> u32 {
        imports::now()
    }

    /// Has a word of the frame replaced when it is transmitted: that with index `index`, which
    /// is bytes `4 * index` and on.
    ///
    /// # Errors
    /// [`Full`] behind [`PATCHES`] of them.
    #[inline(always)]
    pub fn patch(&self, index: u32, value: u32) -> Result<(), Full> {
        status(imports::patch(index, value))
    }

    /// The same for three words that follow each other, from that with index `index` on, in one
    /// call.
    ///
    /// # Errors
    /// [`Full`] if fewer than three more can be noted.
    #[inline(always)]
    pub fn patch_three(&self, index: u32, values: [u32; 3]) -> Result<(), Full> {
        status(imports::patch_three(index, values))
    }

    /// Has the frame transmitted by the port that it came from, patched, without the host.
    ///
    /// # Errors
    /// [`Full`] if it is asked for twice, if too many frames wait for the wire, or if the
    /// frame is longer than those that the runtime keeps (1536 bytes).
    #[inline(always)]
    pub fn transmit(&self) -> Result<(), Full> {
        status(imports::transmit())
    }

    /// Has the frame, patched, handed to the other card on the bus, which transmits it. It is
    /// consumed then, whatever the verdict.
    ///
    /// # Errors
    /// [`Full`] if it is asked for twice, if there is no such card or it has granted no room, if the
    /// frame is longer than those that the runtime keeps (1536 bytes), or if the run has a message:
    /// its data are not handed on.
    #[inline(always)]
    pub fn forward(&self) -> Result<(), Full> {
        status(imports::forward())
    }

    /// Has `bytes` bytes of the frame, from byte `from` on, written to the PCI bus: into the range
    /// that the host leases to the domain, at byte `to`. They arrive in the order of the calls, and
    /// before any message that a later run sends; at most 4 transfers in a run. The frame's words are
    /// written as they came, not patched.
    ///
    /// # Errors
    /// [`Full`] if the bytes do not lie in the frame, or not in the lease; if there is no lease, or
    /// no frame of the wire; or behind a bound.
    #[inline(always)]
    pub fn transfer(&self, from: u32, bytes: u32, to: u32) -> Result<(), Full> {
        status(imports::transfer(from, bytes, to))
    }

    /// Has the frame kept, patched, beyond this run: a copy of it, to which the number refers
    /// until it is [released](Context::release).
    ///
    /// # Errors
    /// [`Full`] if it is asked for twice, if the domain keeps as many as it may (4), if too few
    /// are left for frames on their way, or if the frame is longer than those that the runtime
    /// keeps (1536 bytes).
    #[inline(always)]
    pub fn keep(&self) -> Result<KeptNumber, Full> {
        match imports::keep() {
            u32::MAX => Err(Full),
            slot => Ok(KeptNumber(slot)),
        }
    }

    /// The frames that the domain kept before this run.
    #[inline(always)]
    pub fn kept(&self) -> Kept {
        Kept(imports::kept())
    }

    /// A frame that the domain kept before this run.
    #[inline(always)]
    pub fn buffer(&self, kept: KeptNumber) -> Option<Buffer> {
        let (words, bytes) = imports::kept_words(kept.0)?;
        Some(Buffer::of_runtime(words, bytes))
    }

    /// Has a frame transmitted that the domain kept before this run; it stays kept.
    ///
    /// # Errors
    /// [`Full`] if it is not kept, if it is asked for twice, or if too many frames wait for the
    /// wire.
    #[inline(always)]
    pub fn transmit_kept(&self, kept: KeptNumber) -> Result<(), Full> {
        status(imports::send(kept.0))
    }

    /// Gives back a frame that the domain kept before this run, when what this run asks for is
    /// done.
    ///
    /// # Errors
    /// [`Full`] if it is not kept.
    #[inline(always)]
    pub fn release(&self, kept: KeptNumber) -> Result<(), Full> {
        status(imports::release(kept.0))
    }

    /// Counts in a counter of the domain's, which the host sees; numbers below 8.
    ///
    /// # Errors
    /// [`Full`] for another number, or behind the bound on effects.
    #[inline(always)]
    pub fn count(&self, counter: u32) -> Result<(), Full> {
        status(imports::count(counter))
    }

    /// Sends a message to an endpoint: at most 60 words of arguments, which are copied, and at most
    /// 4 messages in a run.
    ///
    /// # Errors
    /// [`Full`] if there is no such endpoint, if it has no room for one more, or behind a bound.
    #[inline(always)]
    pub fn send(&self, to: Endpoint, arguments: &[u32]) -> Result<(), Full> {
        status(imports::send_message(to.0, arguments))
    }

    /// Sends a message to a handler of another card, by a frame; one in a run.
    ///
    /// # Errors
    /// [`Full`] if too many frames wait for the wire, or behind a bound.
    #[inline(always)]
    pub fn send_wire(&self, to: &WireAddress, arguments: &[u32]) -> Result<(), Full> {
        let WireAddress {
            station: (high, low),
            domain,
            handler,
        } = *to;
        let high = u32::from(domain) << 24 | u32::from(handler.0) << 16 | high & 0xFFFF;
        status(imports::send_wire(high, low, arguments))
    }

    /// Sends a message to a handler of the other card on the bus, by the bus alone. That handler must
    /// let [the peer](crate::Callers::PEER) call it; a message that it does not take is dropped there
    /// and counted.
    ///
    /// # Errors
    /// [`Full`] if the host has opened no such way, if the other card has not yet taken the last 4
    /// messages, or behind a bound.
    #[inline(always)]
    pub fn send_peer(&self, to: PeerHandler, arguments: &[u32]) -> Result<(), Full> {
        let to = u32::from(to.domain) << 8 | u32::from(to.handler.0);
        status(imports::send_peer(to, arguments))
    }

    /// Sends a message to a handler of the own domain, which runs later, when others have had
    /// their turn: long work is a sequence of runs.
    ///
    /// # Errors
    /// [`Full`] if as many wait as there is room for, 4 of all domains.
    #[inline(always)]
    pub fn post(&self, handler: HandlerNumber, arguments: &[u32]) -> Result<(), Full> {
        status(imports::post(handler.0, arguments))
    }

    /// Calls a procedure of another extension; at most 15 times in a run.
    ///
    /// # Errors
    /// [`NotCalled`].
    #[inline(always)]
    pub fn call(&self, procedure: &Import, arguments: [u32; 3]) -> Result<u32, NotCalled> {
        let answer = imports::call(self, procedure.number(), &arguments);
        match (answer >> 32) as u32 {
            0 => Ok(answer as u32),
            1 => Err(NotCalled::Absent),
            _ => Err(NotCalled::Full),
        }
    }

    #[cfg(not(target_arch = "mips"))]
    pub(crate) fn of_model(argument: u32, domain: u32, run: u32) -> Context {
        Context {
            argument,
            domain,
            run,
            not_sync: PhantomData,
        }
    }
}

#[inline(always)]
fn status(word: u32) -> Result<(), Full> {
    if word == 0 { Ok(()) } else { Err(Full) }
}

#[cfg(target_arch = "mips")]
const _: () = assert!(size_of::<Context>() == 12);
