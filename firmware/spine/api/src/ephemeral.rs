//! EPHEMERAL as a type: which procedures may be cut off.
//!
//! Paper, section 3.3.2 and Figure 2. There a procedure is declared `EPHEMERAL` and the
//! compiler, which was changed for it, lets it call ephemeral ones only. Here what must not be
//! cut off asks for `&mut` [`Durable`], which only `init` is given:
//!
//! | a procedure with | may be cut off | may call |
//! | --- | --- | --- |
//! | `&mut Durable` | no | all |
//! | [`Ephemeral`], or neither | yes | those without `&mut Durable` |
//!
//! From an [`Ephemeral`] no `Durable` can be made; a `Durable` can neither be made nor stored
//! nor sent to a handler, since it is lent, and a handler is a function that captures nothing.

use crate::imports;
use crate::region::Word;
use crate::{Context, Message, Verdict};
use core::marker::PhantomData;

/// Proof that the procedure may be cut off at any instruction. A handler gets it, and can hand
/// it on, but not keep it.
#[derive(Debug)]
pub struct Ephemeral<'run>(PhantomData<*mut &'run ()>);

/// The right to do what must not be cut off. `init` alone is lent one.
#[derive(Debug)]
pub struct Durable(PhantomData<*mut ()>);

impl Durable {
    pub(crate) const fn new() -> Durable {
        Durable(PhantomData)
    }
}

#[cfg(not(target_arch = "mips"))]
impl Ephemeral<'_> {
    pub(crate) const fn new() -> Self {
        Ephemeral(PhantomData)
    }
}

/// A message handler (Figure 2's `HandlerProc`): it returns what becomes of the message.
pub type HandlerProc = for<'run> fn(Ephemeral<'run>, &'run Message, &'run Context) -> Verdict;

/// Under which number messages find a handler; below [`HandlerNumber::LIMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerNumber(pub u8);

impl HandlerNumber {
    /// Numbers of a domain.
    pub const LIMIT: u8 = 8;
}

/// A word that a handler finds in its [`Context`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument(pub u32);

impl Argument {
    /// None, the paper's `NIL`.
    pub const NIL: Argument = Argument(0);
}

/// Installs a handler (Figure 2's `AddHandler`). It is called from the end of `init` on.
/// Returns `false` if the number is taken or above the limit, or if there is no room.
pub fn add_handler(
    durable: &mut Durable,
    handler: HandlerProc,
    number: HandlerNumber,
    argument: Argument,
) -> bool {
    let _ = durable;
    imports::add_handler(handler, number.0, argument.0)
}

/// A lock of an extension's own: durable, as all that would be left in disorder by a cut.
#[derive(Debug)]
pub struct Lock(Word);

impl Lock {
    /// Free.
    pub const fn new() -> Lock {
        Lock(Word::new(0))
    }

    /// Runs `inside` with the lock held.
    pub fn hold<R>(&self, durable: &mut Durable, inside: impl FnOnce(&mut Durable) -> R) -> R {
        self.0.set(1);
        let result = inside(durable);
        self.0.set(0);
        result
    }

    /// Whether it is held.
    pub fn is_held(&self) -> bool {
        self.0.get() != 0
    }
}

impl Default for Lock {
    fn default() -> Lock {
        Lock::new()
    }
}
