//! The PCI side of the card, over vfio-user.
//!
//! The server's thread holds QEMU's big lock for each batch of accesses, not
//! for each access: a firmware download is 150 000 of them.

use crate::host::Host;
use crate::machine::{Client, Machine};
use crate::setup::EepromFile;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use vfio_user_nic::message::region;
use vfio_user_nic::{
    BindError, Device, DeviceLayout, DeviceLock, Disconnect, Errno, Server, ServerConfig,
    ServerThread,
};

/// Bytes of BAR 0: registers, NIC memory's first 1 KB, the window; the rest of
/// the 16 KB is empty (reference 2.1 and 9).
pub const BAR0_BYTES: u64 = 0x4000;

/// The file that keeps the EEPROM, if the user named one.
pub type SharedEeprom = Arc<Mutex<Option<EepromFile>>>;

/// A socket that clients may connect to but that is not served yet.
pub struct Socket(Server);

impl Socket {
    /// Makes the socket.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let config = ServerConfig::new(DeviceLayout::pci(BAR0_BYTES));
        Server::bind(path, config).map(Socket)
    }

    /// What the machine behind it needs of it.
    pub fn client(&self) -> Client {
        Client {
            dma: self.0.dma(),
            interrupts: self.0.interrupts(),
        }
    }

    /// Serves the machine on a thread of its own.
    pub fn serve<H: Host + 'static>(
        self,
        machine: Arc<Machine<H>>,
        eeprom: SharedEeprom,
    ) -> io::Result<ServerThread> {
        self.0.spawn(BigLock {
            known: false,
            function: Function { machine, eeprom },
        })
    }
}

/// Saves the EEPROM; a failure is told, and is no reason to stop.
pub fn save<H: Host>(machine: &Machine<H>, eeprom: &SharedEeprom) {
    let mut eeprom = eeprom.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = eeprom.as_mut()
        && let Err(error) = file.save(&machine.eeprom())
    {
        eprintln!("tigon2: EEPROM: {error}");
    }
}

/// QEMU's big lock, as the server wants it.
struct BigLock<H: Host> {
    /// QEMU knows the thread.
    known: bool,
    function: Function<H>,
}

/// Releases the big lock, even if a panic passes by.
struct Unlock<'a, H: Host>(&'a Machine<H>);

impl<H: Host> Drop for Unlock<'_, H> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.die();
        }
        self.0.host().unlock();
    }
}

impl<H: Host> DeviceLock for BigLock<H> {
    type Device = Function<H>;

    fn with<R>(&mut self, f: impl FnOnce(&mut Function<H>) -> R) -> R {
        let machine = self.function.machine.clone();
        if !self.known {
            machine.host().thread_begin();
            self.known = true;
        }
        machine.host().lock();
        let _unlock = Unlock(&machine);
        f(&mut self.function)
    }
}

impl<H: Host> Drop for BigLock<H> {
    fn drop(&mut self) {
        if self.known {
            self.function.machine.host().thread_end();
        }
    }
}

/// The card as a PCI function.
struct Function<H: Host> {
    machine: Arc<Machine<H>>,
    eeprom: SharedEeprom,
}

impl<H: Host> Function<H> {
    fn alive(&self) -> Result<(), Errno> {
        if self.machine.is_dead() {
            return Err(Errno::IO);
        }
        Ok(())
    }

    /// The offset of aligned words, or an error: the card's target side knows
    /// 32-bit accesses only.
    fn words(offset: u64, length: usize) -> Result<u32, Errno> {
        if length == 0 || !length.is_multiple_of(4) || !offset.is_multiple_of(4) {
            return Err(Errno::INVAL);
        }
        u32::try_from(offset).map_err(|_| Errno::INVAL)
    }
}

impl<H: Host> Device for Function<H> {
    fn region_read(&mut self, index: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        self.alive()?;
        match index {
            region::BAR0 => {
                let offset = Self::words(offset, data.len())?;
                for (at, word) in (offset..).step_by(4).zip(data.chunks_exact_mut(4)) {
                    word.copy_from_slice(&self.machine.bar_read(at).to_le_bytes());
                }
            }
            region::CONFIG => {
                let offset = usize::try_from(offset).map_err(|_| Errno::INVAL)?;
                self.machine.config_read(offset, data);
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    fn region_write(&mut self, index: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        self.alive()?;
        match index {
            region::BAR0 => {
                let offset = Self::words(offset, data.len())?;
                let (words, _) = data.as_chunks::<4>();
                for (at, word) in (offset..).step_by(4).zip(words) {
                    self.machine.bar_write(at, u32::from_le_bytes(*word));
                }
            }
            region::CONFIG => {
                let offset = usize::try_from(offset).map_err(|_| Errno::INVAL)?;
                self.machine.config_write(offset, data);
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.alive()?;
        self.machine.reset();
        Ok(())
    }

    fn disconnected(&mut self, why: &Disconnect) {
        if !matches!(why, Disconnect::Closed | Disconnect::Stopped) {
            eprintln!("tigon2: the client was cut off: {why}");
        }
        if self.machine.is_dead() {
            return;
        }
        // Firmware that goes on would only see its DMA fail.
        if *why != Disconnect::Stopped {
            self.machine.reset();
        }
        save(&self.machine, &self.eeprom);
    }

    fn batch_done(&mut self) {
        if !self.machine.is_dead() {
            self.machine.host_done();
        }
    }
}
