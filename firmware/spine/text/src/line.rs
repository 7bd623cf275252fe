//! A line of the log: a text with words in its holes.

use crate::{HEAD_WORDS, Hole, MARK, Piece, first_piece, holes};
use core::fmt;

/// A line, which prints itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    text: &'a str,
    words: &'a [u32],
}

impl<'a> Line<'a> {
    /// Of a text and the words for its holes; none if that is no text, or if the words are not as
    /// many as the holes.
    pub fn new(text: &'a str, words: &'a [u32]) -> Option<Line<'a>> {
        (holes(text) == Ok(words.len())).then_some(Line { text, words })
    }

    /// The text's number and the words for its holes, if a message begins as a line of the log.
    pub fn parts(message: &'a [u32]) -> Option<(u32, &'a [u32])> {
        let ([mark, number], words) = message.split_first_chunk::<HEAD_WORDS>()?;
        (*mark == MARK).then_some((*number, words))
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.words.iter();
        let mut rest = self.text;
        while let Some(at) = rest.find(['{', '}']) {
            let (plain, from) = rest.split_at(at);
            formatter.write_str(plain)?;
            let length = match first_piece(from.as_bytes()) {
                Some(Piece::Hole(hole, length)) => {
                    let word = words.next().copied().unwrap_or_default();
                    match hole {
                        Hole::Decimal => write!(formatter, "{word}")?,
                        Hole::Hexadecimal => write!(formatter, "{word:x}")?,
                        Hole::Prefixed => write!(formatter, "{word:#x}")?,
                    }
                    length
                }
                _ => {
                    formatter.write_str(from.get(..1).unwrap_or_default())?;
                    2
                }
            };
            rest = from.get(length..).unwrap_or_default();
        }
        formatter.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::{format, string::ToString};

    fn line(text: &str, words: &[u32]) -> Option<std::string::String> {
        Some(Line::new(text, words)?.to_string())
    }

    #[test]
    fn words_stand_in_holes_as_the_language_writes_them() {
        let (a, b, c) = (0xA00_0001, 17, u32::MAX);
        assert_eq!(
            line("no route for {:x}, {} in all", &[a, b]),
            Some(format!("no route for {a:x}, {b} in all"))
        );
        assert_eq!(
            line("{{{:#x}}} – {}{:x}", &[a, b, c]),
            Some(format!("{{{a:#x}}} – {b}{c:x}"))
        );
        assert_eq!(line("", &[]).as_deref(), Some(""));
        assert_eq!(line("}}{{", &[]).as_deref(), Some("}{"));
    }

    #[test]
    fn words_are_as_many_as_holes() {
        assert_eq!(line("{}", &[]), None);
        assert_eq!(line("{}", &[1, 2]), None);
        assert_eq!(line("{", &[]), None);
    }

    #[test]
    fn a_message_is_a_line_by_its_mark() {
        assert_eq!(Line::parts(&[MARK, 7, 1, 2]), Some((7, &[1, 2][..])));
        assert_eq!(Line::parts(&[MARK, 7]), Some((7, &[][..])));
        for other in [&[][..], &[MARK], &[MARK ^ 1, 7]] {
            assert_eq!(Line::parts(other), None);
        }
    }
}
