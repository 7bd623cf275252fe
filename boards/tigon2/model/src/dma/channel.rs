//! One DMA channel: its registers and its current transfer.
//!
//! Hardware reference, section 6.1.

use tigon2_chip::bits::DmaState;
use tigon2_chip::dma::DmaDescriptor;

/// The error bit that the card sets when host memory does not answer (19: the bit that was seen to
/// stop the vendor firmware).
pub const HOST_MEMORY_ERROR: u8 = 0x01;

/// The origin of the running transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Software wrote the registers.
    Direct,
    /// The assist loaded a descriptor; this is its word 5.
    Assist { checksum_target: u32 },
}

/// A transfer that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// First host address.
    pub host: u64,
    /// First NIC address.
    pub local: u32,
    /// Bytes.
    pub length: u32,
    /// The state word.
    pub state: DmaState,
    /// Whether the assist loaded it; otherwise software started it directly.
    pub assist: bool,
}

/// The registers of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// `R[80/84]` or `R[90/94]`: host address.
    pub host: u64,
    /// `R[A4]` or `R[B4]`: NIC address; after a transfer its end.
    pub local: u32,
    length: u32,
    checksum: u16,
    state: DmaState,
    job: Option<Job>,
    begun: bool,
    /// Bytes of the transfer that have moved.
    moved: u32,
}

impl Channel {
    /// `R[A0]` or `R[B0]`: bit 2 reads 1 until the transfer is finished (6.1, C).
    #[inline]
    pub fn state(&self) -> u32 {
        self.state.with_start(self.job.is_some()).into_bits()
    }

    /// A write to the state register. Bit 0 resets the channel (C), bit 2 starts a transfer (C).
    /// Any write clears an error. Returns false if a start found the channel busy.
    pub fn set_state(&mut self, value: u32) -> bool {
        let value = DmaState::from_bits(value);
        if value.reset() {
            self.job = None;
            self.begun = false;
            self.state = DmaState::new();
            return true;
        }
        if self.job.is_some() {
            return !value.start();
        }
        self.state = value.with_start(false).with_error(0);
        if value.start() {
            self.job = Some(Job::Direct);
        }
        true
    }

    /// `R[9C]` or `R[AC]`: bytes left.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// A write to the length register: 16 bits (6.1, C).
    pub fn set_length(&mut self, value: u32) {
        self.length = value & 0xFFFF;
    }

    /// `R[A8]` or `R[B8]`: the running sum.
    pub fn checksum(&self) -> u16 {
        self.checksum
    }

    /// A write to the sum.
    pub fn set_checksum(&mut self, value: u16) {
        self.checksum = value;
    }

    /// Bits 31:0 or 63:32 of the host address.
    pub fn set_host(&mut self, high: bool, value: u32) {
        let shift = if high { 32 } else { 0 };
        self.host = self.host & !(0xFFFF_FFFF << shift) | u64::from(value) << shift;
    }

    /// A transfer is waiting or running: `R[11C]` bit 8 or 12.
    #[inline]
    pub fn busy(&self) -> bool {
        self.job.is_some()
    }

    /// Whether a direct transfer waits for its start.
    #[inline]
    pub fn waiting(&self) -> bool {
        self.job.is_some() && !self.begun
    }

    /// Error bits are set: event bit 19 or 20. The assist waits until they are cleared.
    #[inline]
    pub fn failed(&self) -> bool {
        self.state.error() != 0
    }

    /// Loads a descriptor into the registers as the current job.
    pub fn load(&mut self, descriptor: &DmaDescriptor) {
        self.host = descriptor.host.get();
        self.local = descriptor.local;
        self.length = descriptor.length_bytes();
        self.state = descriptor
            .state
            .with_reset(false)
            .with_start(false)
            .with_error(0);
        self.job = Some(Job::Assist {
            checksum_target: descriptor.checksum_target,
        });
    }

    /// Starts the job: bit 10 sets the sum to 0 (6.1, C). `None` if there is none, or if it has
    /// started already.
    pub fn begin(&mut self) -> Option<Transfer> {
        if !self.waiting() {
            return None;
        }
        self.begun = true;
        self.moved = 0;
        if self.state.restart_checksum() {
            self.checksum = 0;
        }
        self.transfer()
    }

    /// The transfer that has begun but not completed.
    pub fn transfer(&self) -> Option<Transfer> {
        self.begun.then_some(Transfer {
            host: self.host,
            local: self.local,
            length: self.length,
            state: self.state,
            assist: matches!(self.job, Some(Job::Assist { .. })),
        })
    }

    /// Bytes of the transfer in progress that have moved.
    pub fn moved(&self) -> u32 {
        self.moved
    }

    /// The transfer in progress has moved its bytes up to `moved`; `checksum` is their sum.
    pub fn set_moved(&mut self, moved: u32, checksum: u16) {
        self.moved = moved;
        self.checksum = checksum;
    }

    /// Completes the transfer; the registers show the end (6.1). Returns where to store the
    /// checksum: only for the assist, with bit 11 (C).
    pub fn finish(&mut self, end: u32, checksum: u16) -> Option<u32> {
        self.host = self.host.wrapping_add(self.length.into());
        self.length = 0;
        self.local = end;
        self.checksum = checksum;
        self.begun = false;
        match self.job.take() {
            Some(Job::Assist { checksum_target }) if self.state.store_checksum() => {
                Some(checksum_target)
            }
            _ => None,
        }
    }

    /// Fails the transfer: nothing was moved, and the error bits are set.
    pub fn fail(&mut self, error: u8) {
        self.begun = false;
        self.job = None;
        self.state = self.state.with_error(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 6.1: bit 0 resets the channel (C); error bits make the attention and are
    /// gone after it (I).
    #[test]
    fn reset_drops_the_job_and_the_errors() {
        let mut channel = Channel::default();
        assert!(channel.set_state(4));
        assert!(channel.busy());
        channel.set_state(1);
        assert!(!channel.busy());
        assert_eq!(channel.state(), 0);
        channel.fail(HOST_MEMORY_ERROR);
        assert!(channel.failed());
        assert_eq!(channel.state(), 0x0100_0000);
        channel.set_state(1);
        assert!(!channel.failed());
    }

    /// Reference 6.1: bit 2 reads 1 until finished; a second start finds the channel busy.
    #[test]
    fn a_start_while_busy_is_refused() {
        let mut channel = Channel::default();
        channel.set_length(0x1_0010);
        assert_eq!(channel.length(), 0x10, "the length has 16 bits (6.4)");
        assert!(channel.set_state(0x86));
        assert_eq!(channel.state(), 0x86);
        assert!(!channel.set_state(0x84));
        assert_eq!(
            channel.begin().map(|transfer| transfer.state.into_bits()),
            Some(0x82)
        );
        assert_eq!(channel.begin(), None, "begun already");
        assert_eq!(channel.finish(0x110, 5), None);
        assert_eq!(
            (channel.state(), channel.length(), channel.local),
            (0x82, 0, 0x110)
        );
    }

    #[test]
    fn host_addresses_are_two_words() {
        let mut channel = Channel::default();
        channel.set_host(true, 0x12);
        channel.set_host(false, 0xFFFF_FFFF);
        assert_eq!(channel.host, 0x12_FFFF_FFFF);
        channel.set_host(true, u32::MAX);
        channel.set_host(false, 0);
        assert_eq!(channel.host, 0xFFFF_FFFF_0000_0000);
    }
}
