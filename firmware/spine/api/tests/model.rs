//! What extensions do, run natively: views, regions, effects as a transaction.

use spine::headers::{Ethernet, IPV4, Ipv4, Udp};
use spine::model::{Domain, Sent};
use spine::{
    Argument, Called, Context, Durable, Ephemeral, Full, HandlerNumber, Message, NotCalled,
    PeerHandler, Verdict, Word, Words, add_handler, export,
};

const NUMBER: HandlerNumber = HandlerNumber(0);

fn with(handler: spine::HandlerProc) -> Domain {
    Domain::load(|durable| {
        assert!(add_handler(durable, handler, NUMBER, Argument(77)));
    })
}

/// UDP from 10.0.0.2:0x1234 to 10.0.0.1:7, four bytes of data.
fn datagram() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 32, 0, 9, 0, 0, 64, 17, 0xAB, 0xCD]);
    frame.extend([10, 0, 0, 2, 10, 0, 0, 1]);
    frame.extend([0x12, 0x34, 0, 7, 0, 12, 0, 0]);
    frame.extend([1, 2, 3, 4]);
    frame.resize(60, 0);
    frame
}

#[test]
fn views_read_what_stands_on_the_wire() {
    fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
        let buffer = message.buffer();
        assert_eq!((buffer.len(), context.argument()), (60, 77));
        let ethernet: Ethernet<'_> = buffer.view(0).expect("a header");
        assert_eq!(ethernet.destination_high(), 0x0200_0000);
        assert_eq!(ethernet.destination_low(), 1);
        assert_eq!(ethernet.source_high(), 0x0200);
        assert_eq!(ethernet.source_low(), 2);
        assert_eq!(ethernet.kind(), IPV4);
        let ip: Ipv4<'_> = buffer.view(14).expect("a header");
        assert_eq!((ip.version_and_length(), ip.total_length()), (0x45, 32));
        assert_eq!((ip.time_to_live(), ip.protocol()), (64, 17));
        assert_eq!(ip.checksum(), 0xABCD);
        assert_eq!((ip.source(), ip.destination()), (0x0A00_0002, 0x0A00_0001));
        let udp: Udp<'_> = buffer.view(34).expect("a header");
        assert_eq!(
            (udp.source(), udp.destination(), udp.length()),
            (0x1234, 7, 12)
        );
        Verdict::Host
    }
    let run = with(handler).frame(NUMBER, &datagram()).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Host));
}

#[test]
fn a_view_ends_in_the_buffer_and_begins_where_headers_do() {
    fn handler(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
        let buffer = message.buffer();
        assert!(buffer.view::<Ipv4<'_>>(42).is_none(), "60 - 20 is 40");
        assert!(buffer.view::<Ipv4<'_>>(38).is_some());
        assert!(buffer.view::<Ipv4<'_>>(15).is_none());
        assert!(buffer.view::<Ipv4<'_>>(16).is_none());
        assert!(buffer.view::<Ipv4<'_>>(u32::MAX - 1).is_none());
        assert!(buffer.view::<Ipv4<'_>>(u32::MAX - 20).is_none());
        Verdict::Host
    }
    let run = with(handler).frame(NUMBER, &datagram()).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Host));
    let run = with(handler).frame(NUMBER, &[0; 57]).expect("installed");
    assert_eq!(run.verdict, None, "38 + 20 is 58");
}

#[test]
fn effects_count_when_the_handler_has_returned() {
    fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
        context.patch(0, 0xAABB_CCDD).expect("room");
        context.count(3).expect("room");
        context.transmit().expect("room");
        assert_eq!(context.transmit(), Err(Full), "a second time");
        // Cut off if the first word says so.
        assert_eq!(message.buffer().words()[0] >> 24, 2);
        Verdict::Consume
    }
    let mut domain = with(handler);
    let run = domain.frame(NUMBER, &datagram()).expect("installed");
    let sent = run.transmitted.expect("it was asked for");
    assert_eq!(sent[..4], [0xAA, 0xBB, 0xCC, 0xDD]);
    assert_eq!(sent[4..], datagram()[4..]);
    assert_eq!(domain.counter(3), Some(1));
    let run = domain.frame(NUMBER, &[0; 60]).expect("installed");
    assert_eq!((run.verdict, run.transmitted), (None, None));
    assert_eq!(
        domain.counter(3),
        Some(1),
        "a run that was cut off counts nothing"
    );
}

#[test]
fn effects_are_bounded() {
    fn handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
        let patched = (0..100).filter(|index| context.patch(index % 15, 0).is_ok());
        assert_eq!(patched.count(), spine::context::PATCHES);
        let counted = (0..100).filter(|_| context.count(0).is_ok());
        assert_eq!(counted.count(), 16);
        assert_eq!(context.count(8), Err(Full));
        Verdict::Consume
    }
    let run = with(handler).frame(NUMBER, &datagram()).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Consume));
    fn outside(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
        assert_eq!(
            context.patch(15, 0),
            Err(Full),
            "a frame of 60 bytes has 15 words"
        );
        assert_eq!(context.patch(14, 0), Ok(()));
        Verdict::Consume
    }
    let run = with(outside).frame(NUMBER, &datagram()).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Consume));
}

#[test]
fn a_frame_that_is_not_kept_is_not_transmitted() {
    fn handler(_: Ephemeral<'_>, _: &Message, context: &Context) -> Verdict {
        match context.transmit() {
            Ok(()) => Verdict::Consume,
            Err(Full) => Verdict::Host,
        }
    }
    let mut domain = with(handler);
    let run = |domain: &mut Domain, bytes| domain.frame(NUMBER, &vec![0; bytes]);
    assert_eq!(
        run(&mut domain, 1536).and_then(|run| run.verdict),
        Some(Verdict::Consume)
    );
    assert_eq!(
        run(&mut domain, 1537).and_then(|run| run.verdict),
        Some(Verdict::Host)
    );
}

#[test]
fn a_number_has_one_handler() {
    fn handler(_: Ephemeral<'_>, _: &Message, _: &Context) -> Verdict {
        Verdict::Host
    }
    let domain = Domain::load(|durable: &mut Durable| {
        assert!(add_handler(
            durable,
            handler,
            HandlerNumber(1),
            Argument::NIL
        ));
        assert!(!add_handler(
            durable,
            handler,
            HandlerNumber(1),
            Argument::NIL
        ));
        assert!(!add_handler(
            durable,
            handler,
            HandlerNumber(8),
            Argument::NIL
        ));
        assert!(add_handler(
            durable,
            handler,
            HandlerNumber(7),
            Argument::NIL
        ));
    });
    assert_eq!(domain.handlers(), [HandlerNumber(1), HandlerNumber(7)]);
}

static SEEN: Word = Word::new(5);
static TABLE: Words<4> = Words::new();

#[test]
fn the_region_keeps_what_it_is_given() {
    SEEN.add(u32::MAX);
    assert_eq!(SEEN.get(), 4);
    TABLE.at(3).expect("four").set(9);
    assert_eq!(TABLE.at(3).map(Word::get), Some(9));
    assert!(TABLE.at(4).is_none());
}

#[test]
fn arguments_of_a_message_are_bounded() {
    fn handler(_: Ephemeral<'_>, message: &Message, _: &Context) -> Verdict {
        assert_eq!(message.arguments().len(), 60);
        assert!(message.buffer().is_empty() && message.buffer().words().is_empty());
        Verdict::Consume
    }
    let mut domain = with(handler);
    assert!(domain.message(NUMBER, &[0; 61]).is_none());
    let run = domain.message(NUMBER, &[0; 60]).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Consume));
}

/// At most four in a run, as to endpoints.
fn tells_the_other_card(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let to = PeerHandler {
        domain: 2,
        handler: HandlerNumber(5),
    };
    for _ in 0..4 {
        assert_eq!(context.send_peer(to, message.arguments()), Ok(()));
    }
    assert_eq!(context.send_peer(to, &[]), Err(Full));
    Verdict::Consume
}

#[test]
fn a_message_to_the_other_card_has_its_handler_and_arguments() {
    let mut domain = with(tells_the_other_card);
    let run = domain.message(NUMBER, &[7, 8]).expect("a handler");
    let to = Sent::Peer(PeerHandler {
        domain: 2,
        handler: HandlerNumber(5),
    });
    assert_eq!(run.messages, vec![(to, vec![7, 8]); 4]);
}

#[test]
fn an_extension_calls_what_another_exports() {
    spine::export!(SUM = "numbers.sum");
    spine::import!(THEIR_SUM = "numbers.sum");

    fn sum(called: &Called, first: u32, second: u32, third: u32) -> u32 {
        assert_eq!((called.domain(), called.now()), (0, 0));
        first + second + third
    }
    fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
        let calls = message.arguments().first().copied().unwrap_or(0);
        for number in 0..calls {
            let expected = if number < 15 {
                Ok(number + 42)
            } else {
                Err(NotCalled::Full)
            };
            assert_eq!(context.call(&THEIR_SUM, [number, 40, 2]), expected);
        }
        match context.call(&THEIR_SUM, [0; 3]) {
            Err(NotCalled::Absent) => Verdict::Drop,
            _ => Verdict::Consume,
        }
    }
    let numbers = Domain::load(|durable| assert!(export(durable, &SUM, sum)));
    let mut alone = with(handler);
    let run = alone.message(NUMBER, &[0]).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Drop));
    alone.link(&numbers);
    let run = alone.message(NUMBER, &[16]).expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Consume));
}
