//! The PCI side of the card, over vfio-user.
//!
//! The server's thread works without QEMU's big lock, except to deliver the outbox after a batch
//! of accesses and while a CPU halts. Another thread waits for the client where DMA has to
//! (`waiting`).

use crate::host::Host;
use crate::machine::{Client, Machine};
use crate::setup::EepromFile;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use vfio_user_nic::message::region;
use vfio_user_nic::{
    BindError, Device, DeviceLayout, DeviceLock, Disconnect, Errno, Server, ServerConfig,
    ServerThread,
};

/// Bytes of BAR 0: registers, NIC memory's first 1 KB, the window; the rest of
/// the 16 KB is empty (reference 2.1 and 9).
pub const BAR0_BYTES: u64 = 0x4000;

/// Bytes of the region of counts: as much as the monitor's property holds.
const COUNTS_BYTES: u64 = 1024;

/// The file that keeps the EEPROM, if the user named one.
pub type SharedEeprom = Arc<Mutex<Option<EepromFile>>>;

/// A socket that clients may connect to but that is not served yet.
pub struct Socket(Server);

impl Socket {
    /// Makes the socket.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let layout = DeviceLayout::pci(BAR0_BYTES).with_counts(COUNTS_BYTES);
        let config = ServerConfig::new(layout);
        Server::bind(path, config).map(Socket)
    }

    /// What the machine behind it needs of it.
    pub fn client(&self) -> Client {
        Client {
            dma: self.0.dma(),
            interrupts: self.0.interrupts(),
        }
    }

    /// Serves the machine on threads of its own.
    pub fn serve<H: Host + 'static>(
        self,
        machine: Arc<Machine<H>>,
        eeprom: SharedEeprom,
    ) -> io::Result<Service<H>> {
        let waits = machine.clone();
        let waiter = std::thread::Builder::new()
            .name("tigon2-dma".into())
            .spawn(move || {
                let _known = Known::to(&*waits);
                let _guard = Guard(&waits);
                waits.wait_for_clients();
            })?;
        let mut service = Service {
            machine: machine.clone(),
            server: None,
            waiter: Some(waiter),
        };
        service.server = Some(self.0.spawn(Card {
            known: false,
            function: Function { machine, eeprom },
        })?);
        Ok(service)
    }
}

/// The threads that serve a machine. Dropping it ends them and waits for them.
pub struct Service<H: Host> {
    machine: Arc<Machine<H>>,
    server: Option<ServerThread>,
    waiter: Option<JoinHandle<()>>,
}

impl<H: Host> Service<H> {
    /// Ends the threads and waits for them. The caller must not hold the big lock.
    pub fn stop(mut self) -> io::Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> io::Result<()> {
        // The server's end takes back what the other thread waits for.
        let stopped = self.server.take().map_or(Ok(()), ServerThread::stop);
        self.machine.end_waiting();
        match self.waiter.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(io::Error::other("the thread for DMA panicked")),
            Some(Ok(())) | None => stopped,
        }
    }
}

impl<H: Host> Drop for Service<H> {
    fn drop(&mut self) {
        // The thread cannot report an error here; `stop` reports it.
        let _ = self.finish();
    }
}

/// QEMU knows this thread as long as the value is there.
struct Known<'a, H: Host>(&'a Machine<H>);

impl<'a, H: Host> Known<'a, H> {
    fn to(machine: &'a Machine<H>) -> Self {
        machine.host().thread_begin();
        Known(machine)
    }
}

impl<H: Host> Drop for Known<'_, H> {
    fn drop(&mut self) {
        self.0.host().thread_end();
    }
}

/// Saves the EEPROM; a failure is reported, and is no reason to stop.
pub fn save<H: Host>(machine: &Machine<H>, eeprom: &SharedEeprom) {
    let mut eeprom = eeprom.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = eeprom.as_mut()
        && let Err(error) = file.save(&machine.eeprom())
    {
        machine.lines().eeprom.say(|| format!("EEPROM: {error}"));
    }
}

/// The card as the server's thread gets hold of it.
struct Card<H: Host> {
    /// QEMU knows the thread.
    known: bool,
    function: Function<H>,
}

/// Stops the card if a panic passes by.
struct Guard<'a, H: Host>(&'a Machine<H>);

impl<H: Host> Drop for Guard<'_, H> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.die();
        }
    }
}

impl<H: Host> DeviceLock for Card<H> {
    type Device = Function<H>;

    fn with<R>(&mut self, f: impl FnOnce(&mut Function<H>) -> R) -> R {
        let machine = self.function.machine.clone();
        if !self.known {
            machine.host().thread_begin();
            self.known = true;
        }
        let _guard = Guard(&machine);
        f(&mut self.function)
    }
}

impl<H: Host> Drop for Card<H> {
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
            region::COUNTS => {
                let offset = usize::try_from(offset).map_err(|_| Errno::INVAL)?;
                let text = self.machine.all_counts();
                let text = text.bytes().skip(offset).chain(std::iter::repeat(0));
                data.iter_mut().zip(text).for_each(|(to, byte)| *to = byte);
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
            let clients = &self.machine.lines().clients;
            clients.say(|| format!("the client was cut off: {why}"));
        }
        if self.machine.is_dead() {
            return;
        }
        // Firmware that continues would only see its DMA fail.
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

#[cfg(test)]
mod tests;
