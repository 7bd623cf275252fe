//! Host memory that does not answer, and how software recovers without a chip reset.
//!
//! This order always works: pause the assist (`R[11C]` bit 1), handle the descriptor at the
//! consumer, reset the channel (bit 0 of its state), resume the assist.

use super::*;
use crate::Direction;

/// Where host memory is not mapped.
const NOWHERE: u64 = 0x10;

/// The registers of one channel and its ring.
struct Way {
    direction: Direction,
    producer: R,
    next_free: R,
    consumer: R,
    reference: R,
    state: R,
    attention: EventBit,
    complete: EventBit,
}

const READ: Way = Way {
    direction: Direction::Read,
    producer: R::AssistReadProducer,
    next_free: R::AssistReadNextFree,
    consumer: R::AssistReadConsumer,
    reference: R::AssistReadReference,
    state: R::DmaReadState,
    attention: EventBit::DmaReadAttention,
    complete: EventBit::DmaReadComplete,
};

const WRITE: Way = Way {
    direction: Direction::Write,
    producer: R::AssistWriteProducer,
    next_free: R::AssistWriteNextFree,
    consumer: R::AssistWriteConsumer,
    reference: R::AssistWriteReference,
    state: R::DmaWriteState,
    attention: EventBit::DmaWriteAttention,
    complete: EventBit::DmaWriteComplete,
};

impl Way {
    fn queue(&self, bench: &mut Bench, host: u64, local: u32) -> u32 {
        let descriptor = descriptor(host, local, 64, 0);
        queue(bench, self.producer, self.next_free, &descriptor)
    }

    /// Event bits of the attention and of the completion.
    fn events(&self, bench: &mut Bench) -> (bool, bool) {
        let events = bench.read(R::EventA);
        let has = |bit: EventBit| events & bit.mask() != 0;
        (has(self.attention), has(self.complete))
    }

    /// Whether the bytes arrived at the good address with this number.
    fn moved(&self, bench: &mut Bench, n: u32) -> bool {
        let (host, local) = (HOST_BASE + u64::from(n) * 64, 0x6000 + n * 64);
        let host = bench.host.slice(host, 64).expect("mapped").to_vec();
        let nic = bench.bytes(local, 64);
        host == nic && host[0] != 0
    }
}

/// A card with different bytes on the side that the channel reads.
fn prepared(way: &Way) -> Bench {
    let mut bench = bench();
    for n in 0..8u32 {
        let bytes = [n as u8 + 1; 64];
        match way.direction {
            Direction::Read => fill_host(&mut bench, n as usize * 64, &bytes),
            Direction::Write => bench.set_bytes(0x6000 + n * 64, &bytes),
        }
    }
    bench
}

/// Reference 6.1 to 6.3: the failed descriptor is skipped by moving the consumer: those
/// behind it are done in order, and the completion event covers all.
#[test]
fn a_failed_descriptor_is_skipped() {
    for way in [READ, WRITE] {
        let mut bench = prepared(&way);
        way.queue(&mut bench, HOST_BASE, 0x6000);
        let bad = way.queue(&mut bench, NOWHERE, 0x7000);
        let good = way.queue(&mut bench, HOST_BASE + 128, 0x6080);
        bench.write(way.reference, good);
        bench.run();
        assert_eq!(way.events(&mut bench), (true, false));
        assert_eq!(bench.read(way.consumer), bad);
        assert!(way.moved(&mut bench, 0) && !way.moved(&mut bench, 2));
        bench.run();
        assert_eq!(bench.read(way.consumer), bad, "it stands still");

        bench.write(R::AssistState, 0x23);
        bench.write(way.consumer, good);
        bench.write(way.state, 1);
        bench.run();
        assert_eq!(way.events(&mut bench), (false, false), "paused");
        assert!(!way.moved(&mut bench, 2));
        bench.write(R::AssistState, 0x21);
        bench.run();
        assert_eq!(way.events(&mut bench), (false, true));
        assert!(way.moved(&mut bench, 2));
        assert_eq!(bench.read(way.consumer), bench.read(way.producer));
    }
}

/// Reference 6.1 to 6.3: or it is repaired where it lies, and tried again.
#[test]
fn a_failed_descriptor_is_repaired() {
    for way in [READ, WRITE] {
        let mut bench = prepared(&way);
        let bad = way.queue(&mut bench, NOWHERE, 0x6000);
        bench.run();
        assert_eq!(way.events(&mut bench), (true, false));
        // Without a repair it fails again.
        bench.write(way.state, 1);
        assert_eq!(way.events(&mut bench), (false, false));
        bench.run();
        assert_eq!(way.events(&mut bench), (true, false));
        bench.set_bytes(bad, &descriptor(HOST_BASE, 0x6000, 64, 0).to_nic_bytes());
        bench.write(way.state, 1);
        bench.run();
        assert!(!way.events(&mut bench).0);
        assert!(way.moved(&mut bench, 0));
        assert_eq!(bench.read(way.consumer), bench.read(way.producer));
    }
}

/// A length of 0 makes a descriptor harmless: the host is not touched, so it completes.
#[test]
fn a_failed_descriptor_is_emptied() {
    for way in [READ, WRITE] {
        let mut bench = prepared(&way);
        let bad = way.queue(&mut bench, NOWHERE, 0x7000);
        bench.run();
        bench.set_word(bad + 12, 0);
        bench.write(way.state, 1);
        bench.run();
        assert!(!way.events(&mut bench).0);
        assert_eq!(bench.read(way.consumer), bench.read(way.producer));
    }
}

/// While one channel is stopped the other continues, even if only one may be active at a time.
#[test]
fn the_other_direction_is_served() {
    for (broken, well) in [(READ, WRITE), (WRITE, READ)] {
        for assist in [0x21, 0x25] {
            let mut bench = prepared(&well);
            bench.write(R::AssistState, assist);
            broken.queue(&mut bench, NOWHERE, 0x7000);
            bench.run();
            for n in 0..4 {
                well.queue(&mut bench, HOST_BASE + u64::from(n) * 64, 0x6000 + n * 64);
                bench.run();
                assert!(
                    well.moved(&mut bench, n),
                    "{:?} {assist:#x}",
                    well.direction
                );
            }
            assert!(broken.events(&mut bench).0);
        }
    }
}

/// Reference 6.5: the sum of a gathered frame survives a fragment that failed and was tried
/// again.
#[test]
fn the_sum_survives_a_repair() {
    let state = |bits: u32| bits | DmaState::from_bits(0).with_checksum(true).into_bits();
    let begins = DmaState::new().with_restart_checksum(true).into_bits();
    let mut sums = [0; 2];
    for (sum, fails) in sums.iter_mut().zip([false, true]) {
        let mut bench = prepared(&READ);
        queue_read(
            &mut bench,
            &descriptor(HOST_BASE, 0x6000, 64, state(begins)),
        );
        let host = if fails { NOWHERE } else { HOST_BASE + 64 };
        let at = queue_read(&mut bench, &descriptor(host, 0x6040, 64, state(0)));
        bench.run();
        if fails {
            let good = descriptor(HOST_BASE + 64, 0x6040, 64, state(0));
            bench.set_bytes(at, &good.to_nic_bytes());
            bench.write(R::DmaReadState, 1);
            bench.run();
        }
        *sum = bench.read(R::DmaReadChecksum);
    }
    assert_eq!(sums[0], sums[1]);
    assert_ne!(sums[0], 0);
}

/// A direct transfer that failed is over: the next one starts by its state word.
#[test]
fn a_direct_transfer_fails_once() {
    let mut bench = prepared(&READ);
    let start = |bench: &mut Bench, host: u64| {
        bench.write(R::DmaReadHostHigh, (host >> 32) as u32);
        bench.write(R::DmaReadHostLow, host as u32);
        bench.write(R::DmaReadLocal, 0x6000);
        bench.write(R::DmaReadLength, 64);
        bench.write(R::DmaReadState, 4);
        bench.run();
        bench.read(R::DmaReadState)
    };
    let state = start(&mut bench, NOWHERE);
    assert_eq!((state & DmaState::ERRORS, state & 4), (0x0100_0000, 0));
    assert_eq!(start(&mut bench, HOST_BASE) & DmaState::ERRORS, 0);
    assert!(READ.moved(&mut bench, 0));
}
