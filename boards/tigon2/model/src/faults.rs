//! Injected faults of the wire: damaged frames in, collisions and the like out.
//!
//! A healthy link shows none of them, so only injection can exercise the firmware's error paths.
//! QEMU's monitor and tests write them as words:
//!
//! ```text
//! receive crc+odd-nibbles 3       the next 3 frames from the wire have these errors
//! receive damaged:17 3            byte 17 of the next 3 frames is another one than was sent
//! receive damaged:17x4            so are bytes 17 to 20 of the next one
//! transmit collisions:2 10        the next 10 frames out meet two collisions each
//! none                            no further faults
//! ```
//!
//! | word behind `receive` | flag of the descriptor (10.3) | and |
//! | --- | --- | --- |
//! | `crc` | 16 | the stored CRC is wrong; counts at 0xC8 |
//! | `collision`, `link-lost`, `phy-decode`, `odd-nibbles`, `mac-abort` | 17 to 21 | |
//! | `runt` | 22 | at most 32 bytes remain, not padded |
//! | `truncated` | 23 | the first half remains |
//! | `giant` | 24 | |
//! | `damaged`, `damaged:17x4`, `damaged:udp-port` | 16 | bytes are wrong, and the CRC; see [`Damage`] |
//!
//! | word behind `transmit` | duplex | what happens | counters (10.5) |
//! | --- | --- | --- | --- |
//! | `collisions:1` to `collisions:15` | half | it is sent after so many | 0x84.., 0xF0 |
//! | `excess-collisions` | half | it is given up after 16 | 0x80, 0xF0 |
//! | `late-collision` | half | it is lost | 0xC0, 0xF0 |
//! | `deferral`, `no-carrier` | half | it is sent | 0xC4, 0xD0 |
//! | `underrun` | any | it is lost | 0xCC |

mod damage;

pub use damage::Damage;

use std::borrow::Cow;
use std::str::FromStr;
use thiserror::Error;
use tigon2_chip::mac::RxError;

/// Bytes that remain of a runt.
const RUNT_BYTES: usize = 32;

/// Collisions after which a frame is abandoned.
pub const EXCESS: u32 = 16;

/// The description of a fault is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "fault: {text:?} is not \"receive ERROR+ERROR.. [FRAMES]\", \"transmit EVENT [FRAMES]\" or \"none\""
)]
pub struct FaultError {
    text: String,
}

/// A fault of a frame that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitFault {
    /// 1 to 15 collisions, then the frame is sent.
    Collisions(u32),
    /// 16 collisions: the frame is abandoned.
    ExcessCollisions,
    /// A collision after the first 64 bytes: the frame is lost.
    LateCollision,
    /// The wire was busy at first.
    Deferral,
    /// No carrier was sensed during transmission.
    NoCarrier,
    /// Its data did not arrive in time: the frame is lost.
    Underrun,
}

impl TransmitFault {
    /// Whether it only occurs in half duplex.
    pub fn needs_half_duplex(self) -> bool {
        self != TransmitFault::Underrun
    }

    /// Whether the frame is lost.
    pub fn loses_frame(self) -> bool {
        matches!(
            self,
            TransmitFault::ExcessCollisions
                | TransmitFault::LateCollision
                | TransmitFault::Underrun
        )
    }
}

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next frames from the wire arrive with errors.
    Receive {
        /// Flags of their descriptors.
        error: RxError,
        /// Which bytes are wrong, if any are. The CRC is wrong then, too.
        damage: Option<Damage>,
        /// How many frames.
        frames: u32,
    },
    /// The next frames to the wire suffer a fault.
    Transmit {
        /// The fault.
        event: TransmitFault,
        /// How many frames.
        frames: u32,
    },
    /// No further faults.
    None,
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).ok_or_else(|| FaultError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Fault> {
    let mut words = text.split_whitespace();
    let side = words.next()?;
    let what = words.next();
    let frames = words.next().map_or(Some(1), |count| count.parse().ok())?;
    if words.next().is_some() {
        return None;
    }
    match (side, what) {
        ("none", None) => Some(Fault::None),
        ("receive", Some(names)) => {
            let (mut error, mut damage) = (RxError::NONE, None);
            for name in names.split('+') {
                match Damage::parse(name) {
                    Some(_) if damage.is_some() => return None,
                    Some(wrong) => damage = Some(wrong),
                    None => error = error.with(receive_error(name)?),
                }
            }
            Some(Fault::Receive {
                error,
                damage,
                frames,
            })
        }
        ("transmit", Some(name)) => {
            let event = transmit_event(name)?;
            Some(Fault::Transmit { event, frames })
        }
        _ => None,
    }
}

fn receive_error(name: &str) -> Option<RxError> {
    Some(match name {
        "crc" => RxError::CRC,
        "collision" => RxError::COLLISION,
        "link-lost" => RxError::LINK_LOST,
        "phy-decode" => RxError::PHY_DECODE,
        "odd-nibbles" => RxError::ODD_NIBBLES,
        "mac-abort" => RxError::MAC_ABORT,
        "runt" => RxError::RUNT,
        "truncated" => RxError::TRUNCATED,
        "giant" => RxError::GIANT,
        _ => return None,
    })
}

fn transmit_event(name: &str) -> Option<TransmitFault> {
    if let Some(count) = name.strip_prefix("collisions:") {
        let count = count.parse().ok()?;
        return (1..EXCESS)
            .contains(&count)
            .then_some(TransmitFault::Collisions(count));
    }
    Some(match name {
        "excess-collisions" => TransmitFault::ExcessCollisions,
        "late-collision" => TransmitFault::LateCollision,
        "deferral" => TransmitFault::Deferral,
        "no-carrier" => TransmitFault::NoCarrier,
        "underrun" => TransmitFault::Underrun,
        _ => return None,
    })
}

/// The pending faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    receive: Option<((RxError, Option<Damage>), u32)>,
    transmit: Option<(TransmitFault, u32)>,
    /// Frames that were damaged: each one elsewhere, if the place is random.
    damaged: u64,
}

impl Faults {
    /// Injects a fault; it replaces the previous one of the same direction.
    pub fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::Receive {
                error,
                damage,
                frames,
            } => {
                self.receive = Some(((error, damage), frames)).filter(|_| frames > 0);
            }
            Fault::Transmit { event, frames } => {
                self.transmit = Some((event, frames)).filter(|_| frames > 0);
            }
            Fault::None => (self.receive, self.transmit) = (None, None),
        }
    }

    /// The bytes of the frame that is arriving: `frame` is all of it as its sender has it.
    pub fn arriving<'a>(&self, frame: &'a [u8]) -> Cow<'a, [u8]> {
        match self.receive {
            Some(((_, Some(damage)), _)) => Cow::Owned(damage.apply(frame, self.damaged)),
            _ => Cow::Borrowed(frame),
        }
    }

    /// The bytes of a frame that has arrived now, and its errors.
    pub fn receive<'a>(&mut self, frame: &'a [u8]) -> (Cow<'a, [u8]>, RxError) {
        let bytes = self.arriving(frame);
        let (error, damage) = take(&mut self.receive, |_| true).unwrap_or_default();
        if damage.is_none() {
            return (bytes, error);
        }
        self.damaged += 1;
        (bytes, error.with(RxError::CRC))
    }

    /// The fault of a frame that leaves now.
    pub fn transmit(&mut self, half_duplex: bool) -> Option<TransmitFault> {
        take(&mut self.transmit, |event| {
            half_duplex || !event.needs_half_duplex()
        })
    }
}

/// Takes one of the frames with a pending fault, if it occurs.
fn take<T: Copy>(pending: &mut Option<(T, u32)>, happens: impl Fn(T) -> bool) -> Option<T> {
    let (what, frames) = pending.filter(|(what, _)| happens(*what))?;
    *pending = (frames > 1).then_some((what, frames - 1));
    Some(what)
}

/// The part of a frame that remains with these errors.
pub fn remains(frame: &[u8], error: RxError) -> &[u8] {
    let mut length = frame.len();
    if error.contains(RxError::TRUNCATED) {
        length = length.div_ceil(2);
    }
    if error.contains(RxError::RUNT) {
        length = length.min(RUNT_BYTES);
    }
    &frame[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_written_in_words() {
        let error = RxError::CRC.with(RxError::RUNT);
        let receive = |error, damage, frames| {
            Ok(Fault::Receive {
                error,
                damage,
                frames,
            })
        };
        assert_eq!("receive crc+runt 3".parse(), receive(error, None, 3));
        assert_eq!(" receive giant".parse(), receive(RxError::GIANT, None, 1));
        let damaged = receive(RxError::GIANT, Some(Damage::Burst { at: 17, bytes: 4 }), 2);
        assert_eq!("receive giant+damaged:17x4 2".parse(), damaged);
        let transmit = |event| Ok(Fault::Transmit { event, frames: 1 });
        let collisions = transmit(TransmitFault::Collisions(15));
        assert_eq!("transmit collisions:15".parse(), collisions);
        assert_eq!(
            "transmit underrun 1".parse(),
            transmit(TransmitFault::Underrun)
        );
        assert_eq!("none".parse(), Ok(Fault::None));
        for bad in [
            "",
            "receive",
            "receive dirt",
            "receive crc+",
            "receive crc -1",
            "receive crc 1 2",
            "receive damaged:",
            "receive damaged:-1",
            "receive damaged:1+damaged:2",
            "transmit damaged:1",
            "transmit crc",
            "transmit collisions:16",
            "transmit collisions:0",
            "none 1",
            "none at all",
        ] {
            let error = bad.parse::<Fault>().expect_err(bad).to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }

    #[test]
    fn a_fault_lasts_for_its_frames_and_waits_for_half_duplex() {
        let mut faults = Faults::default();
        faults.inject("receive crc 2".parse().expect("good words"));
        let errors: Vec<_> = (0..3).map(|_| faults.receive(&[]).1).collect();
        assert_eq!(errors, [RxError::CRC, RxError::CRC, RxError::NONE]);
        faults.inject("transmit deferral".parse().expect("good words"));
        assert_eq!(faults.transmit(false), None);
        assert_eq!(faults.transmit(true), Some(TransmitFault::Deferral));
        assert_eq!(faults.transmit(true), None);
        faults.inject("transmit underrun 9".parse().expect("good words"));
        assert_eq!(faults.transmit(false), Some(TransmitFault::Underrun));
        faults.inject(Fault::None);
        assert_eq!(faults, Faults::default());
    }

    #[test]
    fn a_damaged_frame_is_the_same_while_it_arrives_and_at_its_end() {
        let frame: Vec<u8> = (0..200).collect();
        let mut faults = Faults::default();
        faults.inject("receive damaged 20".parse().expect("good words"));
        let mut places = Vec::new();
        for _ in 0..20 {
            let before = faults.arriving(&frame).into_owned();
            let (bytes, error) = faults.receive(&frame);
            assert_eq!((&*bytes, error), (&before[..], RxError::CRC));
            places.extend((0..200).filter(|at| bytes[*at] != frame[*at]));
        }
        assert_eq!(places.len(), 20, "a byte of each: {places:?}");
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 15, "elsewhere in most: {places:?}");
        assert_eq!(faults.receive(&frame), (Cow::from(&frame), RxError::NONE));
    }

    #[test]
    fn damage_shortens_frames() {
        let frame = [7; 101];
        assert_eq!(remains(&frame, RxError::CRC).len(), 101);
        assert_eq!(remains(&frame, RxError::TRUNCATED).len(), 51);
        assert_eq!(remains(&frame, RxError::RUNT).len(), 32);
        assert_eq!(
            remains(&[], RxError::RUNT.with(RxError::TRUNCATED)).len(),
            0
        );
    }
}
