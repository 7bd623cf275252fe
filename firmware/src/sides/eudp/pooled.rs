//! The completion of a datagram in the [pool](super::pool): it is the endpoint's, and says which buffer of
//! the pool has the data, and which memory of the endpoint's is to have it.

use super::assembly::{Assembly, State};
use super::completion::{Entry, Reporter};
use super::headers::UDP;
use crate::io::IoA;
use crate::io::note::WriteNote;
use host_interface::eudp::{CompletionWord, Kind, POOL_BUFFERS, Status, Verdict};
use tigon2_hal::events::Dispatch;

/// A datagram in the pool is whole: completes the descriptor that it has taken.
#[inline(never)]
pub(super) fn complete<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>, assembly: Assembly) {
    let Some(claim) = assembly.claim(&mut io.bus) else {
        return;
    };
    if !io.has_write_room(1) {
        // The next millisecond tries again.
        return assembly.enter(&mut io.bus, State::Whole);
    }
    let bus = &mut io.bus;
    let (port, is_summed) = assembly.from(bus);
    let verdict = if is_summed {
        Verdict::Right
    } else {
        Verdict::Absent
    };
    let buffer = assembly.cookie(bus) & (POOL_BUFFERS - 1);
    let entry = Entry {
        cookie: claim.cookie,
        kind: Kind::Pooled,
        status: Status::Done as u32,
        length: assembly.length(bus).unwrap_or(UDP) - UDP,
        address: assembly.source(bus),
        port: port << 16 | buffer << 8 | verdict as u32,
    };
    assembly.unclaim(bus);
    assembly.enter(bus, State::Spent);
    if let Some(queue) = reporter.queues.get_mut(claim.endpoint as usize) {
        let (host, number) = queue.next();
        let mut words = entry.words(number);
        let piece = CompletionWord::Piece as usize / 4;
        words[piece..piece + 2].copy_from_slice(&claim.segment);
        io.put_slot(host, words, WriteNote::QUIET);
    }
}
