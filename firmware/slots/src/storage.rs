//! The EEPROM as storage for this crate.

/// A part that can be read anywhere and written by the page.
pub trait Storage {
    /// Why an access failed.
    type Error;

    /// Reads `out.len()` bytes from `at` on.
    ///
    /// # Errors
    /// When the part does not answer.
    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes `bytes` from `at` on, all within one page of
    /// [`PAGE_BYTES`](crate::geometry::PAGE_BYTES), and returns when they are stored.
    ///
    /// # Errors
    /// When the part does not answer.
    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Self::Error>;
}
