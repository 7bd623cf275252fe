//! `tigonctl spine log`: what handlers have sent to the driver's process.

use anyhow::Result;
use host_driver::status::{HandlerMessage, HandlerMessages, Request};
use host_interface::spine::rings::{ITSELF, PEER, WIRE};
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
                "cut_from": message.cut_from,
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
    let HandlerMessage {
        domain,
        name,
        handler,
        arguments,
        line,
        cut_from,
    } = message;
    if let Some(line) = line {
        return format!("{name}: {line}");
    }
    let (cut, note) = match cut_from {
        Some(from) => (
            format!(" was cut off with a message of {}", sender(*from)),
            "",
        ),
        None if Line::parts(arguments).is_some() => {
            (String::new(), " (a line of a log whose text is not known)")
        }
        None => (String::new(), ""),
    };
    let words = words_text(arguments);
    let text = format!("{name}, domain {domain}, handler {handler}{cut}: {words}{note}");
    text.trim_end().to_owned()
}

/// Who has sent a message to a handler.
fn sender(number: u32) -> String {
    match number {
        WIRE => "the wire".to_owned(),
        ITSELF => "its domain".to_owned(),
        PEER => "the other card".to_owned(),
        endpoint => format!("endpoint {endpoint}"),
    }
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
            cut_from: None,
            line: None,
        };
        assert_eq!(line(&message), "hello, domain 2, handler 5: 0x11 0xff");
        message.arguments.clear();
        assert_eq!(line(&message), "hello, domain 2, handler 5:");
        message.cut_from = Some(3);
        let expected = "hello, domain 2, handler 5 was cut off with a message of endpoint 3:";
        assert_eq!(line(&message), expected);
    }

    #[test]
    fn what_handlers_log_is_a_line_of_its_own() {
        let mut message = HandlerMessage {
            domain: 2,
            name: "router".to_owned(),
            handler: 5,
            arguments: vec![0x4C77_295B, 7, 17],
            line: Some("17 in all".to_owned()),
            cut_from: None,
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
