//! NIC memory for a host whose window is a peer's: [`host_interface::spine::access`].

use host_interface::bar::DIRECT;
use host_interface::spine::MAILBOX;
use host_interface::spine::access::{AccessWord, DATA, WORDS, WRITE};
use thiserror::Error;

/// A card's BAR 0 below the window, as a driver has it.
pub trait Bar {
    /// What goes wrong on the way.
    type Error: std::error::Error;

    /// Reads a word.
    ///
    /// # Errors
    /// If the card is gone.
    fn read(&mut self, offset: u32) -> Result<u32, Self::Error>;

    /// Writes a word.
    ///
    /// # Errors
    /// If the card is gone.
    fn write(&mut self, offset: u32, value: u32) -> Result<(), Self::Error>;

    /// Writes the lower word of a mailbox, when all that was written before has arrived.
    ///
    /// # Errors
    /// If the card is gone.
    fn ring(&mut self, mailbox: u32) -> Result<(), Self::Error>;

    /// Lets the card work for a moment; `false` when it has had enough time for an answer, after
    /// `turns` of them.
    fn wait(&mut self, turns: u32) -> bool;
}

/// Why words of NIC memory are not read or written.
#[derive(Debug, Error)]
pub enum AccessError<E: std::error::Error> {
    /// The card is gone.
    #[error("the card: {0}")]
    Card(E),
    /// The firmware does not answer.
    #[error("the firmware does not answer a request for its memory")]
    NoAnswer,
    /// They are not in the card's memory.
    #[error("the firmware has no words at {0:#x}")]
    NoSuchWords(u32),
}

/// Reads words of NIC memory. Only one at a time may ask a card.
///
/// # Errors
/// If the firmware refuses, or does not answer.
pub fn read<B: Bar>(
    bar: &mut B,
    address: u32,
    out: &mut [u32],
) -> Result<(), AccessError<B::Error>> {
    for (at, piece) in pieces(address).zip(out.chunks_mut(WORDS as usize)) {
        ask(bar, at, piece.len() as u32)?;
        for (offset, word) in data().zip(piece) {
            *word = bar.read(offset).map_err(AccessError::Card)?;
        }
    }
    Ok(())
}

/// Writes words of NIC memory. Only one at a time may ask a card.
///
/// # Errors
/// If the firmware refuses, or does not answer; the words up to some piece are written then.
pub fn write<B: Bar>(
    bar: &mut B,
    address: u32,
    words: &[u32],
) -> Result<(), AccessError<B::Error>> {
    for (at, piece) in pieces(address).zip(words.chunks(WORDS as usize)) {
        for (offset, word) in data().zip(piece) {
            bar.write(offset, *word).map_err(AccessError::Card)?;
        }
        ask(bar, at, WRITE | piece.len() as u32)?;
    }
    Ok(())
}

/// Where the pieces begin.
fn pieces(address: u32) -> impl Iterator<Item = u32> {
    (0..).map(move |piece: u32| address.wrapping_add(4 * WORDS * piece))
}

/// BAR offsets of the words of data.
fn data() -> impl Iterator<Item = u32> {
    (0..WORDS).map(|word| DIRECT + DATA + 4 * word)
}

/// Asks for one piece.
fn ask<B: Bar>(bar: &mut B, address: u32, shape: u32) -> Result<(), AccessError<B::Error>> {
    let at = |word: AccessWord| DIRECT + word as u32;
    let last = bar.read(at(AccessWord::Request));
    let number = (last.map_err(AccessError::Card)? >> 16).wrapping_add(1);
    let request = number << 16 | shape;
    let mut post = || {
        bar.write(at(AccessWord::Address), address)?;
        bar.write(at(AccessWord::Request), request)?;
        bar.ring(MAILBOX)
    };
    post().map_err(AccessError::Card)?;
    let mut turns = 0;
    while bar
        .read(at(AccessWord::Answer))
        .map_err(AccessError::Card)?
        != request
    {
        if !bar.wait(turns) {
            return Err(AccessError::NoAnswer);
        }
        turns += 1;
    }
    match bar
        .read(at(AccessWord::Refused))
        .map_err(AccessError::Card)?
    {
        0 => Ok(()),
        _ => Err(AccessError::NoSuchWords(address)),
    }
}

#[cfg(test)]
mod tests;
