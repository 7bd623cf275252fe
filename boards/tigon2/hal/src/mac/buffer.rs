//! The transmit buffer: the part of SRAM that the MAC sends from.

use crate::Bus;
use tigon2_chip::Register;

/// Room in the transmit buffer, a ring from the TX base to the RX base.
#[derive(Clone, Copy, Debug)]
pub struct TransmitBuffer {
    base: u32,
    end: u32,
    write: u32,
    /// Bytes that were free at the last read of the MAC, less those taken since.
    room: u32,
}

impl TransmitBuffer {
    /// The buffer between two SRAM addresses that are multiples of 8.
    pub const fn new(base: u32, end: u32) -> TransmitBuffer {
        TransmitBuffer {
            base,
            end,
            write: base,
            room: 0,
        }
    }

    /// Where the next fragment goes.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.write
    }

    /// Whether `bytes` more fit without reaching unsent data. Reads a register only if they did not
    /// fit at the last read.
    #[inline(always)]
    pub fn has_room<B: Bus>(&mut self, bus: &mut B, bytes: u32) -> bool {
        if self.knows_room(bytes) {
            return true;
        }
        let consumer = bus.read(Register::TxConsumer);
        self.room = if consumer > self.write {
            consumer - self.write
        } else {
            (self.end - self.base) - (self.write - consumer)
        };
        self.room > bytes
    }

    /// Whether `bytes` more fitted at the last read.
    #[inline(always)]
    pub fn knows_room(&self, bytes: u32) -> bool {
        self.room as i32 > bytes as i32
    }

    /// Takes room for a fragment. Its data wraps at the end of the buffer, as the DMA channel and
    /// the MAC do by themselves (6.4, 10.2, C).
    #[inline(always)]
    pub fn take(&mut self, bytes: u32) {
        self.room = self.room.wrapping_sub(bytes);
        self.write = self.wrapped(self.write + bytes);
    }

    /// Takes room for a frame's last fragment, up to the 8-byte boundary at which the next
    /// frame begins.
    #[inline(always)]
    pub fn take_last(&mut self, bytes: u32) {
        self.take(bytes + ((self.write + bytes).wrapping_neg() & 7));
    }

    /// Makes the next frame begin at the base if fewer than `bytes` are left before the end, so
    /// that this many of its bytes do not wrap. They must be free as well, see
    /// [`has_room`](Self::has_room).
    #[inline(always)]
    pub fn keep_together(&mut self, bytes: u32) {
        let left = self.end - self.write;
        if left < bytes {
            self.take(left);
        }
    }

    /// Takes room for a whole frame of `bytes` bytes at the position, a multiple of 8, of which at
    /// least `together` do not wrap. Returns where it begins.
    #[inline(always)]
    pub fn take_frame(&mut self, bytes: u32, together: u32) -> u32 {
        let left = self.end - self.write;
        let mut start = self.write;
        if left < together {
            self.room = self.room.wrapping_sub(left);
            start = self.base;
        }
        let bytes = (bytes + 7) & !7;
        self.room = self.room.wrapping_sub(bytes);
        self.write = self.wrapped(start + bytes);
        start
    }

    /// The address `bytes` after `address`, which lies in the buffer, wrapped at the end.
    #[inline(always)]
    pub fn behind(&self, address: u32, bytes: u32) -> u32 {
        self.wrapped(address + bytes)
    }

    /// Bytes from the next fragment's place to the end of the buffer.
    #[inline(always)]
    pub fn before_end(&self) -> u32 {
        self.end - self.write
    }

    /// Bytes from `from` forward to `to`, both in the buffer.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from {
            to - from
        } else {
            (self.end - self.base) - (from - to)
        }
    }

    /// Frees all room: the buffer contains no unsent data.
    pub fn clear<B: Bus>(&mut self, bus: &mut B) {
        self.write = bus.read(Register::TxConsumer);
        self.room = 0;
        self.take_last(0);
    }

    /// Goes back to `position`, where an abandoned frame began.
    #[inline(always)]
    pub fn rewind(&mut self, position: u32) {
        self.write = position;
        self.room = 0;
    }

    #[inline(always)]
    fn wrapped(&self, address: u32) -> u32 {
        if address >= self.end {
            address - (self.end - self.base)
        } else {
            address
        }
    }
}
