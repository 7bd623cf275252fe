//! Access to NIC memory without the window, for a host that has leased it to a [peer](super::peer).
//!
//! The host writes a request into NIC memory that it sees directly and that nothing else uses
//! (hardware reference, section 2.1), then the mailbox [`super::MAILBOX`]. CPU A copies up to
//! [`WORDS`] words between two handlers, and answers.
//!
//! ```text
//! NIC 0x000, BAR 0x400  words of the request      AccessWord
//!     0x010      0x410  WORDS words of data: by the host if they are to be written
//!     0x080             MAC statistics
//! ```

use tigon2_chip::{memory, table};

table! {
    /// A word of the request; the value of a variant is its NIC address.
    pub enum AccessWord: u32 {
        /// By the host, last: a number in bits 31:16, [`WRITE`], the words in bits 7:0. The number is
        /// another one each time.
        Request = 0x00,
        /// By the host: the NIC address, a multiple of 4.
        Address = 0x04,
        /// The request that is done.
        Answer = 0x08,
        /// 1 if it was refused: words that are not in packet memory, or too many.
        Refused = 0x0C,
    }
}

/// The words are to be written; otherwise they are read.
pub const WRITE: u32 = 0x8000;
/// NIC address of the data.
pub const DATA: u32 = 0x10;
/// Words of a request, at most.
pub const WORDS: u32 = (memory::MAC_STATISTICS - DATA) / 4;

const _: () = assert!(AccessWord::Refused as u32 + 4 == DATA && WORDS <= 0xFF);
