//! Counts the frames on a cable.

use super::frame::{Sight, Way};
use crate::frames::SHORTEST;

/// What passed one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Their bytes, without CRC, as a MAC sends them: padded to 60.
    pub bytes: u64,
    /// Their bytes without the padding of short frames.
    pub unpadded: u64,
    /// Those to a single station.
    pub unicast: u64,
    /// Those to a group.
    pub multicast: u64,
    /// Those to everybody.
    pub broadcast: u64,
    /// Those with a VLAN tag.
    pub tagged: u64,
    /// Those longer than an ordinary frame (with a tag where they have one).
    pub jumbo: u64,
}

/// What passed both ways since the start or the last [`Cable::reset`](super::cable::Cable::reset).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What the card sent.
    pub from_card: Count,
    /// What the card was given.
    pub to_card: Count,
    /// Pause frames of the card's, which end at the cable and are no frames in
    /// the counts above.
    pub pauses: u64,
    /// Frames that ended at the cut.
    pub cut: u64,
    /// Frames of the card's that the peer's device did not take, or with a tag
    /// of a VLAN that the peer is not in.
    pub refused: u64,
}

impl Counts {
    /// Counts a frame that passes.
    pub fn add(&mut self, sight: &Sight) {
        let count = match sight.way {
            Way::FromCard => &mut self.from_card,
            Way::ToCard => &mut self.to_card,
        };
        count.frames += 1;
        count.bytes += sight.frame.len().max(SHORTEST) as u64;
        count.unpadded += sight.unpadded() as u64;
        match () {
            () if sight.is_broadcast() => count.broadcast += 1,
            () if sight.is_group() => count.multicast += 1,
            () => count.unicast += 1,
        }
        count.tagged += u64::from(sight.vlan().is_some());
        count.jumbo += u64::from(sight.is_jumbo());
    }
}
