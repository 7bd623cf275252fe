//! Cross calls: CPU A asks CPU B to do part of a host's command.
//!
//! CPU A carries out commands. For the few that concern CPU B's state it calls CPU B, and the
//! command stays in its ring until CPU B has answered. Neither CPU waits.
//!
//! ```text
//! A: command --> CALL = n, rings B ... carries on ... command again --> done
//! B:                        does it, ANSWER = n, rings A
//! ```

use super::{SideA, SideB, statistics};
use crate::io::Busy;
use crate::memory::layout::QUEUES;
use crate::memory::shared::{ANSWER, CALL};
use crate::path::buffer_fetch::{self, queues};
use crate::record::log::log_debug;
use tigon2_hal::events::Dispatch;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// Copy the counters to NIC memory.
    Publish = 1,
    /// Reset the counters.
    Clear = 2,
    /// Discard the jumbo BDs.
    ResetJumbo = 3,
    /// Stop fetching for classic mode and read the queue control block.
    ReadQueues = 4,
    /// Stop fetching BDs of queues and read the classifier's part of the control block.
    ReadClassifier = 5,
    /// Take the number of open queues from the queue block.
    QueuesOpened = 6,
}

/// The bits of a call's purpose; the other bits number the call.
const WHAT: u32 = 7;

/// CPU A's record of its calls.
#[derive(Debug)]
pub struct Calls {
    /// The newest call.
    newest: u32,
    /// Whether its answer is still unused.
    open: bool,
}

impl Calls {
    /// No call was made.
    pub const fn new() -> Calls {
        Calls {
            newest: 0,
            open: false,
        }
    }

    /// Whether a call's answer is still unused.
    pub const fn is_open(&self) -> bool {
        self.open
    }
}

impl Default for Calls {
    fn default() -> Calls {
        Calls::new()
    }
}

/// Calls CPU B, or returns when the earlier call has been answered.
///
/// # Errors
/// [`Busy`] until CPU B has answered: the caller tries again.
pub fn call<B: Dispatch>(a: &mut SideA<B>, what: Call) -> Result<(), Busy> {
    let Calls { newest, open } = a.calls;
    if !open || newest & WHAT != what as u32 {
        let next = ((newest & !WHAT) + WHAT + 1) | what as u32;
        a.calls = Calls {
            newest: next,
            open: true,
        };
        a.io.rare_work = true;
        CALL.set(&a.io.me, &mut a.io.bus, next);
        a.io.ring_b();
        return Err(Busy);
    }
    if ANSWER.get(&mut a.io.bus) != newest {
        return Err(Busy);
    }
    a.calls.open = false;
    Ok(())
}

/// Checks for a call from CPU A and starts it.
#[inline(always)]
pub fn answer<B: Dispatch>(b: &mut SideB<B>) {
    let call = CALL.get(&mut b.io.bus);
    if call != b.answered {
        carry_out(b, call);
    }
}

/// Carries out a call.
#[inline(never)]
fn carry_out<B: Dispatch>(b: &mut SideB<B>, call: u32) {
    match call & WHAT {
        what if what == Call::Publish as u32 => statistics::publish_b(b),
        what if what == Call::Clear as u32 => statistics::clear_b(b),
        what if what == Call::ResetJumbo as u32 => {
            buffer_fetch::reset_jumbo(&mut b.buffer_fetch, &mut b.io);
        }
        // The others are about queues.
        _ if QUEUES == 0 => {}
        what if what == Call::ReadQueues as u32 => {
            buffer_fetch::rest(&mut b.buffer_fetch, &mut b.io);
            return read(b, call, queues::WHOLE);
        }
        what if what == Call::ReadClassifier as u32 => return read(b, call, queues::CLASSIFIER),
        what if what == Call::QueuesOpened as u32 => {
            queues::opened(&mut b.buffer_fetch, &mut b.io);
        }
        _ => {}
    }
    log_debug!("call {=u32} of CPU A is done", call & WHAT);
    b.answered = call;
    ANSWER.set(&b.io.me, &mut b.io.bus, call);
    b.io.ring_a();
}

/// Reads the control block; CPU B answers the call when it has arrived.
fn read<B: Dispatch>(b: &mut SideB<B>, call: u32, bytes: u32) {
    b.answered = call;
    queues::ask(&mut b.buffer_fetch, &mut b.io, call, bytes);
}
