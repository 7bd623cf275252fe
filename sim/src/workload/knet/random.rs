//! Random frames of each kind that a classifier distinguishes: whole, cut and corrupted.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Frames from a seed.
pub struct RandomFrames(Xoshiro256PlusPlus);

impl RandomFrames {
    /// The frames of a seed.
    pub fn new(seed: u64) -> Self {
        RandomFrames(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u32() as usize) % end
    }

    /// Whether something happens that does once in `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// The next frame: mostly IP in all its forms, sometimes cut, padded, or with a byte of
    /// its headers changed.
    pub fn frame(&mut self) -> Vec<u8> {
        let mut frame = self.bytes(12);
        for _ in 0..[0, 0, 0, 1, 1, 2, 2, 3][self.below(8)] {
            frame.extend([[0x81, 0x00], [0x88, 0xA8]][self.below(2)]);
            frame.extend(self.bytes(2));
        }
        match self.below(16) {
            0 => frame.extend(self.bytes(50)),
            1 => {
                frame.extend([0x08, 0x06]);
                frame.extend(self.bytes(28));
            }
            2..=9 => self.old_datagram(&mut frame),
            _ => self.new_datagram(&mut frame),
        }
        if frame.len() < 60 && self.once_in(2) {
            frame.resize(60, 0);
        }
        if self.once_in(8) {
            let at = self.below(frame.len().min(100));
            frame[at] ^= 1 << self.below(8);
        }
        if self.once_in(8) {
            frame.truncate(self.below(frame.len() + 1));
        }
        frame
    }

    /// TCP, UDP, or another protocol, with a header that may be cut.
    fn transport(&mut self) -> (u8, Vec<u8>) {
        let (protocol, least) = match self.below(8) {
            0..=2 => (6, 20),
            3..=5 => (17, 8),
            6 => (1, 0),
            _ => (self.below(256) as u8, 0),
        };
        let length = if self.once_in(8) {
            self.below(24)
        } else {
            least + self.below(64)
        };
        (protocol, self.bytes(length))
    }

    /// Type, IPv4 header, options, payload.
    fn old_datagram(&mut self, frame: &mut Vec<u8>) {
        let options = [0, 0, 0, 4, 8, 40][self.below(6)];
        let (protocol, payload) = self.transport();
        let total = (20 + options + payload.len()) as u16;
        let fragment: u16 = match self.below(8) {
            0 => 0x2000,
            1 => 0x2000 | self.below(0x2000) as u16,
            2 => self.below(0x2000) as u16,
            3..=5 => 0x4000,
            _ => 0,
        };
        frame.extend([0x08, 0x00, 0x45 + (options / 4) as u8, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend(self.bytes(2));
        frame.extend(fragment.to_be_bytes());
        frame.extend([64, protocol]);
        frame.extend(self.bytes(10 + options));
        frame.extend(payload);
    }

    /// Type, IPv6 header, extension headers, payload.
    fn new_datagram(&mut self, frame: &mut Vec<u8>) {
        let (protocol, payload) = self.transport();
        let (mut first, mut extensions) = (protocol, Vec::new());
        let count = [0, 0, 0, 1, 1, 2, 3, 8, 9][self.below(9)];
        // From the last one on, as each names the next.
        for number in (0..count).rev() {
            let kind = match self.below(5) {
                0 if number == 0 => 0,
                0 | 1 => 60,
                2 | 3 => 44,
                _ if self.once_in(4) => 0,
                _ => 43,
            };
            let mut header = vec![first, 0];
            if kind == 44 {
                let fragment: u16 = match self.below(8) {
                    0 => 1,
                    1 => self.0.next_u32() as u16,
                    2 => 0x0006,
                    _ => 0,
                };
                header[1] = self.below(256) as u8;
                header.extend(fragment.to_be_bytes());
                header.extend(self.bytes(4));
            } else {
                let units = if self.once_in(4) { self.below(5) } else { 0 };
                header[1] = units as u8;
                header.extend(self.bytes(6 + 8 * units));
            }
            header.extend(extensions);
            (first, extensions) = (kind, header);
        }
        frame.extend([0x86, 0xDD, 0x60, 0, 0, 0]);
        frame.extend(((extensions.len() + payload.len()) as u16).to_be_bytes());
        frame.extend([first, 64]);
        frame.extend(self.bytes(32));
        frame.extend(extensions);
        frame.extend(payload);
    }
}
