//! The log: lines for a person, of which only numbers leave the card.
//!
//! ```
//! use spine::{Context, Ephemeral, Message, Verdict};
//!
//! fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
//!     let bytes = message.buffer().len();
//!     let _ = spine::log!(context, "a frame of {} bytes, run {:#x}", bytes, 17);
//!     Verdict::Host
//! }
//! ```
//!
//! A line is a message to the [driver](Endpoint::DRIVER), which prints it: the text's number and the
//! words for its holes. [`spine_text`] has the holes. The text comes to the driver in the container,
//! never to the card.
//!
//! It is an effect like any other: a run that is cut off logs nothing, and a line is one of the four
//! messages that a run may send. If the driver has not taken those before it, `log!` answers
//! [`Full`], and the line is lost, unless the handler does something about it. Who does not mind
//! says so: `let _ = spine::log!(..)`.

use crate::context::{Context, Full};
use crate::endpoint::Endpoint;
use spine_text::{HEAD_WORDS, HOLES_MOST, MARK};

/// A text with so many holes, see [`log!`](crate::log!).
#[derive(Clone, Copy, Debug)]
pub struct Text<const HOLES: usize> {
    number: u32,
    #[cfg(not(target_arch = "mips"))]
    text: &'static str,
}

impl<const HOLES: usize> Text<HOLES> {
    /// For [`log!`](crate::log!), of which the gate tells the driver.
    #[doc(hidden)]
    pub const fn of(text: &'static str) -> Text<HOLES> {
        Text {
            number: spine_text::number(text),
            #[cfg(not(target_arch = "mips"))]
            text,
        }
    }
}

/// Whether a literal is a text of a log.
#[doc(hidden)]
pub const fn is_text(text: &str) -> bool {
    spine_text::holes(text).is_ok()
}

/// How many holes a text has.
#[doc(hidden)]
pub const fn holes(text: &str) -> usize {
    match spine_text::holes(text) {
        Ok(holes) => holes,
        Err(_) => 0,
    }
}

impl Context {
    /// For [`log!`](crate::log!): sends a line to the driver.
    ///
    /// # Errors
    /// [`Full`] if the driver has no room for one more message, or behind a bound.
    #[doc(hidden)]
    #[inline(always)]
    pub fn log<const HOLES: usize>(
        &self,
        text: Text<HOLES>,
        words: [u32; HOLES],
    ) -> Result<(), Full> {
        let mut line = [0; HEAD_WORDS + HOLES_MOST];
        let [mark, number, places @ ..] = &mut line;
        (*mark, *number) = (MARK, text.number);
        for (place, word) in places.iter_mut().zip(words) {
            *place = word;
        }
        let line = line.get(..HEAD_WORDS + HOLES).ok_or(Full)?;
        #[cfg(not(target_arch = "mips"))]
        crate::model::calls::name_text(text.number, text.text);
        self.send(Endpoint::DRIVER, line)
    }
}

/// Logs a line: `log!(context, "no route for {:x}, {} in all", address, count)`. The text is a
/// literal of at most 120 bytes, with a word (`u32`) for each of its holes, 8 at most. A hole is
/// `{}`, `{:x}` or `{:#x}`. Answers [`Full`](crate::Full) as [`Context::send`](crate::Context::send)
/// does.
#[macro_export]
macro_rules! log {
    ($context:expr, $text:literal $(, $word:expr)* $(,)?) => {
        $crate::Context::log(
            $context,
            const {
                $crate::log::Text::<
                    {
                        ::core::assert!(
                            $crate::log::is_text($text),
                            "a text of a log has holes {{}}, {{:x}} and {{:#x}}, at most 8, at most \
                             120 bytes, no control characters, and other braces twice"
                        );
                        $crate::log::holes($text)
                    },
                >::of($text)
            },
            [$($word),*],
        )
    };
}
