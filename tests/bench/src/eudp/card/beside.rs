//! Endpoint and driver, both without a pause: how many frames of each pass.

use super::{Bench, HERE, LENT, PORT};
use crate::eudp::beside::{Passed, Who};
use anyhow::{Result, ensure};
use eudp::{Completion, Status};
use host_driver::nic::EndpointCard;
use std::io::IoSlice;
use std::ops::Range;
use tigon2_sim::workload::testbench::BSD;

/// Nanoseconds until the queues are as full as they get, and in which frames are counted then.
const BEFORE: u64 = 1_000_000;
const WINDOW: u64 = 4_000_000;
/// Datagrams that wait in the endpoint's queue.
const WAITING: u32 = 64;
/// Where a frame has the address that it comes from.
const SOURCE: Range<usize> = 26..30;
/// Of how many buffers that are lent again the card is told at a time.
const TOLD: u32 = LENT / 2;

impl Bench {
    /// Whoever sends has always something to send.
    ///
    /// # Errors
    /// If a datagram is not sent, or the card is gone.
    pub fn leaving(&mut self, who: Who, bytes: usize) -> Result<Passed> {
        self.nic.set_coalescing(BSD)?;
        let frame = self.frame(PORT + 1, bytes);
        let window = self.window();
        let (mut left, mut longest, mut run) = ([0; 2], [0; 2], (0, 0));
        let mut waiting = 0;
        while self.now() < window.end {
            while who.has_endpoint() && waiting < WAITING {
                self.post(bytes)?;
                waiting += 1;
            }
            if who.has_driver() {
                self.nic.service()?;
                while self.nic.queue(&[IoSlice::new(&frame)])? {}
                self.nic.submit()?;
            }
            while let Some(completion) = self.poll()? {
                let is_sent = matches!(
                    completion,
                    Completion::Sent {
                        status: Status::Done,
                        ..
                    }
                );
                ensure!(is_sent, "{completion:?}");
                waiting -= 1;
            }
            while let Some(frame) = self.machine.lock().take_frame() {
                if !window.contains(&frame.at) {
                    continue;
                }
                let kind = usize::from(frame.bytes[SOURCE] != HERE.octets());
                run = (kind, if run.0 == kind { run.1 + 1 } else { 1 });
                longest[kind] = run.1.max(longest[kind]);
                left[kind] += 1;
            }
            self.pass();
        }
        Ok(Passed {
            longest,
            ..Passed::new(left, left, WINDOW)
        })
    }

    /// Frames arrive as fast as the wire has them, in turn if they are for both.
    ///
    /// # Errors
    /// If a datagram arrives badly, or the card is gone.
    pub fn arriving(&mut self, who: Who, bytes: usize) -> Result<Passed> {
        self.nic.set_coalescing(BSD)?;
        for number in 0..LENT {
            self.lend(number)?;
        }
        self.settle()?;
        let window = self.window();
        let offered = self.offer(who, bytes, &window);
        let (mut taken, mut told) = ([0; 2], 0);
        while self.now() < window.end {
            let mut came = [0; 2];
            while let Some(completion) = self.poll()? {
                let Completion::Received { cookie, status, .. } = completion else {
                    anyhow::bail!("{completion:?}, though nothing was sent");
                };
                ensure!(status == Status::Done, "{completion:?}");
                came[0] += 1;
                let piece = self.buffer(cookie);
                let card = &mut EndpointCard(&mut self.nic);
                self.endpoint.lend(card, &[piece], cookie)?;
                told += 1;
                if told % TOLD == 0 {
                    self.endpoint.submit(card)?;
                }
            }
            self.nic.service()?;
            self.nic.receive(TOLD, |_| {
                came[1] += 1;
                Ok(())
            })?;
            if window.contains(&self.now()) {
                taken = [taken[0] + came[0], taken[1] + came[1]];
            }
            self.pass();
        }
        Ok(Passed::new(taken, offered, WINDOW))
    }

    /// Puts frames on the wire for all of the window and the time before it. Returns how many of each
    /// kind end within.
    fn offer(&self, who: Who, bytes: usize, window: &Range<u64>) -> [u64; 2] {
        let frames = [PORT, PORT + 1].map(|port| self.frame(port, bytes));
        let mut offered = [0; 2];
        let mut machine = self.machine.lock();
        let mut at = machine.now();
        while at < window.end {
            for kind in who.kinds() {
                at = machine.send_frame(at, frames[*kind].clone());
                offered[*kind] += u64::from(window.contains(&at));
            }
        }
        offered
    }

    fn window(&self) -> Range<u64> {
        let from = self.now() + BEFORE;
        from..from + WINDOW
    }
}
