//! Type-safe casting: headers as values over a buffer's words.
//!
//! The paper's VIEW (section 3.3.1) gives data from outside a type of the language.
//! [`view!`](crate::view!) declares a header as it stands on the wire: big-endian fields by their
//! offsets. Reading a field is a load and a shift, and no check: [`Buffer::view`] has checked all of
//! them at once.
//!
//! The card's CPU loads words, and headers begin where Ethernet puts them: 14 bytes into the
//! frame, or 4 more with each tag. So each kind of header has a *phase*, its place modulo 4.
//!
//! ```
//! spine::view! {
//!     /// TCP's first words (RFC 9293, section 3.1).
//!     pub struct Tcp: 8 bytes at 2 {
//!         /// Source port.
//!         source: u16 at 0,
//!         /// Sequence number.
//!         sequence: u32 at 4,
//!     }
//! }
//! ```
//!
//! [`Buffer::view`]: crate::Buffer::view

/// A header over the words of a buffer; [`view!`](crate::view!) makes them.
pub trait View<'a>: Sized {
    /// Bytes of it.
    const BYTES: u32;
    /// Where such a header begins, modulo 4.
    const PHASE: u32;
    /// Words that hold it.
    const WORDS: usize = ((Self::PHASE + Self::BYTES) as usize).div_ceil(4);

    /// Over the first words of some; none if they are too few.
    fn of(words: &'a [u32]) -> Option<Self>;
}

/// Whether a field lies in a header of `whole` bytes.
#[doc(hidden)]
pub const fn inside(at: usize, bytes: usize, whole: usize) -> bool {
    at + bytes <= whole
}

/// The field of `bytes` bytes at `at`, counted from the start of the first word.
#[doc(hidden)]
#[inline(always)]
pub const fn field<const WORDS: usize>(words: &[u32; WORDS], at: usize, bytes: usize) -> u32 {
    let (index, inside) = (at / 4, at % 4);
    let mask = if bytes == 4 {
        u32::MAX
    } else {
        (1 << (8 * bytes)) - 1
    };
    let end = inside + bytes;
    let value = if end <= 4 {
        words[index] >> (8 * (4 - end))
    } else {
        words[index] << (8 * (end - 4)) | words[index + 1] >> (8 * (8 - end))
    };
    value & mask
}

/// Declares headers. The name, the bytes of the header and its phase; then each field with its
/// type (`u8`, `u16`, `u32`) and its offset.
#[macro_export]
macro_rules! view {
    ($(
        $(#[$doc:meta])*
        $vis:vis struct $name:ident: $bytes:literal bytes at $phase:literal {
            $( $(#[$field_doc:meta])* $field:ident: $type:ident at $at:literal, )*
        }
    )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name<'a>(&'a [u32; ($bytes + $phase as usize).div_ceil(4)]);

        impl<'a> $crate::view::View<'a> for $name<'a> {
            const BYTES: u32 = $bytes;
            const PHASE: u32 = $phase;

            #[inline(always)]
            fn of(words: &'a [u32]) -> Option<Self> {
                words.first_chunk().map($name)
            }
        }

        impl $name<'_> {
            $(
                $(#[$field_doc])*
                #[inline(always)]
                pub const fn $field(&self) -> $type {
                    const {
                        let inside = $crate::view::inside($at, size_of::<$type>(), $bytes);
                        assert!(inside, "a field behind the header");
                    }
                    $crate::view::field(self.0, $phase + $at, size_of::<$type>()) as $type
                }
            )*
        }
    )+ };
}
