//! Host memory that makes transfers wait.

use super::*;
use crate::dma::Direction;
use crate::environment::{Environment, HostMemory, HostMemoryError};
use crate::testing::VecHost;

/// Memory that is mapped, but not ready at once.
struct Slow<'a>(&'a mut VecHost);

impl HostMemory for Slow<'_> {
    fn read(&mut self, address: u64, _: &mut [u8]) -> Result<(), HostMemoryError> {
        panic!("{address:#x} is not read while it waits");
    }

    fn write(&mut self, address: u64, _: &[u8]) -> Result<(), HostMemoryError> {
        panic!("{address:#x} is not written while it waits");
    }

    fn waits(&self, address: u64, length: usize) -> bool {
        address >= self.0.base && length > 0
    }
}

/// Runs the card's work on host memory that waits.
fn run_slowly(bench: &mut Bench) {
    let mut environment = Environment {
        now: bench.now,
        sram: &mut bench.sram,
        host: &mut Slow(&mut bench.host),
        cpus: &mut bench.cpus,
    };
    assert!(
        !bench.card.run(&mut environment),
        "nothing more can be done"
    );
}

/// Both channels are busy and their pointers stay until the engine completes them; the bytes are
/// then those of that moment, and the next descriptors follow.
#[test]
fn a_transfer_that_waits_is_only_begun() {
    let mut bench = bench();
    bench.host.bytes[..4].copy_from_slice(b"host");
    bench.set_bytes(0x7000, b"chip");
    for _ in 0..2 {
        queue_read(&mut bench, &descriptor(HOST_BASE, 0x6000, 4, 0));
        queue_write(&mut bench, &descriptor(HOST_BASE + 8, 0x7000, 4, 0));
    }
    run_slowly(&mut bench);
    for (direction, consumer) in [
        (Direction::Read, R::AssistReadConsumer),
        (Direction::Write, R::AssistWriteConsumer),
    ] {
        let base = bench.read(consumer);
        assert!(
            bench.card.dma_transfer(direction).is_some(),
            "{direction:?}"
        );
        assert_eq!(bench.card.dma_begun(direction), 1);
        bench.with(|card, env| card.dma_complete(env, direction));
        assert_eq!(bench.read(consumer), base + DESCRIPTOR_BYTES);
    }
    assert_eq!(bench.bytes(0x6000, 4), b"host");
    assert_eq!(bench.host.bytes[8..12], *b"chip");
    run_slowly(&mut bench);
    assert_eq!(bench.card.dma_begun(Direction::Read), 2);
}

/// What goes to the host is known before the transfer is complete, in the host's order.
#[test]
fn the_bytes_of_a_write_are_there_to_be_taken() {
    let mut bench = bench();
    bench.set_bytes(0x7000, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let no_swap = DmaState::new().with_no_swap(true).into_bits();
    for (state, bytes) in [
        (0, [1, 2, 3, 4, 5, 6, 7, 8]),
        (no_swap, [4, 3, 2, 1, 8, 7, 6, 5]),
    ] {
        queue_write(&mut bench, &descriptor(HOST_BASE, 0x7000, 8, state));
        run_slowly(&mut bench);
        assert_eq!(bench.card.dma_bytes(&bench.sram), Some(bytes.to_vec()));
        bench.with(|card, env| card.dma_complete(env, Direction::Write));
        assert_eq!(bench.host.bytes[..8], bytes);
        assert_eq!(bench.card.dma_bytes(&bench.sram), None);
    }
}

/// A reset ends the transfer; an equal one that is begun later is another one.
#[test]
fn a_transfer_after_a_reset_is_another_one() {
    let mut bench = bench();
    let read = descriptor(HOST_BASE, 0x6000, 4, 0);
    queue_read(&mut bench, &read);
    run_slowly(&mut bench);
    let first = bench.card.dma_begun(Direction::Read);
    bench.write(R::DmaReadState, 1);
    assert_eq!(bench.card.dma_transfer(Direction::Read), None);
    run_slowly(&mut bench);
    assert!(bench.card.dma_transfer(Direction::Read).is_some());
    assert_ne!(bench.card.dma_begun(Direction::Read), first);
}
