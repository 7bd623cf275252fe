//! The card under a TAP device with several queues, a network thread for each.
//!
//! A thread writes what its receive queue brings to its own queue of the TAP device. The
//! kernel remembers which queue brought a flow and hands the flow's answers to the same one, so
//! both directions stay on one thread and one CPU.
//!
//! ```text
//!   card: queue 0 ──► thread 0, CPU 0 ◄──► TAP queue 0 ─┐
//!                                                        ├─ the kernel's stack
//!         queue 1 ──► thread 1, CPU 1 ◄──► TAP queue 1 ─┘
//!         send ring ◄── in turns
//! ```

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use serde::Serialize;
use thiserror::Error;

use super::{BridgeReport, MAX_RECOVERIES, has_no_room};
use crate::checksum;
use crate::knet::{
    self, Death, KnetError, Progress, QueueUser, SendCosts, SharedSend, ThreadReport, Work,
};
use crate::nic::{
    ChecksumOffload, Config, Control, DropReason, JUMBO_SLOT_BYTES, Nic, NicError, QueueSettings,
    ReceivedFrame, SendOptions,
};
use crate::tap::Tap;
use crate::transport::Transport;

/// Frames that a thread takes from its TAP queue at a time.
const BATCH: usize = 32;

/// Why a bridge with queues ended or did not begin.
#[derive(Debug, Error)]
pub enum BridgeError {
    /// The threads.
    #[error(transparent)]
    Knet(#[from] KnetError),
    /// The card, or the last thread.
    #[error(transparent)]
    Nic(#[from] NicError),
}

/// What a bridge with queues has moved.
#[derive(Debug, Clone, Default, Serialize)]
pub struct QueuesReport {
    /// All queues together.
    #[serde(flatten)]
    pub bridge: BridgeReport,
    /// Each thread.
    pub threads: Vec<ThreadReport>,
    /// What turns at the send ring have cost.
    pub send: SendCosts,
    /// Queues whose thread has ended early, and why.
    #[serde(serialize_with = "as_pairs")]
    pub deaths: Vec<Death>,
}

fn as_pairs<S: serde::Serializer>(deaths: &[Death], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(deaths.iter().map(|death| (death.queue, &death.reason)))
}

/// How a bridge with queues works.
#[derive(Debug, Clone)]
pub struct QueuesPlan {
    /// The card's queues.
    pub queues: QueueSettings,
    /// The threads.
    pub threads: knet::Settings,
    /// The VLAN that the TAP device is in.
    pub vlan: Option<u16>,
}

/// Opens queues on a card that runs and is not open, and moves frames between them and the
/// queues of the TAP device until `stop` is set; a TAP queue for each. A card that fails is
/// reset and goes on. A thread that fails leaves its queue, and the others go on; `attend` is
/// told of it, and called now and then as well.
///
/// # Errors
/// With the card if it is still there: [`BridgeError`].
pub fn run<T: Transport>(
    nic: Nic<T>,
    taps: &[Tap],
    plan: &QueuesPlan,
    stop: &AtomicBool,
    mut attend: impl FnMut(&mut Control<T>, Progress<'_>),
) -> Result<(Nic<T>, QueuesReport), BridgeError> {
    let cpus = plan.threads.cpus_of(plan.queues.queues.into())?;
    let config = *nic.config();
    let pipes = taps.iter().map(|tap| Pipe::new(tap, plan.vlan, &config));
    let mut pipes: Vec<Pipe<'_>> = pipes.collect();
    let mut report = QueuesReport::default();
    let mut failures = 0;
    let mut moved = 0;
    let mut nic = nic;
    loop {
        let opened = nic.open_queues(&plan.queues);
        let parts = opened.map_err(|refused| refused.error)?;
        let pace = plan.threads.pace;
        let served = knet::serve(parts, &mut pipes, &cpus, pace, stop, &mut attend);
        let joined = Nic::join_queues(served.parts);
        nic = joined.map_err(|_| NicError::NoQueues)?;
        for pipe in &mut pipes {
            let (to_tap, to_card) = pipe.take_counts(&nic);
            report.bridge.to_tap += to_tap;
            report.bridge.to_card += to_card;
        }
        report.add(&served.threads, served.send, served.deaths);
        let all = report.bridge.to_tap + report.bridge.to_card;
        failures = if all > moved { 0 } else { failures };
        moved = all;
        match served.error {
            Some(error) if error.is_recoverable() && failures < MAX_RECOVERIES => {
                failures += 1;
                report.bridge.recoveries += 1;
                nic.recover()?;
            }
            Some(error) => return Err(error.into()),
            None => return Ok((nic, report)),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok((nic, report));
        }
    }
}

impl QueuesReport {
    fn add(&mut self, threads: &[ThreadReport], send: SendCosts, deaths: Vec<Death>) {
        for thread in threads {
            self.bridge.naps += thread.naps;
            let same = |known: &&mut ThreadReport| known.queue == thread.queue;
            match self.threads.iter_mut().find(same) {
                Some(known) => {
                    known.frames += thread.frames;
                    known.polls += thread.polls;
                    known.empty_polls += thread.empty_polls;
                    known.naps += thread.naps;
                }
                None => self.threads.push(*thread),
            }
        }
        self.send = self.send.plus(send);
        self.deaths.extend(deaths);
    }
}

/// Between a receive queue and a queue of the TAP device.
struct Pipe<'a> {
    tap: &'a Tap,
    vlan: Option<u16>,
    make: ChecksumOffload,
    check: ChecksumOffload,
    /// Frames of the kernel's that wait for their turn at the send ring.
    batch: Vec<Waiting>,
    /// The first of them.
    first: usize,
    /// How many there are behind it.
    waiting: usize,
    to_tap: u64,
    to_card: u64,
    /// Frames that the TAP device did not take, and that were damaged.
    refused: u64,
    damaged: u64,
    unsendable: u64,
}

/// A frame of the kernel's.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    length: usize,
    options: SendOptions,
}

impl<'a> Pipe<'a> {
    fn new(tap: &'a Tap, vlan: Option<u16>, config: &Config) -> Self {
        let room = usize::from(config.mtu) + 64;
        let waiting = || Waiting {
            bytes: vec![0; room.min(JUMBO_SLOT_BYTES)],
            ..Waiting::default()
        };
        Self {
            tap,
            vlan,
            make: config.send_checksums,
            check: config.receive_checksums,
            batch: (0..BATCH).map(|_| waiting()).collect(),
            first: 0,
            waiting: 0,
            to_tap: 0,
            to_card: 0,
            refused: 0,
            damaged: 0,
            unsendable: 0,
        }
    }

    /// Frames to the TAP device and to the card since the last call; drops are counted.
    fn take_counts<T: Transport>(&mut self, nic: &Nic<T>) -> (u64, u64) {
        self.report_drops(|reason, frames| nic.count_drops(reason, frames));
        let take = std::mem::take::<u64>;
        (take(&mut self.to_tap), take(&mut self.to_card))
    }

    /// Frames that were dropped since the last call, by reason.
    fn report_drops(&mut self, count: impl Fn(DropReason, u64)) {
        for (reason, frames) in [
            (DropReason::NoTaker, &mut self.refused),
            (DropReason::BadChecksum, &mut self.damaged),
            (DropReason::Unsendable, &mut self.unsendable),
        ] {
            count(reason, std::mem::take(frames));
        }
    }

    /// Takes what the kernel has sent, without a turn at the send ring.
    fn read(&mut self) -> io::Result<()> {
        (self.first, self.waiting) = (0, 0);
        for place in &mut self.batch {
            let length = match rustix::io::read(self.tap.as_fd(), &mut place.bytes[..]) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(error) => return Err(error.into()),
            };
            place.length = length;
            place.options = SendOptions::default();
            if self.make.any()
                && let Some(frame) = place.bytes.get_mut(..length)
            {
                place.options = checksum::prepare(frame, self.make);
            }
            place.options.vlan = self.vlan;
            self.waiting += 1;
        }
        Ok(())
    }
}

impl QueueUser for Pipe<'_> {
    fn frame(&mut self, frame: ReceivedFrame<'_>) -> Result<(), NicError> {
        // The lower 12 bits of a tag are the VLAN's number.
        if self.vlan.is_some() && frame.vlan().map(|tag| tag & 0xFFF) != self.vlan {
            return Ok(());
        }
        if self.check.any()
            && !checksum::check(&frame.to_vec()?, frame.checksums(), self.check).is_good()
        {
            self.damaged += 1;
            return Ok(());
        }
        match frame.write_to(self.tap.as_fd(), &[]) {
            Ok(_) => self.to_tap += 1,
            Err(error) if has_no_room(&error) => self.refused += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn work(&mut self, send: &SharedSend) -> Result<Work, NicError> {
        if self.waiting == 0 {
            self.read()?;
        }
        let drops = self.refused + self.damaged > 0;
        if self.waiting == 0 && !drops {
            return Ok(Work::None);
        }
        let mut turn = send.turn();
        if drops {
            self.report_drops(|reason, frames| turn.count_drops(reason, frames));
        }
        if self.waiting == 0 {
            return Ok(Work::None);
        }
        turn.reclaim()?;
        let mut done = 0;
        while self.waiting > 0 {
            let Some(frame) = self.batch.get(self.first) else {
                break;
            };
            let bytes = frame.bytes.get(..frame.length).unwrap_or_default();
            match turn.queue(&[IoSlice::new(bytes)], frame.options) {
                Ok(true) => self.to_card += 1,
                Ok(false) => break,
                Err(NicError::BadFrame { .. }) => self.unsendable += 1,
                Err(error) => return Err(error),
            }
            done += 1;
            self.first += 1;
            self.waiting -= 1;
        }
        turn.submit()?;
        Ok(if done > 0 {
            Work::Done(done)
        } else {
            Work::NoRoom
        })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }
}
