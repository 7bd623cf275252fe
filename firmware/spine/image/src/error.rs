//! Why a container is refused.

use spine_text::TextError;
use thiserror::Error;

/// Why bytes are no container of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// It is shorter than what it has to hold.
    #[error("the container has {has} bytes, {needs} are needed for {what}")]
    Cut {
        /// For what.
        what: &'static str,
        /// Bytes that are there.
        has: usize,
        /// Bytes that are needed.
        needs: u64,
    },
    /// Something follows the last part.
    #[error("{0} bytes follow the container")]
    TooLong(usize),
    /// It does not begin as containers do.
    #[error("not a container of an extension")]
    Magic,
    /// A later or an earlier layout.
    #[error("the container has layout {0}, this reader knows {known}", known = crate::format::LAYOUT)]
    Layout(u16),
    /// A grade that nobody defined.
    #[error("the container has the unknown grade {0}")]
    Grade(u16),
    /// A part that is larger than any extension may be.
    #[error("{what}: {count}, at most {most} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u32,
        /// How many may be.
        most: u32,
    },
    /// A size that is no multiple of 4.
    #[error("{what}: {bytes} bytes are not a multiple of 4")]
    Unaligned {
        /// Of what.
        what: &'static str,
        /// Its bytes.
        bytes: u32,
    },
    /// A function that is not in the text, or that overlaps the one before it.
    #[error(
        "function {index}: {bytes:#x} bytes at {offset:#x} leave the text or overlap another function"
    )]
    Function {
        /// Which.
        index: usize,
        /// Where it begins.
        offset: u32,
        /// Its bytes.
        bytes: u32,
    },
    /// `init` is not one of the functions.
    #[error("init is function {0}, which does not exist")]
    Init(u32),
    /// A relocation of a kind, section or target that nobody defined.
    #[error("relocation {index}: {what} {value} is unknown")]
    RelocationCode {
        /// Which.
        index: usize,
        /// What of it.
        what: &'static str,
        /// Its value.
        value: u8,
    },
    /// A relocation that changes bytes outside of its section.
    #[error("relocation {index}: offset {site:#x} is outside its section")]
    RelocationSite {
        /// Which.
        index: usize,
        /// Where it would be.
        site: u32,
    },
    /// A relocation to a place outside of what it names.
    #[error("relocation {index}: {addend:#x} is outside its target")]
    RelocationTarget {
        /// Which.
        index: usize,
        /// The place.
        addend: u32,
    },
    /// A name that is not among the names, or is no text.
    #[error("{what} {index}: its name is outside the table of names")]
    Name {
        /// Of what.
        what: &'static str,
        /// Which.
        index: usize,
    },
    /// A text that is none of a log.
    #[error("text {index}: {error}")]
    Text {
        /// Which.
        index: usize,
        /// What is wrong with it.
        error: TextError,
    },
    /// A text whose number is not above that of the text before it.
    #[error("text {0}: its number is not above that of the text before it")]
    TextNumber(usize),
}
