//! Bytes that the wire changes on a frame's way to the card.
//!
//! Their bits are inverted, and the CRC is wrong for what arrives. Who reads the frame while it arrives
//! finds the wrong bytes; that the CRC is wrong, only the frame's end says.
//!
//! | words | bytes |
//! | --- | --- |
//! | `damaged` | a random one |
//! | `damaged:17` | that one; behind the frame's last byte it is one of the CRC |
//! | `damaged:17x4` | a burst: that one and the three behind it, as far as they are the frame's |
//! | `damaged:destination` | 5, the last one of the station that it is for |
//! | `damaged:ip-length` | 17, the low one |
//! | `damaged:ip-destination` | 33, the last one |
//! | `damaged:udp-port` | 37, the low one of the destination |
//! | `damaged:udp-length` | 39, the low one |
//!
//! The fields are those of a frame without a VLAN tag, with an IP header of 20 bytes.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// Fields that are damaged by name, and their bytes.
const FIELDS: [(&str, u16); 5] = [
    ("destination", 5),
    ("ip-length", 17),
    ("ip-destination", 33),
    ("udp-port", 37),
    ("udp-length", 39),
];

/// Most bytes of a burst of [`Damage::any`].
const LONGEST: u64 = 8;

/// Which bytes of a frame are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A random one, another one in each frame.
    Random,
    /// Some in a row.
    Burst {
        /// The first one, from the destination address on.
        at: u16,
        /// How many.
        bytes: u16,
    },
}

impl Damage {
    /// Reads `damaged`, `damaged:17`, `damaged:17x4`, `damaged:udp-port`.
    pub(super) fn parse(word: &str) -> Option<Damage> {
        let rest = word.strip_prefix("damaged")?;
        if rest.is_empty() {
            return Some(Damage::Random);
        }
        let place = rest.strip_prefix(':')?;
        if let Some((_, at)) = FIELDS.iter().find(|(name, _)| *name == place) {
            return Some(Damage::Burst { at: *at, bytes: 1 });
        }
        let (at, bytes) = place.split_once('x').unwrap_or((place, "1"));
        let (at, bytes) = (at.parse().ok()?, bytes.parse().ok()?);
        (bytes != 0).then_some(Damage::Burst { at, bytes })
    }

    /// A burst of 1 to 8 bytes that begins at one of these places.
    ///
    /// # Panics
    /// If there is none.
    pub fn any(random: &mut SplitMix64, places: Range<u16>) -> Damage {
        let at = places.start + (random.next_u64() % places.len() as u64) as u16;
        let bytes = (random.next_u64() % LONGEST) as u16 + 1;
        Damage::Burst { at, bytes }
    }

    /// A whole frame with this damage, behind so many others with damage.
    pub fn apply(self, frame: &[u8], number: u64) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let (at, bytes) = match self {
            Damage::Burst { at, bytes } => (usize::from(at), usize::from(bytes)),
            Damage::Random => {
                let random = SplitMix64::seed_from_u64(number).next_u64();
                ((random % frame.len().max(1) as u64) as usize, 1)
            }
        };
        for byte in frame.iter_mut().skip(at).take(bytes) {
            *byte = !*byte;
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_and_names() {
        let burst = |at, bytes| Some(Damage::Burst { at, bytes });
        for (word, damage) in [
            ("damaged", Some(Damage::Random)),
            ("damaged:0", burst(0, 1)),
            ("damaged:9013", burst(9013, 1)),
            ("damaged:17x4", burst(17, 4)),
            ("damaged:0x65535", burst(0, 65535)),
            ("damaged:ip-length", burst(17, 1)),
            ("damaged:udp-port", burst(37, 1)),
            ("damaged:", None),
            ("damaged:70000", None),
            ("damaged:17x0", None),
            ("damaged:17x", None),
            ("damaged:x4", None),
            ("damaged:17x4x4", None),
            ("damaged:17x70000", None),
            ("damaged:udp-portx2", None),
            ("damaged:vlan", None),
            ("damagedly", None),
            ("crc", None),
        ] {
            assert_eq!(Damage::parse(word), damage, "{word}");
        }
    }

    #[test]
    fn a_burst_is_inverted_as_far_as_it_is_the_frames() {
        let frame = [0x5A; 60];
        for (at, bytes, wrong) in [
            (59, 1, 59..60),
            (10, 4, 10..14),
            (57, 8, 57..60),
            (0, 65535, 0..60),
            (60, 4, 60..60),
        ] {
            let damaged = Damage::Burst { at, bytes }.apply(&frame, 0);
            let mut expected = frame;
            expected[wrong].fill(0xA5);
            assert_eq!(damaged, expected, "{bytes} from {at} on");
        }
        assert_eq!(Damage::Random.apply(&[], 7), []);
    }

    #[test]
    fn any_burst_begins_where_it_is_to_and_has_each_length() {
        let mut random = SplitMix64::seed_from_u64(1);
        let mut seen = [0; 9];
        for _ in 0..400 {
            let damage = Damage::any(&mut random, 14..42);
            let Damage::Burst { at, bytes } = damage else {
                panic!("{damage:?}");
            };
            assert!((14..42).contains(&at), "{damage:?}");
            seen[usize::from(bytes)] += 1;
        }
        assert!(
            seen[0] == 0 && seen[1..].iter().all(|some| *some > 20),
            "{seen:?}"
        );
    }
}
