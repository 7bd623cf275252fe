//! What an extension of a running NIC may name.
//!
//! "SPINE: an operating system for intelligent network adapters" (Fiuczynski, Martin, Bershad,
//! Culler): applications put code of their own on the card, in a safe language, while traffic
//! flows. Here that language is Rust without `unsafe`, and this crate is all that it has:
//!
//! ```text
//! init(&mut Durable)                          once, when the extension is loaded
//!    add_handler(durable, handler, number)
//!
//! handler(Ephemeral, &Message, &Context) -> Verdict      for each message or frame
//!    reads      message.buffer().view::<Ipv4>(14)
//!    keeps      Word, Words: statics, the domain's memory region
//!    asks for   context.patch(..), context.transmit(): effects
//! ```
//!
//! A handler may be cut off at any instruction (paper, section 3.3.2). What it asks for is
//! carried out only when it returns, so a handler that was cut off has done nothing but to its
//! own region. Messages and buffers are lent for the time of the run: they cannot be kept,
//! copied as references or turned into addresses.
//!
//! | module | what | paper |
//! | --- | --- | --- |
//! | [`ephemeral`] | which procedures may be cut off, as types | 3.3.2 |
//! | [`message`] | messages and the buffers that they refer to | 3.2, 3.4 |
//! | [`context`] | who runs, and the effects that it asks for | 3.2 |
//! | [`cut`] | what becomes of what a run had that was cut off | 3.3.2 |
//! | [`endpoint`] | where messages come from and go to | 3.2 |
//! | [`mod@log`] | lines for a person | |
//! | [`procedure`] | what an extension exports to others, and imports | 3.3.3 |
//! | [`mod@view`] | headers in a buffer: type-safe casting | 3.3.1 |
//! | [`headers`] | Ethernet, VLAN, ARP, IPv4, ICMP, UDP | |
//! | [`region`] | the memory region of a domain | 3.4 |
//! | `model` | the runtime for tests on the developer's computer | |
//!
//! `unsafe` is in `imports` alone: calls of the runtime, and the slices that the runtime's
//! pointers stand for.
#![no_std]
#![deny(unsafe_code)]

#[cfg(not(target_arch = "mips"))]
extern crate std;

pub mod context;
pub mod cut;
pub mod endpoint;
pub mod ephemeral;
pub mod headers;
mod imports;
pub mod log;
pub mod message;
#[cfg(not(target_arch = "mips"))]
pub mod model;
pub mod procedure;
pub mod region;
pub mod view;

pub use context::{Context, Full, Kept, KeptNumber};
pub use cut::{WhenCut, when_cut};
pub use endpoint::{Callers, Endpoint, PeerHandler, WireAddress, accept};
pub use ephemeral::{Argument, Durable, Ephemeral, HandlerNumber, HandlerProc, Lock, add_handler};
pub use message::{Buffer, Message, Verdict};
pub use procedure::{Called, Export, Import, NotCalled, Procedure, export};
pub use region::{Table, Word, Words, table_words};

/// For the wrapper that the trusted compiler puts round an extension; nothing of it is of use
/// to an extension.
#[doc(hidden)]
#[cfg(target_arch = "mips")]
pub mod wrapper {
    pub use crate::imports::{begin, panicked};
}
