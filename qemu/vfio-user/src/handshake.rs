//! Reads a client's first message, which must be VERSION, and answers it.

use crate::dispatch;
use crate::dma::MAX_MAPS;
use crate::frame::Message;
use crate::message::{
    Command, DEFAULT_MAX_TRANSFER, MAX_MESSAGE_FDS, MIN_TRANSFER, VERSION_MAJOR, VERSION_MINOR,
};
use crate::version::{Capabilities, Version};
use rustix::io::Errno;

/// What comes of a first message.
#[derive(Debug)]
pub(crate) enum Greeting {
    /// A version is agreed on, as soon as this answer is sent.
    Agreed {
        answer: Vec<u8>,
        /// Largest data of a DMA message that the client takes, in bytes.
        max_transfer: usize,
    },
    /// The client hears this, and then no more.
    Refused(Vec<u8>),
}

/// Judges a first message.
pub(crate) fn greet(message: &Message) -> Greeting {
    let mut answer = Vec::new();
    match negotiate(message) {
        Ok((version, max_transfer)) => {
            dispatch::reply(&message.header, &version.to_payload(), &mut answer);
            Greeting::Agreed {
                answer,
                max_transfer,
            }
        }
        Err(errno) => {
            // A reply is no question.
            if !message.header.is_reply() {
                dispatch::refuse(&message.header, errno, &mut answer);
            }
            Greeting::Refused(answer)
        }
    }
}

fn negotiate(message: &Message) -> Result<(Version, usize), Errno> {
    let command = Command::from_number(message.header.command);
    if !message.header.is_command() || command != Some(Command::Version) {
        return Err(Errno::INVAL);
    }
    if message.fds_lost {
        return Err(Errno::TOOBIG);
    }
    let proposed = Version::parse(&message.payload).map_err(|_| Errno::INVAL)?;
    if proposed.major != VERSION_MAJOR {
        return Err(Errno::OPNOTSUPP);
    }
    let theirs = proposed.capabilities;
    let max_transfer = usize::try_from(theirs.max_transfer)
        .unwrap_or(usize::MAX)
        .min(DEFAULT_MAX_TRANSFER);
    if max_transfer < MIN_TRANSFER {
        return Err(Errno::INVAL);
    }
    let answer = Version {
        major: VERSION_MAJOR,
        minor: proposed.minor.min(VERSION_MINOR),
        capabilities: Capabilities {
            max_message_fds: MAX_MESSAGE_FDS as u64,
            max_transfer: DEFAULT_MAX_TRANSFER as u64,
            page_sizes: rustix::param::page_size() as u64,
            max_dma_maps: MAX_MAPS as u64,
            write_multiple: theirs.write_multiple,
        },
    };
    Ok((answer, max_transfer))
}
