//! The host's side of extensions: trusted compiler, verifier, dynamic linker, loader.
//!
//! SPINE paper, section 3.3. Three walls stand between an extension and the rest of the card, and
//! each module here is a part of one:
//!
//! ```text
//! sources ── gate ──► compile ──► object ──► container, signed
//!                                                │
//!  policy ──► domains, stack, time ──►  link  ◄──┘
//!                                        │ final words
//!                                      verify: instructions, jumps, stack
//!                                        │
//!                                      load ──► window, SPINE block, mailbox
//! ```
//!
//! | module | what | wall |
//! | --- | --- | --- |
//! | `gate` | what the sources may not contain | source |
//! | `compile` | from a crate to a container | source |
//! | `object_file` | from the compiler's object file to a container | |
//! | [`sign`] | who has made a container | object code |
//! | [`policy`] | who may link with what | object code |
//! | [`link`](mod@link) | addresses | object code |
//! | [`exports`] | what loaded extensions export to others | object code |
//! | [`verify`](mod@verify) | which instructions, which jumps, how much stack | object code |
//! | [`load`] | onto the running card | |
//! | [`access`] | its memory while the window is a peer's | |
//! | [`endpoint`] | an application's message rings | |
//! | [`guard`] | which frames go to which handler | |
//! | [`routes`] | tables for the extension `router` | |
//! | [`extensions`] | what is loaded, for who drives the card | |
//!
//! The third wall, the watchdog and the transaction, is the firmware's (`sides::spine`). Only
//! words go to the card: names, domains and relocations stay here. The feature `compile` has what
//! makes containers; without it the crate links and loads them.
#![forbid(unsafe_code)]

pub mod access;
#[cfg(feature = "compile")]
pub mod compile;
pub mod endpoint;
pub mod exports;
pub mod extensions;
#[cfg(feature = "compile")]
pub mod gate;
pub mod guard;
pub mod link;
pub mod load;
#[cfg(feature = "compile")]
pub mod object_file;
pub mod policy;
pub mod routes;
pub mod sign;
pub mod verify;
pub mod video;

pub use link::{Linked, link};
pub use verify::{Proof, verify};
