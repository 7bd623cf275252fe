//! What CPU A asks of CPU B, for commands of the host.
//!
//! Commands are carried out by CPU A. A few of them concern what CPU B owns: it is asked,
//! and the command stays in its ring until the answer is there. Neither CPU waits.
//!
//! ```text
//! A: command --> QUESTION = n, rings B ... carries on ... command again --> done
//! B:                        does it, ANSWER = n, rings A
//! ```

use crate::log::log_debug;
use crate::shared::{ANSWER, QUESTION};
use crate::{SideA, SideB, refill, statistics};
use tigon2_hal::assist::Full;
use tigon2_hal::events::Dispatch;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum What {
    /// Copy the counters to NIC memory.
    Publish = 1,
    /// Begin to count at zero.
    Clear = 2,
    /// Forget the jumbo BDs.
    ResetJumbo = 3,
}

/// Bits of a question that say what is asked; the others number it.
const WHAT: u32 = 7;

/// CPU A's account of its questions.
#[derive(Debug)]
pub struct Asked {
    /// The newest question.
    question: u32,
    /// Whether its answer was not used yet.
    open: bool,
}

impl Asked {
    /// Nothing was asked.
    pub const fn new() -> Asked {
        Asked {
            question: 0,
            open: false,
        }
    }

    /// Whether something was asked and not used.
    pub const fn is_open(&self) -> bool {
        self.open
    }
}

impl Default for Asked {
    fn default() -> Asked {
        Asked::new()
    }
}

/// Asks, or finds that it was asked and done.
///
/// # Errors
/// [`Full`] until CPU B has answered: the caller comes again.
pub fn ask<B: Dispatch>(a: &mut SideA<B>, what: What) -> Result<(), Full> {
    let Asked { question, open } = a.asked;
    if !open || question & WHAT != what as u32 {
        let next = ((question & !WHAT) + WHAT + 1) | what as u32;
        a.asked = Asked {
            question: next,
            open: true,
        };
        QUESTION.set(&a.me, &mut a.bus, next);
        a.ring();
        return Err(Full);
    }
    if ANSWER.get(&mut a.bus) != question {
        return Err(Full);
    }
    a.asked.open = false;
    Ok(())
}

/// CPU B looks whether it was asked something.
#[inline(always)]
pub fn answer<B: Dispatch>(b: &mut SideB<B>) {
    let question = QUESTION.get(&mut b.bus);
    if question != b.answered {
        carry_out(b, question);
    }
}

/// Does what was asked.
#[inline(never)]
fn carry_out<B: Dispatch>(b: &mut SideB<B>, question: u32) {
    match question & WHAT {
        what if what == What::Publish as u32 => statistics::publish_b(b),
        what if what == What::Clear as u32 => statistics::clear_b(b),
        what if what == What::ResetJumbo as u32 => refill::reset_jumbo(b),
        _ => {}
    }
    log_debug!("question {=u32} of CPU A is done", question & WHAT);
    b.answered = question;
    ANSWER.set(&b.me, &mut b.bus, question);
    b.ring();
}
