//! The scripted card for several threads.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use host_driver::DmaMemory;
use host_driver::transport::{Bell, Port, Transport, TransportError, Vector};

use super::ScriptedCard;

/// Longest turn of a waiter with the card.
const TURN: Duration = Duration::from_micros(200);

/// A scripted card behind a lock. The transport, its ports and the test have clones.
#[derive(Clone, Default)]
pub struct SharedCard(Arc<Mutex<ScriptedCard>>);

impl SharedCard {
    /// The card itself.
    pub fn lock(&self) -> MutexGuard<'_, ScriptedCard> {
        self.0.lock().expect("no panic elsewhere")
    }
}

impl Transport for SharedCard {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.lock().read(bar_offset)
    }
    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.lock().write(bar_offset, value)
    }
    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.lock().config_read(offset)
    }
    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.lock().config_write(offset, value)
    }
    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        self.lock().allocate(bytes)
    }
    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        self.lock().wait(vector, timeout)
    }
    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.lock().unmask(vector)
    }
    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Ok(Box::new(self.clone()))
    }
    fn reset(&mut self) -> Result<(), TransportError> {
        self.lock().reset()
    }
}

impl Port for SharedCard {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.lock().read(bar_offset)
    }
    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.lock().write(bar_offset, value)
    }
    fn wait(
        &mut self,
        vector: Vector,
        timeout: Duration,
        bell: &Bell,
    ) -> Result<bool, TransportError> {
        let start = Instant::now();
        loop {
            if bell.is_rung() {
                return Ok(false);
            }
            if self.lock().wait(vector, Duration::ZERO)? {
                return Ok(true);
            }
            if start.elapsed() >= timeout {
                return Ok(false);
            }
            std::thread::sleep(TURN);
        }
    }
    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.lock().unmask(vector)
    }
}
