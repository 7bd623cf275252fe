//! Datagrams of many flows in random order, and the sink that checks them.
//!
//! ```text
//!   | Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | number within its flow 8 | bytes |
//! ```

use crate::workload::datagram::{PEER, SMALLEST};
use etherparse::PacketBuilder;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thiserror::Error;

/// The first flow's port; each flow has one more.
const FIRST_PORT: u16 = 5001;
/// The port that all flows go to.
const PORT: u16 = 80;

/// Which IP the datagrams are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    Four,
    /// IPv6.
    Six,
}

impl Version {
    /// Bytes of the headers in front of the payload.
    pub const fn headers(self) -> usize {
        match self {
            Version::Four => 14 + 20 + 8,
            Version::Six => 14 + 40 + 8,
        }
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Four => "IPv4",
            Version::Six => "IPv6",
        }
    }
}

/// What is wrong with a received frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowMismatch {
    /// It is none of those that were sent.
    #[error("a frame of {0} bytes came that nobody sent")]
    Foreign(usize),
    /// It comes twice or behind a later one of its flow.
    #[error("datagram {number} of flow {flow} came where {expected} or a later one was expected")]
    Order {
        /// Its flow.
        flow: usize,
        /// Its number.
        number: u64,
        /// The number behind the flow's last one.
        expected: u64,
    },
    /// A flow came in two queues.
    #[error("flow {flow} came in queue {queue}, but earlier in queue {before}")]
    Moved {
        /// The flow.
        flow: usize,
        /// The queue.
        queue: usize,
        /// The queue of its earlier datagrams.
        before: usize,
    },
}

/// Flows to one station.
#[derive(Clone, Debug)]
pub struct Flows {
    frames: Vec<Vec<u8>>,
    next: Vec<u64>,
    random: Xoshiro256PlusPlus,
}

impl Flows {
    /// So many flows of datagrams of `bytes` (at least [`SMALLEST`]) from different addresses
    /// and ports, mixed by `seed`.
    pub fn new(count: usize, station: [u8; 6], version: Version, bytes: usize, seed: u64) -> Flows {
        let frame = |number: usize| frame(number, station, version, bytes.max(SMALLEST));
        Flows {
            frames: (0..count).map(frame).collect(),
            next: vec![0; count],
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The next frame of one of them.
    pub fn frame(&mut self) -> Vec<u8> {
        let flow = self.random.next_u32() as usize % self.frames.len();
        let number = self.next[flow];
        self.next[flow] += 1;
        let mut frame = self.frames[flow].clone();
        let payload = payload_of(&frame);
        frame[payload..payload + SMALLEST].copy_from_slice(&number.to_be_bytes());
        frame
    }

    /// The sink that checks what arrives of them.
    pub fn sink(&self) -> FlowSink {
        FlowSink {
            frames: self.frames.clone(),
            flows: vec![Arrived::default(); self.frames.len()],
            one_queue: true,
        }
    }
}

/// What has arrived of a flow.
#[derive(Clone, Debug, Default)]
struct Arrived {
    count: u64,
    expected: u64,
    queue: Option<usize>,
}

/// Takes what arrives of [`Flows`].
#[derive(Clone, Debug)]
pub struct FlowSink {
    frames: Vec<Vec<u8>>,
    flows: Vec<Arrived>,
    one_queue: bool,
}

impl FlowSink {
    /// Lets flows come in several queues, out of order.
    pub fn let_flows_spread(&mut self) {
        self.one_queue = false;
    }

    /// Takes a frame of a queue.
    ///
    /// # Errors
    /// [`FlowMismatch`]: it is none that was sent, out of order, or in another queue than the
    /// flow before.
    pub fn take(&mut self, queue: usize, frame: &[u8]) -> Result<(), FlowMismatch> {
        let foreign = FlowMismatch::Foreign(frame.len());
        let flow = flow_of(frame).ok_or(foreign.clone())?;
        let (Some(sent), Some(arrived)) = (self.frames.get(flow), self.flows.get_mut(flow)) else {
            return Err(foreign);
        };
        let payload = payload_of(sent);
        let behind = payload + SMALLEST;
        if frame.len() != sent.len()
            || frame[..payload] != sent[..payload]
            || frame[behind..] != sent[behind..]
        {
            return Err(foreign);
        }
        let mut number = [0; SMALLEST];
        number.copy_from_slice(&frame[payload..behind]);
        let number = u64::from_be_bytes(number);
        arrived.count += 1;
        if !self.one_queue {
            arrived.expected = arrived.expected.max(number + 1);
            return Ok(());
        }
        let before = *arrived.queue.get_or_insert(queue);
        if before != queue {
            return Err(FlowMismatch::Moved {
                flow,
                queue,
                before,
            });
        }
        let expected = std::mem::replace(&mut arrived.expected, number + 1);
        if number < expected {
            return Err(FlowMismatch::Order {
                flow,
                number,
                expected,
            });
        }
        Ok(())
    }

    /// Frames that arrived.
    pub fn received(&self) -> u64 {
        self.flows.iter().map(|flow| flow.count).sum()
    }

    /// Frames that did not arrive, though later ones of their flows did.
    pub fn missing(&self) -> u64 {
        self.flows
            .iter()
            .map(|flow| flow.expected - flow.count)
            .sum()
    }
}

/// Datagram 0 of a flow: 60 bytes at least, as a sender pads it.
fn frame(number: usize, station: [u8; 6], version: Version, bytes: usize) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2(PEER, station);
    let [low, high] = [number as u8, (number >> 8) as u8];
    let port = FIRST_PORT + number as u16;
    let ip = match version {
        Version::Four => ethernet.ipv4([10, 77, high, low], [10, 77, 255, 1], 64),
        Version::Six => {
            let mut source = [0xFD; 16];
            source[14..].copy_from_slice(&[high, low]);
            ethernet.ipv6(source, [0xFE; 16], 64)
        }
    };
    let payload: Vec<u8> = (0..bytes).map(|place| (place + number) as u8).collect();
    let mut frame = Vec::new();
    ip.udp(port, PORT)
        .write(&mut frame, &payload)
        .expect("writing to memory does not fail");
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Where the payload begins.
fn payload_of(frame: &[u8]) -> usize {
    match frame[12..14] {
        [0x86, 0xDD] => Version::Six.headers(),
        _ => Version::Four.headers(),
    }
}

/// The flow that a frame is of, by its port.
fn flow_of(frame: &[u8]) -> Option<usize> {
    let at = payload_of(frame.get(..60)?) - 8;
    let port = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
    port.checked_sub(FIRST_PORT).map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: [u8; 6] = [2, 0, 0, 0, 0, 9];

    #[test]
    fn a_sink_takes_each_flow_in_order_and_in_one_queue() {
        for version in [Version::Four, Version::Six] {
            let mut flows = Flows::new(4, STATION, version, 18, 1);
            let mut sink = flows.sink();
            let frames: Vec<_> = (0..40).map(|_| flows.frame()).collect();
            for frame in &frames[..20] {
                let queue = flow_of(frame).expect("a flow");
                assert_eq!(sink.take(queue, frame), Ok(()));
            }
            assert_eq!((sink.received(), sink.missing()), (20, 0));
            let again = sink.take(flow_of(&frames[0]).expect("a flow"), &frames[0]);
            assert!(
                matches!(again, Err(FlowMismatch::Order { .. })),
                "{again:?}"
            );
            let moved = sink.take(9, &frames[39]);
            assert!(
                matches!(moved, Err(FlowMismatch::Moved { .. })),
                "{moved:?}"
            );
            let mut spoilt = frames[20].clone();
            *spoilt.last_mut().expect("bytes") ^= 1;
            assert_eq!(
                sink.take(0, &spoilt),
                Err(FlowMismatch::Foreign(spoilt.len()))
            );
            assert_eq!(sink.take(0, &[0; 20]), Err(FlowMismatch::Foreign(20)));
        }
    }

    #[test]
    fn frames_that_do_not_come_are_missed() {
        let mut flows = Flows::new(1, STATION, Version::Four, 18, 1);
        let mut sink = flows.sink();
        let frames: Vec<_> = (0..3).map(|_| flows.frame()).collect();
        sink.take(0, &frames[2]).expect("a good frame");
        assert_eq!((sink.received(), sink.missing()), (1, 2));
    }
}
