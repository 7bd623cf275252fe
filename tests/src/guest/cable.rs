//! The cable between a card and a Linux peer, with an observer.
//!
//! ```text
//!   card, MAC ── datagram socket ══ Cable ══ TAP ── Linux in a namespace
//! ```
//!
//! A thread carries every frame in both directions, loses none of its own accord, counts them and,
//! on request, keeps their bytes. The story may put additional frames on the cable, cut it, and
//! delay the card's frames.
//!
//! VLANs have separate TAP devices, since not every kernel supports VLAN devices: the cable's
//! thread inserts and removes the tag, like a switch's port.

use super::counts::Counts;
use super::frame::{Sight, Way, ether_type, tag, untag};
use anyhow::{Context, Result};
use host_driver::tap::Tap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use testbed::worker::Worker;

/// Longest frame that is carried: a jumbo frame with a VLAN tag, and more, so
/// that one that is too long is seen at its length.
const LONGEST: usize = 0x4000;
/// Frames taken from one side before the other has its turn.
const BATCH: usize = 32;
/// How often an idle cable looks for what the story wants.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Default)]
struct State {
    counts: Counts,
    record: Option<Vec<Sight>>,
    cut: bool,
    /// The card's frames are not taken before this time.
    stalled: Option<Instant>,
    /// Least time between two frames taken from the card.
    pace: Option<Duration>,
    /// Frames of the story's, on their way to the card.
    injected: VecDeque<Vec<u8>>,
    /// A device that joins the others, or all of a VLAN that leave.
    change: VecDeque<Change>,
}

/// What the story does to the peer's devices.
enum Change {
    Join(u16, Tap),
    Leave(u16),
}

/// The cable; dropping it takes it away.
pub struct Cable {
    state: Arc<Mutex<State>>,
    worker: Worker<()>,
}

impl Cable {
    /// Joins a card, whose socket is `remote` and which sends to `local`, to a
    /// TAP device.
    ///
    /// # Errors
    /// When the sockets are not those of a running card.
    pub fn join(local: &Path, remote: &Path, tap: Tap) -> Result<Cable> {
        let socket = UnixDatagram::bind(local)
            .with_context(|| format!("cannot make {}", local.display()))?;
        socket.set_nonblocking(true)?;
        // Connected, so that poll tells when there is room at the other end.
        socket
            .connect(remote)
            .with_context(|| format!("no card at {}", remote.display()))?;
        let state = Arc::new(Mutex::new(State::default()));
        let seen = state.clone();
        let worker = Worker::start(move |stop| {
            Carrier {
                socket,
                ports: vec![Port { vlan: None, tap }],
                state: seen,
                buffer: vec![0; LONGEST],
                waiting: None,
                taken: Instant::now(),
            }
            .run(stop)
        });
        Ok(Cable { state, worker })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What has passed.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        self.state().counts = Counts::default();
    }

    /// Keeps every frame from now on.
    pub fn record(&self) {
        self.state().record = Some(Vec::new());
    }

    /// Ends the recording and gives it.
    pub fn recorded(&self) -> Vec<Sight> {
        self.state().record.take().unwrap_or_default()
    }

    /// Loses everything until [`Cable::mend`].
    pub fn cut(&self) {
        self.state().cut = true;
    }

    /// Ends a cut.
    pub fn mend(&self) {
        self.state().cut = false;
    }

    /// Takes nothing from the card for a while.
    pub fn stall(&self, time: Duration) {
        self.state().stalled = Some(Instant::now() + time);
    }

    /// Takes the card's frames no faster than one each `pace`.
    pub fn pace(&self, pace: Option<Duration>) {
        self.state().pace = pace;
    }

    /// Puts frames on the cable towards the card, as fast as it takes them.
    pub fn inject(&self, frames: impl IntoIterator<Item = Vec<u8>>) {
        self.state().injected.extend(frames);
    }

    /// Gives the peer a device in a VLAN.
    pub fn join_vlan(&self, vlan: u16, tap: Tap) {
        self.state().change.push_back(Change::Join(vlan, tap));
    }

    /// Takes the peer's device in a VLAN away.
    pub fn leave_vlan(&self, vlan: u16) {
        self.state().change.push_back(Change::Leave(vlan));
    }

    /// Whether all injected frames are with the card.
    pub fn injected(&self) -> bool {
        self.state().injected.is_empty()
    }

    /// Waits until nothing has passed for `quiet`, at most for `limit`. True if
    /// the cable fell silent.
    pub fn settle(&self, quiet: Duration, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut last = (self.counts(), Instant::now());
        loop {
            std::thread::sleep(LOOK);
            let counts = self.counts();
            if counts != last.0 {
                last = (counts, Instant::now());
            } else if last.1.elapsed() >= quiet {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
        }
    }

    /// Fails if the thread that carries the frames has ended.
    ///
    /// # Errors
    /// Its own.
    pub fn check(&mut self) -> Result<()> {
        if self.worker.ended() {
            self.worker.join()?;
        }
        Ok(())
    }
}

/// A device of the peer's: for frames without a tag, or for those of a VLAN.
struct Port {
    vlan: Option<u16>,
    tap: Tap,
}

/// The thread's own.
struct Carrier {
    socket: UnixDatagram,
    ports: Vec<Port>,
    state: Arc<Mutex<State>>,
    buffer: Vec<u8>,
    /// A frame for which the card had no room.
    waiting: Option<Vec<u8>>,
    /// When the last frame was taken from the card.
    taken: Instant,
}

impl Carrier {
    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.wait()?;
            self.change();
            for _ in 0..BATCH {
                if !self.take_from_card()? {
                    break;
                }
            }
            for _ in 0..BATCH {
                if !self.give_to_card()? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether frames of the card's are wanted now.
    fn taking(&self) -> bool {
        let state = self.state();
        state.stalled.is_none_or(|end| Instant::now() >= end)
            && state.pace.is_none_or(|pace| self.taken.elapsed() >= pace)
    }

    fn wait(&self) -> Result<()> {
        let mut socket = PollFlags::empty();
        let mut tap = PollFlags::empty();
        if self.taking() {
            socket |= PollFlags::IN;
        }
        if self.waiting.is_some() || !self.state().injected.is_empty() {
            socket |= PollFlags::OUT;
        } else {
            tap |= PollFlags::IN;
        }
        let mut fds = vec![PollFd::new(&self.socket, socket)];
        fds.extend(self.ports.iter().map(|port| PollFd::new(&port.tap, tap)));
        let look = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&look)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait for the cable's ends"),
        }
    }

    /// Does what the story wants with the peer's devices.
    fn change(&mut self) {
        let changes: Vec<Change> = self.state().change.drain(..).collect();
        for change in changes {
            match change {
                Change::Join(vlan, tap) => self.ports.push(Port {
                    vlan: Some(vlan),
                    tap,
                }),
                Change::Leave(vlan) => self.ports.retain(|port| port.vlan != Some(vlan)),
            }
        }
    }

    /// Carries a frame from the card to the peer. False if there is none.
    fn take_from_card(&mut self) -> Result<bool> {
        if !self.taking() {
            return Ok(false);
        }
        let length = match self.socket.recv(&mut self.buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            // The card has gone; the story will notice, or wanted that.
            Err(error) if gone(&error) => return Ok(false),
            Err(error) => return Err(error).context("cannot read the card's socket"),
        };
        self.taken = Instant::now();
        let frame = &self.buffer[..length];
        let passes = self.state().pass(Way::FromCard, frame);
        if passes && !self.hand_over(frame) {
            self.state().counts.refused += 1;
        }
        Ok(true)
    }

    /// Gives a frame to the peer's device that it is for. False without one, or
    /// when that does not take it.
    fn hand_over(&self, frame: &[u8]) -> bool {
        let (vlan, frame) = untag(frame);
        let port = self.ports.iter().find(|port| port.vlan == vlan);
        port.is_some_and(
            |port| matches!(write(port.tap.as_fd(), &frame), Ok(n) if n == frame.len()),
        )
    }

    /// Carries a frame to the card. False if there is none, or no room.
    fn give_to_card(&mut self) -> Result<bool> {
        let Some(frame) = self.next_for_card()? else {
            return Ok(false);
        };
        if self.state().cut {
            self.state().counts.cut += 1;
            return Ok(true);
        }
        match self.socket.send(&frame) {
            Ok(_) => {
                self.state().pass(Way::ToCard, &frame);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.waiting = Some(frame);
                Ok(false)
            }
            Err(error) if gone(&error) => Ok(false),
            Err(error) => Err(error).context("cannot write to the card's socket"),
        }
    }

    fn next_for_card(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(frame) = self.waiting.take() {
            return Ok(Some(frame));
        }
        if let Some(frame) = self.state().injected.pop_front() {
            return Ok(Some(frame));
        }
        for port in &self.ports {
            match read(port.tap.as_fd(), &mut *self.buffer) {
                Ok(length) => {
                    let frame = self.buffer[..length].to_vec();
                    return Ok(Some(match port.vlan {
                        Some(vlan) => tag(&frame, vlan),
                        None => frame,
                    }));
                }
                // Nothing there, or the device is down or on its way elsewhere.
                Err(Errno::AGAIN | Errno::IO | Errno::BADFD) => {}
                Err(error) => return Err(error).context("cannot read a TAP device"),
            }
        }
        Ok(None)
    }
}

fn gone(error: &std::io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected, NotFound};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionRefused | ConnectionReset | NotConnected | NotFound
    )
}

impl State {
    /// Counts a frame. False if it goes no further.
    fn pass(&mut self, way: Way, frame: &[u8]) -> bool {
        if self.cut {
            self.counts.cut += 1;
            return false;
        }
        let sight = Sight {
            way,
            frame: frame.to_vec(),
        };
        if sight.ether_type() == ether_type::PAUSE {
            self.counts.pauses += 1;
            return false;
        }
        self.counts.add(&sight);
        if let Some(record) = &mut self.record {
            record.push(sight);
        }
        true
    }
}
