//! The messages between host and agent, and their framing.
//!
//! A frame is a length (32 bits, little-endian) followed by that many bytes of one message. The
//! host gives every request a number, and every answer carries the number of its request, so any
//! number of commands and files can be in progress at once. Long outputs and files are sent in
//! pieces of at most [`PIECE`] bytes, so none of them blocks the others.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// What both sides must agree on; the agent says it in [`Answer::Hello`].
pub const VERSION: u32 = 1;

/// The most bytes of an output or a file in one message.
pub const PIECE: usize = 32 * 1024;

/// The longest message that is believed; the rest of it is a piece and a header.
pub const LONGEST: usize = 2 * PIECE;

/// From the host to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Run `sh -c command`.
    Run {
        /// The number of this command.
        id: u32,
        /// What the shell gets.
        command: String,
    },
    /// End the command of this number, and all that it has started.
    Kill {
        /// The number of the command.
        id: u32,
    },
    /// Begin to write a file. Its bytes follow in [`Request::Piece`]s.
    Put {
        /// The number of this transfer.
        id: u32,
        /// Where the file is to be; folders are made as needed.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The next bytes of a file that is being written.
    Piece {
        /// The number of the transfer.
        id: u32,
        /// The bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The file is complete: put it in its place.
    End {
        /// The number of the transfer.
        id: u32,
    },
    /// Read a file.
    Get {
        /// The number of this transfer.
        id: u32,
        /// Where it is.
        path: String,
    },
}

/// From the agent to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The first word: the agent is there.
    Hello {
        /// Its [`VERSION`].
        version: u32,
    },
    /// A command's standard output, or a file's next bytes.
    Output {
        /// The number of the request.
        id: u32,
        /// The bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A command's standard error.
    Complaint {
        /// The number of the request.
        id: u32,
        /// The bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The request is done; nothing more comes for it.
    Done {
        /// The number of the request.
        id: u32,
        /// A command's exit status (128 and the signal's number if a signal
        /// ended it); 0 for a file.
        status: i32,
    },
    /// The request could not be carried out; nothing more comes for it.
    Failed {
        /// The number of the request.
        id: u32,
        /// Why, in a line.
        reason: String,
    },
}

impl Answer {
    /// The number of the request that it belongs to, if it belongs to one.
    pub fn id(&self) -> Option<u32> {
        match self {
            Answer::Hello { .. } => None,
            Answer::Output { id, .. }
            | Answer::Complaint { id, .. }
            | Answer::Done { id, .. }
            | Answer::Failed { id, .. } => Some(*id),
        }
    }
}

/// Why a message could not be had.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side has gone, or the way to it failed.
    #[error("the agent's channel: {0}")]
    Channel(#[from] io::Error),
    /// A length that no message has: the two are out of step.
    #[error("a message of {0} bytes on the agent's channel")]
    Length(usize),
    /// Bytes that are no message.
    #[error("not a message on the agent's channel: {0}")]
    Contents(#[from] postcard::Error),
}

/// Writes one message, whole, with one call.
///
/// # Errors
/// When the channel fails, or the message is longer than [`LONGEST`].
pub fn write(
    channel: &mut (impl Write + ?Sized),
    message: &impl Serialize,
) -> Result<(), WireError> {
    let body = postcard::to_stdvec(message)?;
    if body.len() > LONGEST {
        return Err(WireError::Length(body.len()));
    }
    let mut frame = Vec::with_capacity(body.len() + 4);
    frame.extend((body.len() as u32).to_le_bytes());
    frame.extend(body);
    channel.write_all(&frame)?;
    Ok(channel.flush()?)
}

/// Reads one message; waits for it.
///
/// # Errors
/// When the channel ends or fails, or what comes is no message.
pub fn read<M: DeserializeOwned>(channel: &mut impl Read) -> Result<M, WireError> {
    let mut length = [0; 4];
    channel.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(WireError::Length(length));
    }
    let mut body = vec![0; length];
    channel.read_exact(&mut body)?;
    Ok(postcard::from_bytes(&body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_one_behind_the_other() {
        let messages = [
            Request::Run {
                id: 1,
                command: "ping -c 1 10.77.0.2".into(),
            },
            Request::Piece {
                id: u32::MAX,
                bytes: vec![0xA5; PIECE],
            },
            Request::Kill { id: 1 },
        ];
        let mut channel = Vec::new();
        for message in &messages {
            write(&mut channel, message).expect("room");
        }
        let mut channel = channel.as_slice();
        for message in messages {
            assert_eq!(read::<Request>(&mut channel).expect("a message"), message);
        }
        assert!(matches!(
            read::<Request>(&mut channel),
            Err(WireError::Channel(_))
        ));
    }

    #[test]
    fn what_no_message_is_is_refused() {
        let huge = u32::MAX.to_le_bytes();
        assert!(matches!(
            read::<Answer>(&mut huge.as_slice()),
            Err(WireError::Length(_))
        ));
        let nonsense = [4, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        assert!(matches!(
            read::<Answer>(&mut nonsense.as_slice()),
            Err(WireError::Contents(_))
        ));
        let long = Request::Run {
            id: 0,
            command: "x".repeat(LONGEST),
        };
        assert!(matches!(
            write(&mut Vec::new(), &long),
            Err(WireError::Length(_))
        ));
    }
}
