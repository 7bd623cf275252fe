//! The card under a TAP device: the kernel's frames go out of it and its frames in.
//!
//! One thread, two descriptors. Each turn moves a bounded batch both ways and tells
//! the card once; while there is work the interrupt stays unacknowledged, so a busy
//! card interrupts rarely, and only when both sides are idle the thread sleeps.

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

/// Frames moved each way in a turn.
const BATCH: u32 = 64;
/// Longest sleep; the stop flag is looked at this often.
const NAP: Duration = Duration::from_millis(50);
/// Longest sleep while the send ring is full, should an interrupt be missed.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// Resets in a row, without a frame in between, after which the card is given up.
const MAX_RECOVERIES: u32 = 3;

/// What a bridge has moved.
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

/// Moves frames until `stop` is set. A card that fails is reset and goes on.
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

/// Moves frames as [`run`] does, of one VLAN.
///
/// With `vlan` the TAP device is in that VLAN: the card inserts and strips the tags, and
/// other frames are left out. If the card makes checksums it makes those of the
/// kernel's frames anew, and frames that its sums say are damaged are dropped.
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

/// Turns after which a busy bridge attends to its visitors.
const TURNS: u32 = 32;

/// Moves frames as [`run_in_vlan`] does, and calls `attend` now and then: whenever there
/// is nothing to move, and every few turns.
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

/// One batch each way; true if anything was moved.
fn turn<T: Transport>(
    nic: &mut Nic<T>,
    tap: &Tap,
    vlan: Option<u16>,
    scratch: &mut Vec<u8>,
    report: &mut BridgeReport,
) -> Result<bool, NicError> {
    let (make, judge) = (nic.config().send_checksums, nic.config().receive_checksums);
    let mut refused = 0;
    let mut taken = 0;
    let mut damaged = 0;
    let received = nic.receive(BATCH, |frame| {
        // The lower 12 bits of a tag are the VLAN's number.
        if vlan.is_some() && frame.vlan().map(|tag| tag & 0xFFF) != vlan {
            return Ok(());
        }
        if judge.any() && !checksum::judge(&frame.to_vec()?, frame.checksums(), judge).is_good() {
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

/// The TAP device is down or its queue is full: the frame is lost, as on any
/// interface.
fn has_no_room(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::NOBUFS | Errno::IO | Errno::INVAL)
    )
}

/// Sleeps until either side has something. The interrupt is acknowledged before the
/// next turn looks at the rings, so nothing is missed.
fn nap<T: Transport>(nic: &mut Nic<T>, tap: &Tap) -> Result<(), NicError> {
    let full = nic.send_room() == 0;
    let limit = if full { SHORT_NAP } else { NAP };
    let Some(interrupt) = nic.interrupt_fd() else {
        // An engine in process runs while it is waited for.
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
        // Nothing for a while: is the other side still there?
        nic.look_alive()?;
    }
    Ok(())
}
