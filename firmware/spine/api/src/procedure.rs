//! Procedures that an extension exports, and that others call.
//!
//! Paper, section 3.3.3: a domain is a set of interfaces, and extensions may export their own. The
//! one that exports says so, and which function it is:
//!
//! ```
//! use spine::{Called, Durable, export};
//!
//! spine::export!(DOUBLE = "numbers.double");
//!
//! fn double(_: &Called, number: u32, _: u32, _: u32) -> u32 {
//!     number << 1
//! }
//!
//! pub fn init(durable: &mut Durable) {
//!     export(durable, &DOUBLE, double);
//! }
//! ```
//!
//! The name begins with the extension's own. The one that imports is linked when that extension is
//! loaded, if its signer may link with the domain `numbers`, and that one stays as long as it does:
//!
//! ```
//! use spine::{Context, NotCalled};
//!
//! spine::import!(DOUBLE = "numbers.double");
//!
//! fn twice(context: &Context, number: u32) -> Result<u32, NotCalled> {
//!     context.call(&DOUBLE, [number, 0, 0])
//! }
//! ```
//!
//! A call goes through a gate of the runtime. A procedure has its own region, three words and the
//! clock. It asks for no effects, calls no other extension, and is cut off as a handler is: after its
//! own domain's watchdog, which is then to blame, or when its caller's time is over.

use crate::imports;
use core::marker::PhantomData;

/// A procedure that others call: three words to one.
pub type Procedure = for<'run> fn(&'run Called, u32, u32, u32) -> u32;

/// Who calls a procedure.
///
/// ```text
/// +0  domain
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Called {
    domain: u32,
    not_sync: PhantomData<*mut ()>,
}

impl Called {
    /// The number of the domain that calls.
    #[inline(always)]
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// Microseconds since the firmware started; wraps.
    #[inline(always)]
    pub fn now(&self) -> u32 {
        imports::now()
    }

    #[cfg(not(target_arch = "mips"))]
    pub(crate) fn of_model(domain: u32) -> Called {
        Called {
            domain,
            not_sync: PhantomData,
        }
    }
}

/// Why a procedure was not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCalled {
    /// Its domain is suspended, or the extension was not linked with it.
    Absent,
    /// The run has called 15 times.
    Full,
}

/// A procedure of another extension, see [`import!`](crate::import).
#[derive(Debug)]
pub struct Import(u32);

impl Import {
    /// For [`import!`](crate::import), which tells the linker of it.
    #[doc(hidden)]
    pub const fn of(name: &str) -> Import {
        Import(hash(name))
    }

    pub(crate) const fn number(&self) -> u32 {
        self.0
    }
}

/// A procedure for other extensions, see [`export!`](crate::export!).
#[derive(Debug)]
pub struct Export(u32);

impl Export {
    /// For [`export!`](crate::export!), which tells the linker of it.
    #[doc(hidden)]
    pub const fn of(name: &str) -> Export {
        Export(hash(name))
    }
}

/// Declares a procedure of another extension: `import!(FIND = "routes.find");`.
#[macro_export]
macro_rules! import {
    ($visible:vis $constant:ident = $name:literal) => {
        #[doc = $name]
        $visible const $constant: $crate::Import = $crate::Import::of($name);
    };
}

/// Declares a procedure for other extensions: `export!(FIND = "routes.find");`.
#[macro_export]
macro_rules! export {
    ($visible:vis $constant:ident = $name:literal) => {
        #[doc = $name]
        $visible const $constant: $crate::Export = $crate::Export::of($name);
    };
}

/// Exports a procedure from the end of `init` on. Returns `false` if there are as many as the card
/// has room for, 8 of all domains.
pub fn export(durable: &mut crate::Durable, export: &Export, procedure: Procedure) -> bool {
    let _ = durable;
    imports::export(export.0, procedure)
}

/// `spine_image::interface::procedure_hash`.
const fn hash(name: &str) -> u32 {
    let hash = fold(0x811C_9DC5, name.as_bytes());
    fold(hash, b"fn(u32, u32, u32) -> u32")
}

const fn fold(mut hash: u32, mut bytes: &[u8]) -> u32 {
    while let [first, rest @ ..] = bytes {
        hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
        bytes = rest;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_that_the_linker_gives_them() {
        for name in ["numbers.double", "a.b", "router.route"] {
            assert_eq!(hash(name), spine_image::interface::procedure_hash(name));
        }
    }
}

#[cfg(target_arch = "mips")]
const _: () = assert!(size_of::<Called>() == 4);
