//! Tests the vfio-user transport against a server with a small device.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host_driver::transport::vfio_user::VfioUser;
use host_driver::transport::{Access, Transport, TransportError, Vector};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vfio_user_nic::message::region;
use vfio_user_nic::server::ServerThread;
use vfio_user_nic::{Device, DeviceLayout, DmaTable, Errno, Interrupts, Server, ServerConfig};

/// A device that remembers what it is told, in order.
#[derive(Default)]
struct Memory {
    bar: Vec<u8>,
    writes: Vec<(u64, usize)>,
    resets: u32,
    counts: Vec<u8>,
}

impl Device for Memory {
    fn region_read(&mut self, region: u32, at: u64, data: &mut [u8]) -> Result<(), Errno> {
        if region == region::CONFIG {
            data.copy_from_slice(&0x0001_12AEu32.to_le_bytes()[..data.len()]);
            return Ok(());
        }
        let at = at as usize;
        if region == region::COUNTS {
            let text = self.counts.iter().copied().chain(std::iter::repeat(0));
            data.iter_mut()
                .zip(text.skip(at))
                .for_each(|(to, byte)| *to = byte);
            return Ok(());
        }
        data.copy_from_slice(&self.bar[at..at + data.len()]);
        Ok(())
    }
    fn region_write(&mut self, region: u32, at: u64, data: &[u8]) -> Result<(), Errno> {
        if region == region::BAR0 {
            self.bar[at as usize..at as usize + data.len()].copy_from_slice(data);
        }
        self.writes.push((at, data.len()));
        Ok(())
    }
    fn reset(&mut self) -> Result<(), Errno> {
        self.resets += 1;
        Ok(())
    }
}

/// A served device; the server stops when this goes.
struct Card {
    path: PathBuf,
    device: Arc<Mutex<Memory>>,
    dma: DmaTable,
    interrupts: Interrupts,
    thread: Option<ServerThread>,
    _folder: tempfile::TempDir,
}

impl Card {
    fn new(layout: DeviceLayout) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("card.sock");
        let server = Server::bind(&path, ServerConfig::new(layout)).expect("a socket");
        let device = Arc::new(Mutex::new(Memory {
            bar: vec![0; 0x4000],
            ..Memory::default()
        }));
        let (dma, interrupts) = (server.dma(), server.interrupts());
        let thread = server.spawn(device.clone()).expect("a thread");
        Self {
            path,
            device,
            dma,
            interrupts,
            thread: Some(thread),
            _folder: folder,
        }
    }

    fn connect(&self) -> VfioUser {
        VfioUser::connect(&self.path).expect("a card")
    }

    fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.stop().expect("the server ends well");
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.stop();
    }
}

fn card() -> Card {
    Card::new(DeviceLayout::pci(0x4000))
}

#[test]
fn posted_writes_arrive_before_a_later_read_and_in_order() {
    let card = card();
    let mut transport = card.connect();
    for word in 0..200u32 {
        transport.write(0x800 + 4 * word, word * 3).expect("a card");
    }
    transport.write_block(0x1000, &[7, 8, 9]).expect("a card");
    assert_eq!(transport.read(0x800 + 4 * 199).expect("a card"), 597);
    let mut block = [0; 3];
    transport.read_block(0x1000, &mut block).expect("a card");
    assert_eq!(block, [7, 8, 9]);
    let device = card.device.lock().expect("no panic");
    let offsets: Vec<u64> = device.writes.iter().map(|(at, _)| *at).collect();
    let expected: Vec<u64> = (0..200)
        .map(|word| 0x800 + 4 * word)
        .chain([0x1000])
        .collect();
    assert_eq!(offsets, expected);
    assert_eq!(device.bar[0x804..0x808], 3u32.to_le_bytes());
}

#[test]
fn offsets_outside_the_card_are_refused_here() {
    let card = card();
    let mut transport = card.connect();
    assert!(matches!(
        transport.read(0x4000),
        Err(TransportError::BadOffset(0x4000))
    ));
    assert!(matches!(
        transport.read(2),
        Err(TransportError::BadOffset(2))
    ));
    assert!(matches!(
        transport.write(u32::MAX - 3, 0),
        Err(TransportError::BadOffset(_))
    ));
    assert!(matches!(
        transport.write_block(0x3FFC, &[1, 2]),
        Err(TransportError::BadOffset(_))
    ));
    assert!(matches!(
        transport.config_read(0x100),
        Err(TransportError::BadOffset(0x100))
    ));
    assert_eq!(transport.config_read(0).expect("a card"), 0x0001_12AE);
}

#[test]
fn dma_memory_is_the_same_on_both_sides_and_ends_where_it_ends() {
    let card = card();
    let mut transport = card.connect();
    let first = transport.allocate(5000).expect("memory");
    let second = transport.allocate(4096).expect("memory");
    assert!(first.iova() >= 1 << 32, "above 4 GB");
    let waits = card.dma.waits(first.iova(), first.len());
    assert!(
        !waits,
        "sealed memory is mapped: the card never waits for it"
    );
    first.write_bytes(4999, &[0xAB]).expect("inside");
    let mut byte = [0];
    card.dma
        .read(first.iova() + 4999, &mut byte)
        .expect("mapped");
    assert_eq!(byte, [0xAB]);
    card.dma
        .write(second.iova() + 8, &0x0102_0304u32.to_le_bytes())
        .expect("mapped");
    assert_eq!(second.read_word(8), Ok(0x0102_0304));
    let beyond = first.iova() + first.len() as u64;
    assert!(card.dma.write(beyond, &[1]).is_err(), "a gap follows");
    assert!(card.dma.write(beyond - 1, &[1, 2]).is_err());
}

#[test]
fn a_memory_file_is_written_where_the_card_may_and_ends_when_it_is_taken_back() {
    let card = card();
    let mut transport = card.connect();
    for (access, may_write) in [(Access::Read, false), (Access::ReadWrite, true)] {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("own", flags).unwrap();
        ftruncate(&file, 4096).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        rustix::io::pwrite(&file, b"sent", 0).unwrap();
        let own = file.try_clone().unwrap();
        let memory = transport.map(file, access).unwrap();
        let mut seen = [0; 4];
        card.dma.read(memory.iova(), &mut seen).unwrap();
        assert_eq!(&seen, b"sent");
        let written = card.dma.write(memory.iova(), b"came");
        assert_eq!(written.is_ok(), may_write, "{access:?}: {written:?}");
        rustix::io::pread(&own, &mut seen, 0).unwrap();
        assert_eq!(&seen == b"came", may_write);
        transport.unmap(&memory).unwrap();
        assert!(card.dma.read(memory.iova(), &mut seen).is_err());
    }
}

#[test]
fn an_interrupt_comes_once_until_it_is_unmasked() {
    let card = card();
    let mut transport = card.connect();
    let long = Duration::from_secs(5);
    let short = Duration::from_millis(20);
    assert!(!transport.wait(Vector::INTERRUPT, short).expect("a card"));
    card.interrupts.set_level(true);
    assert!(transport.wait(Vector::INTERRUPT, long).expect("a card"));
    assert!(
        !transport.wait(Vector::INTERRUPT, short).expect("a card"),
        "it is masked"
    );
    // The line is still up: it comes again.
    transport.unmask(Vector::INTERRUPT).expect("a card");
    assert!(transport.wait(Vector::INTERRUPT, long).expect("a card"));
    card.interrupts.set_level(false);
    transport.unmask(Vector::INTERRUPT).expect("a card");
    assert!(!transport.wait(Vector::INTERRUPT, short).expect("a card"));
    transport.reset().expect("a card");
    assert_eq!(card.device.lock().expect("no panic").resets, 1);
}

/// The region of counts goes over the socket; a device without one, or with something else
/// in its place, is a card all the same.
#[test]
fn an_emulators_counts_are_read_from_its_region() {
    let text = b"lost=0 signals=12 waiting=1";
    let counted = Card::new(DeviceLayout::pci(0x4000).with_counts(64));
    counted.device.lock().expect("no panic").counts = text.to_vec();
    let counts = counted.connect().counts().expect("a card");
    assert_eq!(counts.as_deref(), Some("lost=0 signals=12 waiting=1"));

    let full = Card::new(DeviceLayout::pci(0x4000).with_counts(8));
    full.device.lock().expect("no panic").counts = text.to_vec();
    let counts = full.connect().counts().expect("a card");
    assert_eq!(
        counts.as_deref(),
        Some("lost=0 s"),
        "it ends with its region"
    );

    assert_eq!(card().connect().counts().expect("a card"), None);
    let huge = Card::new(DeviceLayout::pci(0x4000).with_counts(1 << 40));
    assert_eq!(huge.connect().counts().expect("a card"), None);
}

#[test]
fn a_card_that_goes_away_is_noticed() {
    let mut card = card();
    let mut transport = card.connect();
    card.stop();
    assert!(
        transport
            .wait(Vector::INTERRUPT, Duration::from_secs(5))
            .is_err()
    );
    assert!(transport.read(0x40).is_err());
}

#[test]
fn what_is_no_card_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let nobody = folder.path().join("nobody");
    let error = VfioUser::connect(&nobody).err().expect("nobody is there");
    assert!(
        matches!(error, TransportError::Unreachable { .. }),
        "{error}"
    );

    let file = folder.path().join("file");
    std::fs::write(&file, b"a file").expect("a file");
    let error = VfioUser::connect(&file).err().expect("a file is no card");
    assert!(
        matches!(error, TransportError::Unreachable { .. }),
        "{error}"
    );

    let other = folder.path().join("other");
    let listener = UnixListener::bind(&other).expect("a socket");
    let web = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut buffer = [0; 64];
        let _ = stream.read(&mut buffer);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = VfioUser::connect(&other)
        .err()
        .expect("a web server is no card");
    assert!(matches!(error, TransportError::NotACard { .. }), "{error}");
    web.join().expect("no panic");

    let small = Card::new(DeviceLayout::pci(0x1000));
    let error = VfioUser::connect(&small.path)
        .err()
        .expect("another device");
    assert!(error.to_string().contains("BAR0 has 4096 bytes"), "{error}");

    let mut layout = DeviceLayout::pci(0x4000);
    layout.intx = false;
    let dumb = Card::new(layout);
    let error = VfioUser::connect(&dumb.path).err().expect("another device");
    assert!(error.to_string().contains("interrupt pin"), "{error}");
}
