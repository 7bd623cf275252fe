//! `tigonctl spine log`: what handlers have sent to the driver's process.

use anyhow::Result;
use host_driver::status::{HandlerMessage, HandlerMessages, Request};
use serde_json::json;
use spine_linker::extensions::Line;

use super::words_text;
use crate::cli::Arguments;
use crate::output::Output;
use crate::rss::driver;

/// Prints the messages that the driver keeps, the oldest first.
pub fn log(arguments: &Arguments, output: &Output) -> Result<()> {
    let mut source = driver(arguments)?;
    let (mut next, mut end) = (0, None);
    loop {
        let mut answer = source.request(&Request::HandlerMessages { from: next })?;
        let answer: HandlerMessages = serde_json::from_value(answer["handler_messages"].take())?;
        // Those that come meanwhile are for the next time.
        let end = *end.get_or_insert(answer.end);
        if answer.first > next {
            let lost = answer.first - next;
            let text = format!("{lost} messages are not kept any more");
            output.result("messages-lost", json!({ "messages": lost }), &text);
        }
        next = answer.first;
        for message in answer.messages {
            let value = json!({
                "number": next,
                "domain": message.domain,
                "extension": message.name,
                "handler": message.handler,
                "arguments": message.arguments,
                "line": message.line,
            });
            output.result("message", value, &line(&message));
            next += 1;
        }
        if next >= end {
            return Ok(());
        }
    }
}

fn line(message: &HandlerMessage) -> String {
    if let Some(line) = &message.line {
        return format!("{}: {line}", message.name);
    }
    let note = match Line::parts(&message.arguments) {
        Some(_) => " (a line of a log whose text is not known)",
        None => "",
    };
    let text = format!(
        "{}, domain {}, handler {}: {}{note}",
        message.name,
        message.domain,
        message.handler,
        words_text(&message.arguments)
    );
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_has_sent_which_words() {
        let mut message = HandlerMessage {
            domain: 2,
            name: "hello".to_owned(),
            handler: 5,
            arguments: vec![17, 0xFF],
            line: None,
        };
        assert_eq!(line(&message), "hello, domain 2, handler 5: 0x11 0xff");
        message.arguments.clear();
        assert_eq!(line(&message), "hello, domain 2, handler 5:");
    }

    #[test]
    fn what_handlers_log_is_a_line_of_its_own() {
        let mut message = HandlerMessage {
            domain: 2,
            name: "router".to_owned(),
            handler: 5,
            arguments: vec![0x4C77_295B, 7, 17],
            line: Some("17 in all".to_owned()),
        };
        assert_eq!(line(&message), "router: 17 in all");
        message.line = None;
        assert_eq!(
            line(&message),
            "router, domain 2, handler 5: 0x4c77295b 0x7 0x11 (a line of a log whose text is not \
             known)"
        );
    }
}
