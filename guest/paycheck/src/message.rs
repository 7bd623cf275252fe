//! The message format: numbered and checksummed.
//!
//! ```text
//!  0 "PCHK"    4 kind    5 zero (3)    8 number (8)    16 bytes in all (4)
//! 20 CRC-32 of the body    24 CRC-32 of bytes 0..24    28 body
//! ```
//! Numbers are big-endian. The body of Data follows from its number; the body of Report is JSON.
//! The header has a separate CRC, so a stream with a damaged body stays readable.

/// Bytes of a header, and of the shortest message.
pub const HEADER: usize = 28;
/// Longest message.
pub const LARGEST: usize = 1 << 20;
/// Longest message in a UDP datagram.
pub const LARGEST_DATAGRAM: usize = 65507;

const MAGIC: [u8; 4] = *b"PCHK";

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Says that this side is there.
    Hello = 1,
    /// A payload; its number counts from 0.
    Data = 2,
    /// There is no more; the number says how many there were.
    End = 3,
    /// What this side has received.
    Report = 4,
}

impl Kind {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Hello,
            2 => Self::Data,
            3 => Self::End,
            4 => Self::Report,
            _ => return None,
        })
    }
}

/// A header whose CRC is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the message is for.
    pub kind: Kind,
    /// Its number.
    pub number: u64,
    /// Its bytes, header included: [`HEADER`] to [`LARGEST`].
    pub bytes: usize,
    body_crc: u32,
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset + N)?.try_into().ok()
}

impl Header {
    /// Reads a header; None if it is none, or damaged.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let crc = u32::from_be_bytes(array(bytes, 24)?);
        if array(bytes, 0)? != MAGIC || crc != crc32fast::hash(bytes.get(..24)?) {
            return None;
        }
        let total = usize::try_from(u32::from_be_bytes(array(bytes, 16)?)).ok()?;
        let header = Self {
            kind: Kind::from_number(*bytes.get(4)?)?,
            number: u64::from_be_bytes(array(bytes, 8)?),
            bytes: total,
            body_crc: u32::from_be_bytes(array(bytes, 20)?),
        };
        (HEADER..=LARGEST).contains(&total).then_some(header)
    }

    /// True if this is the body that the message was made with.
    #[must_use]
    pub fn fits(&self, body: &[u8]) -> bool {
        self.bytes == HEADER + body.len() && self.body_crc == crc32fast::hash(body)
    }
}

/// Reads a message that is alone in a datagram: header and body, None if anything is
/// wrong with it.
#[must_use]
pub fn parse(datagram: &[u8]) -> Option<(Header, &[u8])> {
    let header = Header::parse(datagram)?;
    let body = datagram.get(HEADER..)?;
    header.fits(body).then_some((header, body))
}

/// Makes a message.
#[must_use]
pub fn build(kind: Kind, number: u64, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message.extend(body);
    seal(&mut message, kind, number);
    message
}

/// Fills a buffer of the wanted size (at least [`HEADER`]) with Data `number`.
pub fn fill(message: &mut [u8], number: u64) {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    if let Some(body) = message.get_mut(HEADER..) {
        for chunk in body.chunks_mut(8) {
            // xorshift64: cheap, and neighbours share no run of bytes.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let bytes = state.to_be_bytes();
            for (to, from) in chunk.iter_mut().zip(bytes) {
                *to = from;
            }
        }
    }
    seal(message, Kind::Data, number);
}

fn seal(message: &mut [u8], kind: Kind, number: u64) {
    let total = message.len() as u32;
    let body_crc = crc32fast::hash(message.get(HEADER..).unwrap_or(&[]));
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = kind as u8;
    header[8..16].copy_from_slice(&number.to_be_bytes());
    header[16..20].copy_from_slice(&total.to_be_bytes());
    header[20..24].copy_from_slice(&body_crc.to_be_bytes());
    let crc = crc32fast::hash(&header[..24]);
    header[24..].copy_from_slice(&crc.to_be_bytes());
    for (to, from) in message.iter_mut().zip(header) {
        *to = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_as_it_was_made() {
        let message = build(Kind::Report, 7, b"{}");
        let (header, body) = parse(&message).expect("a good message");
        assert_eq!((header.kind, header.number), (Kind::Report, 7));
        assert_eq!(body, b"{}");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let mut message = vec![0; 61];
        fill(&mut message, 3);
        assert!(parse(&message).is_some());
        for at in 0..message.len() {
            for bit in 0..8 {
                let mut damaged = message.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(parse(&damaged), None, "bit {bit} of byte {at}");
            }
            assert_eq!(parse(&message[..at]), None, "cut to {at}");
        }
        message.push(0);
        assert_eq!(parse(&message), None, "a byte more");
    }

    #[test]
    fn neighbours_share_nothing_but_the_magic() {
        let (mut first, mut second) = (vec![0; 1400], vec![0; 1400]);
        fill(&mut first, 0);
        fill(&mut second, 1);
        let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
        assert!(same < 60, "{same}");
    }
}
