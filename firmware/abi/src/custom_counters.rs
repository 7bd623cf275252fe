//! Custom counters: counts of a changed handler, with their names.
//!
//! [`Extension::CustomCounters`](crate::extension::Extension::CustomCounters) holds the NIC
//! address of [`MOST`] entries, or 0. An entry is the count, then the name in ASCII, padded with
//! zeros. The first entry without a name ends the list. Because the names lie beside the counts, a
//! host can show the counters of any firmware, including later versions.
//!
//! ```text
//!   +0  count
//!   +4  "ping" "s\0\0\0" "\0\0\0\0"
//! ```

/// Words of a name.
pub const NAME_WORDS: usize = 3;
/// Bytes of a name: the longest has as many letters.
pub const NAME_BYTES: usize = 4 * NAME_WORDS;
/// An entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CustomCounter {
    /// The count.
    pub count: u32,
    /// The name, from [`name_words`]; zeros end the list.
    pub name: [u32; NAME_WORDS],
}

tigon2_chip::place! {
    /// A [`CustomCounter`] in NIC memory.
    CustomCounterAt: CustomCounter { count, name }
}

/// Bytes of an entry.
pub const ENTRY_BYTES: u32 = size_of::<CustomCounter>() as u32;

const _: () = {
    assert!(ENTRY_BYTES == 16 && CustomCounterAt(0).name() == 4);
};

/// Capacity of the list.
pub const MOST: usize = 16;
/// Bytes of all entries.
pub const BYTES: u32 = MOST as u32 * ENTRY_BYTES;

/// A name as words of its entry.
///
/// # Panics
/// If it is empty, too long or not of visible ASCII letters; in a constant the compiler reports
/// that as an error.
pub const fn name_words(name: &str) -> [u32; NAME_WORDS] {
    let bytes = name.as_bytes();
    assert!(
        !bytes.is_empty() && bytes.len() <= NAME_BYTES,
        "a name has 1 to 12 letters"
    );
    let mut words = [0; NAME_WORDS];
    let mut at = 0;
    while at < bytes.len() {
        assert!(bytes[at].is_ascii_graphic(), "a name is of ASCII letters");
        words[at / 4] |= (bytes[at] as u32) << (24 - 8 * (at % 4));
        at += 1;
    }
    words
}

/// The name in an entry, without its padding. Other bytes than ASCII letters become `?`.
pub fn name_of(words: [u32; NAME_WORDS]) -> impl Iterator<Item = char> {
    let bytes = words.into_iter().flat_map(u32::to_be_bytes);
    bytes.take_while(|byte| *byte != 0).map(|byte| {
        if byte.is_ascii_graphic() {
            char::from(byte)
        } else {
            '?'
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_their_words() {
        for name in ["a", "pings", "twelve-bytes"] {
            assert_eq!(name_of(name_words(name)).collect::<String>(), name);
        }
        assert_eq!(name_words("abcde"), [0x6162_6364, 0x6500_0000, 0]);
        assert_eq!(name_of([0; NAME_WORDS]).count(), 0);
        let nonsense = name_of([0x41FF_0A42, 0, 0x4343_4343]);
        assert_eq!(nonsense.collect::<String>(), "A??B", "up to the first zero");
    }

    #[test]
    #[should_panic(expected = "1 to 12 letters")]
    fn a_name_that_does_not_fit_is_refused() {
        name_words("thirteen-here");
    }
}
