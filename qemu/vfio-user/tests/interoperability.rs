//! Tests our server with another implementation's client, and our client with its server.
//!
//! The crate `vfio_user` implements the same protocol independently.

mod common;

use common::*;
use rustix::fd::AsRawFd;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, ServerBackend};
use vfio_user_nic::message::{irq, irq_set_flags, region};
use vfio_user_nic::{Client, DmaRange};

#[test]
fn their_client_with_our_server() {
    let bench = Bench::new();
    let mut client = vfio_user::Client::new(&bench.path).unwrap();
    assert_eq!(client.region(region::BAR0).unwrap().size, BAR_BYTES);
    assert_eq!(client.region(region::CONFIG).unwrap().size, 256);
    let intx = client.get_irq_info(irq::INTX).unwrap();
    assert_eq!((intx.count, intx.flags), (1, 7));

    let mut config = [0; 64];
    client.region_read(region::CONFIG, 0, &mut config).unwrap();
    assert!(config.iter().enumerate().all(|(i, byte)| *byte == i as u8));
    client
        .region_write(region::BAR0, 0x40, &[1, 2, 3, 4])
        .unwrap();
    let mut word = [0; 4];
    client.region_read(region::BAR0, 0x40, &mut word).unwrap();
    assert_eq!(word, [1, 2, 3, 4]);

    let memory = memory(0x2000);
    client
        .dma_map(0x1000, 0x10_0000, 0x1000, memory.as_raw_fd())
        .unwrap();
    let address = 0x10_0ff0u64.to_ne_bytes();
    client
        .region_write(region::BAR0, DMA_INCREMENT, &address)
        .unwrap();
    assert_eq!(word_at(&memory, 0x1ff0), 1);
    client.dma_unmap(0x10_0000, 0x1000).unwrap();
    assert!(bench.dma.is_empty());

    use irq_set_flags::{ACTION_TRIGGER, ACTION_UNMASK, DATA_EVENTFD, DATA_NONE};
    let event = event();
    let fds = [event.as_raw_fd()];
    client
        .set_irqs(irq::INTX, DATA_EVENTFD | ACTION_TRIGGER, 0, 1, &fds)
        .unwrap();
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
    client
        .set_irqs(irq::INTX, DATA_NONE | ACTION_UNMASK, 0, 1, &[])
        .unwrap();
    assert_eq!(signals(&event, LONG), 1);

    client.reset().unwrap();
    assert_eq!(bench.device().resets, 1);
    client.shutdown().unwrap();
    drop(client);
    bench.until(|d| d.disconnects.len() == 1);
}

/// What their server asked its device to do.
#[derive(Debug, PartialEq)]
enum Asked {
    Write(u32, u64, Vec<u8>),
    Map(u64, u64, u64, bool),
    Unmap(u64, u64),
    Reset,
    Irqs(u32, u32, u32, usize),
}

struct Recorder(Sender<Asked>);

impl Recorder {
    fn note(&self, asked: Asked) -> io::Result<()> {
        self.0.send(asked).map_err(io::Error::other)
    }
}

impl ServerBackend for Recorder {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        data.fill(region as u8 + offset as u8);
        Ok(())
    }
    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(Asked::Write(region, offset, data.to_vec()))
    }
    fn dma_map(
        &mut self,
        _flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        self.note(Asked::Map(offset, address, size, fd.is_some()))
    }
    fn dma_unmap(&mut self, _flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        self.note(Asked::Unmap(address, size))
    }
    fn reset(&mut self) -> io::Result<()> {
        self.note(Asked::Reset)
    }
    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        _start: u32,
        count: u32,
        fds: Vec<File>,
    ) -> io::Result<()> {
        self.note(Asked::Irqs(index, flags, count, fds.len()))
    }
}

#[test]
fn our_client_with_their_server() {
    use rustix::fd::AsFd;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("their.sock");
    let regions = (0..region::COUNT).map(their_region).collect();
    let irqs = (0..irq::COUNT)
        .map(|index| IrqInfo {
            index,
            flags: 7,
            count: 1,
        })
        .collect();
    let server = vfio_user::Server::new(&path, true, irqs, regions).unwrap();
    let (sender, asked): (_, Receiver<Asked>) = channel();
    let thread = std::thread::spawn(move || {
        // Their server reports the end of its client as an error.
        let _ = server.run(&mut Recorder(sender));
    });
    let next = || asked.recv_timeout(LONG).unwrap();

    let mut client = Client::connect(&path, LONG).unwrap();
    assert_eq!(client.device_info().unwrap().num_regions, region::COUNT);
    assert_eq!(client.region_info(region::CONFIG).unwrap().size, 0x1000);
    assert_eq!(client.irq_info(irq::INTX).unwrap().flags, 7);
    let mut word = [0; 4];
    client.region_read(region::CONFIG, 0x10, &mut word).unwrap();
    assert_eq!(word, [0x17; 4]);
    client.region_write(region::BAR0, 8, &[1, 2, 3]).unwrap();
    assert_eq!(next(), Asked::Write(region::BAR0, 8, vec![1, 2, 3]));
    let memory = memory(0x2000);
    let range = DmaRange::read_write(0x5000, 0x1000);
    client
        .dma_map(range, Some((memory.as_fd(), 0x1000)))
        .unwrap();
    assert_eq!(next(), Asked::Map(0x1000, 0x5000, 0x1000, true));
    client.dma_unmap(0x5000, 0x1000).unwrap();
    assert_eq!(next(), Asked::Unmap(0x5000, 0x1000));
    let event = event();
    client
        .set_irq_eventfd(irq::INTX, Some(event.as_fd()))
        .unwrap();
    assert_eq!(next(), Asked::Irqs(0, 0x24, 1, 1));
    client.unmask_irq(irq::INTX).unwrap();
    assert_eq!(next(), Asked::Irqs(0, 0x11, 1, 0));
    client.reset().unwrap();
    assert_eq!(next(), Asked::Reset);
    drop(client);
    thread.join().unwrap();
}

fn their_region(index: u32) -> vfio_user::ServerRegion {
    let region_info = vfio_bindings::bindings::vfio::vfio_region_info {
        argsz: 32,
        flags: 3,
        index,
        cap_offset: 0,
        size: 0x1000,
        offset: 0,
    };
    vfio_user::ServerRegion {
        region_info,
        sparse_areas: vec![],
        mmap_fd: None,
    }
}
