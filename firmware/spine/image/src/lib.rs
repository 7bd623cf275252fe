//! The container of an extension, and the interfaces that extensions are linked with.
//!
//! SPINE paper, section 3.3.3: an extension comes as a *partially resolved object file*. Here
//! that is a container of our own, made by the trusted compiler and read by the linker, both on
//! the host. It has what they need and nothing else:
//!
//! ```text
//! Header          72 bytes: magic, grade, sizes, build id
//! text            instructions
//! constants       read-only data
//! data            the part of the region that has first values
//!                 (the part that begins as zeros is a number in the header)
//! Function  * n   which bytes of the text are one function
//! Relocation * n  what depends on where all this will lie
//! Import    * n   name and hash of an interface, of the runtime or of another extension
//! Export    * n   name and hash of a procedure for other extensions
//! Text      * n   a text of the log
//! names           text of names, and those texts
//! Trailer         96 bytes: who signed, and the signature over all in front of it
//! ```
//!
//! All numbers are big-endian. Every offset and length is judged when a container is
//! [read](Image::parse): what passes cannot make a reader go astray.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "write")]
extern crate alloc;

mod error;
pub mod format;
pub mod interface;
mod read;
#[cfg(feature = "write")]
mod write;

pub use error::ImageError;
pub use format::{Grade, RelocationKind, Section, Target};
pub use read::{Function, Image, Interface, Relocation};
#[cfg(feature = "write")]
pub use write::Builder;
