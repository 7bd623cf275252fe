//! The host's reads and writes of a loaded domain's region.

use super::{Card, LoadError, Loader};

impl Loader {
    /// Words of a domain's region.
    ///
    /// # Errors
    /// [`LoadError::NotLoaded`].
    pub fn region_words<E: std::error::Error>(&self, domain: u32) -> Result<usize, LoadError<E>> {
        let piece = self.pieces.get(domain as usize).copied().flatten();
        let piece = piece.ok_or(LoadError::NotLoaded(domain))?;
        Ok(piece.region_bytes as usize / 4)
    }

    /// The NIC address of some words of a domain's region.
    fn of_region<E: std::error::Error>(
        &self,
        domain: u32,
        index: usize,
        count: usize,
    ) -> Result<u32, LoadError<E>> {
        let words = self.region_words(domain)?;
        let piece = self.pieces.get(domain as usize).copied().flatten();
        match piece {
            Some(piece) if index <= words && count <= words - index => {
                Ok(piece.region + 4 * index as u32)
            }
            _ => Err(LoadError::OutsideRegion(domain)),
        }
    }

    /// Reads words of a domain's region, from one on.
    ///
    /// # Errors
    /// [`LoadError::NotLoaded`], [`LoadError::OutsideRegion`], [`LoadError::Card`].
    pub fn read_region<C: Card>(
        &self,
        card: &mut C,
        domain: u32,
        index: usize,
        out: &mut [u32],
    ) -> Result<(), LoadError<C::Error>> {
        let at = self.of_region(domain, index, out.len())?;
        card.read(at, out).map_err(LoadError::Card)
    }

    /// Writes words of a domain's region, from one on, while its handlers run: they see each word
    /// as it was or as it is.
    ///
    /// # Errors
    /// As [`read_region`](Self::read_region).
    pub fn write_region<C: Card>(
        &self,
        card: &mut C,
        domain: u32,
        index: usize,
        words: &[u32],
    ) -> Result<(), LoadError<C::Error>> {
        let at = self.of_region(domain, index, words.len())?;
        card.write(at, words).map_err(LoadError::Card)
    }
}
