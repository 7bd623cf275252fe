//! Tests the table of DMA maps alone, with concurrent users.

mod common;

use common::{loose_memory, memory};
use proptest::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use vfio_user_nic::{DmaError, DmaRange, DmaTable, Errno};

fn another(file: &File) -> OwnedFd {
    file.as_fd().try_clone_to_owned().unwrap()
}

fn mapped(ranges: &[(u64, u64, u64)], file: &File) -> DmaTable {
    let table = DmaTable::new();
    for (iova, size, offset) in ranges {
        let range = DmaRange::read_write(*iova, *size);
        table.map(range, Some((another(file), *offset))).unwrap();
    }
    table
}

#[test]
fn an_access_crosses_adjacent_ranges_and_stops_at_a_gap() {
    let file = memory(0x3000);
    let table = mapped(&[(0x1000, 0x1000, 0x2000), (0x2000, 0x1000, 0)], &file);
    let data: Vec<u8> = (0..=255).collect();
    table.write(0x1f80, &data).unwrap();
    let mut halves = [0; 256];
    file.read_exact_at(&mut halves[..128], 0x2f80).unwrap();
    file.read_exact_at(&mut halves[128..], 0).unwrap();
    assert_eq!(halves[..], data);
    let mut back = [0; 256];
    table.read(0x1f80, &mut back).unwrap();
    assert_eq!(back[..], data);
    assert_eq!(
        table.read(0x2f80, &mut back),
        Err(DmaError::Unmapped(0x3000))
    );
    assert_eq!(table.read(0xfff, &mut back), Err(DmaError::Unmapped(0xfff)));
    assert_eq!(
        table.read(u64::MAX, &mut back),
        Err(DmaError::Overflow(u64::MAX))
    );
    assert_eq!(table.read(0x9999, &mut []), Ok(()));
}

#[test]
fn permissions_are_kept() {
    let file = memory(0x2000);
    let table = DmaTable::new();
    let map = |iova, readable, writable| {
        let range = DmaRange {
            iova,
            size: 0x1000,
            readable,
            writable,
        };
        table.map(range, Some((another(&file), 0)))
    };
    map(0x1000, true, false).unwrap();
    map(0x2000, false, true).unwrap();
    assert_eq!(map(0x3000, false, false), Err(Errno::INVAL));
    assert_eq!(table.write(0x1000, &[1]), Err(DmaError::Denied(0x1000)));
    table.write(0x2000, &[7]).unwrap();
    let mut byte = [0];
    assert_eq!(table.read(0x2000, &mut byte), Err(DmaError::Denied(0x2000)));
    table.read(0x1000, &mut byte).unwrap();
    assert_eq!(byte, [7], "both ranges are the same memory");
}

#[test]
fn the_last_address_can_be_used() {
    let file = memory(0x1000);
    let table = mapped(&[(u64::MAX - 0xfff, 0x1000, 0)], &file);
    table.write(u64::MAX - 3, &[1, 2, 3, 4]).unwrap();
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, 0xffc).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4]);
}

#[test]
fn without_a_client_there_are_no_messages() {
    let table = DmaTable::new();
    table.map(DmaRange::read_write(0, 0x1000), None).unwrap();
    assert_eq!(table.read(0, &mut [0; 4]), Err(DmaError::Disconnected));
}

/// A host polls an index that the device advances: never torn, never early.
#[test]
fn a_polling_host_sees_whole_words_in_order() {
    let file = memory(0x1000);
    let device = mapped(&[(0, 0x1000, 0)], &file);
    let host = mapped(&[(0, 0x1000, 0)], &file);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..200_000u32 {
                let value = i.wrapping_mul(0x0101_0101);
                device
                    .write(0x100, &[value.to_ne_bytes(), value.to_ne_bytes()].concat())
                    .unwrap();
                device.write(0x40, &i.to_ne_bytes()).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut last = 0;
        while !done.load(Ordering::Acquire) {
            let mut index = [0; 4];
            host.read(0x40, &mut index).unwrap();
            let index = u32::from_ne_bytes(index);
            assert!(index >= last, "went from {last} back to {index}");
            last = index;
            let mut data = [0; 8];
            host.read(0x100, &mut data).unwrap();
            for word in data.chunks_exact(4) {
                let word = u32::from_ne_bytes(word.try_into().unwrap());
                // Data as new as the index, or newer: a product of an i >= index.
                let i = word.wrapping_mul(0x0101_0101u32.inverse());
                assert!(i >= index && i < 200_000, "index {index}, data of {i}");
            }
        }
    });
}

/// The inverse of an odd number modulo 2^32, by Newton's iteration.
trait Inverse {
    fn inverse(self) -> u32;
}

impl Inverse for u32 {
    fn inverse(self) -> u32 {
        (0..5).fold(1u32, |x, _| {
            x.wrapping_mul(2u32.wrapping_sub(self.wrapping_mul(x)))
        })
    }
}

/// Unmapping waits for copies; afterwards nobody gets at the memory.
#[test]
fn maps_may_change_while_they_are_used() {
    let file = memory(0x10_0000);
    let table = mapped(&[(0, 0x10_0000, 0)], &file);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..500 {
                table.unmap(0, 0x10_0000).unwrap();
                let range = DmaRange::read_write(0, 0x10_0000);
                table.map(range, Some((another(&file), 0))).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut buffer = vec![0; 0x8000];
        while !done.load(Ordering::Relaxed) {
            match table.read(0x1003, &mut buffer) {
                Ok(()) | Err(DmaError::Unmapped(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
}

proptest! {
    /// Against a plain array: any sequence of writes at any alignment and length.
    #[test]
    fn copies_are_exact(
        writes in prop::collection::vec((0u64..0x2000, prop::collection::vec(any::<u8>(), 0..700)), 1..20),
        loose: bool,
    ) {
        // Mapped, and by system calls.
        let file = if loose { loose_memory(0x3000) } else { memory(0x3000) };
        let table = mapped(&[(0, 0x1000, 0x2000), (0x1000, 0x801, 0x800)], &file);
        let mut model = vec![0; 0x1801];
        for (at, data) in writes {
            let end = at as usize + data.len();
            let inside = end <= model.len() || data.is_empty();
            prop_assert_eq!(table.write(at, &data).is_ok(), inside);
            // Bytes before the first bad address are written.
            let n = model.len().min(end).saturating_sub(at as usize);
            if n > 0 {
                model[at as usize..at as usize + n].copy_from_slice(&data[..n]);
            }
            let mut back = vec![0; model.len()];
            table.read(0, &mut back).unwrap();
            prop_assert_eq!(&back, &model);
        }
    }
}
