//! How long a datagram takes, and how many pass: by the endpoint, and by the driver beside it.

use super::{Bench, LENT, PATIENCE, PORT, microseconds};
use crate::rounds::median;
use anyhow::{Context, Result, ensure};
use eudp::{Completion, Status};
use host_driver::nic::EndpointCard;
use std::io::IoSlice;

/// Nanoseconds of a byte on the wire, and bytes around a frame on it: preamble, CRC.
const BYTE: u64 = 8;
const AROUND: usize = 8 + 4;
/// Nanoseconds by which each frame comes later than the one before: the card looks now and then.
const PHASE: u64 = 67;
/// Of how many buffers that are lent again the card is told at a time.
const TOLD: u32 = LENT / 2;

impl Bench {
    /// Microseconds from the call to the end on the wire, the median of `count` datagrams.
    ///
    /// # Errors
    /// If one does not leave.
    pub fn out(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..count {
            let begun = self.now();
            self.post(bytes)?;
            times.push(microseconds(self.sent()? - begun));
            self.settle()?;
        }
        Ok(median(&times))
    }

    /// The same through the driver, with headers that the host makes.
    ///
    /// # Errors
    /// If one does not leave.
    pub fn plain_out(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let frame = self.frame(PORT + 1, bytes);
        let mut times = Vec::new();
        for _ in 0..count {
            let begun = self.now();
            ensure!(self.nic.queue(&[IoSlice::new(&frame)])?, "no room");
            self.nic.submit()?;
            times.push(microseconds(self.sent()? - begun));
            self.nic.service()?;
            self.settle()?;
        }
        Ok(median(&times))
    }

    /// Mb/s of data in a stream, from the end of the first datagram to that of the last.
    ///
    /// # Errors
    /// If one does not leave.
    pub fn stream_out(&mut self, bytes: usize, mtu: usize, count: usize) -> Result<f64> {
        for _ in 0..count {
            self.post(bytes)?;
        }
        let frames = if bytes + 28 <= mtu {
            1
        } else {
            (bytes + 8).div_ceil((mtu - 20) & !7)
        };
        let mut ends = Vec::new();
        for number in 0..count * frames {
            let at = self.sent()?;
            if (number + 1) % frames == 0 {
                ends.push(at);
            }
        }
        self.settle()?;
        let time = ends
            .last()
            .zip(ends.first())
            .map(|(last, first)| last - first);
        let time = time.context("no datagrams")?.max(1);
        Ok((count - 1) as f64 * bytes as f64 * 8000.0 / time as f64)
    }

    /// Microseconds from a datagram's end on the wire to its completion, the median of `count`.
    ///
    /// # Errors
    /// If one does not arrive.
    pub fn arrival(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let frame = self.frame(PORT, bytes);
        let mut times = Vec::new();
        for number in 0..count {
            self.lend(number)?;
            self.settle()?;
            let ends = self.put_on_wire(&frame, number);
            self.arrived()?;
            times.push(microseconds(self.now().saturating_sub(ends)));
        }
        Ok(median(&times))
    }

    /// Sends the card a frame, [`PHASE`] later for each number. Returns when it ends on the wire.
    fn put_on_wire(&self, frame: &[u8], number: u32) -> u64 {
        let begins = self.now() + u64::from(number) * PHASE;
        self.machine.lock().send_frame(begins, frame.to_vec());
        begins + (frame.len() + AROUND) as u64 * BYTE
    }

    /// The same through the driver, which polls.
    ///
    /// # Errors
    /// If one does not arrive.
    pub fn plain_arrival(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let frame = self.frame(PORT + 1, bytes);
        let mut times = Vec::new();
        for number in 0..count {
            self.settle()?;
            let patient = self.now() + PATIENCE;
            let ends = self.put_on_wire(&frame, number);
            while self.nic.receive_batch(1)?.is_empty() {
                ensure!(self.now() < patient, "a frame does not arrive");
                self.pass();
                self.nic.service()?;
            }
            times.push(microseconds(self.now().saturating_sub(ends)));
        }
        Ok(median(&times))
    }

    /// Mb/s of data of datagrams that arrive one behind the other, and the share of them that is
    /// completed.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn stream_in(&mut self, bytes: usize, mtu: usize, count: u32) -> Result<(f64, f64)> {
        for number in 0..LENT {
            self.lend(number)?;
        }
        self.settle()?;
        let mut at = self.now();
        for number in 0..count {
            for frame in self.frames(bytes, mtu, number as u16) {
                at = self.machine.lock().send_frame(at, frame);
            }
        }
        let (mut first, mut last, mut taken) = (0, 0, 0u32);
        let mut quiet = 0;
        // The longest datagram takes 0.6 ms.
        while quiet < 5000 {
            quiet += 1;
            while let Some(completion) = self.poll()? {
                if let Completion::Received { cookie, status, .. } = completion {
                    quiet = 0;
                    if status == Status::Done {
                        taken += 1;
                        last = self.now();
                        if taken == 1 {
                            first = last;
                        }
                    }
                    let piece = self.buffer(cookie);
                    let card = &mut EndpointCard(&mut self.nic);
                    self.endpoint.lend(card, &[piece], cookie)?;
                    if taken.is_multiple_of(TOLD) {
                        self.endpoint.submit(card)?;
                    }
                }
            }
            self.pass();
        }
        let time = last.saturating_sub(first).max(1);
        let rate = f64::from(taken.saturating_sub(1)) * bytes as f64 * 8000.0 / time as f64;
        Ok((rate, f64::from(taken) / f64::from(count)))
    }
}
