//! DMA as firmware uses it: direct, by the assist, and its effects on the MAC's pointers.

use crate::testing::{Bench, HOST_BASE, K, RX_BASE, TX_BASE};
use crate::{Cpu, UndefinedKind};
use tigon2_chip::bits::{AssistState, DmaState};
use tigon2_chip::dma::{DESCRIPTOR_BYTES, DmaDescriptor};
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_chip::{HostAddress, Register as R};

mod assist;
mod data;
mod direct;
mod errors;
mod moving;
mod waiting;

const READ_RING: u32 = K + block::DMA_READ_RING;
const WRITE_RING: u32 = K + block::DMA_WRITE_RING;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.bring_up();
    bench
}

fn descriptor(host: u64, local: u32, length: u32, state: u32) -> DmaDescriptor {
    DmaDescriptor {
        host: HostAddress::new(host),
        local,
        length,
        state: DmaState::from_bits(state | 4),
        ..DmaDescriptor::default()
    }
}

/// Puts a descriptor where R[10C]/R[12C] says and moves the producer, as firmware does.
fn queue(bench: &mut Bench, producer: R, next_free: R, descriptor: &DmaDescriptor) -> u32 {
    let address = bench.read(next_free);
    assert_ne!(address, 0, "the ring has room");
    bench.set_bytes(address, &descriptor.to_nic_bytes());
    bench.write(producer, address + DESCRIPTOR_BYTES);
    address
}

fn queue_read(bench: &mut Bench, descriptor: &DmaDescriptor) -> u32 {
    queue(
        bench,
        R::AssistReadProducer,
        R::AssistReadNextFree,
        descriptor,
    )
}

fn queue_write(bench: &mut Bench, descriptor: &DmaDescriptor) -> u32 {
    queue(
        bench,
        R::AssistWriteProducer,
        R::AssistWriteNextFree,
        descriptor,
    )
}

fn fill_host(bench: &mut Bench, offset: usize, data: &[u8]) {
    bench.host.bytes[offset..offset + data.len()].copy_from_slice(data);
}
