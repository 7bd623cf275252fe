//! Physical addresses of this process's memory, from `/proc/self/pagemap`.
//!
//! The file has one word for each page: bit 63 says that the page is present, and bits 54:0 where
//! (Linux, `Documentation/admin-guide/mm/pagemap.rst`).

use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a page, as the file counts them.
const PAGE: u64 = 4096;
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// Physical address of the page that an entry describes.
fn physical(entry: u64) -> io::Result<u64> {
    if entry & PRESENT == 0 {
        return Err(io::Error::other("a page of DMA memory is not there"));
    }
    match entry & FRAME {
        // The kernel shows zeros to processes without the privilege.
        0 => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "physical addresses are hidden: run as root (CAP_SYS_ADMIN)",
        )),
        frame => Ok(frame * PAGE),
    }
}

/// Physical addresses of the pieces of `piece` bytes from `address` on. Each piece must be
/// contiguous.
pub fn pieces<F: Read + Seek>(
    pagemap: &mut F,
    address: u64,
    bytes: u64,
    piece: u64,
) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut entries = vec![0; (piece / PAGE * 8) as usize];
    for start in (address..address + bytes).step_by(piece as usize) {
        pagemap.seek(SeekFrom::Start(start / PAGE * 8))?;
        pagemap.read_exact(&mut entries)?;
        let mut first = None;
        for (entry, offset) in entries.chunks_exact(8).zip((0..).step_by(PAGE as usize)) {
            let mut word = [0; 8];
            word.copy_from_slice(entry);
            let page = physical(u64::from_ne_bytes(word))?;
            let first = *first.get_or_insert(page);
            if page != first + offset {
                return Err(io::Error::other("a huge page is not in one piece"));
            }
        }
        found.push(first.ok_or_else(|| io::Error::other("a piece without pages"))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A pagemap whose page `n` is described by the n-th entry.
    fn pagemap(entries: &[u64]) -> Cursor<Vec<u8>> {
        Cursor::new(
            entries
                .iter()
                .flat_map(|entry| entry.to_ne_bytes())
                .collect(),
        )
    }

    #[test]
    fn pieces_are_found_where_their_first_page_is() {
        // Bits 62:55 are flags.
        let flags = PRESENT | 0b11 << 61;
        let mut map = pagemap(&[
            0,
            0,
            flags | 0x500,
            flags | 0x501,
            flags | 0x90,
            flags | 0x91,
        ]);
        let found = pieces(&mut map, 0x2000, 0x4000, 0x2000).expect("all there");
        assert_eq!(found, [0x50_0000, 0x9_0000]);
    }

    #[test]
    fn pages_that_are_away_hidden_or_torn_are_refused() {
        let there = PRESENT | 0x500;
        for (entries, what) in [
            ([there, 0], "not there"),
            ([PRESENT, PRESENT], "root"),
            ([there, PRESENT | 0x700], "one piece"),
        ] {
            let error = pieces(&mut pagemap(&entries), 0, 0x2000, 0x2000).expect_err(what);
            assert!(error.to_string().contains(what), "{error}");
        }
        assert!(
            pieces(&mut pagemap(&[there]), 0, 0x2000, 0x2000).is_err(),
            "file too short"
        );
    }
}
