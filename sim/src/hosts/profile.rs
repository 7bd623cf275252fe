//! The costs of a host's work, from a TOML file: `sim/hosts/*.toml`.
//!
//! A profile names the published figures that were used to calibrate it, so a reader can
//! distinguish what an experiment predicts from what it was given. At most [`MOST_CALIBRATED`]
//! figures may be used.

use serde::Deserialize;
use thiserror::Error;

/// The profile of the paper's server.
const PIII: &str = include_str!("../../hosts/piii-4way.toml");
/// Bytes of a page.
const PAGE: usize = 4096;
/// How many published figures may set a profile.
pub const MOST_CALIBRATED: usize = 2;

/// A profile cannot be had.
#[derive(Debug, Error)]
pub enum HostProfileError {
    /// The text is no profile.
    #[error("host profile: {0}")]
    Syntax(#[from] toml::de::Error),
    /// Too much of it comes from what shall be predicted.
    #[error(
        "host profile: it is fitted to {0} published figures; at most {MOST_CALIBRATED} are allowed"
    )]
    Calibrated(usize),
}

/// A published figure and the key that was chosen to meet it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The figure and where it stands.
    pub figure: String,
    /// The key.
    pub sets: String,
}

/// Of a packet, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketCosts {
    /// The driver's part of receiving it.
    pub driver_ns: u64,
    /// More of the driver's part where buffers are larger than a page: pages in a row have to
    /// be found.
    pub large_buffer_ns: u64,
    /// The protocols' part of receiving it.
    pub protocol_ns: u64,
    /// Sending a segment.
    pub segment_ns: u64,
    /// More of the packet that ends a connection: its socket is given back, and a smaller one
    /// waits in its place.
    pub close_ns: u64,
}

/// Of the server's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationCosts {
    /// A call of `select`.
    pub select_ns: u64,
    /// More of it for each descriptor.
    pub descriptor_ns: u64,
    /// `accept`.
    pub accept_ns: u64,
    /// `read` of the request.
    pub read_ns: u64,
    /// What the server does for a request in its own code.
    pub request_ns: u64,
    /// What the server of datagrams does for one, with its `recv`.
    pub datagram_ns: u64,
    /// `sendfile` or `sendmsg`, without segments and copies.
    pub send_ns: u64,
    /// Picoseconds for a byte if it is copied: `read` and `sendmsg` instead of `sendfile`.
    pub copy_ps_per_byte: u64,
}

/// Of interrupts and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCosts {
    /// From the line to the CPU, which continues meanwhile.
    pub interrupt_latency_ns: u64,
    /// Entry, service routine and exit.
    pub interrupt_ns: u64,
    /// From one thread to another.
    pub switch_ns: u64,
    /// From waking a thread on an idle CPU until it runs.
    pub wake_ns: u64,
    /// The same of a network thread that a service routine wakes, on another CPU as a rule:
    /// what the paper calls scheduling latency.
    pub network_wake_ns: u64,
}

/// Of cache lines that are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheCosts {
    /// A connection that another CPU has touched last.
    pub connection_miss_ns: u64,
    /// A socket's queue with a datagram that another CPU has put there.
    pub datagram_miss_ns: u64,
    /// A listening socket that another CPU has touched last.
    pub listener_miss_ns: u64,
    /// What TCP writes for every segment and call, if another CPU was in it last.
    pub stack_miss_ns: u64,
    /// The device's and the send ring's lines, if another CPU has sent last.
    pub ring_miss_ns: u64,
    /// The stack's code, after other code has run.
    pub code_miss_ns: u64,
}

/// For how long locks are held, beside the work that is done under them anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockCosts {
    /// More work under a listening socket's lock when a connection comes in.
    pub listener_ns: u64,
    /// The send ring's lock, for a frame.
    pub ring_ns: u64,
    /// The listening socket's lock in `accept`; part of `accept`'s time.
    pub accept_ns: u64,
}

/// Of the card's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardCosts {
    /// A read, there and back.
    pub read_ns: u64,
    /// A posted write.
    pub write_ns: u64,
}

/// A host's costs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// The published figures that set it.
    #[serde(default)]
    pub calibrated: Vec<Calibrated>,
    /// Of packets.
    pub packet: PacketCosts,
    /// Of the server's threads.
    pub application: ApplicationCosts,
    /// Of interrupts and threads.
    pub kernel: KernelCosts,
    /// Of misses.
    pub cache: CacheCosts,
    /// Of locks.
    pub locks: LockCosts,
    /// Of the card's registers.
    pub card: CardCosts,
    /// Whether CPUs wait for locks. Without, each is as if it were never held.
    #[serde(default = "yes")]
    pub contention: bool,
}

const fn yes() -> bool {
    true
}

impl HostProfile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`HostProfileError`] if a key is missing, unknown or of a wrong type, or if more than
    /// [`MOST_CALIBRATED`] published figures set it.
    pub fn from_toml(text: &str) -> Result<HostProfile, HostProfileError> {
        let profile: HostProfile = toml::from_str(text)?;
        if profile.calibrated.len() > MOST_CALIBRATED {
            return Err(HostProfileError::Calibrated(profile.calibrated.len()));
        }
        Ok(profile)
    }

    /// The same host without all that the paper's model leaves out: locks, misses, switches,
    /// interrupts and latencies cost nothing.
    #[must_use]
    pub fn ideal(mut self) -> HostProfile {
        self.kernel = KernelCosts {
            interrupt_latency_ns: 0,
            interrupt_ns: 0,
            switch_ns: 0,
            wake_ns: 0,
            network_wake_ns: 0,
        };
        self.cache = CacheCosts {
            connection_miss_ns: 0,
            datagram_miss_ns: 0,
            listener_miss_ns: 0,
            stack_miss_ns: 0,
            ring_miss_ns: 0,
            code_miss_ns: 0,
        };
        self.locks = LockCosts {
            listener_ns: 0,
            ring_ns: 0,
            accept_ns: 0,
        };
        self.card = CardCosts {
            read_ns: 0,
            write_ns: 0,
        };
        self.contention = false;
        self
    }
}

impl PacketCosts {
    /// The driver's part with buffers for packets of an MTU.
    #[must_use]
    pub fn with_buffers_for(mut self, mtu: u16) -> PacketCosts {
        if usize::from(mtu) > PAGE {
            self.driver_ns += self.large_buffer_ns;
        }
        self
    }
}

impl HostProfile {
    /// The same host with packets and application `times` slower.
    #[must_use]
    pub fn slower(mut self, times: u64) -> HostProfile {
        let (packet, application) = (&mut self.packet, &mut self.application);
        for cost in [
            &mut packet.driver_ns,
            &mut packet.large_buffer_ns,
            &mut packet.protocol_ns,
            &mut packet.segment_ns,
            &mut packet.close_ns,
            &mut application.select_ns,
            &mut application.descriptor_ns,
            &mut application.accept_ns,
            &mut application.read_ns,
            &mut application.request_ns,
            &mut application.datagram_ns,
            &mut application.send_ns,
            &mut application.copy_ps_per_byte,
        ] {
            *cost *= times;
        }
        self
    }
}

impl Default for HostProfile {
    /// `sim/hosts/piii-4way.toml`.
    fn default() -> Self {
        HostProfile::from_toml(PIII).expect("the built-in profile is valid: a test reads it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_server_is_set_by_two_published_figures() {
        let profile = HostProfile::default();
        assert_eq!(profile.calibrated.len(), MOST_CALIBRATED);
        assert!(profile.contention && profile.kernel.wake_ns > 0);
        let ideal = profile.clone().ideal();
        assert_eq!(ideal.packet, profile.packet);
        assert_eq!(ideal.application, profile.application);
        assert!(!ideal.contention);
        assert_eq!(ideal.kernel.wake_ns + ideal.cache.connection_miss_ns, 0);
    }

    #[test]
    fn a_profile_that_is_told_everything_is_refused() {
        let one = "[[calibrated]]\nfigure = \"Fig. 7\"\nsets = \"packet.driver_ns\"\n";
        let error = HostProfile::from_toml(&format!("{one}{PIII}")).expect_err("three");
        assert!(matches!(error, HostProfileError::Calibrated(3)), "{error}");
        let error = HostProfile::from_toml(&PIII.replace("wake_ns", "wakes_ns"));
        assert!(
            error
                .expect_err("a wrong key")
                .to_string()
                .contains("wakes_ns")
        );
    }
}
