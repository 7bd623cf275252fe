//! The card as its driver lends it.

use std::os::fd::OwnedFd;

/// What the card may do with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads what is sent.
    Read,
    /// It also writes what is received.
    ReadWrite,
}

/// Memory that process and card share; a clone is the same memory.
pub trait Memory: Clone {
    /// What goes wrong.
    type Error: std::error::Error;

    /// Its bytes.
    fn bytes(&self) -> usize;

    /// What the card may do with it.
    fn access(&self) -> Access;

    /// The card's address of `bytes` at `offset`.
    ///
    /// # Errors
    /// If they are not within it, or not in one piece.
    fn address(&self, offset: usize, bytes: usize) -> Result<u64, Self::Error>;

    /// Reads words as the card has written them.
    ///
    /// # Errors
    /// If they are not within it.
    fn read_words(&self, offset: usize, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Writes words as the card reads them.
    ///
    /// # Errors
    /// If they are not within it.
    fn write_words(&self, offset: usize, words: &[u32]) -> Result<(), Self::Error>;

    /// Copies bytes out of it.
    ///
    /// # Errors
    /// If they are not within it.
    fn read_bytes(&self, offset: usize, out: &mut [u8]) -> Result<(), Self::Error>;

    /// Copies bytes into it.
    ///
    /// # Errors
    /// If they are not within it.
    fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// NIC memory, mailboxes and shared memory.
pub trait Card {
    /// What goes wrong on the way.
    type Error: std::error::Error;
    /// Memory that it can reach.
    type Memory: Memory;

    /// Reads words of NIC memory.
    ///
    /// # Errors
    /// If the card is gone.
    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Writes words of NIC memory. They arrive before a mailbox that is written later.
    ///
    /// # Errors
    /// If the card is gone.
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Self::Error>;

    /// Writes a mailbox by its number.
    ///
    /// # Errors
    /// If the card is gone.
    fn ring(&mut self, mailbox: u32, word: u32) -> Result<(), Self::Error>;

    /// Shares zeroed memory with the card.
    ///
    /// # Errors
    /// If there is none, or the card is gone.
    fn allocate(&mut self, bytes: usize) -> Result<Self::Memory, Self::Error>;

    /// Shares a memory file of the process's own with the card, of whole pages and sealed against
    /// shrinking and growing.
    ///
    /// # Errors
    /// If it is no such file, this way to the card has no memory of others, or the card is gone.
    fn map(&mut self, file: OwnedFd, access: Access) -> Result<Self::Memory, Self::Error>;

    /// Takes memory back that [`map`](Self::map) gave. Nothing that the card has may name it.
    ///
    /// # Errors
    /// If the card is gone; then the memory stays shared.
    fn unmap(&mut self, memory: &Self::Memory) -> Result<(), Self::Error>;

    /// Lets the card work for a moment; `false` when it has had enough time for an answer, after
    /// `turns` of them.
    fn wait(&mut self, turns: u32) -> bool;
}
