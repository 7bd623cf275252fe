//! A fake card that records the accesses to it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use vfio_user_nic::message::region;
use vfio_user_nic::{
    Device, DeviceLayout, Disconnect, DmaTable, Errno, Interrupts, Server, ServerConfig,
    ServerThread,
};

/// Bytes of BAR 0, as on the real card (reference 2.1).
pub const BAR_BYTES: u64 = 0x4000;

/// Reading this register makes the card read four bytes of the host's memory first,
/// from the address in [`DMA_ADDRESS`]; their value is what is read.
pub const DMA_NOW: u32 = 0x100;
/// See [`DMA_NOW`].
pub const DMA_ADDRESS: u32 = 0x104;
/// Reading this register takes longer than anyone waits.
pub const TAR_PIT: u32 = 0x108;

/// What the card holds.
pub struct Registers {
    pub bar: Vec<u8>,
    pub config: [u8; 256],
    /// Writes in their order: region, offset, data.
    pub writes: Vec<(u32, u64, Vec<u8>)>,
    pub resets: usize,
    pub gone: usize,
    dma: DmaTable,
}

/// A word of configuration space of an Alteon ACEnic (reference 2.2).
const IDS: [(usize, u32); 4] = [
    (0x00, 0x0001_12AE),
    (0x08, 0x0200_0001),
    (0x2C, 0x0001_12AE),
    (0x3C, 0x4040_0100),
];

impl Device for Registers {
    fn region_read(&mut self, index: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        let at = offset as usize;
        if index == region::BAR0 {
            match offset as u32 {
                DMA_NOW => {
                    let mut address = [0; 4];
                    address.copy_from_slice(&self.bar[DMA_ADDRESS as usize..][..4]);
                    let address = u32::from_le_bytes(address).into();
                    return self.dma.read(address, data).map_err(|_| Errno::FAULT);
                }
                TAR_PIT => std::thread::sleep(std::time::Duration::from_secs(2)),
                _ => {}
            }
        }
        let from = if index == region::CONFIG {
            &self.config[..]
        } else {
            &self.bar[..]
        };
        data.copy_from_slice(&from[at..][..data.len()]);
        Ok(())
    }

    fn region_write(&mut self, index: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        self.writes.push((index, offset, data.to_vec()));
        let to = if index == region::CONFIG {
            &mut self.config[..]
        } else {
            &mut self.bar[..]
        };
        to[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.resets += 1;
        Ok(())
    }

    fn disconnected(&mut self, _: &Disconnect) {
        self.gone += 1;
    }
}

/// A card on its socket.
pub struct FakeCard {
    registers: Arc<Mutex<Registers>>,
    pub dma: DmaTable,
    pub interrupts: Interrupts,
    server: Option<ServerThread>,
    pub socket: PathBuf,
    _folder: TempDir,
}

impl FakeCard {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let socket = folder.path().join("card");
        let config = ServerConfig::new(DeviceLayout::pci(BAR_BYTES));
        let server = Server::bind(&socket, config).expect("a socket");
        let (dma, interrupts) = (server.dma(), server.interrupts());
        let mut config = [0; 256];
        for (at, word) in IDS {
            config[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let registers = Arc::new(Mutex::new(Registers {
            bar: vec![0; BAR_BYTES as usize],
            config,
            writes: Vec::new(),
            resets: 0,
            gone: 0,
            dma: dma.clone(),
        }));
        let server = server.spawn(registers.clone()).expect("a thread");
        FakeCard {
            registers,
            dma,
            interrupts,
            server: Some(server),
            socket,
            _folder: folder,
        }
    }

    /// The card's inside.
    pub fn registers(&self) -> MutexGuard<'_, Registers> {
        self.registers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The card dies.
    pub fn die(&mut self) {
        drop(self.server.take());
    }
}
