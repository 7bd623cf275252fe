//! What handlers log, run natively: lines, bounds, and that a cut takes them along.

use spine::model::{Domain, Sent};
use spine::{
    Argument, Context, Endpoint, Ephemeral, Full, HandlerNumber, Message, Verdict, add_handler,
};

const NUMBER: HandlerNumber = HandlerNumber(0);

fn with(handler: spine::HandlerProc) -> Domain {
    Domain::load(|durable| {
        assert!(add_handler(durable, handler, NUMBER, Argument::NIL));
    })
}

/// Panics if it has no argument, behind what it has logged.
fn logs(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let words = message.arguments();
    spine::log!(context, "{} words", words.len() as u32).expect("room");
    context.send(Endpoint::DRIVER, words).expect("room");
    spine::log!(context, "{{{:x}, {:#x}}}", words[0], words[0] + 1,).expect("room");
    Verdict::Consume
}

#[test]
fn lines_come_as_the_driver_prints_them() {
    let run = with(logs).message(NUMBER, &[0xFF]).expect("installed");
    assert_eq!(run.logged, ["1 words", "{ff, 0x100}"]);
    let sent = vec![(Sent::To(Endpoint::DRIVER), vec![0xFF])];
    assert_eq!(run.messages, sent, "what is no line of the log");
}

#[test]
fn a_run_that_is_cut_off_logs_nothing() {
    let run = with(logs).message(NUMBER, &[]).expect("installed");
    assert_eq!(run.verdict, None);
    assert!(run.logged.is_empty() && run.messages.is_empty());
}

#[test]
fn a_line_is_one_of_a_runs_messages() {
    fn handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
        use spine::log;
        context.send(Endpoint::DRIVER, &[]).expect("room");
        for number in 0..3 {
            log!(context, "line {}", number).expect("room");
        }
        assert_eq!(log!(context, "one more"), Err(Full));
        Verdict::Consume
    }
    let run = with(handler).message(NUMBER, &[]).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Consume));
    assert_eq!(run.logged, ["line 0", "line 1", "line 2"]);
}

#[test]
fn a_text_has_at_most_eight_words() {
    fn handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
        let sent = spine::log!(context, "{}{}{}{}{}{}{}{}", 1, 2, 3, 4, 5, 6, 7, 8);
        assert_eq!(sent, Ok(()));
        Verdict::Consume
    }
    let run = with(handler).message(NUMBER, &[]).expect("installed");
    assert_eq!(run.logged, ["12345678"]);
}
