//! A device for the tests: 16 KiB of registers, some with side effects.
#![allow(dead_code)] // each test file uses its part

pub mod raw;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use vfio_user_nic::message::region::{BAR0, CONFIG};
use vfio_user_nic::{
    Client, ClientError, Device, DeviceLayout, Disconnect, DmaError, DmaTable, Errno, Interrupts,
    Server, ServerConfig, ServerThread,
};

/// Bytes of BAR 0.
pub const BAR_BYTES: u64 = 0x4000;
/// A write of any word here fails with `EIO`.
pub const FAILING: u64 = 0x3000;
/// A write of n sets the pin to bit 0 of n.
pub const PIN: u64 = 0x3004;
/// A write of a word to this address makes the device read 8 bytes from there as
/// a DMA address, increment the word at that address, and write it back.
pub const DMA_INCREMENT: u64 = 0x3008;
/// How long a test waits for what must happen.
pub const LONG: Duration = Duration::from_secs(10);
/// How long a test waits for what must not happen.
pub const SHORT: Duration = Duration::from_millis(30);

/// The device's state.
pub struct Registers {
    pub bar: Vec<u8>,
    pub config: [u8; 256],
    pub interrupts: Interrupts,
    pub dma: DmaTable,
    pub connects: u32,
    pub disconnects: Vec<Disconnect>,
    pub resets: u32,
    pub batches: u32,
    pub dma_result: Option<Result<(), DmaError>>,
}

impl Registers {
    fn increment(&mut self, address: u64) -> Result<(), DmaError> {
        let mut word = [0; 4];
        self.dma.read(address, &mut word)?;
        let word = u32::from_ne_bytes(word).wrapping_add(1);
        self.dma.write(address, &word.to_ne_bytes())
    }
}

impl Device for Registers {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        let at = offset as usize;
        let from = if region == CONFIG {
            &self.config[..]
        } else {
            &self.bar[..]
        };
        data.copy_from_slice(&from[at..at + data.len()]);
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let at = offset as usize;
        match (region, offset) {
            (CONFIG, _) => self.config[at..at + data.len()].copy_from_slice(data),
            (BAR0, FAILING) => return Err(Errno::IO),
            (BAR0, PIN) => self.interrupts.set_level(data[0] & 1 != 0),
            (BAR0, DMA_INCREMENT) => {
                let address = u64::from_ne_bytes(data.try_into().map_err(|_| Errno::INVAL)?);
                self.dma_result = Some(self.increment(address));
            }
            _ => self.bar[at..at + data.len()].copy_from_slice(data),
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.bar.fill(0);
        self.interrupts.set_level(false);
        self.resets += 1;
        Ok(())
    }

    fn connected(&mut self) {
        self.connects += 1;
    }

    fn disconnected(&mut self, why: &Disconnect) {
        assert!(
            self.dma.is_empty(),
            "maps are gone before the device hears of the end"
        );
        self.disconnects.push(why.clone());
    }

    fn batch_done(&mut self) {
        self.batches += 1;
    }
}

/// A server with a device, on a socket of its own.
pub struct Bench {
    pub thread: Option<ServerThread>,
    pub device: Arc<Mutex<Registers>>,
    pub interrupts: Interrupts,
    pub dma: DmaTable,
    pub path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A server whose configuration is changed before it starts.
    pub fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.sock");
        let mut config = ServerConfig::new(DeviceLayout::pci(BAR_BYTES));
        change(&mut config);
        let server = Server::bind(&path, config).unwrap();
        let (interrupts, dma) = (server.interrupts(), server.dma());
        let device = Arc::new(Mutex::new(Registers {
            bar: vec![0; BAR_BYTES as usize],
            config: std::array::from_fn(|i| i as u8),
            interrupts: interrupts.clone(),
            dma: dma.clone(),
            connects: 0,
            disconnects: Vec::new(),
            resets: 0,
            batches: 0,
            dma_result: None,
        }));
        let thread = Some(server.spawn(device.clone()).unwrap());
        Self {
            thread,
            device,
            interrupts,
            dma,
            path,
            _folder: folder,
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.path, LONG).unwrap()
    }

    pub fn device(&self) -> MutexGuard<'_, Registers> {
        self.device.lock().unwrap()
    }

    /// Waits until something holds of the device.
    pub fn until(&self, what: impl Fn(&Registers) -> bool) {
        let start = std::time::Instant::now();
        while !what(&self.device()) {
            assert!(start.elapsed() < LONG, "never happened");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Shared memory as a driver allocates it: it cannot shrink.
pub fn memory(bytes: u64) -> std::fs::File {
    let file = loose_memory(bytes);
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    file
}

/// Shared memory that may shrink.
pub fn loose_memory(bytes: u64) -> std::fs::File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = memfd_create("test", flags).unwrap();
    ftruncate(&fd, bytes).unwrap();
    fd.into()
}

/// A word of shared memory.
pub fn word_at(memory: &std::fs::File, offset: u64) -> u32 {
    let mut word = [0; 4];
    memory.read_exact_at(&mut word, offset).unwrap();
    u32::from_ne_bytes(word)
}

/// An eventfd as a driver makes it.
pub fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// Waits for signals of an eventfd; gives their number, 0 if none came.
pub fn signals(event: &OwnedFd, timeout: Duration) -> u64 {
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    if poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&timeout)).unwrap() == 0 {
        return 0;
    }
    let mut count = [0; 8];
    rustix::io::read(event, &mut count).unwrap();
    u64::from_ne_bytes(count)
}

/// Descriptors that this process has open.
pub fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The errno with which the server has refused a command.
pub fn refused_with(error: &ClientError) -> Option<Errno> {
    match error {
        ClientError::Refused { errno, .. } => Some(*errno),
        _ => None,
    }
}
