//! The layout of the container, word by word.

use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a container begins with.
pub const MAGIC: [u8; 4] = *b"SPNE";
/// This layout.
pub const LAYOUT: u16 = 3;
/// Bytes of a build id.
pub const BUILD_ID_BYTES: usize = 16;

/// Most bytes of text: what a jump's field can hold is far more, what a card has is less.
pub const TEXT_MAX: u32 = 0x1_0000;
/// Most bytes of constants, and of data.
pub const DATA_MAX: u32 = 0x1_0000;
/// Most bytes of zeros: more than a card has for extensions.
pub const ZEROS_MAX: u32 = 0x5_0000;
/// Most functions, relocations, imports and exports.
pub const ENTRIES_MAX: u32 = 0x4000;
/// Most texts of the log.
pub const TEXTS_MAX: u32 = spine_text::TEXTS_MOST as u32;
/// Most bytes of names.
pub const NAMES_MAX: u32 = 0x8_0000;

/// The first bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 4],
    /// [`LAYOUT`].
    pub layout: U16,
    /// [`Grade`].
    pub grade: U16,
    /// Bytes of the text.
    pub text: U32,
    /// Bytes of the constants.
    pub constants: U32,
    /// Bytes of the region that have first values.
    pub data: U32,
    /// Bytes of the region behind those, which begin as zeros.
    pub zeros: U32,
    /// How many functions.
    pub functions: U32,
    /// How many relocations.
    pub relocations: U32,
    /// How many imports.
    pub imports: U32,
    /// How many exports.
    pub exports: U32,
    /// How many texts of the log.
    pub texts: U32,
    /// Bytes of names.
    pub names: U32,
    /// The function that is called first.
    pub init: U32,
    /// Bytes of the extension's own name, the first of the names.
    pub name: U32,
    /// Compiler and API that made it.
    pub build_id: [u8; BUILD_ID_BYTES],
}

/// A function: bytes of the text.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FunctionEntry {
    /// Where it begins.
    pub offset: U32,
    /// Its bytes.
    pub bytes: U32,
    /// Its name among the names.
    pub name: U32,
    /// Bytes of that.
    pub name_bytes: U32,
}

/// A place that depends on addresses.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RelocationEntry {
    /// [`Section`] in which it is.
    pub section: u8,
    /// [`RelocationKind`].
    pub kind: u8,
    /// What it refers to: a [`Section`], [`ZEROS`] or [`IMPORT`].
    pub target: u8,
    /// 0.
    pub reserved: u8,
    /// Where in the section.
    pub site: U32,
    /// Where in the target; of an import its number.
    pub addend: U32,
}

/// An interface that is wanted, or exported.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct InterfaceEntry {
    /// Its name among the names.
    pub name: U32,
    /// Bytes of that.
    pub name_bytes: U32,
    /// [Hash](crate::interface::hash) of name and signature.
    pub hash: U32,
}

/// A text of the log; they come by their numbers ([`spine_text::number`]), each of which is there
/// once.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TextEntry {
    /// It among the names.
    pub name: U32,
    /// Its bytes.
    pub name_bytes: U32,
}

/// The last bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Trailer {
    /// Ed25519 public key of the signer.
    pub signer: [u8; 32],
    /// Signature over all bytes in front of the trailer.
    pub signature: [u8; 64],
}

const _: () = {
    assert!(size_of::<Header>() == 72);
    assert!(size_of::<FunctionEntry>() == 16);
    assert!(size_of::<RelocationEntry>() == 12);
    assert!(size_of::<InterfaceEntry>() == 12);
    assert!(size_of::<TextEntry>() == 8);
    assert!(size_of::<Trailer>() == 96);
};

/// The target "the part of the region that begins as zeros".
pub const ZEROS: u8 = 3;
/// The target "an import".
pub const IMPORT: u8 = 4;

macro_rules! codes {
    ($( $(#[$doc:meta])* $vis:vis enum $name:ident: $type:ident {
        $( $(#[$variant_doc:meta])* $variant:ident = $value:literal, )+
    } )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($type)]
        $vis enum $name {
            $( $(#[$variant_doc])* $variant = $value, )+
        }

        impl $name {
            /// By its code.
            pub const fn from_code(code: $type) -> Option<$name> {
                match code {
                    $( $value => Some($name::$variant), )+
                    _ => None,
                }
            }
        }
    )+ };
}

codes! {
    /// Which walls an extension was built for.
    pub enum Grade: u16 {
        /// Safe Rust by the trusted compiler; instructions, jumps and stack are proven.
        Language = 1,
        /// The same, and every store is checked: not built yet.
        Sandbox = 2,
    }

    /// A part of the container that comes to the card.
    pub enum Section: u8 {
        /// Instructions.
        Text = 0,
        /// Read-only data.
        Constants = 1,
        /// Data with first values.
        Data = 2,
    }

    /// How an address is written into a place.
    pub enum RelocationKind: u8 {
        /// A word.
        Word = 0,
        /// The 26 bits of `j` and `jal`.
        Jump = 1,
        /// The upper half, for a lower half that is added with its sign.
        High = 2,
        /// The lower half.
        Low = 3,
    }
}

/// What a relocation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A place in a section.
    Section(Section, u32),
    /// A place in the part of the region that begins as zeros.
    Zeros(u32),
    /// An import.
    Import(u32),
}
