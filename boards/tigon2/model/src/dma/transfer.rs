//! Moves the bytes of a transfer: segments in the packet buffers, byte order, checksum.
//!
//! Hardware reference, sections 6.4 and 6.5. A read whose NIC address reaches RxBase continues at
//! TxBase; a write that reaches 0x200000 continues at RxBase.

use super::{Direction, Dma, Transfer, add_bytes};
use crate::environment::{Environment, HostMemoryError, Sram};
use crate::memory::SramMap;
use tigon2_chip::memory::{PACKET_MEMORY_END, SRAM_MAX_BYTES};

/// The bases of the packet buffers, `R[D0]` and `R[C0]`, as addresses below 8 MB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketBuffers {
    /// TxBase.
    pub tx_base: u32,
    /// RxBase, the end of the TX buffer.
    pub rx_base: u32,
}

impl PacketBuffers {
    /// Where the channel's NIC address wraps: (end, start). `None` with the bases still 0,
    /// or if they make no buffer (6.4, C).
    pub fn wrap(&self, direction: Direction) -> Option<(u32, u32)> {
        let (end, start) = match direction {
            Direction::Read => (self.rx_base, self.tx_base),
            Direction::Write => (PACKET_MEMORY_END, self.rx_base),
        };
        (self.rx_base != 0 && start < end).then_some((end, start))
    }

    /// Bytes of the TX buffer, 0 if there is none.
    #[inline]
    pub fn tx_bytes(&self) -> u32 {
        self.rx_base.saturating_sub(self.tx_base)
    }

    /// Bytes of the RX buffer, 0 if there is none.
    #[inline]
    pub fn rx_bytes(&self) -> u32 {
        if self.rx_base == 0 {
            0
        } else {
            PACKET_MEMORY_END.saturating_sub(self.rx_base)
        }
    }
}

/// The result of a completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The NIC address after the last byte, wrapped.
    pub end: u32,
    /// The resulting sum.
    pub checksum: u16,
}

/// Calls `each` with every contiguous piece: (NIC address, range in the transfer). Returns the NIC
/// address after the last byte.
fn segments(
    local: u32,
    length: usize,
    wrap: Option<(u32, u32)>,
    mut each: impl FnMut(u32, std::ops::Range<usize>),
) -> u32 {
    let mut at = local & (SRAM_MAX_BYTES - 1);
    let mut done = 0;
    while done < length {
        let room = match wrap {
            Some((end, _)) if at < end => (end - at) as usize,
            _ => usize::MAX,
        };
        let piece = room.min(length - done);
        each(at, done..done + piece);
        done += piece;
        at += piece as u32;
        if let Some((end, start)) = wrap
            && at == end
        {
            at = start;
        }
    }
    at
}

/// Reverses the bytes of each 32-bit word; trailing bytes that form no word keep their order
/// (6.4).
pub(crate) fn reverse_words(bytes: &mut [u8]) {
    for word in bytes.chunks_exact_mut(4) {
        word.reverse();
    }
}

/// Copies the bytes of a transfer to the host out of NIC memory. Returns the NIC address after the
/// last one.
pub(crate) fn gather(
    sram: &dyn Sram,
    map: SramMap,
    buffers: PacketBuffers,
    transfer: &Transfer,
    bytes: &mut [u8],
) -> u32 {
    let wrap = buffers.wrap(Direction::Write);
    segments(transfer.local, bytes.len(), wrap, |address, range| {
        map.read(sram, address, &mut bytes[range]);
    })
}

/// The NIC address of byte `offset` of a transfer.
fn address_of(transfer: &Transfer, offset: usize, wrap: Option<(u32, u32)>) -> u32 {
    segments(transfer.local, offset, wrap, |_, _| {})
}

impl Dma {
    /// Moves the bytes of a transfer from `moved` to its end, or to `until` if that is in front of
    /// it. Both are multiples of 4, but for the end, if words are reversed.
    ///
    /// # Errors
    /// [`HostMemoryError`] if the host did not answer for all of it; NIC memory is then
    /// unchanged, but for the bytes that had moved before.
    pub fn move_bytes(
        &mut self,
        env: &mut Environment<'_>,
        map: SramMap,
        buffers: PacketBuffers,
        direction: Direction,
        transfer: &Transfer,
        until: u32,
    ) -> Result<Outcome, HostMemoryError> {
        let whole = transfer.length as usize;
        if transfer.host.checked_add(whole as u64).is_none() {
            return Err(HostMemoryError {
                address: transfer.host,
                length: whole,
            });
        }
        let wrap = buffers.wrap(direction);
        let channel = self.channel(direction);
        let (moved, mut checksum) = (channel.moved().min(transfer.length), channel.checksum());
        let transfer = Transfer {
            host: transfer.host + u64::from(moved),
            local: address_of(transfer, moved as usize, wrap),
            length: until.min(transfer.length).saturating_sub(moved),
            ..*transfer
        };
        let length = transfer.length as usize;
        let bytes = &mut self.buffer[..length];
        let state = transfer.state;
        let end = match direction {
            Direction::Read => {
                if length != 0 {
                    env.host.read(transfer.host, bytes)?;
                }
                if state.no_swap() {
                    reverse_words(bytes);
                }
                if state.checksum() {
                    checksum = add_bytes(checksum, transfer.local, bytes);
                }
                segments(transfer.local, length, wrap, |address, range| {
                    map.write(env.sram, address, &bytes[range]);
                })
            }
            Direction::Write => {
                let end = gather(env.sram, map, buffers, &transfer, bytes);
                if state.checksum() {
                    checksum = add_bytes(checksum, transfer.local, bytes);
                }
                if state.no_swap() {
                    reverse_words(bytes);
                }
                if length != 0 {
                    env.host.write(transfer.host, bytes)?;
                }
                end
            }
        };
        Ok(Outcome { end, checksum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(local: u32, length: usize, wrap: Option<(u32, u32)>) -> (Vec<(u32, usize)>, u32) {
        let mut pieces = Vec::new();
        let end = segments(local, length, wrap, |at, range| {
            pieces.push((at, range.len()))
        });
        (pieces, end)
    }

    /// Reference 6.4: a read that reaches RxBase continues at TxBase, a write that reaches
    /// 0x200000 at RxBase; with the bases still 0 there is no wrap (C).
    #[test]
    fn packet_buffers_wrap() {
        let buffers = PacketBuffers {
            tx_base: 0x13_4000,
            rx_base: 0x18_0000,
        };
        let read = buffers.wrap(Direction::Read);
        let expected = (vec![(0x17_FFF0, 16), (0x13_4000, 48)], 0x13_4030);
        assert_eq!(pieces(0x17_FFF0, 64, read), expected);
        assert_eq!(
            pieces(0x17_FFC0, 64, read),
            (vec![(0x17_FFC0, 64)], 0x13_4000)
        );
        assert_eq!(pieces(0x2000, 64, read), (vec![(0x2000, 64)], 0x2040));
        let write = buffers.wrap(Direction::Write);
        let expected = (vec![(0x1F_FFFF, 1), (0x18_0000, 2)], 0x18_0002);
        assert_eq!(pieces(0x1F_FFFF, 3, write), expected);
        assert_eq!(PacketBuffers::default().wrap(Direction::Read), None);
        assert_eq!(PacketBuffers::default().wrap(Direction::Write), None);
    }

    #[test]
    fn bases_that_make_no_buffer_do_not_wrap() {
        for (tx_base, rx_base) in [(0x1000, 0x1000), (0x2000, 0x1000), (0, 0x20_0000)] {
            let buffers = PacketBuffers { tx_base, rx_base };
            let wraps = (
                buffers.wrap(Direction::Read),
                buffers.wrap(Direction::Write),
            );
            assert!(wraps.0.is_none() || wraps.1.is_none(), "{wraps:?}");
        }
        let tiny = PacketBuffers {
            tx_base: 0x1000,
            rx_base: 0x1001,
        };
        let (pieces, end) = pieces(0x1000, 5, tiny.wrap(Direction::Read));
        assert_eq!((pieces.len(), end), (5, 0x1000));
    }
}
