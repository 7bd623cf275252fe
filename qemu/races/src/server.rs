//! Replaces the vfio-user server: one client that writes a register as soon as it is served.

use crate::glue::host::Host;
use crate::glue::machine::Machine;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread::JoinHandle;
use std::io;
use std::marker::PhantomData;

/// There is no EEPROM here.
pub type SharedEeprom = Arc<Mutex<Option<()>>>;

/// What the client writes: this value at this offset.
pub struct Socket {
    pub offset: u32,
    pub value: u32,
}

/// The client's, and the server's.
pub struct Service<H>(JoinHandle<()>, PhantomData<H>);

impl Socket {
    /// Serves the client.
    pub fn serve<H: Host + 'static>(
        self,
        machine: Arc<Machine<H>>,
        _: SharedEeprom,
    ) -> io::Result<Service<H>> {
        let client = shuttle::thread::spawn(move || {
            machine.bar_write(self.offset, self.value);
            machine.host_done();
        });
        Ok(Service(client, PhantomData))
    }
}

impl<H> Service<H> {
    /// Waits for its end.
    pub fn stop(self) -> io::Result<()> {
        self.0
            .join()
            .map_err(|_| io::Error::other("it has panicked"))
    }
}

/// Nothing to save.
pub fn save<H: Host>(_: &Machine<H>, _: &SharedEeprom) {}
