//! The server's files, and the requests for them.

/// What a client asks with.
pub const REQUEST: &[u8] = b"GET /file HTTP/1.0\r\n\r\n";

/// The byte at a place of every file.
pub fn byte(place: usize) -> u8 {
    (place as u32).wrapping_mul(0x9E37_79B1).to_be_bytes()[0]
}

/// A file of so many bytes.
pub fn of(bytes: usize) -> Vec<u8> {
    (0..bytes).map(byte).collect()
}

/// Whether `bytes` are those from `place` on.
pub fn matches(place: usize, bytes: &[u8]) -> bool {
    let right = bytes.iter().enumerate();
    right
        .into_iter()
        .all(|(at, found)| *found == byte(place + at))
}
