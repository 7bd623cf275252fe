//! A byte that the wire changes on a frame's way to the card.
//!
//! The byte's bits are inverted, and the CRC is wrong for what arrives. Who reads the frame while it
//! arrives finds the wrong byte; that the CRC is wrong, only the frame's end says.
//!
//! | words | byte |
//! | --- | --- |
//! | `damaged` | a random one |
//! | `damaged:17` | that one; behind the frame's last byte it is one of the CRC |
//! | `damaged:destination` | 5, the last one of the station that it is for |
//! | `damaged:ip-length` | 17, the low one |
//! | `damaged:ip-destination` | 33, the last one |
//! | `damaged:udp-port` | 37, the low one of the destination |
//! | `damaged:udp-length` | 39, the low one |
//!
//! The fields are those of a frame without a VLAN tag, with an IP header of 20 bytes.

/// Fields that are damaged by name, and their bytes.
const FIELDS: [(&str, u16); 5] = [
    ("destination", 5),
    ("ip-length", 17),
    ("ip-destination", 33),
    ("udp-port", 37),
    ("udp-length", 39),
];

/// Which byte of a frame is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A random one, another one in each frame.
    Random,
    /// This one, from the destination address on.
    Byte(u16),
}

impl Damage {
    /// Reads `damaged`, `damaged:17`, `damaged:udp-port`.
    pub(super) fn parse(word: &str) -> Option<Damage> {
        let rest = word.strip_prefix("damaged")?;
        if rest.is_empty() {
            return Some(Damage::Random);
        }
        let place = rest.strip_prefix(':')?;
        let field = FIELDS.iter().find(|(name, _)| *name == place);
        let byte = field.map_or_else(|| place.parse().ok(), |(_, byte)| Some(*byte));
        byte.map(Damage::Byte)
    }

    /// A whole frame with this damage, behind so many others with damage.
    pub(super) fn apply(self, frame: &[u8], number: u64) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let at = match self {
            Damage::Byte(at) => usize::from(at),
            Damage::Random => (mixed(number) % frame.len().max(1) as u64) as usize,
        };
        if let Some(byte) = frame.get_mut(at) {
            *byte = !*byte;
        }
        frame
    }
}

/// A number that looks random, of each number another one (the output function of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_and_names() {
        for (word, damage) in [
            ("damaged", Some(Damage::Random)),
            ("damaged:0", Some(Damage::Byte(0))),
            ("damaged:9013", Some(Damage::Byte(9013))),
            ("damaged:ip-length", Some(Damage::Byte(17))),
            ("damaged:udp-port", Some(Damage::Byte(37))),
            ("damaged:", None),
            ("damaged:70000", None),
            ("damaged:vlan", None),
            ("damagedly", None),
            ("crc", None),
        ] {
            assert_eq!(Damage::parse(word), damage, "{word}");
        }
    }

    #[test]
    fn one_byte_is_inverted_and_behind_the_frame_none() {
        let frame = [0x5A; 60];
        let damaged = Damage::Byte(59).apply(&frame, 0);
        assert_eq!((damaged[59], &damaged[..59]), (0xA5, &frame[..59]));
        assert_eq!(Damage::Byte(60).apply(&frame, 0), frame);
        assert_eq!(Damage::Random.apply(&[], 7), []);
    }
}
