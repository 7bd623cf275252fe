//! Distinguishable frames of all lengths.

/// Shortest frame, without CRC: the MAC pads what is shorter.
pub const SHORTEST: usize = 60;
/// Longest frame of the standard ring, without CRC.
pub const LONGEST: usize = 1514;

/// An EtherType for experiments.
const ETHER_TYPE: [u8; 2] = [0x88, 0xB5];
/// Locally administered: the peer at the other end of the wire.
pub const PEER: [u8; 6] = [0x02, 0x54, 0x47, 0, 0, 2];

/// The address and type of pause frames.
pub const PAUSE: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];

/// A frame of the peer's that asks for a pause of so many times 512 bits.
pub fn pause(quanta: u16) -> Vec<u8> {
    let [high, low] = quanta.to_be_bytes();
    let mut frame = [&PAUSE[..], &PEER, &MAC_CONTROL, &[0, 1, high, low]].concat();
    frame.resize(SHORTEST, 0);
    frame
}

/// Frame number `number` from `source` to `destination`: its number, its length
/// and every byte of it differ from those of its neighbours.
pub fn numbered(destination: [u8; 6], source: [u8; 6], number: u32) -> Vec<u8> {
    // A stride prime to the range walks through every length.
    let length = SHORTEST + (number as usize * 37) % (LONGEST - SHORTEST + 1);
    of_length(destination, source, number, length)
}

/// A frame as [`numbered`] makes it, of a length of the story's own.
pub fn of_length(destination: [u8; 6], source: [u8; 6], number: u32, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(length);
    frame.extend(destination);
    frame.extend(source);
    frame.extend(ETHER_TYPE);
    frame.extend(number.to_be_bytes());
    let mut state = number.wrapping_mul(0x9E37_79B9) | 1;
    while frame.len() < length {
        // xorshift32: cheap, and no two frames share a run of bytes.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        frame.push(state as u8);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_and_lengths_stay_in_range() {
        let frames: Vec<Vec<u8>> = (0..3000).map(|n| numbered(PEER, PEER, n)).collect();
        assert!(
            frames
                .iter()
                .all(|f| (SHORTEST..=LONGEST).contains(&f.len()))
        );
        assert!(frames.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(frames.iter().any(|f| f.len() == SHORTEST));
        assert!(frames.iter().any(|f| f.len() == LONGEST));
    }
}
