//! The SPINE block in NIC memory: how extensions come to a running card, and go.
//!
//! "SPINE: an operating system for intelligent network adapters". The host's linker writes text
//! and data of an extension into the *arena*, by the window and while frames flow, describes the
//! domain in its row, and asks the firmware to load it. The firmware runs `init`, and what that
//! has installed counts from one moment on. Guards then say which frames go to which handler.
//!
//! ```text
//!   +0x000  words of the block                      BlockWord
//!   +0x080  domain 0, 64 bytes, by the host         DomainWord
//!   +0x0C0  domain 1 ...
//!   +0x180  guard 0, 48 bytes, by the host          GuardWord
//!   +0x1B0  guard 1 ...
//!   +0x300  arguments of the driver's message, 60 words, by the host
//!   +0x400  endpoint 0, 64 bytes, by the host       rings::EndpointWord
//!   +0x440  endpoint 1 ...
//!   +0x1400 what domain 0 did, 256 bytes            counts
//!   +0x1500 domain 1 ...
//! ```
//!
//! The host writes [`BlockWord::Argument`], then [`BlockWord::Command`], then the mailbox; the
//! firmware answers with [`BlockWord::Result`], then [`BlockWord::Answer`], which is the command
//! word. A command word is never used twice in a row: its upper half is a number.

pub mod access;
pub mod counts;
pub mod lease;
pub mod peer;
pub mod rings;

pub use counts::{DomainCount, HandlerCount, domain_count, handler_count, handler_time};

use tigon2_chip::table;

/// Layout of the block.
pub const LAYOUT: u32 = 6;
/// Domains that can be loaded.
pub const DOMAINS: u32 = 4;
/// Handlers of a domain.
pub const HANDLERS: u32 = 8;
/// Guards in all.
pub const GUARDS: u32 = 8;
/// Comparisons of a guard.
pub const TERMS: u32 = 3;
/// Counters of a domain that its handlers count in.
pub const COUNTERS: u32 = 8;
/// Procedures that extensions export, in all.
pub const EXPORTS: u32 = 8;
/// The mailbox that has the firmware look at the command.
pub const MAILBOX: u32 = 29;

/// Offset of the domains' rows.
pub const DOMAIN_ROWS: u32 = 0x80;
/// Offset of the guards.
pub const GUARD_ROWS: u32 = DOMAIN_ROWS + DOMAINS * ROW_BYTES;
/// Bytes of a domain's row.
pub const ROW_BYTES: u32 = 64;
/// Bytes of a guard.
pub const GUARD_BYTES: u32 = 48;
/// Offset of the arguments of the driver's message.
pub const MESSAGE: u32 = GUARD_ROWS + GUARDS * GUARD_BYTES;
/// Words of a message's arguments, at most (paper, section 3.2: 240 bytes).
pub const ARGUMENT_WORDS: u32 = 60;
/// Offset of the endpoints' rows.
pub const ENDPOINT_ROWS: u32 = MESSAGE + 256;
/// Offset of what the domains did.
pub const DOMAIN_COUNTS: u32 = ENDPOINT_ROWS + rings::ENDPOINTS * rings::ENDPOINT_BYTES;
/// Bytes of the block.
pub const BLOCK_BYTES: u32 = DOMAIN_COUNTS + DOMAINS * counts::BYTES;

table! {
    /// A word of the block; the value of a variant is its offset.
    pub enum BlockWord: u32 {
        /// [`LAYOUT`].
        Layout = 0x00,
        /// NIC address of the arena.
        Arena = 0x04,
        /// Bytes of it, with what the host had [reserved](crate::extension::Reserved).
        ArenaBytes = 0x08,
        /// Number of the mailbox.
        Mailbox = 0x0C,
        /// NIC address of the table of interfaces: the address of each function, by the numbers
        /// of `spine_image::interface`.
        Imports = 0x10,
        /// How many there are.
        ImportCount = 0x14,
        /// By the host: a number in bits 31:16, [`Command`] in bits 15:0.
        Command = 0x18,
        /// By the host: the domain that the command is about; of a message also the handler,
        /// in bits 15:8, and how many arguments there are, in bits 31:16.
        Argument = 0x1C,
        /// The command that is done.
        Answer = 0x20,
        /// [`Outcome`] of it.
        Result = 0x24,
        /// By the host: guards that count, from guard 0 on.
        Guards = 0x28,
        /// The ledger: frames that each domain keeps, a bit for each slot of the pool;
        /// [`DOMAINS`] words.
        Kept = 0x2C,
        /// Slots of the pool that nothing referred to when a domain last kept or released
        /// something, or was unloaded.
        FreeSlots = 0x3C,
        /// Address, in CPU A's scratch pad, of what is free for the text of extensions while a domain
        /// is loaded. It is not the host's to read or write: see [`DomainWord::TextCopy`].
        Pad = 0x40,
        /// Bytes of it, a multiple of 4.
        PadBytes = 0x44,
        /// NIC address of the [peer page](peer).
        PeerPage = 0x48,
        /// By the host, before it has a domain loaded: the domains whose procedures that one may
        /// call, a bit for each; [`DOMAINS`] words.
        MayCall = 0x4C,
    }
}

table! {
    /// What the firmware is asked for.
    pub enum Command: u32 {
        /// Run `init` of a domain that is not loaded, and install its handlers.
        Load = 1,
        /// Take a domain's handlers away. When it is answered, nothing of its text runs any more
        /// and nothing refers to its memory.
        Unload = 2,
        /// Take over the guards as they stand in the block.
        SetGuards = 3,
        /// Let a domain run again that was suspended.
        Resume = 4,
        /// Hand the message in the block to a handler.
        Message = 5,
        /// Open an endpoint by its row. Its rings are empty.
        Open = 6,
        /// Close an endpoint. When it is [`Done`](Outcome::Done), the card touches none of its
        /// memory any more.
        Close = 7,
        /// Nothing. When it is answered, the runs that had begun before are over: commands run
        /// between handlers.
        Synchronize = 8,
        /// Take over the words of the [peer page](peer).
        /// [`Outcome::Busy`] while transfers to the peer that there was are under way: the firmware
        /// sends it nothing more, and the host asks again.
        Peer = 16,
        /// Take over a domain's [lease] from the peer page. [`Outcome::Busy`] while transfers by the
        /// one before are under way: that one is withdrawn then, and the host asks again.
        Lease = 17,
    }
}

table! {
    /// What came of a command.
    pub enum Outcome: u32 {
        /// It is done.
        Done = 0,
        /// There is no such command.
        NoCommand = 1,
        /// There is no such domain.
        NoDomain = 2,
        /// The domain is loaded already, or it is not loaded.
        WrongState = 3,
        /// A row names text or entries that lie neither in the arena nor in the scratch pad's part for
        /// them.
        OutsideArena = 4,
        /// `init` ran out of its time, panicked or met a fault.
        InitCut = 5,
        /// A guard names a domain that is not loaded, or a handler that is not installed.
        NoHandler = 6,
        /// Guards are more than there is room for.
        TooManyGuards = 7,
        /// The handler's run was cut off, or its domain is suspended.
        Cut = 8,
        /// A message has more arguments than there are, or a lease more bytes.
        TooLong = 9,
        /// There is no such endpoint, or its row cannot be.
        NoEndpoint = 10,
        /// Transfers of an endpoint or a peer that is closed, or by a lease that is withdrawn, are
        /// under way: to be asked again.
        Busy = 11,
    }
}

table! {
    /// A word of a domain's row, by its offset.
    pub enum DomainWord: u32 {
        /// NIC address of the text, where it runs.
        Text = 0x00,
        /// NIC address behind it.
        TextEnd = 0x04,
        /// NIC address of `init`.
        Init = 0x08,
        /// Microseconds that a run may take, below 256.
        Watchdog = 0x0C,
        /// Runs in a row that are cut off before the domain is suspended; 0 for never.
        Patience = 0x10,
        /// How many entries follow.
        EntryCount = 0x14,
        /// NIC addresses of functions that `init` may install as handlers: [`HANDLERS`] words.
        Entries = 0x18,
        /// Microseconds that each run on the card has at least, those of `init` included, whatever
        /// the watchdogs say: for a card whose CPUs may be held up. 0 on the chip.
        Floor = 0x38,
        /// NIC address of the text's bytes in the arena, if the text runs in CPU A's scratch pad: the
        /// firmware copies them to [`Text`](DomainWord::Text). 0 if it runs where it lies.
        TextCopy = 0x3C,
    }
}

table! {
    /// What becomes of what a run had that was cut off: bits of a word, which a domain gives in
    /// `init`. Without them a frame is the host's, and a message is dropped and counted.
    pub enum WhenCut: u32 {
        /// A frame is dropped and counted.
        DropFrame = 1,
        /// A message goes to the process that drives the card, see
        /// [`CUT_MESSAGE`](rings::CUT_MESSAGE).
        PassMessage = 2,
    }
}

/// Where the terms of a guard begin, behind a word with the domain in bits 15:8 and the handler
/// in bits 7:0. A term is the offset of a word in the frame, a mask and a value; the frame is the
/// handler's if all terms hold. Terms with mask 0 always do.
pub const GUARD_TERMS: u32 = 4;
/// Bytes of a term.
pub const TERM_BYTES: u32 = 12;

/// Offset of a word of a domain's row.
pub const fn domain_word(domain: u32, word: DomainWord) -> u32 {
    DOMAIN_ROWS + (domain << 6) + word as u32
}

/// Offset of the word that says whose procedures a domain may call.
pub const fn may_call(domain: u32) -> u32 {
    BlockWord::MayCall as u32 + (domain << 2)
}

/// Offset of a word of an endpoint's row.
pub const fn endpoint_word(endpoint: u32, word: rings::EndpointWord) -> u32 {
    ENDPOINT_ROWS + (endpoint << rings::ENDPOINT_BYTES.trailing_zeros()) + word as u32
}

/// In a guard's handler: the frames that it wants are messages, see [`rings::ETHER_TYPE`].
pub const GUARDS_MESSAGES: u32 = 0x80;

/// In a guard's handler, by the firmware: its domain has a [lease].
pub const GUARDS_TRANSFERS: u32 = 0x40;

/// Offset of a guard.
pub const fn guard(number: u32) -> u32 {
    GUARD_ROWS + (number << 4) + (number << 5)
}

const _: () = {
    assert!(ROW_BYTES == 1 << 6 && GUARD_BYTES == (1 << 4) + (1 << 5));
    assert!(DomainWord::Entries as u32 + HANDLERS * 4 <= DomainWord::Floor as u32);
    assert!(DomainWord::TextCopy as u32 + 4 <= ROW_BYTES);
    assert!(GUARD_TERMS + TERMS * TERM_BYTES <= GUARD_BYTES);
    assert!(guard(GUARDS) == MESSAGE && MESSAGE + 4 * ARGUMENT_WORDS <= ENDPOINT_ROWS);
    assert!(HANDLERS <= GUARDS_TRANSFERS && GUARDS_TRANSFERS < GUARDS_MESSAGES);
    assert!(BlockWord::Kept as u32 + 4 * DOMAINS <= BlockWord::FreeSlots as u32);
    assert!(BlockWord::MayCall as u32 + 4 * DOMAINS <= DOMAIN_ROWS);
};
