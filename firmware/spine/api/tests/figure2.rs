//! Figure 2 of the paper, line by line, and what must not compile.

use spine::model::Domain;
use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Lock, Message, Verdict, add_handler,
};

// EPHEMERAL PROCEDURE GoodHandler(m:Msg; c:Context)=
// BEGIN (* Process message and return. *) END GoodHandler;
fn good_handler(_: Ephemeral<'_>, _m: &Message, _c: &Context) -> Verdict {
    Verdict::Consume
}

// EPHEMERAL PROCEDURE InfiniteHandler(m:Msg; c:Context)=
// BEGIN WHILE TRUE DO (* infinite loop *) END; END InfiniteHandler;
fn infinite_handler(_: Ephemeral<'_>, _m: &Message, _c: &Context) -> Verdict {
    #[expect(clippy::empty_loop, reason = "the paper's")]
    loop {}
}

static MY_EXTENSION_MUTEX: Lock = Lock::new();

// PROCEDURE NonEphemeral(m:Msg) = BEGIN LOCK myExtensionMutex DO ... END; END NonEphemeral;
fn non_ephemeral(_m: u32, durable: &mut Durable) {
    MY_EXTENSION_MUTEX.hold(durable, |_| assert!(MY_EXTENSION_MUTEX.is_held()));
}

// PROCEDURE Init() = BEGIN
fn init(durable: &mut Durable) {
    // AddHandler(IllegalHandler, 5, NIL): tests/ui/illegal_handler.rs
    // AddHandler(GoodHandler, 6, NIL);
    assert!(add_handler(
        durable,
        good_handler,
        HandlerNumber(6),
        Argument::NIL
    ));
    // AddHandler(InfiniteHandler, 7, NIL);
    assert!(add_handler(
        durable,
        infinite_handler,
        HandlerNumber(7),
        Argument::NIL
    ));
    non_ephemeral(5, durable);
}

#[test]
fn the_papers_init_installs_its_handlers() {
    let mut domain = Domain::load(init);
    assert_eq!(domain.handlers(), [HandlerNumber(6), HandlerNumber(7)]);
    let run = domain
        .message(HandlerNumber(6), &[1, 2, 3])
        .expect("installed");
    assert_eq!(run.verdict, Some(Verdict::Consume));
    assert_eq!(domain.message(HandlerNumber(5), &[]), None);
}

/// `illegal_handler` and `non_ephemeral` are Figure 2's; the others are ways to cheat.
#[test]
fn what_could_be_cut_off_in_disorder_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
