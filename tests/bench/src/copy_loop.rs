//! Two TAP devices joined by a plain copy loop: the upper limit of this setup.
//!
//! One thread polls both devices and writes to each what it reads from the other: no card, no
//! rings, no firmware. Reports show the throughput through the card beside this one.

use anyhow::{Context, Result};
use host_driver::tap::Tap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::worker::Worker;

/// Frames taken from one device before the other has its turn.
const BATCH: usize = 64;

/// Joins two TAP devices until the worker is joined or dropped.
pub fn start(left: Tap, right: Tap) -> Worker<()> {
    Worker::start(move |stop| copy(&left, &right, stop))
}

fn copy(left: &Tap, right: &Tap, stop: &AtomicBool) -> Result<()> {
    let mut buffer = vec![0; 0x1_0000];
    // Short enough that the loop notices when it shall end.
    let nap = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    while !stop.load(Ordering::Relaxed) {
        let mut devices = [
            PollFd::new(left, PollFlags::IN),
            PollFd::new(right, PollFlags::IN),
        ];
        match poll(&mut devices, Some(&nap)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the TAP devices"),
        }
        let ready = devices.map(|device| device.revents().contains(PollFlags::IN));
        if ready[0] {
            forward(left, right, &mut buffer)?;
        }
        if ready[1] {
            forward(right, left, &mut buffer)?;
        }
    }
    Ok(())
}

fn forward(from: &Tap, to: &Tap, buffer: &mut [u8]) -> Result<()> {
    for _ in 0..BATCH {
        let length = match read(from.as_fd(), &mut *buffer) {
            Ok(length) => length,
            Err(Errno::AGAIN) => return Ok(()),
            // The device is down or being moved: there is nothing to copy yet.
            Err(Errno::IO | Errno::BADFD) => return Ok(()),
            Err(error) => return Err(error).context("cannot read a TAP device"),
        };
        match write(to.as_fd(), &buffer[..length]) {
            // A full queue drops, as a wire would.
            Ok(_) | Err(Errno::AGAIN | Errno::IO | Errno::BADFD) => {}
            Err(error) => return Err(error).context("cannot write a TAP device"),
        }
    }
    Ok(())
}
