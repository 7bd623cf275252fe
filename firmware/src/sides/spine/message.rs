//! Messages to handlers.
//!
//! Paper, section 3.2: a message has up to 240 bytes of arguments, and runs a handler. It comes
//! from one of these places:
//!
//! | from | way |
//! | --- | --- |
//! | the process that drives the card, one at a time | the SPINE block and a command, which is answered when the run is over |
//! | applications, that process | [rings](super::rings) in the host's memory |
//! | the other card on the bus | [its slots of the peer page](super::peer::messages) |
//! | the wire | a frame that a guard for messages wants |
//! | the handler's own domain | [posts](super::outgoing) |
//!
//! A handler has said whom it lets call it; an endpoint moreover needs the host's grant. What is
//! for no handler, or not allowed, is dropped and counted.
//!
//! A turn runs some messages of the rings, some of the other card's, and one post. Turns come behind
//! the frames that have arrived, and after each run of frames there is one of a single message:
//! neither frames nor a handler that posts to itself for ever keep the others waiting.

use super::effects::{Effects, OF_MESSAGE, Status};
use super::endpoint::{count_dropped, row};
use super::over::Over;
use super::peer::messages;
use super::rings::Incoming;
use super::run::EXISTING;
use super::{MessageWords, Runtime, Spine};
use crate::io::IoA;
use crate::memory::layout::{SPINE_BLOCK, SPINE_CALLERS};
use crate::memory::shared::SPINE_LOADING;
use host_interface::spine::rings::{
    Caller, DRIVER, Dropped, EndpointWord, FRAME_HEADER, HeaderWord, ITSELF, PEER, WIRE,
};
use host_interface::spine::{ARGUMENT_WORDS, DOMAINS, DomainCount, HANDLERS, MESSAGE, Outcome};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// NIC address of the word that says whom a handler lets call it.
pub const fn callers(domain: u32, handler: u32) -> u32 {
    SPINE_CALLERS + (domain << 5) + (handler << 2)
}

const _: () = assert!(HANDLERS << 2 == 1 << 5);

/// In `init`: says whom a handler lets call it. The domain is not there yet, so nobody calls it.
#[inline(always)]
pub fn accept<B: Bus>(effects: &Effects, bus: &mut B, handler: u32, callers: u32) -> Status {
    if !effects.is_init() || handler >= HANDLERS {
        return Status::Full;
    }
    let word = self::callers(SPINE_LOADING.get(bus), handler);
    bus.store(word, callers);
    Status::Noted
}

/// A message, and for whom.
struct Call {
    /// Words of arguments, domain and handler, as in [`HeaderWord::Shape`].
    shape: u32,
    /// Where it comes from, as the handler sees it.
    source: u32,
    caller: Caller,
    /// NIC address of its arguments.
    arguments: u32,
    /// NIC address of its data.
    at: u32,
    length: u32,
}

impl Call {
    /// Domain and handler.
    const fn to(&self) -> u32 {
        self.shape & 0xFFFF
    }

    const fn words(&self) -> u32 {
        self.shape >> 16
    }

    const fn domain(&self) -> u32 {
        self.shape >> 8 & 0xFF
    }

    const fn handler(&self) -> u32 {
        self.shape & 0xFF
    }
}

/// Runs the handler that a message is for.
#[inline(always)]
fn run<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, call: &Call) -> Over {
    // While no domain is loaded the pad has the host's code where that of a run would lie.
    if runtime.is_placed == 0 || call.to() & !EXISTING != 0 {
        return Over::NoHandler;
    }
    let accepts = io.bus.load(callers(call.domain(), call.handler()));
    if accepts & call.caller as u32 == 0 {
        return not_allowed(runtime, call);
    }
    let message: MessageWords = [
        call.at,
        call.length,
        call.source,
        call.arguments,
        call.words(),
    ];
    super::run::run(runtime, io, call.to() | OF_MESSAGE, &message)
}

/// A handler does not let the sender call it, or is not there.
#[inline(never)]
fn not_allowed(runtime: &Runtime, call: &Call) -> Over {
    if runtime.has_handler(call.domain(), call.handler()) {
        Over::NotAllowed
    } else {
        Over::NoHandler
    }
}

/// Hands the message in the block to a handler: domain, handler and how many arguments there are,
/// from bits 0, 8 and 16 on.
pub(super) fn deliver<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    argument: u32,
) -> Result<(), Outcome> {
    let words = argument >> 16;
    if words > ARGUMENT_WORDS {
        return Err(Outcome::TooLong);
    }
    let call = Call {
        shape: words << 16 | (argument & 0xFF) << 8 | argument >> 8 & 0xFF,
        source: DRIVER,
        caller: Caller::Driver,
        arguments: SPINE_BLOCK + MESSAGE,
        at: 0,
        length: 0,
    };
    match run(runtime, io, &call) {
        Over::Returned(_) | Over::Forwarded | Over::Settled => Ok(()),
        Over::NoHandler | Over::NotAllowed => Err(Outcome::NoHandler),
        Over::Suspended | Over::Cut => Err(Outcome::Cut),
    }
}

/// A message of the wire for a domain: a frame of so many bytes without CRC, at an address.
#[inline(never)]
pub(super) fn of_wire<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    domain: u32,
    at: u32,
    length: u32,
) {
    let words = io.bus.load(at + 12) & 0xFFFF;
    let to = io.bus.load(at + 16);
    let whole = words <= ARGUMENT_WORDS && length >= FRAME_HEADER + (words << 2);
    let call = Call {
        shape: words << 16 | domain << 8 | to & 0xFF,
        source: WIRE,
        caller: Caller::Wire,
        arguments: at + FRAME_HEADER,
        at,
        length,
    };
    let done = whole && to >> 8 == domain && run(runtime, io, &call).is_to_the_end();
    let count = if done {
        DomainCount::Consumed
    } else {
        DomainCount::Dropped
    };
    Runtime::count(&mut io.bus, domain, count);
}

/// A message of an endpoint.
#[inline(always)]
fn of_endpoint<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, incoming: &Incoming) {
    let Incoming {
        endpoint, shape, ..
    } = *incoming;
    let source = endpoint + DRIVER;
    let row = row(endpoint);
    let caller = if source == DRIVER {
        Caller::Driver
    } else {
        Caller::Application
    };
    let call = Call {
        shape,
        source,
        caller,
        arguments: incoming.arguments,
        at: incoming.at,
        length: incoming.length,
    };
    let bit = (call.domain() << HANDLERS.trailing_zeros()) + call.handler();
    let granted = io.bus.load(row + EndpointWord::Handlers as u32);
    let over = if call.to() & !EXISTING == 0 && granted >> (bit & 31) & 1 != 0 {
        run(runtime, io, &call)
    } else {
        Over::NotAllowed
    };
    if over.is_to_the_end() {
        super::bump(&mut io.bus, row + EndpointWord::Delivered as u32);
    } else {
        refused(&mut io.bus, endpoint, over);
    }
}

/// A message of an endpoint has run no handler to its end.
#[inline(never)]
fn refused<B: Bus>(bus: &mut B, endpoint: u32, over: Over) {
    let why = match over {
        Over::NotAllowed => Dropped::NotAllowed,
        Over::Cut => Dropped::Cut,
        _ => Dropped::NoHandler,
    };
    count_dropped(bus, endpoint, why);
}

/// A message without data whose arguments and header lie at `at`.
fn small<B: Bus>(bus: &mut B, at: u32, source: u32, caller: Caller) -> Call {
    Call {
        shape: bus.load(at + HeaderWord::Shape as u32),
        source,
        caller,
        arguments: at,
        at: 0,
        length: 0,
    }
}

/// A message of the other card's. Its header is that card's word.
#[inline(never)]
fn of_peer<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, at: u32) {
    let call = small(&mut io.bus, at, PEER, Caller::Peer);
    if call.words() > ARGUMENT_WORDS || !run(runtime, io, &call).is_to_the_end() {
        messages::dropped(&mut io.bus);
    }
    runtime.outgoing.peer.has_taken_message(&mut io.bus);
}

/// A message of a handler to its own domain.
fn of_itself<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, at: u32) {
    let call = small(&mut io.bus, at, ITSELF, Caller::Itself);
    if !run(runtime, io, &call).is_to_the_end() && call.domain() < DOMAINS {
        Runtime::count(&mut io.bus, call.domain(), DomainCount::Dropped);
    }
}

/// One turn: up to `most` messages of the rings, as many of the other card's, and one of a handler to
/// itself.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
pub(super) fn serve<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, most: u32) {
    let exchanges = runtime.outgoing.peer.exchanges();
    let mut has_room = !exchanges || serve_peer(runtime, io, most);
    runtime.rings.arrivals(io);
    let mut left = most;
    while left != 0
        && let Some(incoming) = runtime.rings.next(io, &mut runtime.pool.slots)
    {
        of_endpoint(runtime, io, &incoming);
        runtime.rings.over(&mut runtime.pool.slots);
        left -= 1;
    }
    has_room &= runtime.rings.report(io).is_ok();
    let post = runtime.outgoing.next_post(&mut io.bus);
    let has_post = post.is_some_and(|at| serve_post(runtime, io, at));
    let more = runtime.rings.has_message() || has_post;
    runtime.messages = more.into();
    // If CPU B has rung there is a turn for that.
    if more && !io.bus.is_rung(Cpu::A) {
        io.bus.set(EventBit::Loaded);
    }
    if runtime.outgoing.waits(io) {
        runtime.outgoing.write(io);
    }
    if exchanges {
        runtime.look_for_peer(io);
    }
    if !has_room {
        wait_for_descriptor(runtime, io);
    }
}

/// Has a turn follow when there is a descriptor for what tells an endpoint, or the peer, that its
/// messages were fetched. Frames wait for that of an endpoint: where the bus is slow, they would take
/// each descriptor that is free before its event comes.
#[inline(never)]
fn wait_for_descriptor<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>) {
    io.wait_for_descriptor(EventBit::Loaded);
    if runtime.rings.hold_frames() {
        io.bus.clear(EventBit::ReceiveComplete);
    }
}

/// Runs a message of a handler to itself; whether there is one more.
#[inline(never)]
fn serve_post<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, at: u32) -> bool {
    of_itself(runtime, io, at);
    runtime.outgoing.has_run_post(io);
    runtime.outgoing.next_post(&mut io.bus).is_some()
}

/// The other card's part of a turn; `false` if it could not be told what is done.
#[inline(never)]
fn serve_peer<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, most: u32) -> bool {
    let mut left = most;
    while left != 0
        && let Some(at) = runtime.outgoing.peer.next_message(&mut io.bus)
    {
        of_peer(runtime, io, at);
        left -= 1;
    }
    runtime.outgoing.peer.acknowledge(io)
}

/// Messages of a turn that no frame waits for.
const MOST: u32 = 4;

/// The event of messages. In SRAM: CPU A's pad is full.
#[inline(never)]
pub fn turn<B: Dispatch>(spine: &mut Spine, io: &mut IoA<B>) {
    io.bus.clear(EventBit::Loaded);
    if let Some(runtime) = spine.runtime() {
        // Also if somebody has reported meanwhile: this turn comes in any case.
        if runtime.rings.let_frames_go() {
            io.bus.set(EventBit::ReceiveComplete);
        }
        serve(runtime, io, MOST);
        runtime.outgoing.peer.called(io);
    }
}

/// Doorbell A: messages may have arrived. They run at once if CPU A has nothing else to do.
#[inline(always)]
pub fn arrived<B: Dispatch>(spine: &mut Spine, io: &mut IoA<B>) {
    if let Some(runtime) = spine.runtime()
        && (runtime.messages != 0 || runtime.rings.have_news(&mut io.bus))
    {
        if io.bus.others(Cpu::A, EventBit::DoorbellA) == 0 {
            return serve(runtime, io, MOST);
        }
        runtime.messages = 1;
        io.bus.set(EventBit::Loaded);
    }
}

impl Runtime {
    /// Has a turn follow if there is a message of the other card's.
    #[inline(never)]
    pub(super) fn look_for_peer<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        if self.outgoing.peer.next_message(&mut io.bus).is_some() {
            self.messages = 1;
            io.bus.set(EventBit::Loaded);
        }
    }

    /// Opens an endpoint.
    pub(super) fn open_endpoint<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        endpoint: u32,
    ) -> Result<(), Outcome> {
        self.outgoing.write(io);
        let opened = self.rings.open(io, endpoint);
        opened.then_some(()).ok_or(Outcome::NoEndpoint)
    }

    /// Closes an endpoint.
    pub(super) fn close_endpoint<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        endpoint: u32,
    ) -> Result<(), Outcome> {
        if endpoint >= host_interface::spine::rings::ENDPOINTS {
            return Err(Outcome::NoEndpoint);
        }
        self.outgoing.forget_endpoint(&mut io.bus, endpoint);
        let is_closed = self.rings.close(io, endpoint);
        // That has seen what arrived of others: a turn runs it.
        io.bus.set(EventBit::Loaded);
        is_closed.then_some(()).ok_or(Outcome::Busy)
    }
}
