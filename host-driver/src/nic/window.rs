//! Access to NIC memory through the window.
//!
//! Hardware reference, section 9: `R[68]` holds the base (2 KB aligned), BAR offsets
//! 800-FFF show the 2 KB of SRAM from there on.

use tigon2_chip::registers::Register;

use crate::transport::{Transport, TransportError};

/// BAR offset of the window.
pub const WINDOW: u32 = 0x800;
/// Bytes of the window.
pub const WINDOW_BYTES: u32 = 0x800;

/// Splits a range of NIC memory into pieces that one window position covers: base, BAR offset,
/// words.
fn pieces(address: u32, words: usize) -> impl Iterator<Item = (u32, u32, usize)> {
    let mut address = address & !3;
    let mut left = words;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let base = address & !(WINDOW_BYTES - 1);
        let inside = address - base;
        let room = ((WINDOW_BYTES - inside) / 4) as usize;
        let count = left.min(room);
        let piece = (base, WINDOW + inside, count);
        left -= count;
        address = base.wrapping_add(WINDOW_BYTES);
        Some(piece)
    })
}

/// Writes words to NIC memory.
///
/// # Errors
/// [`TransportError`] if the card is gone.
pub fn write<T: Transport>(
    transport: &mut T,
    address: u32,
    words: &[u32],
) -> Result<(), TransportError> {
    let mut rest = words;
    for (base, offset, count) in pieces(address, words.len()) {
        let (now, later) = rest.split_at(count);
        transport.write(Register::WindowBase.offset(), base)?;
        transport.write_block(offset, now)?;
        rest = later;
    }
    Ok(())
}

/// Sets NIC memory to zero.
///
/// # Errors
/// [`TransportError`] if the card is gone.
pub fn clear<T: Transport>(
    transport: &mut T,
    address: u32,
    bytes: u32,
) -> Result<(), TransportError> {
    const ZEROS: [u32; (WINDOW_BYTES / 4) as usize] = [0; (WINDOW_BYTES / 4) as usize];
    for (base, offset, count) in pieces(address, (bytes / 4) as usize) {
        transport.write(Register::WindowBase.offset(), base)?;
        transport.write_block(offset, ZEROS.get(..count).unwrap_or(&ZEROS))?;
    }
    Ok(())
}

/// Reads words of NIC memory.
///
/// # Errors
/// [`TransportError`] if the card does not answer.
pub fn read<T: Transport>(
    transport: &mut T,
    address: u32,
    out: &mut [u32],
) -> Result<(), TransportError> {
    let mut rest = out;
    for (base, offset, count) in pieces(address, rest.len()) {
        let (now, later) = rest.split_at_mut(count);
        transport.write(Register::WindowBase.offset(), base)?;
        transport.read_block(offset, now)?;
        rest = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 9: `R[68]` is 2 KB aligned, BAR 0x800+x accesses SRAM `R[68]`+x (C).
    #[test]
    fn ranges_are_split_where_the_window_ends() {
        let all: Vec<_> = pieces(0x17F8, 4).collect();
        assert_eq!(all, [(0x1000, 0xFF8, 2), (0x1800, 0x800, 2)]);
        let whole: Vec<_> = pieces(0x4000, 1024).collect();
        assert_eq!(whole, [(0x4000, 0x800, 512), (0x4800, 0x800, 512)]);
        assert_eq!(pieces(0x4000, 0).count(), 0);
    }
}
