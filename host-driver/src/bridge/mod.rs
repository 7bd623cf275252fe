//! The bridge: moves frames between a TAP device and the card.
//!
//! It uses one thread and two descriptors. Each turn moves a bounded batch both ways and notifies
//! the card once. While there is work the interrupt stays unacknowledged, so a busy card
//! interrupts rarely; the thread sleeps only when both sides are idle.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use crate::checksum;
use crate::nic::{DropReason, Nic, NicError, SendOptions};
use crate::tap::Tap;
use crate::transport::Transport;

pub mod endpoints;
pub mod queues;

/// Frames moved each way in a turn.
const BATCH: u32 = 64;
/// Longest sleep, and so the interval of checks of the stop flag.
const NAP: Duration = Duration::from_millis(50);
/// Longest sleep while the send ring is full, in case an interrupt is missed.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// Consecutive resets without a frame in between, after which the bridge gives up.
const MAX_RECOVERIES: u32 = 3;

/// Counts of a bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BridgeReport {
    /// Frames from the TAP device to the card.
    pub to_card: u64,
    /// Frames from the card to the TAP device.
    pub to_tap: u64,
    /// Times that the thread slept.
    pub naps: u64,
    /// Resets after a failure of the card.
    pub recoveries: u64,
}

/// Moves frames until `stop` is set. Resets a card that fails and continues.
///
/// # Errors
/// [`NicError`] if the card cannot be recovered, or the TAP device is gone.
pub fn run<T: Transport>(
    nic: &mut Nic<T>,
    tap: &Tap,
    stop: &AtomicBool,
) -> Result<BridgeReport, NicError> {
    run_in_vlan(nic, tap, None, stop)
}

/// Moves frames as [`run`] does, for one VLAN.
///
/// With `vlan` the TAP device is in that VLAN: the card inserts and strips the tags, and frames of
/// other VLANs are dropped. If the card computes checksums, it recomputes those of the kernel's
/// frames, and received frames with wrong checksums are dropped.
///
/// # Errors
/// [`NicError`] if the card cannot be recovered, or the TAP device is gone.
pub fn run_in_vlan<T: Transport>(
    nic: &mut Nic<T>,
    tap: &Tap,
    vlan: Option<u16>,
    stop: &AtomicBool,
) -> Result<BridgeReport, NicError> {
    run_attended(nic, tap, vlan, stop, |_| ())
}

/// Turns after which a busy bridge calls `attend`.
const TURNS: u32 = 32;

/// Moves frames as [`run_in_vlan`] does, and calls `attend` regularly: whenever there is nothing
/// to move, and every few turns.
///
/// # Errors
/// [`NicError`] if the card cannot be recovered, or the TAP device is gone.
pub fn run_attended<T: Transport>(
    nic: &mut Nic<T>,
    tap: &Tap,
    vlan: Option<u16>,
    stop: &AtomicBool,
    mut attend: impl FnMut(&mut Nic<T>),
) -> Result<BridgeReport, NicError> {
    let mut turns = 0;
    let mut scratch = Vec::new();
    let mut report = BridgeReport::default();
    let mut failures = 0;
    while !stop.load(Ordering::Relaxed) {
        match turn(nic, tap, vlan, &mut scratch, &mut report) {
            Ok(true) => {
                failures = 0;
                turns += 1;
                if turns == TURNS {
                    turns = 0;
                    attend(nic);
                }
            }
            Ok(false) => {
                report.naps += 1;
                attend(nic);
                nap(nic, tap)?;
            }
            Err(error) if error.is_recoverable() && failures < MAX_RECOVERIES => {
                failures += 1;
                report.recoveries += 1;
                nic.recover()?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// Moves one batch each way; true if anything was moved.
fn turn<T: Transport>(
    nic: &mut Nic<T>,
    tap: &Tap,
    vlan: Option<u16>,
    scratch: &mut Vec<u8>,
    report: &mut BridgeReport,
) -> Result<bool, NicError> {
    let (make, check) = (nic.config().send_checksums, nic.config().receive_checksums);
    let mut refused = 0;
    let mut taken = 0;
    let mut damaged = 0;
    let received = nic.receive(BATCH, |frame| {
        // The lower 12 bits of a tag are the VLAN's number.
        if vlan.is_some() && frame.vlan().map(|tag| tag & 0xFFF) != vlan {
            return Ok(());
        }
        if check.any() && !checksum::check(&frame.to_vec()?, frame.checksums(), check).is_good() {
            damaged += 1;
            return Ok(());
        }
        match frame.write_to(tap.as_fd(), &[]) {
            Ok(_) => taken += 1,
            Err(error) if has_no_room(&error) => refused += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    })?;
    report.to_tap += taken;
    nic.count_drops(DropReason::NoTaker, refused);
    nic.count_drops(DropReason::BadChecksum, damaged);

    let mut sent = 0;
    while sent < BATCH {
        let read = nic.queue_with_options(|memory, offset, room| {
            let bytes = match memory.read_from(tap.as_fd(), offset, room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                other => other?,
            };
            let mut options = SendOptions::default();
            if make.any() && bytes > 0 {
                scratch.resize(bytes, 0);
                memory
                    .read_bytes(offset, scratch)
                    .map_err(io::Error::other)?;
                options = checksum::prepare(scratch, make);
                memory
                    .write_bytes(offset, scratch)
                    .map_err(io::Error::other)?;
            }
            Ok((bytes, SendOptions { vlan, ..options }))
        });
        match read {
            Ok(Some(0) | None) => break,
            Ok(Some(_)) => sent += 1,
            Err(NicError::BadFrame { .. }) => nic.count_drops(DropReason::Unsendable, 1),
            Err(error) => return Err(error),
        }
    }
    report.to_card += u64::from(sent);
    nic.service()?;
    nic.submit()?;
    Ok(received > 0 || sent > 0)
}

/// Whether the TAP device is down or its queue is full: the frame is lost, as on any interface.
fn has_no_room(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::NOBUFS | Errno::IO | Errno::INVAL)
    )
}

/// Sleeps until either side has work. It acknowledges the interrupt before the next turn reads the
/// rings, so nothing is missed.
fn nap<T: Transport>(nic: &mut Nic<T>, tap: &Tap) -> Result<(), NicError> {
    let full = nic.send_room() == 0;
    let limit = if full { SHORT_NAP } else { NAP };
    let Some(interrupt) = nic.interrupt_fd() else {
        // An in-process engine runs during the wait.
        nic.wait(SHORT_NAP)?;
        return Ok(());
    };
    let timeout =
        Timespec::try_from(limit).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let wanted = if full {
        PollFlags::empty()
    } else {
        PollFlags::IN
    };
    let mut fds = [
        PollFd::from_borrowed_fd(interrupt, PollFlags::IN),
        PollFd::new(tap, wanted),
    ];
    let slept = match poll(&mut fds, Some(&timeout)) {
        Ok(ready) => ready == 0,
        Err(Errno::INTR) => false,
        Err(error) => return Err(io::Error::from(error).into()),
    };
    let [interrupt, tap] = &fds;
    if tap.revents().intersects(PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::other("the TAP device is gone").into());
    }
    if !interrupt.revents().is_empty() {
        nic.wait(Duration::ZERO)?;
    } else if slept {
        // Nothing arrived for a while: check that the card is still there.
        nic.look_alive()?;
    }
    Ok(())
}
