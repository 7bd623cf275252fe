//! Datagrams that are one frame, with data in one piece: most of them.
//!
//! Their descriptor is judged in one go, and their headers are stored in another, from registers: in
//! between their data may be asked for.

use super::frame::{Frame, LAST, SUMMED, WANTS_SUM, WHOLE};
use super::headers::{HEADERS, UDP};
use super::job::{self, Next};
use super::rows::{Handle, Rows};
use crate::io::IoB;
use crate::path::send::SendPath;
use host_interface::eudp::{DescriptorWord, Status, handle_of, pieces_of, port_of};
use tigon2_hal::events::Dispatch;

/// Why a frame was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Its data is in the descriptor.
    Inline,
    /// The datagram is none of these.
    Job,
    /// The descriptor is refused.
    Refused(Status),
}

/// What a frame's headers are made from beside its address handle, once its descriptor is judged.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// The other's port.
    port: u32,
    is_summed: bool,
}

impl Frame {
    /// Takes a descriptor: finds the place of its frame, and its data; `whole` if it leaves when it
    /// is whole. Its headers may come while its data is fetched.
    ///
    /// # Errors
    /// [`Other`], and nothing has happened.
    #[inline(always)]
    pub fn take<B: Dispatch>(
        &mut self,
        next: &Next,
        whole: bool,
        rows: &mut Rows,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> Result<Headers, Other> {
        let bus = &mut io.bus;
        let from = next.descriptor;
        let to = bus.load(from + DescriptorWord::To as u32);
        let length = bus.load(from + DescriptorWord::Length as u32) & 0xFFFF;
        if pieces_of(to) != 1 || UDP + length > next.most() {
            return Err(if pieces_of(to) == 0 {
                Other::Inline
            } else {
                Other::Job
            });
        }
        let headers = Headers {
            port: port_of(to),
            is_summed: next.is_summed(),
        };
        if let Err(status) = rows.handle.take(bus, handle_of(to), next.endpoint) {
            return Err(Other::Refused(status));
        }
        let what = bus.load(from + DescriptorWord::Data as u32);
        let offset = bus.load(from + DescriptorWord::Data as u32 + 4);
        let region = (what >> 16, next.endpoint);
        let host = rows.region.of(bus, region, offset, length);
        let Some(host) = host.filter(|_| what & 0xFFFF == length) else {
            return Err(Other::Refused(Status::BadDescriptor));
        };
        self.host = host;
        self.flags = if headers.is_summed {
            LAST | WHOLE | SUMMED | WANTS_SUM
        } else {
            LAST | WHOLE
        };
        self.start = send.place_frame(HEADERS + length);
        self.length = HEADERS + length;
        self.headers = HEADERS;
        self.endpoint = next.endpoint;
        self.descriptor = from;
        self.number = next.number;
        self.settle(whole, io);
        Ok(headers)
    }

    /// Stores its headers.
    #[inline(always)]
    pub fn put_whole_headers<B: Dispatch>(
        &mut self,
        headers: &Headers,
        handle: &mut Handle,
        io: &mut IoB<B>,
    ) {
        let port = headers.port;
        let payload = self.length - (HEADERS - UDP);
        self.tag = handle.tag();
        if headers.is_summed {
            self.udp_sum = handle.udp_sum(port, payload);
        }
        handle.put_whole(&mut io.bus, self.start, port, payload);
        // The first two bytes of data behind the sum may be there already.
        io.bus.store_half(self.start + HEADERS - 2, 0);
    }
}

impl Next {
    /// Bytes of an IP packet's payload that a frame takes.
    #[inline(always)]
    const fn most(&self) -> u32 {
        self.shape & job::MOST
    }

    /// Whether the datagram has a UDP checksum.
    #[inline(always)]
    pub(super) const fn is_summed(&self) -> bool {
        self.shape & job::SUMMED != 0
    }
}
