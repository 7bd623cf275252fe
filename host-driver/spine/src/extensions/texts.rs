//! The lines that handlers log, of the words that they send.

use spine_image::Image;
use std::collections::BTreeMap;

pub use spine_text::Line;

/// The texts of an extension's log, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(BTreeMap<u32, String>);

impl Texts {
    /// Those of a container.
    pub fn of(image: &Image<'_>) -> Texts {
        let texts = image.texts();
        Texts(
            texts
                .map(|text| (spine_text::number(text), text.to_owned()))
                .collect(),
        )
    }

    /// The line that a message to the driver is; none if it is another message, or a line of which
    /// the text is not here.
    pub fn line(&self, message: &[u32]) -> Option<String> {
        let (number, words) = Line::parts(message)?;
        let text = self.0.get(&number)?;
        Some(Line::new(text, words)?.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spine_image::{Builder, Grade};
    use spine_text::{MARK, number};

    #[test]
    fn a_message_is_a_line_by_its_mark_its_number_and_its_words() {
        let mut builder = Builder::new("router", Grade::Language, [0; 16]);
        builder.function("init", 0, 4);
        builder.sections[0] = vec![0; 4];
        let text = "no route for {:x}, {} in all";
        builder.text(text);
        let container = builder.finish([0; 32], |_| [0; 64]);
        let texts = Texts::of(&Image::parse(&container).expect("a container"));
        let line = |message: &[u32]| texts.line(message);
        let expected = "no route for a000001, 17 in all";
        let number = number(text);
        let message = [MARK, number, 0xA00_0001, 17];
        assert_eq!(line(&message).as_deref(), Some(expected));
        for other in [
            &[][..],
            &[MARK],
            &[MARK, number],
            &[MARK, number, 1],
            &[MARK, number, 1, 2, 3],
            &[MARK, number + 1, 1, 2],
            &[MARK + 1, number, 1, 2],
        ] {
            assert_eq!(line(other), None);
        }
        assert_eq!(Texts::default().line(&message), None);
    }
}
