//! Reports the receive return producer index to the host.
//!
//! Hardware reference, section 14, steps 7 and 8.

use super::returns;
use super::state::Receive;
use crate::io::IoA;
use crate::io::deadline::SlotA;
use crate::io::note::{WriteKind, WriteNote};
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// Update Receive Return Producer in classic mode. With "interrupt only on coalescing" an update by
/// the number of BDs is silent; the interrupt follows when the time is over.
#[inline(always)]
pub fn update_producer<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    let producer = receive.returns.producer();
    let index = &receive.index;
    let silent = index.is_by_time() && !index.now && io.is_armed(SlotA::Receive);
    if producer != index.reported || index.silent && !silent {
        let note = if silent {
            WriteNote::QUIET
        } else {
            WriteNote::of(WriteKind::ReturnIndex)
        };
        let place = index.place;
        if !io.has_write_room(1 + returns::TRANSFERS) {
            return io.wait_for_descriptor(EventBit::UpdateReceiveReturnProducer);
        }
        returns::queue(&mut receive.returns, io, 1);
        io.put_words(place, &[producer, 0], note);
        let index = &mut receive.index;
        index.reported = producer;
        index.silent = silent;
        let counters = &mut receive.counters;
        counters.return_updates = counters.return_updates.wrapping_add(1);
    }
    receive.index.unreported = 0;
    if !silent {
        receive.index.now = false;
        io.disarm(SlotA::Receive);
    }
    io.bus.clear(EventBit::UpdateReceiveReturnProducer);
}
