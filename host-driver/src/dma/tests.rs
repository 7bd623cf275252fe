//! Tests of DMA memory.

use super::*;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

fn memory() -> DmaMemory {
    DmaMemory::new(100, 0x10_0000).expect("a page of memory")
}

#[test]
fn is_zeroed_rounded_and_shared_between_clones() {
    let memory = memory();
    assert_eq!(memory.len(), PAGE_BYTES);
    assert_eq!(memory.iova(), 0x10_0000);
    assert_eq!(memory.read_word(PAGE_BYTES - 4), Ok(0));
    let clone = memory.clone();
    clone.write_word(8, 0x0102_0304).unwrap();
    assert_eq!(memory.read_word(8), Ok(0x0102_0304));
}

#[test]
fn refuses_every_range_that_leaves_the_memory() {
    let memory = memory();
    let len = PAGE_BYTES;
    let out = |offset, bytes| Err(DmaError::OutOfBounds { offset, bytes, len });
    assert_eq!(memory.read_word(len).map(|_| ()), out(len, 4));
    assert_eq!(memory.write_word(usize::MAX - 3, 1), out(usize::MAX - 3, 4));
    assert_eq!(memory.read_bytes(len - 1, &mut [0; 2]), out(len - 1, 2));
    assert_eq!(memory.write_bytes(len, &[1]), out(len, 1));
    assert_eq!(memory.clear(1, usize::MAX), out(1, usize::MAX));
    assert_eq!(memory.write_words(len - 4, &[1, 2]), out(len - 4, 8));
    assert_eq!(memory.read_word(len - 4), Ok(0), "nothing was written");
    assert_eq!(memory.read_bytes(len, &mut []), Ok(()));
    let (left, _right) = UnixStream::pair().unwrap();
    assert_eq!(
        memory
            .read_from(left.as_fd(), len - 1, 2)
            .unwrap_err()
            .kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn refuses_unaligned_words() {
    assert_eq!(
        memory().read_word(2),
        Err(DmaError::Unaligned { offset: 2 })
    );
}

#[test]
fn refuses_sizes_and_addresses_that_make_no_sense() {
    for (bytes, iova) in [
        (0, 0),
        (MAX_BYTES + 1, 0),
        (4096, 1),
        (8192, u64::MAX - 4095),
    ] {
        let error = DmaMemory::new(bytes, iova).unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::InvalidInput,
            "{bytes} {iova:x}"
        );
    }
}

#[test]
fn moves_bytes_to_and_from_a_file_descriptor_without_a_buffer() {
    let memory = memory();
    let (mut left, right) = UnixStream::pair().unwrap();
    left.write_all(b"a frame").unwrap();
    assert_eq!(memory.read_from(right.as_fd(), 3, 64).unwrap(), 7);
    let mut seen = [0; 7];
    memory.read_bytes(3, &mut seen).unwrap();
    assert_eq!(&seen, b"a frame");
    assert_eq!(memory.write_to(right.as_fd(), 5, 5).unwrap(), 5);
    let mut back = [0; 5];
    left.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"frame");
}

#[test]
fn the_memory_file_holds_the_same_bytes_and_cannot_be_shrunk() {
    let memory = memory();
    memory.write_bytes(16, b"shared").unwrap();
    let mut seen = [0; 6];
    rustix::io::pread(memory.fd(), &mut seen, 16).unwrap();
    assert_eq!(&seen, b"shared");
    assert!(rustix::fs::ftruncate(memory.fd(), 0).is_err());
}
