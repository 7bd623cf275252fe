//! Lines of the log, as the driver makes them of messages.

use super::Sent;
use crate::Endpoint;
use spine_text::Line;
use std::string::{String, ToString};
use std::vec::Vec;

type Messages = Vec<(Sent, Vec<u32>)>;

/// Tells the lines of a run's log from its other messages.
pub(super) fn lines(messages: Messages, texts: &[(u32, &str)]) -> (Messages, Vec<String>) {
    let (mut others, mut logged) = (Vec::new(), Vec::new());
    for (to, arguments) in messages {
        let line = (to == Sent::To(Endpoint::DRIVER))
            .then(|| line(&arguments, texts))
            .flatten();
        match line {
            Some(line) => logged.push(line),
            None => others.push((to, arguments)),
        }
    }
    (others, logged)
}

fn line(arguments: &[u32], texts: &[(u32, &str)]) -> Option<String> {
    let (number, words) = Line::parts(arguments)?;
    let (_, text) = texts.iter().find(|(one, _)| *one == number)?;
    Some(Line::new(text, words)?.to_string())
}
