//! Flow control: pause frames in both directions.
//!
//! Hardware reference, 10.4: `R[200]` bit 8 sends them, `R[220]` bit 16 obeys them; the frames are
//! those of IEEE 802.3 annex 31B. Their time is in quanta of 512 bit times.
//!
//! A card that sends them stops the partner when receive space runs low, stops it again before the
//! time is over, and resumes it when there is enough space again:
//!
//! ```text
//! free bytes     free descriptors
//!   24 KB           64      ── resume mark: quanta 0
//!   12 KB            8      ── stop mark: quanta 0xFFFF
//!    0               0      ── frames are dropped
//! ```

use super::{Mac, Room};
use tigon2_chip::mac::MIN_FRAME;

/// Destination of MAC control frames.
const FLOW_CONTROL: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];
/// Ethernet type of MAC control frames and their pause operation.
const PAUSE: [u8; 4] = [0x88, 0x08, 0x00, 0x01];

/// The longest time of one pause frame.
pub const LONGEST: u16 = 0xFFFF;

/// Bits of one quantum.
const QUANTUM_BITS: u64 = 512;

/// Below this room the card stops the partner: a jumbo frame and frames in flight still fit.
const STOP: Room = Room {
    bytes: 12 * 1024,
    descriptors: 8,
};

/// From this room on the card resumes the partner.
const RESUME: Room = Room {
    bytes: 24 * 1024,
    descriptors: 64,
};

/// Nanoseconds of a pause.
pub fn pause_time(quanta: u16, megabits: u32) -> u64 {
    u64::from(quanta) * QUANTUM_BITS * 1000 / u64::from(megabits.max(1))
}

/// The time of a pause frame to the MAC control group or to `station`, in quanta, if the frame is
/// one.
pub fn pause_quanta(frame: &[u8], station: &[u8; 6]) -> Option<u16> {
    let destination = frame.get(..6)?;
    let for_us = destination == FLOW_CONTROL || destination == station;
    let is_pause = for_us && frame.get(12..16)? == PAUSE;
    let quanta = u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?]);
    is_pause.then_some(quanta)
}

/// Whether a frame is a MAC control frame, which only the MACs at the ends of a wire handle.
pub fn is_flow_control(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&PAUSE[..2])
}

/// A pause frame without CRC.
pub fn pause_frame(station: &[u8; 6], quanta: u16) -> Vec<u8> {
    let mut frame = [&FLOW_CONTROL[..], station, &PAUSE, &quanta.to_be_bytes()].concat();
    frame.resize(MIN_FRAME, 0);
    frame
}

/// The state of flow control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The time until which a partner's pause frame holds the transmitter, in nanoseconds.
    pub held_until: u64,
    /// When the partner, which was stopped, has to be stopped again.
    pub asked: Option<u64>,
}

impl Mac {
    /// Whether receive space is so low that the partner should be silent: from the stop mark on
    /// until the resume mark. In small buffers each mark is at most a part of the buffer.
    pub fn short_of_room(&self) -> bool {
        let (room, all) = (self.rx_room(), self.buffers.rx_bytes());
        let (bytes, descriptors) = match self.pause.asked {
            None => (STOP.bytes.min(all / 2), STOP.descriptors),
            Some(_) => (RESUME.bytes.min(all / 4 * 3), RESUME.descriptors),
        };
        room.bytes < bytes || room.descriptors < descriptors
    }

    /// The quanta to send to the partner now, if any, when `sends` permits pause frames. The next
    /// one is due after half of that time.
    pub fn next_pause(&mut self, now: u64, sends: bool, megabits: u32) -> Option<u16> {
        if !sends {
            self.pause.asked = None;
            return None;
        }
        match (self.short_of_room(), self.pause.asked) {
            (true, Some(again)) if now < again => None,
            (true, _) => {
                self.pause.asked = Some(now + pause_time(LONGEST, megabits) / 2);
                Some(LONGEST)
            }
            (false, Some(_)) => {
                self.pause.asked = None;
                Some(0)
            }
            (false, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: [u8; 6] = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];

    #[test]
    fn pause_frames_are_recognised() {
        let mut frame = pause_frame(&[2; 6], 0x1234);
        assert_eq!(frame.len(), 60);
        assert_eq!(pause_quanta(&frame, &STATION), Some(0x1234));
        assert!(is_flow_control(&frame) && !is_flow_control(&frame[..13]));
        frame[..6].copy_from_slice(&STATION);
        assert_eq!(pause_quanta(&frame, &STATION), Some(0x1234));
        frame[5] = 0;
        assert_eq!(pause_quanta(&frame, &STATION), None, "to somebody else");
        let mut frame = pause_frame(&STATION, 1);
        frame[15] = 2;
        assert_eq!(pause_quanta(&frame, &STATION), None, "another operation");
        assert_eq!(pause_quanta(&frame[..10], &STATION), None);
        assert_eq!(pause_quanta(&frame[..17], &STATION), None);
    }

    /// IEEE 802.3 31B.2: a quantum is 512 bit times.
    #[test]
    fn a_quantum_is_512_bit_times() {
        assert_eq!(pause_time(1, 1000), 512);
        assert_eq!(pause_time(10, 100), 51_200);
        assert_eq!(pause_time(LONGEST, 10), 65_535 * 51_200);
    }
}
