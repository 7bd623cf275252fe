//! Tests the kinds of file behind a range: only files that cannot shrink are mapped.

mod common;

use common::{loose_memory, memory, open_descriptors, word_at};
use rustix::fd::{AsFd, OwnedFd};
use std::fs::File;
use vfio_user_nic::{DmaError, DmaRange, DmaTable, Errno};

const PAGE: u64 = 0x1000;

fn another(file: &File) -> OwnedFd {
    file.as_fd().try_clone_to_owned().unwrap()
}

fn table_of(file: &File, size: u64) -> DmaTable {
    let table = DmaTable::new();
    let range = DmaRange::read_write(PAGE, size);
    table.map(range, Some((another(file), 0))).unwrap();
    table
}

#[test]
fn a_file_that_cannot_shrink_never_waits() {
    let file = memory(PAGE);
    let table = table_of(&file, PAGE);
    assert!(!table.waits(0, 0x10_0000));
    table.write_now(PAGE, &7u32.to_ne_bytes()).unwrap();
    assert_eq!(word_at(&file, 0), 7);
}

#[test]
fn a_file_that_may_shrink_is_read_and_written_by_calls() {
    let file = loose_memory(2 * PAGE);
    let table = table_of(&file, 2 * PAGE);
    assert!(table.waits(PAGE, 4) && !table.waits(0, 4));
    let mut word = [0; 4];
    let waits = Err(DmaError::Waits(PAGE));
    assert_eq!(table.read_now(PAGE, &mut word), waits);
    assert_eq!(table.write_now(PAGE, &word), waits);
    let data: Vec<u8> = (0..=255).cycle().take(0x1800).collect();
    table.write(PAGE + 3, &data).unwrap();
    let mut back = vec![0; 0x1800];
    table.read(PAGE + 3, &mut back).unwrap();
    assert_eq!(back, data);
    assert_eq!(word_at(&file, 3), u32::from_ne_bytes([0, 1, 2, 3]));
}

/// With a mapping, each of these accesses would end the process by SIGBUS.
#[test]
fn a_file_that_shrinks_is_an_error_of_the_access() {
    let file = loose_memory(2 * PAGE);
    let table = table_of(&file, 2 * PAGE);
    file.set_len(PAGE).unwrap();
    table.write(PAGE, &[1; 0x1000]).unwrap();
    let mut page = [0; 0x1000];
    table.read(PAGE, &mut page).unwrap();
    for address in [2 * PAGE, 2 * PAGE - 4] {
        let gone = Err(DmaError::File {
            address,
            errno: Errno::FAULT,
        });
        assert_eq!(table.read(address, &mut page[..8]), gone);
        assert_eq!(table.write(address, &page[..8]), gone);
    }
    assert_eq!(
        file.metadata().unwrap().len(),
        PAGE,
        "it does not grow again"
    );
}

/// A seal against writing that comes later is an error, too.
#[test]
fn a_file_that_is_sealed_against_writing_later_is_an_error() {
    let file = loose_memory(PAGE);
    let table = table_of(&file, PAGE);
    rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::WRITE).unwrap();
    let sealed = Err(DmaError::File {
        address: PAGE,
        errno: Errno::PERM,
    });
    assert_eq!(table.write(PAGE, &[1]), sealed);
    table.read(PAGE, &mut [0]).unwrap();
}

/// A file on a disk may be in the hands of a slow or hostile file system: messages.
#[test]
fn other_files_are_not_touched() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [0; 0x1000]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let table = table_of(&file, PAGE);
    assert!(table.waits(PAGE, 4));
    let asked = table.read(PAGE, &mut [0; 4]);
    assert_eq!(asked, Err(DmaError::Disconnected), "the client is asked");
}

#[test]
fn descriptors_that_do_not_permit_it_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [0; 0x1000]).unwrap();
    let map = |file: File, size| {
        let range = DmaRange::read_write(0, size);
        DmaTable::new().map(range, Some((file.into(), 0)))
    };
    let (read, both) = (File::open(&path).unwrap(), |path| {
        File::options().read(true).write(true).open(path).unwrap()
    });
    assert_eq!(map(read, PAGE), Err(Errno::ACCESS));
    assert_eq!(map(both(&path), PAGE + 1), Err(Errno::INVAL));
    assert_eq!(map(both(&"/dev/null".into()), PAGE), Err(Errno::INVAL));
    assert_eq!(map(loose_memory(PAGE), PAGE + 1), Err(Errno::INVAL));
    assert_eq!(map(memory(PAGE), PAGE + 1), Err(Errno::INVAL));
    let huge = DmaRange::read_write(0, u64::MAX);
    let file = Some((memory(PAGE).into(), u64::MAX));
    assert_eq!(DmaTable::new().map(huge, file), Err(Errno::INVAL));
}

/// However many ranges lie in one file that may shrink, it is open once; and not more than
/// some are. Alone with its descriptors, since all tests here are short.
#[test]
fn a_file_is_open_once() {
    let file = loose_memory(PAGE);
    let table = DmaTable::new();
    let before = open_descriptors();
    for n in 0..500 {
        let range = DmaRange::read_write(n * PAGE, PAGE);
        table.map(range, Some((another(&file), 0))).unwrap();
    }
    let more = open_descriptors().saturating_sub(before);
    assert!(more < 100, "{more} descriptors for one file");
    table.unmap_all();
    let files = (0..200).map(|n| {
        let range = DmaRange::read_write(n * PAGE, PAGE);
        table.map(range, Some((loose_memory(PAGE).into(), 0)))
    });
    let taken = files.take_while(|result| *result == Ok(())).count();
    assert_eq!(taken, 64);
    table.unmap(0, PAGE).unwrap();
    let range = DmaRange::read_write(0, PAGE);
    table
        .map(range, Some((loose_memory(PAGE).into(), 0)))
        .unwrap();
}

/// The address space is the process's, not the client's.
#[test]
fn mapped_bytes_have_an_end() {
    let file = memory(1 << 39);
    let table = DmaTable::new();
    let map = |n: u64| {
        table.map(
            DmaRange::read_write(n << 39, 1 << 39),
            Some((another(&file), 0)),
        )
    };
    assert_eq!(
        (map(0), map(1), map(2)),
        (Ok(()), Ok(()), Err(Errno::NOSPC))
    );
    table.unmap(0, 1 << 39).unwrap();
    assert_eq!(map(2), Ok(()));
}
