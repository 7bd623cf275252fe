//! Datagrams with data in one piece: most of them, and most of these are one frame.
//!
//! Their descriptor is judged in one go, and their headers are stored in another, from registers: in
//! between their data may be asked for.

use super::frame::{Frame, LAST, SUMMED, WANTS_SUM, WHOLE};
use super::headers::{HEADERS, UDP};
use super::job::{Job, Next};
use super::rows::{Handle, Rows};
use crate::io::IoB;
use crate::path::send::SendPath;
use host_interface::eudp::{DATAGRAM_MAX, DescriptorWord, Status, handle_of, pieces_of, port_of};
use tigon2_hal::events::Dispatch;

/// Why a frame was not made.
#[derive(Clone, Copy, Debug)]
pub enum Other {
    /// Its data is in the descriptor.
    Inline,
    /// The datagram is several frames: it is the job, of which none is made yet.
    Split,
    /// It is none of these.
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
    /// [`Other`], and there is no frame.
    #[inline(always)]
    pub fn take<B: Dispatch>(
        &mut self,
        next: &Next,
        whole: bool,
        job: &mut Job,
        rows: &mut Rows,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> Result<Headers, Other> {
        let bus = &mut io.bus;
        let from = next.descriptor;
        let to = bus.load(from + DescriptorWord::To as u32);
        if pieces_of(to) != 1 {
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
        let host = rows.region.of(bus, region, offset, what & 0xFFFF);
        let length = bus.load(from + DescriptorWord::Length as u32) & 0xFFFF;
        let Some(host) = host.filter(|_| what & 0xFFFF == length) else {
            return Err(Other::Refused(Status::BadDescriptor));
        };
        if UDP + length > next.most() {
            if length > DATAGRAM_MAX {
                return Err(Other::Job);
            }
            job.take_piece(next, headers.port, host, length, &mut rows.handle);
            return Err(Other::Split);
        }
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
