//! What CPU A has CPU B do for commands of the host.
//!
//! Commands are carried out by CPU A. A few of them concern what CPU B owns: it is called,
//! and the command stays in its ring until the answer is there. Neither CPU waits.
//!
//! ```text
//! A: command --> CALL = n, rings B ... carries on ... command again --> done
//! B:                        does it, ANSWER = n, rings A
//! ```

use super::{SideA, SideB, statistics};
use crate::io::Busy;
use crate::memory::shared::{ANSWER, CALL};
use crate::path::buffer_fetch::{self, queues};
use crate::record::log::log_debug;
use tigon2_hal::events::Dispatch;

/// What CPU B can be called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// Copy the counters to NIC memory.
    Publish = 1,
    /// Begin to count at zero.
    Clear = 2,
    /// Forget the jumbo BDs.
    ResetJumbo = 3,
    /// Fetch nothing of classic mode any more and read the queue control block.
    ReadQueues = 4,
    /// Fetch no BDs of queues any more and read what the control block says of the classifier.
    ReadClassifier = 5,
    /// As many queues are open as the queue block says.
    QueuesOpened = 6,
}

/// Bits of a call that say what for; the others number it.
const WHAT: u32 = 7;

/// CPU A's account of its calls.
#[derive(Debug)]
pub struct Calls {
    /// The newest call.
    newest: u32,
    /// Whether its answer was not used yet.
    open: bool,
}

impl Calls {
    /// None was made.
    pub const fn new() -> Calls {
        Calls {
            newest: 0,
            open: false,
        }
    }

    /// Whether a call was made whose answer was not used.
    pub const fn is_open(&self) -> bool {
        self.open
    }
}

impl Default for Calls {
    fn default() -> Calls {
        Calls::new()
    }
}

/// Calls CPU B, or finds that it was called and is done.
///
/// # Errors
/// [`Busy`] until CPU B has answered: the caller comes again.
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

/// CPU B looks whether it was called.
#[inline(always)]
pub fn answer<B: Dispatch>(b: &mut SideB<B>) {
    let call = CALL.get(&mut b.io.bus);
    if call != b.answered {
        carry_out(b, call);
    }
}

/// Does what it was called for.
#[inline(never)]
fn carry_out<B: Dispatch>(b: &mut SideB<B>, call: u32) {
    match call & WHAT {
        what if what == Call::Publish as u32 => statistics::publish_b(b),
        what if what == Call::Clear as u32 => statistics::clear_b(b),
        what if what == Call::ResetJumbo as u32 => {
            buffer_fetch::reset_jumbo(&mut b.buffer_fetch, &mut b.io);
        }
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

/// Reads the control block; the call is answered when it is there.
fn read<B: Dispatch>(b: &mut SideB<B>, call: u32, bytes: u32) {
    b.answered = call;
    queues::ask(&mut b.buffer_fetch, &mut b.io, call, bytes);
}
