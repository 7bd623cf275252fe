//! Messages of the driver's process to handlers.
//!
//! Paper, section 3.2: a message has up to 240 bytes of arguments, and runs a handler. The host
//! writes the arguments into the SPINE block and asks for the command; the answer says whether the
//! handler has returned. What it has to say lies in its region, which the host reads.

use super::effects::There;
use super::enter::{self, Left};
use super::{ContextWords, MessageWords, Runtime, commit, cut, watched};
use crate::io::IoA;
use crate::memory::layout::SPINE_BLOCK;
use host_interface::spine::{ARGUMENT_WORDS, DomainCount, MESSAGE, OF_DRIVER, Outcome};
use tigon2_hal::events::Dispatch;

/// Hands the message in the block to a handler: domain, handler and how many arguments there are,
/// from bits 0, 8 and 16 on.
pub(super) fn deliver<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    argument: u32,
) -> Result<(), Outcome> {
    let (number, handler, words) = (argument & 0xFF, argument >> 8 & 0xFF, argument >> 16);
    let Runtime {
        domains,
        effects,
        pool,
        run,
        ..
    } = runtime;
    let domain = domains.get_mut(number as usize).ok_or(Outcome::NoDomain)?;
    let installed = domain.handlers.get(handler as usize).copied();
    let installed = installed.filter(|installed| installed.entry != 0);
    let installed = installed.ok_or(Outcome::NoHandler)?;
    if words > ARGUMENT_WORDS {
        return Err(Outcome::TooLong);
    }
    if domain.suspended != 0 {
        return Err(Outcome::Cut);
    }
    pool.make_room(&mut io.bus);
    let there = There {
        room: pool.slots.room(),
        kept: pool.slots.kept(number),
        ..There::NOTHING
    };
    effects.begin(0, there);
    *run = run.wrapping_add(1);
    let message: MessageWords = [0, 0, OF_DRIVER, SPINE_BLOCK + MESSAGE, words];
    let context: ContextWords = [installed.argument, number, *run];
    let left = watched(io, *run, domain.watchdog, || {
        enter::enter(installed.entry, &message, &context, effects)
    });
    Runtime::count(&mut io.bus, number, DomainCount::Runs);
    match left {
        Left::Ended(why) => {
            cut(io, domain, pool, number, why);
            Err(Outcome::Cut)
        }
        Left::Returned(_) => {
            domain.cut = 0;
            commit(io, effects, pool, number, 0, 0);
            Ok(())
        }
    }
}
