//! Interrupts: a level-triggered pin and one message, signalled by eventfd.
//!
//! The pin behaves like VFIO's INTx. The device sets its level from any thread; the client gets
//! one signal on its eventfd, and the pin is then masked until the client unmasks it:
//!
//! ```text
//!            level rises, eventfd known            UNMASK, level low
//!   unmasked ----------------------> masked -----------------------> unmasked
//!      ^                             |    ^
//!      |        UNMASK, level high   v    | level still high after the delay
//!      +---- level falls ---------- waiting
//! ```
//!
//! A client with a guest unmasks at the guest's first register access, before the interrupt
//! handler has lowered the pin. A signal at that moment would make nearly every interrupt spurious
//! a second time, so the server checks the level again a little later (hardware reference, "What a
//! vfio-user server in front of the card learns": about 60 us).

use crate::message::{IrqSet, irq, irq_set_flags as f};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interrupts of one device; clones share them.
///
/// Every method may be called from every thread, with or without the device's
/// lock: the lock inside is never held while something else is waited for.
#[derive(Clone, Debug)]
pub struct Interrupts {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    unmask_delay: Duration,
    level: bool,
    masked: bool,
    recheck: Option<Instant>,
    intx: Option<OwnedFd>,
    msi: Option<OwnedFd>,
    signals: u64,
    repeats: u64,
    /// The client was signalled and has not read the register yet.
    told: bool,
}

/// What has happened to the interrupts of a device since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptCounts {
    /// Signals that the client got.
    pub signals: u64,
    /// Of these, signals after an unmask, since the pin was still high. If the client was
    /// about to lower it, that is one for nothing.
    pub repeats: u64,
    /// The pin is high, and the client was signalled and has not unmasked it.
    pub waiting: bool,
}

impl std::fmt::Display for InterruptCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            signals, repeats, ..
        } = self;
        let waiting = u8::from(self.waiting);
        write!(f, "signals={signals} repeats={repeats} waiting={waiting}")
    }
}

impl Default for Interrupts {
    fn default() -> Self {
        Self::new(Self::UNMASK_DELAY)
    }
}

impl Interrupts {
    /// How long after an unmask the server looks at the pin again, unless told
    /// otherwise.
    pub const UNMASK_DELAY: Duration = Duration::from_micros(60);

    /// Interrupts with the pin low and nobody listening. `unmask_delay` is the time
    /// from an unmask to the look at the pin; zero signals at once.
    pub fn new(unmask_delay: Duration) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                unmask_delay,
                level: false,
                masked: false,
                recheck: None,
                intx: None,
                msi: None,
                signals: 0,
                repeats: 0,
                told: false,
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the level of the pin. A rising edge signals the client: by message if
    /// it has set one up, else by the pin unless that is masked.
    pub fn set_level(&self, level: bool) {
        let mut state = self.state();
        let rising = level && !state.level;
        state.level = level;
        if rising {
            state.raise();
        }
    }

    /// Level of the pin.
    pub fn level(&self) -> bool {
        self.state().level
    }

    /// Is the pin masked, by the client or by its last signal?
    pub fn is_masked(&self) -> bool {
        self.state().masked
    }

    /// Has the client connected an eventfd to the pin or to the message?
    pub fn is_connected(&self) -> bool {
        let state = self.state();
        state.intx.is_some() || state.msi.is_some()
    }

    /// Signals that the client got since the start.
    pub fn signals(&self) -> u64 {
        self.state().signals
    }

    /// What has happened to them.
    pub fn counts(&self) -> InterruptCounts {
        let state = self.state();
        InterruptCounts {
            signals: state.signals,
            repeats: state.repeats,
            waiting: state.level && state.masked,
        }
    }

    /// Whether an interrupt was signalled to the client since the last call.
    pub fn take_reported(&self) -> bool {
        std::mem::take(&mut self.state().told)
    }

    /// When [`recheck`](Self::recheck) wants to be called next.
    pub fn next_recheck(&self) -> Option<Instant> {
        self.state().recheck
    }

    /// Looks at the pin again if the time for it has come. The server's thread does
    /// this by itself.
    pub fn recheck(&self, now: Instant) {
        let mut state = self.state();
        if state.recheck.is_some_and(|due| due <= now) {
            state.recheck = None;
            if state.level {
                state.repeats += 1;
                state.raise();
            }
        }
    }

    /// Forgets the client: its eventfds are closed, masks are gone, the level stays.
    pub fn disconnect(&self) {
        let mut state = self.state();
        state.intx = None;
        state.msi = None;
        state.masked = false;
        state.recheck = None;
    }

    /// DEVICE_SET_IRQS. `available` is the number of interrupts of the kind that is
    /// addressed, `data` what follows `set` in the message.
    pub fn set(
        &self,
        set: &IrqSet,
        available: u32,
        data: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        let end = set.start.checked_add(set.count).ok_or(Errno::INVAL)?;
        let data_kind = set.flags & (f::DATA_NONE | f::DATA_BOOL | f::DATA_EVENTFD);
        let action = set.flags & (f::ACTION_MASK | f::ACTION_UNMASK | f::ACTION_TRIGGER);
        if set.flags & !(data_kind | action) != 0
            || data_kind.count_ones() != 1
            || action.count_ones() != 1
            || available == 0
            || end > available
            || (data_kind == f::DATA_BOOL && data.len() < set.count as usize)
            || (data_kind != f::DATA_EVENTFD && !fds.is_empty())
            || fds.len() > set.count as usize
        {
            return Err(Errno::INVAL);
        }
        if set.index != irq::INTX && action != f::ACTION_TRIGGER {
            return Err(Errno::INVAL);
        }
        if data_kind == f::DATA_EVENTFD {
            if action != f::ACTION_TRIGGER {
                // An eventfd that unmasks is a shortcut for kernels; not offered.
                return Err(Errno::OPNOTSUPP);
            }
            if set.count == 0 {
                return Err(Errno::INVAL);
            }
            return self.connect(set.index, fds.into_iter().next());
        }
        if set.count == 0 {
            // "Disable all interrupts of the index."
            return match (data_kind, action) {
                (f::DATA_NONE, f::ACTION_TRIGGER) => self.connect(set.index, None),
                _ => Err(Errno::INVAL),
            };
        }
        if data_kind == f::DATA_BOOL && data[0] == 0 {
            return Ok(());
        }
        let mut state = self.state();
        match action {
            f::ACTION_MASK => {
                state.masked = true;
                state.recheck = None;
            }
            f::ACTION_UNMASK => state.unmask(Instant::now()),
            _ => state.trigger(set.index),
        }
        Ok(())
    }

    fn connect(&self, index: u32, fd: Option<OwnedFd>) -> Result<(), Errno> {
        if fd.as_ref().is_some_and(|fd| !is_eventfd(fd)) {
            return Err(Errno::INVAL);
        }
        let mut state = self.state();
        if index == irq::MSI {
            state.msi = fd;
        } else {
            state.intx = fd;
            state.masked = false;
            state.recheck = None;
            if state.level {
                state.raise();
            }
        }
        Ok(())
    }
}

impl State {
    /// The pin is high: signal the client if it is unmasked.
    fn raise(&mut self) {
        if self.msi.is_some() {
            self.trigger(irq::MSI);
        } else if !self.masked {
            self.trigger(irq::INTX);
        }
    }

    fn trigger(&mut self, index: u32) {
        let fd = if index == irq::MSI {
            &self.msi
        } else {
            &self.intx
        };
        let Some(fd) = fd else { return };
        signal(fd);
        self.signals += 1;
        self.told = true;
        if index == irq::INTX {
            self.masked = true;
            self.recheck = None;
        }
    }

    fn unmask(&mut self, now: Instant) {
        self.masked = false;
        if self.level && self.msi.is_none() {
            if self.unmask_delay.is_zero() {
                self.raise();
            } else {
                self.recheck = Some(now + self.unmask_delay);
            }
        }
    }
}

/// Adds 1 to an eventfd, but never waits: a client that lets its counter run full
/// has a signal to read anyway.
fn signal(fd: &OwnedFd) {
    let mut fds = [PollFd::new(fd, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut fds, Some(&now)).is_ok_and(|ready| ready == 1) {
        // A failure here means that the client misused its own eventfd; it is the
        // only one that could miss the signal.
        let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
    }
}

/// Is this descriptor an eventfd? Where `/proc` cannot tell, it is believed.
fn is_eventfd(fd: &OwnedFd) -> bool {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    match rustix::fs::readlink(path, Vec::new()) {
        Ok(target) => target.as_bytes() == b"anon_inode:[eventfd]",
        Err(_) => true,
    }
}
