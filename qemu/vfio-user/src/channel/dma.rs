//! DMA by messages to the client.

use super::Channel;
use crate::disconnect::Disconnect;
use crate::dma::error::DmaError;
use crate::dma::transfer::{Bytes, Wait};
use crate::frame::Message;
use crate::message::{self, Command, DmaAccess, HEADER_BYTES};
use crate::patience::LOOK;
use rustix::io::Errno;
use std::time::Instant;
use zerocopy::FromBytes;

/// Patiences that a client may use up with DMA that it does not answer at all.
const UNANSWERED: u32 = 3;

impl Channel {
    /// Reads or writes the client's memory by messages, and waits until it is done.
    pub(crate) fn dma(
        &self,
        wait: Wait<'_>,
        address: u64,
        mut bytes: Bytes<'_>,
    ) -> Result<(), DmaError> {
        let len = bytes.len();
        let mut done = 0;
        while done < len {
            let at = address + done as u64;
            let mut part = bytes.part(done, self.max_transfer);
            self.dma_message(wait, at, &mut part)?;
            done += part.len();
        }
        Ok(())
    }

    /// One DMA message and what its reply must say.
    fn dma_message(
        &self,
        wait: Wait<'_>,
        address: u64,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), DmaError> {
        let count = bytes.len() as u64;
        let access = DmaAccess { address, count };
        match bytes {
            Bytes::Read(out) => {
                let reply = self.transact(wait, Command::DmaRead, access, &[])?;
                match DmaAccess::read_from_prefix(&reply) {
                    Ok((echo, data)) if echo == access && data.len() == out.len() => {
                        out.copy_from_slice(data);
                        Ok(())
                    }
                    _ => Err(DmaError::Malformed(address)),
                }
            }
            Bytes::Write(data) => {
                let reply = self.transact(wait, Command::DmaWrite, access, data)?;
                // The count after the address is 4 bytes by the specification, 8 by its
                // implementations.
                match u64::read_from_prefix(&reply) {
                    Ok((echo, _)) if echo == address => Ok(()),
                    _ => Err(DmaError::Malformed(address)),
                }
            }
        }
    }

    /// One DMA message and its reply; gives the payload of the reply.
    fn transact(
        &self,
        wait: Wait<'_>,
        command: Command,
        access: DmaAccess,
        data: &[u8],
    ) -> Result<Vec<u8>, DmaError> {
        let address = access.address;
        let id = self.state().new_id();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + size_of::<DmaAccess>() + data.len());
        message::encode(
            &mut bytes,
            id,
            command,
            message::flags::COMMAND,
            &access,
            data,
        );
        let reply = match self.send_if(&bytes, wait.valid) {
            Ok(true) => self.reply(wait, id),
            Ok(false) => Ok(None),
            Err(why) => Err(why),
        };
        self.state().pending.remove(&id);
        let Some(reply) = reply.map_err(|_| DmaError::Disconnected)? else {
            return Err(if (wait.valid)() {
                DmaError::Timeout(address)
            } else if self.state().closed.is_some() {
                DmaError::Disconnected
            } else {
                DmaError::Cancelled(address)
            });
        };
        if reply.header.command != command as u16 {
            return Err(DmaError::Malformed(address));
        }
        if let Some(errno) = reply.header.failure() {
            return Err(DmaError::Refused {
                address,
                errno: errno_from(errno),
            });
        }
        Ok(reply.payload)
    }

    /// Waits for the reply to a DMA message. There is none if the access is no longer
    /// wanted, or if the whole of it has waited for too long.
    fn reply(&self, wait: Wait<'_>, id: u16) -> Result<Option<Message>, Disconnect> {
        let end = wait.since + self.patience.alone();
        loop {
            let until = end.min(Instant::now() + LOOK);
            let found = self.pump(Some(until), |state| {
                if let Some(reply) = state.pending.get_mut(&id).and_then(Option::take) {
                    return Some(Some(reply));
                }
                (!(wait.valid)()).then_some(None)
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
            let late = end <= Instant::now();
            if late || self.patience.is_contested_out(wait.since) {
                return self.unanswered(wait, late);
            }
        }
    }

    /// A client has let an access wait for too long: that is forgiven a few times while
    /// nobody else waits.
    fn unanswered(&self, wait: Wait<'_>, late: bool) -> Result<Option<Message>, Disconnect> {
        let mut state = self.state();
        state.unanswered += wait.since.elapsed();
        if late && state.unanswered < self.patience.alone() * UNANSWERED {
            return Ok(None);
        }
        drop(state);
        self.close(Disconnect::Unanswered);
        Err(Disconnect::Unanswered)
    }
}

/// An errno out of a message; 0 and nonsense become `EIO`.
pub(crate) fn errno_from(number: u32) -> Errno {
    match i32::try_from(number) {
        Ok(number @ 1..=4095) => Errno::from_raw_os_error(number),
        _ => Errno::IO,
    }
}
