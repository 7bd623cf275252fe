//! The MAC from firmware's side and from the wire.

use crate::testing::{Bench, K, RX_BASE, STATION, TX_BASE};
use crate::{DropReason, Effect, Reception};
use tigon2_chip::Register as R;
use tigon2_chip::bits::{MacRxState, MacTxState};
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::{MacStatistic, RxError, TxDescriptor, multicast_hash_bit};
use tigon2_chip::memory::{PACKET_MEMORY_END, block};

mod admission;
mod faults;
mod pause;
mod receive;
mod transmit;

const TX_RING: u32 = K + block::MAC_TX_RING;
const RX_RING: u32 = K + block::MAC_RX_RING;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.bring_up();
    bench
}

fn frame_to(destination: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|n| (n * 13 + length) as u8).collect();
    frame[..6].copy_from_slice(&destination);
    frame
}

/// Writes a MAC TX descriptor at R[FC] and moves R[F0].
fn queue(bench: &mut Bench, start: u32, length: u16, tag: Option<u16>) {
    let descriptor = TxDescriptor::new(start, length, tag);
    let address = bench.read(R::TxDescriptorNextFree);
    assert_ne!(address, 0, "the ring has room");
    bench.set_word(address, descriptor.start_and_flags);
    bench.set_word(address + 4, descriptor.length_and_tag);
    bench.write(R::TxDescriptorProducer, address + 8);
}

/// Puts frame data into the TX buffer (over its end) and moves TxPrd.
fn fill(bench: &mut Bench, start: u32, data: &[u8]) -> u32 {
    let room = (RX_BASE - start) as usize;
    let (now, later) = data.split_at(room.min(data.len()));
    bench.set_bytes(start, now);
    bench.set_bytes(TX_BASE, later);
    let end = match later {
        [] => start + now.len() as u32,
        later => TX_BASE + later.len() as u32,
    };
    bench.write(R::TxProducer, end);
    end
}

fn statistic(bench: &Bench, statistic: MacStatistic) -> u32 {
    bench.word(statistic.nic_address())
}
