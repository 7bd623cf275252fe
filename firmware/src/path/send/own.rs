//! Frames of the firmware's own, among the host's.
//!
//! The transmit buffer is in order, and the MAC's producer in it is moved by the read channel, as
//! data of the host's frames arrives. So a frame that CPU B writes itself can follow only when no
//! data is under way: then CPU B moves the producer.

use super::{ROOM, SendPath};
use crate::io::IoB;
use crate::memory::copy;
use crate::memory::shared::LINK_UP;
use host_interface::extension::DropReason;
use tigon2_chip::Register;
use tigon2_hal::events::Dispatch;

/// Why a frame cannot be sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Data of the host's frames is being read: it is over when those are done, as long as no
    /// further ones are begun.
    Reads,
    /// A frame of the host's is not complete, or the MAC has no room.
    Later,
}

#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn copy<B: Dispatch>(bus: &mut B, from: u32, to: u32, bytes: u32) {
    copy::words(bus, from, to, bytes);
}

/// Sends the frame of `length` bytes without CRC whose words lie at `from`. Without a link it is
/// dropped and counted.
///
/// # Errors
/// [`Wait`], and nothing has happened.
#[inline(never)]
pub fn transmit<B: Dispatch>(
    send: &mut SendPath,
    io: &mut IoB<B>,
    from: u32,
    length: u32,
) -> Result<(), Wait> {
    if send.is_lent() {
        send.want_path(io);
        return Err(Wait::Later);
    }
    if send.frame_bytes != 0 {
        return Err(Wait::Later);
    }
    if send.is_reading() {
        return Err(Wait::Reads);
    }
    let bus = &mut io.bus;
    if LINK_UP.get(bus) == 0 {
        send.counters.drops.count(DropReason::LinkDown);
        return Ok(());
    }
    let mut frames = send.ring.open();
    if frames.held() != 0 || frames.free(bus, 1) == 0 || !send.buffer.has_room(bus, ROOM) {
        frames.close(bus);
        return Err(Wait::Later);
    }
    let start = send.buffer.position();
    let front = send.buffer.before_end().min(length);
    copy(bus, from, start, front);
    if front != length {
        copy(
            bus,
            from + front,
            send.buffer.behind(start, front),
            length - front,
        );
    }
    let end = send.buffer.behind(start, length);
    // The write of the register would go past stores that wait; a load does not.
    let _ = bus.load(from);
    bus.write(Register::TxProducer, end);
    frames.push(bus, start, length, None);
    frames.close(bus);
    send.buffer.take_last(length);
    send.counters.octets.add(length);
    Ok(())
}
