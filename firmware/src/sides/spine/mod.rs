//! SPINE: extensions that the host loads into the running firmware.
//!
//! "SPINE: an operating system for intelligent network adapters" (Fiuczynski, Martin, Bershad,
//! Culler); the interface to the host is [`host_interface::spine`], `docs/spine.md` has the whole.
//!
//! ```text
//!  frame ── guard ──► message, context ──► enter ──► handler in the arena
//!    │ none wants it                                    │ patch, transmit, count: noted
//!    ▼                                                  ▼
//!  as ever ◄──────────── Host ──────────────── verdict, or cut off
//!                                                       │ carried out
//!                                       pool ──► CPU B ──► wire
//! ```
//!
//! What each frame passes lies in CPU A's pad: at addresses of CPU B's code (`.scratch_a.over` of
//! `linker/parallel.x`; `cargo xtask gdb --names a` shows it), and while a domain is loaded where
//! the host's frames have their code otherwise ([`overlay`]). The rest lies in SRAM.
//!
//! Extensions run on CPU A alone. CPU B transmits what they send, and looks after them: a run
//! that takes longer than its domain may is [cut off](watch), and leaves nothing behind but what
//! is in its own region. So one CPU cannot be hung.
//!
//! | module | what |
//! | --- | --- |
//! | this one | the state of CPU A, and frames |
//! | [`run`](mod@run), `over` | a run of a handler, and how it is over |
//! | `builtin` | the router compiled in, to compare: not in a build that anybody uses |
//! | [`call`] | calls between extensions |
//! | [`cut`] | what is left of a run that was cut off |
//! | [`effects`] | what a run asks for |
//! | [`guard`] | which frames go to which handler |
//! | `enter` | into an extension's text, and out of it |
//! | [`load`] | commands of the host |
//! | `access` | NIC memory for a host without its window |
//! | [`message`] | messages to handlers |
//! | [`endpoint`] | endpoints of the host's: where they are, and which are open |
//! | [`fetch`] | their messages, as CPU B fetches them |
//! | [`rings`] | the same as CPU A runs them |
//! | [`outgoing`] | those that handlers send |
//! | [`peer`] | frames and messages to another card on the bus |
//! | [`supply`] | frames from CPU A to the wire, by CPU B; frames that are kept |
//! | [`slots`] | who refers to which of these |
//! | [`time`] | how long handlers run |
//! | [`transfer`], [`noted`] | transfers from frames to the bus |
//! | [`watch`] | the watchdog, by CPU B |

mod access;
#[cfg(feature = "builtin")]
mod builtin;
pub mod call;
pub mod cut;
pub mod effects;
pub mod endpoint;
pub mod enter;
pub mod fetch;
pub mod guard;
pub mod load;
pub mod message;
pub mod noted;
pub mod outgoing;
mod over;
pub mod peer;
pub mod rings;
mod run;
pub mod slots;
pub mod supply;
pub mod time;
pub mod transfer;
pub mod watch;

use crate::io::IoA;
use crate::memory::layout::{POOL_FRAME, SPINE, SPINE_BLOCK};
use crate::memory::overlay::{self, Receiver};
use crate::memory::shared::SPINE_CALLS;
use crate::path::receive::guarded::{self, Look, Next};
use crate::path::receive::queues::Queues;
use crate::path::receive::{Receive, frame, handlers};
use effects::{Effects, Installed};
use guard::Guards;
use host_interface::spine::{
    DOMAINS, DomainCount, GUARDS_TRANSFERS, HANDLERS, HandlerCount, domain_count, handler_count,
};
use over::Over;
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// SPINE's part of CPU A's side: nothing in firmware that loads no extensions.
#[derive(Debug)]
pub struct Spine([Runtime; SPINE]);

impl Spine {
    /// Nothing is loaded.
    pub const fn new() -> Spine {
        Spine([const { Runtime::new() }; SPINE])
    }

    /// Whether a domain is loaded.
    pub fn has_domain(&self) -> bool {
        self.0.first().is_some_and(|runtime| runtime.is_placed != 0)
    }

    fn runtime(&mut self) -> Option<&mut Runtime> {
        self.0.first_mut()
    }
}

impl Default for Spine {
    fn default() -> Spine {
        Spine::new()
    }
}

/// A domain that is loaded.
#[derive(Debug)]
struct Domain {
    /// Whether it is suspended, and how many of its next runs are timed: see [`time`].
    state: u32,
    /// Microseconds that a run may take; 0 while nothing is loaded.
    watchdog: u32,
    /// Runs in a row that were cut off, the last ones.
    cut: u32,
    handlers: [Installed; HANDLERS as usize],
}

impl Domain {
    const NONE: Domain = Domain {
        state: 0,
        watchdog: 0,
        cut: 0,
        handlers: [Installed::NONE; HANDLERS as usize],
    };
}

/// What CPU A knows of extensions.
#[derive(Debug)]
pub struct Runtime {
    guards: Guards,
    domains: [Domain; DOMAINS as usize],
    effects: Effects,
    pool: supply::Pool,
    rings: rings::Rings,
    outgoing: outgoing::Outgoing,
    /// Whether messages may wait for a handler.
    messages: u32,
    /// Whether extensions have their part of the scratch pad: while a domain is loaded.
    is_placed: u32,
    /// Number of the run; the lowest 24 bits count.
    run: u32,
    /// Where the search for frames goes on: what is known of the oldest one.
    look: Look,
}

/// A message as a handler sees it: `spine::Message`.
///
/// ```text
/// +0   buffer: address, bytes
/// +8   source
/// +12  arguments: address, words
/// ```
pub type MessageWords = [u32; 5];
/// A context as a handler sees it: `spine::Context`, that is argument, domain, run.
pub type ContextWords = [u32; 3];

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// No more than the handler asked for.
    Done,
    /// The peer's: the transfer to it frees the frame.
    Forwarded,
    /// The host's.
    Host,
    /// It waits until descriptors are free.
    Later,
}

impl Runtime {
    const fn new() -> Runtime {
        Runtime {
            guards: Guards::NONE,
            domains: [const { Domain::NONE }; DOMAINS as usize],
            effects: Effects::new(),
            pool: supply::Pool::new(),
            rings: rings::Rings::new(),
            outgoing: outgoing::Outgoing::new(),
            messages: 0,
            is_placed: 0,
            run: 0,
            look: Look::NEW,
        }
    }

    /// Gives extensions their part of the scratch pad, or the host's frames theirs.
    fn place(&mut self, receiver: Receiver) {
        let is_placed = u32::from(receiver == Receiver::Other);
        if is_placed != self.is_placed {
            self.is_placed = is_placed;
            self.look = Look::NEW;
            overlay::place_a(receiver);
        }
    }

    /// Whether a domain has a handler.
    fn has_handler(&self, domain: u32, handler: u32) -> bool {
        let domain = self.domains.get(domain as usize);
        let handler = domain.and_then(|domain| domain.handlers.get(handler as usize));
        handler.is_some_and(|handler| handler.entry != 0)
    }

    /// One more in a count of a domain's handler, or of its procedures.
    #[inline(always)]
    fn count_run<B: Bus>(bus: &mut B, (domain, handler): (u32, u32), count: HandlerCount) {
        bump(bus, SPINE_BLOCK + handler_count(domain, handler, count));
    }

    /// One more in a count of a domain.
    fn count<B: Bus>(bus: &mut B, domain: u32, count: DomainCount) {
        bump(bus, SPINE_BLOCK + domain_count(domain, count));
    }
}

/// One more in a word of SRAM.
#[inline(always)]
fn bump<B: Bus>(bus: &mut B, address: u32) {
    let count = bus.load(address).wrapping_add(1);
    bus.store(address, count);
}

/// Has CPU B look at what is new for it.
fn call_b<B: Dispatch>(io: &mut IoA<B>) {
    let calls = SPINE_CALLS.get(&mut io.bus).wrapping_add(1);
    SPINE_CALLS.set(&io.me, &mut io.bus, calls);
    io.ring_b();
}

/// Doorbell A: there may be news for the peer.
#[inline(always)]
pub fn called<B: Dispatch>(spine: &mut Spine, io: &mut IoA<B>) {
    if let Some(runtime) = spine.runtime() {
        runtime.outgoing.peer.called(io);
    }
}

/// Receive complete: some frames.
#[inline(always)]
pub fn complete<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    spine: &mut Spine,
    io: &mut IoA<B>,
) {
    if !overlay::LEADS
        && spine
            .runtime()
            .is_some_and(|runtime| runtime.is_placed != 0)
    {
        return complete_beside(receive, spine, io);
    }
    handlers::complete(receive, queues, io);
}

/// The same while a domain is loaded: where CPU A's jump table leads then. Messages have a turn
/// after each run of frames, however many of these there are.
#[inline(always)]
pub fn complete_beside<B: Dispatch>(receive: &mut Receive, spine: &mut Spine, io: &mut IoA<B>) {
    let Some(runtime) = spine.runtime() else {
        return;
    };
    complete_guarded(receive, runtime, io);
    if runtime.messages != 0 {
        message::serve(runtime, io, 1);
    }
}

/// The same with guards.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn complete_guarded<B: Dispatch>(receive: &mut Receive, runtime: &mut Runtime, io: &mut IoA<B>) {
    let mut left = frame::FRAMES;
    loop {
        let next = guarded::next(receive, io, &mut left, &mut runtime.look, &runtime.guards);
        let Next::Wanted(frame, to) = next else {
            if !runtime.look.is_likely || runtime.messages != 0 {
                break finish(receive, io);
            }
            if left != 0 && guarded::has_more(receive, io) {
                continue;
            }
            if give_back(receive, io) && left != 0 {
                continue;
            }
            left = wait_for_next(receive, io, left);
            if left == 0 {
                break;
            }
            continue;
        };
        match hand_over(runtime, io, receive.base(), &frame, to) {
            Fate::Done => {
                guarded::let_go(receive, io, frame);
                left -= 1;
            }
            Fate::Forwarded => {
                guarded::let_go_with_data(receive, io);
                left -= 1;
            }
            Fate::Host => {
                runtime.look = Look {
                    passed: frame.start,
                    is_likely: false,
                };
            }
            Fate::Later => {
                runtime.look.is_likely = false;
                left = 0;
            }
        }
    }
}

/// What follows a run, if nobody waits for the next frame.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
#[inline(never)]
fn finish<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    guarded::finish(receive, io);
}

/// Returns the descriptors of the frames that were seen to. Returns whether there are more by now.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low"))]
#[inline(never)]
fn give_back<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> bool {
    guarded::give_back(receive, io);
    guarded::has_more(receive, io)
}

/// Waits for the next frame, which is likely to be wanted, too, as long as it comes soon, and nothing
/// else before it. `left` frames may be seen to before CPU A looks at other events. Returns how many
/// may be now; 0 if no frame has come. Most frames before it need nothing more: the transfer to the
/// peer frees them.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
#[inline(never)]
fn wait_for_next<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, mut left: u32) -> u32 {
    if guarded::is_unsettled(receive, io) {
        finish(receive, io);
    }
    let others = io.bus.core(|core| core.mask) & !EventBit::ReceiveComplete.mask();
    for _ in 0..LOOKS {
        if left != 0 && guarded::has_more(receive, io) {
            return left;
        }
        if io.bus.read(Register::event(Cpu::A)) & others != 0 {
            break;
        }
        left = frame::FRAMES;
    }
    0
}

/// A frame to the handler in bits 7:0 of the domain in bits 15:8.
#[inline(always)]
fn hand_over<B: Dispatch>(
    runtime: &mut Runtime,
    io: &mut IoA<B>,
    base: u32,
    frame: &ReceivedFrame,
    to: u32,
) -> Fate {
    let Some(at) = runtime.pool.in_one_piece(&mut io.bus, frame, base) else {
        // Longer than what is kept, round the end of the buffer.
        return Fate::Host;
    };
    let length = frame.length - frame::CRC;
    #[cfg(feature = "builtin")]
    if to & 0xFF < HANDLERS {
        return builtin::route(runtime, io, at, length);
    }
    // A message, or a frame for a domain with a lease.
    let is_beside = to & 0xFF >= HANDLERS;
    if is_beside && let Some(fate) = transfer::begin(runtime, io, length, at, to) {
        return fate;
    }
    let over = run::run(runtime, io, to & !GUARDS_TRANSFERS, &[at, length, 0, 0, 0]);
    if is_beside {
        transfer::end(io, to);
    }
    let count = match over {
        Over::Forwarded => return Fate::Forwarded,
        Over::Settled => return Fate::Done,
        Over::Returned(0) => DomainCount::Consumed,
        Over::Returned(1) => DomainCount::Dropped,
        _ => return Fate::Host,
    };
    Runtime::count(&mut io.bus, to >> 8, count);
    Fate::Done
}

/// Looks for the next frame, of some 0.2 us each.
const LOOKS: u32 = 64;

const _: () = assert!(POOL_FRAME >= 1518);
