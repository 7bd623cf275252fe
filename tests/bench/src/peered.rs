//! The end of the simulated wire, served while the driver waits.

use host_driver::stack::service::Service;
use host_driver::stack::{Identity, StackError, Wire};
use host_driver::{DmaMemory, Transport, TransportError, Vector};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use std::time::Duration;
use tigon2_sim::SimTransport;
use tigon2_sim::transport::SharedMachine;

/// Largest frame that the peer sends, without CRC.
const LARGEST_FRAME: usize = 1514;

/// Frames on the wire at once, beyond which the peer holds back.
const BACKLOG: usize = 64;

/// How long the card runs on between two looks of the peer at the wire.
const SLICE: Duration = Duration::from_micros(50);

/// A simulated card with a peer at the end of its wire, as a driver reaches it.
pub struct Peered<'a> {
    card: &'a mut SimTransport,
    peer: Service<SimWire>,
}

impl<'a> Peered<'a> {
    /// Puts a peer at the end of the card's wire.
    pub fn new(card: &'a mut SimTransport, identity: Identity) -> Self {
        let peer = Service::new(SimWire(card.machine()), identity);
        Peered { card, peer }
    }

    /// Lets the peer do what is there to be done.
    fn serve(&mut self) {
        // The wire has nothing that can fail. What was served may have more to send.
        for _ in 0..2 {
            let _ = self.peer.turn();
        }
    }
}

impl Transport for Peered<'_> {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.card.read(bar_offset)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.card.write(bar_offset, value)
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.card.config_read(offset)
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.card.config_write(offset, value)
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        self.card.allocate(bytes)
    }

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        let mut left = timeout;
        loop {
            self.serve();
            let slice = left.min(SLICE);
            if self.card.wait(vector, slice)? {
                return Ok(true);
            }
            left -= slice;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.card.unmask(vector)
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.card.reset()
    }
}

/// The peer's end of the wire.
struct SimWire(SharedMachine);

/// A frame for the peer.
struct Received(Vec<u8>);

/// Room for a frame of the peer's.
struct Room<'a>(&'a SharedMachine);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        let mut machine = self.0.lock();
        let now = machine.now();
        machine.send_frame(now, frame);
        result
    }
}

impl SimWire {
    fn has_room(&self) -> bool {
        self.0.lock().pending_frames() < BACKLOG
    }
}

impl Device for SimWire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Room<'_>)> {
        if !self.has_room() {
            return None;
        }
        let frame = self.0.lock().take_frame()?;
        Some((Received(frame.bytes), Room(&self.0)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        self.has_room().then_some(Room(&self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = LARGEST_FRAME;
        capabilities
    }
}

impl Wire for SimWire {
    fn flush(&mut self) -> Result<(), StackError> {
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<(), StackError> {
        Ok(())
    }
}
