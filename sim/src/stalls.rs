//! Counts that explain a stall of the simulated card: [`Stalls`].
//!
//! A driver reads them through [`Transport::counts`], as it reads an emulator's, and puts them
//! into the error with which it gives up. Names that are also in `qemu/src/stalls.rs` and
//! `qemu/src/counts.rs` have the same meaning:
//!
//! | name | meaning |
//! | --- | --- |
//! | `refused` | times that a frame from the wire waited because the card had no room |
//! | `signals` | interrupts signalled to the driver |
//! | `repeats` | of these, signals repeated after an unmask, because the pin was still high |
//! | `waiting` | 1: the pin is high, and the driver has been signalled and has not unmasked it |
//! | `spurious` | interrupts for which the driver read `R[40]` and found none pending |
//! | `undefined` | undefined accesses by CPUs and host |
//! | `held_us` | how long the wire has held frames towards the card, on the card's clock |
//! | `dropped` | frames that the card dropped: no link, a filter, no room |
//!
//! There is no second thread, so no thread waits for a lock, and no access is deferred.
//!
//! [`Transport::counts`]: host_driver::Transport::counts

use crate::machine::Machine;
use std::fmt;
use tigon2_chip::bits::MiscHostControl;

/// The interrupt pin as the driver sees it, masked from one signal to the unmask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pin {
    masked: bool,
    signals: u64,
    repeats: u64,
    spurious: u64,
    /// The driver was signalled and has not read the register yet.
    told: bool,
    /// The pin was high at the last unmask, and has been since.
    still_high: bool,
}

impl Pin {
    /// Whether a signal has to wait for the driver.
    pub(crate) fn is_masked(&self) -> bool {
        self.masked
    }

    /// The pin is high and the driver is signalled.
    pub(crate) fn signal(&mut self) {
        self.masked = true;
        self.told = true;
        self.signals += 1;
        self.repeats += u64::from(std::mem::take(&mut self.still_high));
    }

    /// The driver unmasks it.
    pub(crate) fn unmask(&mut self, high: bool) {
        self.masked = false;
        self.still_high = high;
    }

    /// The card has been touched, and its pin is low or high since.
    pub(crate) fn look(&mut self, high: bool) {
        self.still_high &= high;
    }

    /// The driver has read `R[40]`.
    pub(crate) fn asked(&mut self, control: MiscHostControl) {
        let told = std::mem::take(&mut self.told);
        self.spurious += u64::from(told && !control.interrupt_pending());
    }

    /// The card was reset.
    pub(crate) fn reset(&mut self) {
        self.masked = false;
        self.still_high = false;
    }
}

/// What was counted up to now; [`Display`](fmt::Display) is `name=value name=value ..`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// A frame had to wait for room.
    pub refused: u64,
    /// Interrupts signalled to the driver.
    pub signals: u64,
    /// Of these, repeated signals.
    pub repeats: u64,
    /// The driver was signalled and has not unmasked the pin, which is high.
    pub waiting: bool,
    /// Interrupts for nothing.
    pub spurious: u64,
    /// Accesses that meant nothing.
    pub undefined: u64,
    /// Microseconds for which the wire has held frames.
    pub held_us: u64,
    /// Frames that the card dropped.
    pub dropped: u64,
}

impl Stalls {
    pub(crate) fn of(machine: &Machine, pin: &Pin) -> Stalls {
        Stalls {
            refused: machine.refused_frames(),
            signals: pin.signals,
            repeats: pin.repeats,
            waiting: pin.masked && machine.interrupt(),
            spurious: pin.spurious,
            undefined: machine.card().undefined().count(),
            held_us: machine.held_back() / 1000,
            dropped: machine.received().dropped,
        }
    }
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("refused", self.refused),
            ("signals", self.signals),
            ("repeats", self.repeats),
            ("waiting", self.waiting.into()),
            ("spurious", self.spurious),
            ("undefined", self.undefined),
            ("held_us", self.held_us),
            ("dropped", self.dropped),
        ];
        let text = named.map(|(name, value)| format!("{name}={value}"));
        f.write_str(&text.join(" "))
    }
}
