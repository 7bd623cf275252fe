//! Commands of the host: load, unload, guards.
//!
//! [`host_interface::spine`]. They run on CPU A between handlers, so none of an extension's text
//! is in work meanwhile. What a row says is judged here as far as the card can: the linker has
//! judged the text.

use super::call::{self, RUN_STEP};
use super::effects::{Effects, Installed};
use super::enter::{self, Left};
use super::guard::Guard;
use super::watch::{FLOOR_SHIFT, PERIOD_MASK};
use super::{
    ContextWords, Domain, MessageWords, Runtime, Spine, access, call_b, cut, message, run, transfer,
};
use crate::io::IoA;
use crate::memory::layout::{ARENA, ARENA_END, PEER_PAGE, POOL_SLOTS, SPINE, SPINE_BLOCK};
use crate::memory::overlay::Receiver;
use crate::memory::shared::{SPINE_LOADING, SPINE_WATCH};
use core::ops::Range;
use heapless::Vec;
use host_interface::extension::Extension;
use host_interface::spine::rings::DEFAULT_CALLERS;
use host_interface::spine::{
    self, BlockWord, Command, DOMAINS, DomainCount, DomainWord, GUARDS, GUARDS_MESSAGES, HANDLERS,
    MAILBOX, Outcome, domain_count, domain_word,
};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Microseconds that `init` may take.
const INIT: u32 = 200;
/// What there is room for above a watchdog.
const FLOOR_MOST: u32 = u32::MAX >> FLOOR_SHIFT;

const fn word(word: BlockWord) -> u32 {
    SPINE_BLOCK + word as u32
}

/// Describes the block to the host, before anything is loaded.
pub fn describe<B: Bus>(bus: &mut B) {
    clear(bus, SPINE_BLOCK, spine::BLOCK_BYTES);
    clear(bus, PEER_PAGE, spine::peer::PAGE_BYTES);
    call::clear(bus);
    access::describe(bus);
    let pad = enter::pad_arena();
    for (at, value) in [
        (BlockWord::Layout, spine::LAYOUT),
        (BlockWord::Arena, ARENA),
        (BlockWord::ArenaBytes, ARENA_END - ARENA + reserved(bus)),
        (BlockWord::PeerPage, PEER_PAGE),
        (BlockWord::Mailbox, MAILBOX),
        (BlockWord::Imports, enter::imports()),
        (BlockWord::FreeSlots, POOL_SLOTS),
        (BlockWord::Pad, pad.start),
        (BlockWord::PadBytes, pad.end - pad.start),
        (BlockWord::ImportCount, spine_image::interface::COUNT as u32),
    ] {
        bus.store(word(at), value);
    }
    bus.store(Extension::Spine.nic_address(), SPINE_BLOCK);
}

/// Bytes behind the arena that the host had reserved when it started the firmware.
pub fn reserved<B: Bus>(bus: &mut B) -> u32 {
    match SPINE {
        0 => 0,
        _ => bus.load(Extension::Arena.nic_address()) << 10,
    }
}

#[inline(never)]
fn clear<B: Bus>(bus: &mut B, from: u32, bytes: u32) {
    for at in (from..from + bytes).step_by(4) {
        bus.store(at, 0);
    }
}

/// The host has written the mailbox: a request for memory, or a command, which it may write by one.
#[inline(never)]
pub fn command<B: Dispatch>(spine: &mut Spine, io: &mut IoA<B>) {
    let Some(runtime) = spine.runtime() else {
        return;
    };
    access::serve(&mut io.bus);
    let asked = io.bus.load(word(BlockWord::Command));
    if asked == io.bus.load(word(BlockWord::Answer)) {
        return;
    }
    let argument = io.bus.load(word(BlockWord::Argument));
    let domain = argument & 0xFF;
    let done = match Command::from_number(asked & 0xFFFF) {
        None => Err(Outcome::NoCommand),
        Some(Command::SetGuards) => set_guards(runtime, io),
        Some(Command::Open) => runtime.open_endpoint(io, argument),
        Some(Command::Close) => runtime.close_endpoint(io, argument),
        Some(Command::Synchronize) => Ok(()),
        Some(Command::Peer) => {
            let done = runtime.outgoing.peer.open(io);
            call_b(io);
            done
        }
        Some(_) if domain >= DOMAINS => Err(Outcome::NoDomain),
        Some(Command::Load) => load(runtime, io, domain),
        Some(Command::Unload) => unload(runtime, io, domain),
        Some(Command::Resume) => resume(runtime, io, domain),
        Some(Command::Lease) => runtime.set_lease(io, domain),
        Some(Command::Message) => message::deliver(runtime, io, argument),
    };
    if runtime.domains.iter().all(|domain| domain.watchdog == 0) {
        runtime.place(Receiver::Classic);
    }
    let result = done.err().unwrap_or(Outcome::Done);
    io.bus.store(word(BlockWord::Result), result as u32);
    io.bus.store(word(BlockWord::Answer), asked);
}

/// A domain's row, as the host wrote it.
struct Row {
    text: u32,
    end: u32,
    /// Where the bytes of text in the scratch pad lie, or 0.
    copy: u32,
    init: u32,
    watchdog: u32,
    floor: u32,
    entries: Vec<u32, { HANDLERS as usize }>,
}

impl Row {
    fn load<B: Bus>(bus: &mut B, domain: u32) -> Result<Row, Outcome> {
        let mut of = |word| bus.load(SPINE_BLOCK + domain_word(domain, word));
        let count = of(DomainWord::EntryCount);
        let row = Row {
            text: of(DomainWord::Text),
            end: of(DomainWord::TextEnd),
            copy: of(DomainWord::TextCopy),
            init: of(DomainWord::Init),
            watchdog: of(DomainWord::Watchdog),
            floor: of(DomainWord::Floor).min(FLOOR_MOST),
            entries: Vec::new(),
        };
        let waits = row.watchdog != 0 && row.watchdog < 256;
        let arena = ARENA..ARENA_END + reserved(bus);
        if !row.lies(arena) || !waits || count > HANDLERS || !row.has(row.init) {
            return Err(Outcome::OutsideArena);
        }
        row.with_entries(bus, domain, count)
    }

    fn with_entries<B: Bus>(
        mut self,
        bus: &mut B,
        domain: u32,
        count: u32,
    ) -> Result<Row, Outcome> {
        let mut at = SPINE_BLOCK + domain_word(domain, DomainWord::Entries);
        for _ in 0..count {
            let entry = bus.load(at);
            if !self.has(entry) || self.entries.push(entry).is_err() {
                return Err(Outcome::OutsideArena);
            }
            at += 4;
        }
        Ok(self)
    }

    /// Whether the text lies where it may.
    fn lies(&self, arena: Range<u32>) -> bool {
        let place = if self.copy == 0 {
            arena
        } else {
            let bytes = self.end.wrapping_sub(self.text);
            let has_bytes = arena.contains(&self.copy) && bytes <= arena.end - self.copy;
            if !has_bytes || (self.text | self.end | self.copy) & 3 != 0 {
                return false;
            }
            enter::pad_arena()
        };
        self.text >= place.start && self.text <= self.end && self.end <= place.end
    }

    /// Copies the text to where it runs.
    fn copy_text<B: Bus>(&self, bus: &mut B) {
        if self.copy != 0 {
            for at in (0..self.end - self.text).step_by(4) {
                let word = bus.load(self.copy + at);
                bus.store(self.text + at, word);
            }
        }
    }

    /// Whether an instruction of the text is there.
    fn has(&self, entry: u32) -> bool {
        entry & 3 == 0 && entry >= self.text && entry < self.end
    }
}

fn load<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, number: u32) -> Result<(), Outcome> {
    runtime.outgoing.report_room(io);
    let loaded = runtime.domains.get(number as usize);
    if loaded.ok_or(Outcome::NoDomain)?.watchdog != 0 {
        return Err(Outcome::WrongState);
    }
    let row = Row::load(&mut io.bus, number)?;
    runtime.place(Receiver::Other);
    row.copy_text(&mut io.bus);
    let Runtime {
        domains,
        effects,
        run,
        ..
    } = runtime;
    let domain = domains.get_mut(number as usize).ok_or(Outcome::NoDomain)?;
    let counts = SPINE_BLOCK + spine::DOMAIN_COUNTS + number * spine::counts::BYTES;
    clear(&mut io.bus, counts, spine::counts::BYTES);
    cut::forget(&mut io.bus, number);
    // CPU B looks after `init`, too.
    watch_at_least(io, row.watchdog, row.floor);
    *run = run.wrapping_add(RUN_STEP);
    SPINE_LOADING.set(&io.me, &mut io.bus, number);
    for handler in 0..HANDLERS {
        let word = message::callers(number, handler);
        io.bus.store(word, DEFAULT_CALLERS);
    }
    enter::lend(effects);
    effects.begin_init();
    let message: MessageWords = [0; 5];
    let context: ContextWords = [0, number, *run];
    let word = run::watched(io, *run, INIT, || {
        enter::enter(row.init, &message, &context, effects)
    });
    let left = enter::left(&mut io.bus, word);
    effects.end_init();
    let installs = matches!(left, Left::Returned(_))
        && are_entries(effects, &row)
        && call::are_entries(&mut io.bus, number, &row.entries);
    if installs {
        report_handlers(&mut io.bus, number, effects);
        *domain = Domain {
            state: 0,
            watchdog: row.watchdog,
            cut: 0,
            handlers: effects.handlers,
        };
    } else {
        call::forget(&mut io.bus, number);
    }
    renew_watch(runtime, io);
    if installs {
        Ok(())
    } else {
        Err(Outcome::InitCut)
    }
}

/// Says which handlers a domain has.
fn report_handlers<B: Bus>(bus: &mut B, domain: u32, effects: &Effects) {
    let mut installed = 0;
    for (number, one) in (0..).zip(&effects.handlers) {
        installed |= u32::from(one.entry != 0) << number;
    }
    let at = SPINE_BLOCK + domain_count(domain, DomainCount::Handlers);
    bus.store(at, installed);
}

/// Whether what `init` has installed are functions that the linker knows as entries.
fn are_entries(effects: &Effects, row: &Row) -> bool {
    let mut handlers = effects.handlers.iter();
    handlers.all(|one| *one == Installed::NONE || row.entries.contains(&one.entry))
}

fn unload<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, number: u32) -> Result<(), Outcome> {
    let domain = runtime.domains.get(number as usize);
    if domain.ok_or(Outcome::NoDomain)?.watchdog == 0 {
        return Err(Outcome::WrongState);
    }
    runtime.withdraw(io, number);
    if !runtime.is_withdrawn(io, number) {
        return Err(Outcome::Busy);
    }
    if let Some(domain) = runtime.domains.get_mut(number as usize) {
        *domain = Domain::NONE;
    }
    runtime.pool.release_all(&mut io.bus, number);
    runtime.guards.forget(&mut io.bus, number);
    call::forget(&mut io.bus, number);
    runtime.outgoing.forget(&mut io.bus, number);
    renew_watch(runtime, io);
    Ok(())
}

fn resume<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>, number: u32) -> Result<(), Outcome> {
    let domain = runtime.domains.get_mut(number as usize);
    let domain = domain.ok_or(Outcome::NoDomain)?;
    if domain.watchdog == 0 {
        return Err(Outcome::WrongState);
    }
    domain.state = 0;
    domain.cut = 0;
    let at = SPINE_BLOCK + domain_count(number, DomainCount::Suspended);
    io.bus.store(at, 0);
    Ok(())
}

fn set_guards<B: Dispatch>(runtime: &mut Runtime, io: &mut IoA<B>) -> Result<(), Outcome> {
    let count = io.bus.load(word(BlockWord::Guards));
    if count > GUARDS {
        return Err(Outcome::TooManyGuards);
    }
    let mut guards = [Guard::NONE; GUARDS as usize];
    for (number, place) in (0..count).zip(&mut guards) {
        let guard = Guard::load(&mut io.bus, number);
        let domain = runtime.domains.get(guard.domain as usize);
        let domain = domain.filter(|domain| domain.watchdog != 0);
        let handler = domain.and_then(|domain| domain.handlers.get(guard.handler as usize));
        let is_there = handler.is_some_and(|handler| handler.entry != 0);
        // A message names its handler itself.
        if !is_there && (domain.is_none() || guard.handler != GUARDS_MESSAGES) {
            return Err(Outcome::NoHandler);
        }
        *place = guard;
    }
    let guards = guards.get(..count as usize).unwrap_or_default();
    runtime.guards.set(&mut io.bus, guards);
    for domain in 0..DOMAINS {
        let has_lease = transfer::has_lease(&mut io.bus, domain);
        runtime.guards.mark(&mut io.bus, domain, has_lease);
    }
    Ok(())
}

/// CPU B looks as often as all domains want, and as one more wants that is being loaded, and has
/// patience as long as the largest floor.
fn watch_at_least<B: Dispatch>(io: &mut IoA<B>, watchdog: u32, floor: u32) {
    let now = SPINE_WATCH.get(&mut io.bus);
    let (period, longest) = (now & PERIOD_MASK, (now >> FLOOR_SHIFT).max(floor));
    let shortest = if period == 0 {
        watchdog
    } else {
        period.min(watchdog)
    };
    SPINE_WATCH.set(&io.me, &mut io.bus, longest << FLOOR_SHIFT | shortest);
    call_b(io);
}

fn renew_watch<B: Dispatch>(runtime: &Runtime, io: &mut IoA<B>) {
    SPINE_WATCH.set(&io.me, &mut io.bus, 0);
    for (number, domain) in (0..).zip(&runtime.domains) {
        if domain.watchdog != 0 {
            let at = SPINE_BLOCK + domain_word(number, DomainWord::Floor);
            let floor = io.bus.load(at).min(FLOOR_MOST);
            watch_at_least(io, domain.watchdog, floor);
        }
    }
    call_b(io);
}
