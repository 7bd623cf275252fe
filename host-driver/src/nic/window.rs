//! Access to NIC memory: through the window, or by requests while a peer has the window.
//!
//! Hardware reference, section 9: `R[68]` holds the base (2 KB aligned), BAR offsets
//! 800-FFF show the 2 KB of SRAM from there on.

use std::time::Duration;

use spine_linker::access::{self, AccessError, Bar};
use tigon2_chip::mailbox;
use tigon2_chip::registers::Register;

use super::NicError;
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

/// How the driver reaches NIC memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryAccess {
    /// Through the window.
    #[default]
    Window,
    /// By requests: the window is leased to a peer ([`spine_linker::load::peer`]).
    Requests,
}

impl MemoryAccess {
    /// Leaves the window to a peer, at a NIC address.
    ///
    /// # Errors
    /// [`TransportError`] if the card is gone.
    pub fn lease<T: Transport>(
        &mut self,
        transport: &mut T,
        address: u32,
    ) -> Result<(), TransportError> {
        if *self == MemoryAccess::Window {
            let base = address & !(WINDOW_BYTES - 1);
            transport.write(Register::WindowBase.offset(), base)?;
            transport.flush()?;
            *self = MemoryAccess::Requests;
        }
        Ok(())
    }

    /// As [`read`].
    ///
    /// # Errors
    /// What the transport or the firmware says.
    pub fn read<T: Transport>(
        self,
        transport: &mut T,
        address: u32,
        out: &mut [u32],
    ) -> Result<(), NicError> {
        match self {
            MemoryAccess::Window => Ok(read(transport, address, out)?),
            MemoryAccess::Requests => Ok(access::read(&mut Direct(transport), address, out)?),
        }
    }

    /// As [`write`].
    ///
    /// # Errors
    /// What the transport or the firmware says.
    pub fn write<T: Transport>(
        self,
        transport: &mut T,
        address: u32,
        words: &[u32],
    ) -> Result<(), NicError> {
        match self {
            MemoryAccess::Window => Ok(write(transport, address, words)?),
            MemoryAccess::Requests => Ok(access::write(&mut Direct(transport), address, words)?),
        }
    }
}

/// How long the firmware has at a look: it answers between two handlers.
pub const LOOK: Duration = Duration::from_micros(50);
/// Looks for an answer. An emulated card waits for its computer.
pub const LOOKS: u32 = 20_000;

/// BAR 0 below the window.
struct Direct<'a, T>(&'a mut T);

impl<T: Transport> Bar for Direct<'_, T> {
    type Error = TransportError;

    fn read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.0.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.0.write(offset, value)
    }

    fn ring(&mut self, number: u32) -> Result<(), TransportError> {
        self.0.flush()?;
        ring(self.0, number)
    }

    fn wait(&mut self, turns: u32) -> bool {
        std::thread::sleep(LOOK);
        turns < LOOKS
    }
}

/// Writes a mailbox. Its order is not that of writes to NIC memory: those have to have arrived.
///
/// # Errors
/// [`TransportError`] if the card is gone.
pub fn ring<T: Transport>(transport: &mut T, number: u32) -> Result<(), TransportError> {
    let low = mailbox::BAR_BASE + mailbox::BYTES * number + 4;
    transport.write(low, 1)?;
    transport.flush()
}

impl From<AccessError<TransportError>> for NicError {
    fn from(error: AccessError<TransportError>) -> Self {
        match error {
            AccessError::Card(error) => error.into(),
            other => NicError::Access(other),
        }
    }
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
