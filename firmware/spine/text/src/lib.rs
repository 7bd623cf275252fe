//! The texts of an extension's log: their numbers, their holes, their lines.
//!
//! `spine::log!(context, "no route for {:x}", address)` sends numbers, as `defmt` does. The text
//! stays on the host:
//!
//! ```text
//! card                                       host
//! message to the driver                      container
//! +0  MARK                                   texts, by their numbers
//! +4  number of the text ──────────────────► "no route for {:x}"
//! +8  words for its holes ─────────────────► no route for a000001
//! ```
//!
//! | hole | a word in it |
//! | --- | --- |
//! | `{}` | decimal |
//! | `{:x}` | hexadecimal |
//! | `{:#x}` | hexadecimal, with `0x` |
//! | `{{`, `}}` | no hole: a brace |
//!
//! One crate for all that know them: the API and its model, the source gate, the container, the
//! driver. It depends on nothing, as it is compiled with each extension.
#![no_std]
#![forbid(unsafe_code)]

mod error;
mod line;

pub use error::TextError;
pub use line::Line;

/// The first word of a message that is a line of the log. Together with the number of one of its
/// extension's texts, no message has it by accident.
pub const MARK: u32 = number("a line of the log of an extension");
/// Words in front of those for the holes.
pub const HEAD_WORDS: usize = 2;
/// Most holes of a text.
pub const HOLES_MOST: usize = 8;
/// Most bytes of a text.
pub const BYTES_MOST: usize = 120;
/// Most texts of an extension.
pub const TEXTS_MOST: usize = 256;

/// The number of a text: FNV-1a, 32 bits, as for names of procedures.
pub const fn number(text: &str) -> u32 {
    let mut hash = 0x811C_9DC5;
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
        rest = behind;
    }
    hash
}

/// How a word is written into a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    Decimal,
    Hexadecimal,
    Prefixed,
}

/// What a text begins with, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A byte that stands for itself.
    Plain,
    /// A doubled brace.
    Brace,
    Hole(Hole, usize),
}

/// The first piece of a text that is not empty; none if it begins with a brace of another kind.
pub(crate) const fn first_piece(text: &[u8]) -> Option<Piece> {
    Some(match text {
        [b'{', b'{', ..] | [b'}', b'}', ..] => Piece::Brace,
        [b'{', b'}', ..] => Piece::Hole(Hole::Decimal, 2),
        [b'{', b':', b'x', b'}', ..] => Piece::Hole(Hole::Hexadecimal, 4),
        [b'{', b':', b'#', b'x', b'}', ..] => Piece::Hole(Hole::Prefixed, 5),
        [b'{' | b'}', ..] => return None,
        _ => Piece::Plain,
    })
}

/// How many holes a text has.
///
/// # Errors
/// [`TextError`], if it is no text of a log.
pub const fn holes(text: &str) -> Result<usize, TextError> {
    let bytes = text.as_bytes();
    if bytes.len() > BYTES_MOST {
        return Err(TextError::TooLong(bytes.len()));
    }
    let (mut rest, mut holes) = (bytes, 0);
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        // A terminal would obey it. Those above 0x7F have two bytes in UTF-8.
        if let [0..0x20 | 0x7F, ..] | [0xC2, 0x80..0xA0, ..] = rest {
            return Err(TextError::Control(at));
        }
        let length = match first_piece(rest) {
            None => return Err(TextError::Hole(at)),
            Some(Piece::Plain) => 1,
            Some(Piece::Brace) => 2,
            Some(Piece::Hole(_, length)) => {
                holes += 1;
                length
            }
        };
        (_, rest) = rest.split_at(length);
    }
    if holes > HOLES_MOST {
        return Err(TextError::TooManyHoles(holes));
    }
    Ok(holes)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn holes_are_counted() {
        for (text, expected) in [
            ("", 0),
            ("no hole", 0),
            ("{{ none }}", 0),
            ("{}", 1),
            ("{:x}{:#x} and {}", 3),
            ("{{{}}}", 1),
            ("keine Route für {:x} – «{}»", 2),
            ("{}{}{}{}{}{}{}{}", HOLES_MOST),
        ] {
            assert_eq!(holes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for (text, expected) in [
            ("{", TextError::Hole(0)),
            ("a}", TextError::Hole(1)),
            ("ab{x}", TextError::Hole(2)),
            ("{0}", TextError::Hole(0)),
            ("{:?}", TextError::Hole(0)),
            ("{:08x}", TextError::Hole(0)),
            ("{ }", TextError::Hole(0)),
            ("{{}", TextError::Hole(2)),
            ("{}}", TextError::Hole(2)),
            ("line\n", TextError::Control(4)),
            ("\u{1b}[31m", TextError::Control(0)),
            ("a\u{7f}", TextError::Control(1)),
            ("a\u{9b}", TextError::Control(1)),
            ("{}{}{}{}{}{}{}{}{}", TextError::TooManyHoles(9)),
        ] {
            assert_eq!(holes(text), Err(expected), "{text:?}");
            assert!(!expected.to_string().is_empty());
        }
        let long = "a".repeat(BYTES_MOST);
        assert_eq!(holes(&long), Ok(0));
        let longer = "a".repeat(BYTES_MOST + 1);
        assert_eq!(holes(&longer), Err(TextError::TooLong(BYTES_MOST + 1)));
    }

    #[test]
    fn numbers_tell_texts_apart_and_are_those_of_fnv() {
        // draft-eastlake-fnv, section 6.
        assert_eq!(number(""), 0x811C_9DC5);
        assert_eq!(number("a"), 0xE40C_292C);
        assert_eq!(number("foobar"), 0xBF9C_F968);
        assert_ne!(number("{}"), number("{:x}"));
        // Two words with one number: the gate and the container refuse them together.
        assert_eq!(number("costarring"), number("liquid"));
    }
}
