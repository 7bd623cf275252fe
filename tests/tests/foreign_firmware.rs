//! Firmware that is not ours has no extension words: the driver does without.

use host_driver::nic::SendConsumer;
use host_driver::{Config, DmaMemory, Nic, Transport, TransportError};
use host_interface::extension::Extension;
use integration_tests::{frames, stage};
use std::io::IoSlice;
use std::time::Duration;
use tigon2_model::Board;
use tigon2_sim::SimTransport;

/// A card whose extension words say nothing, as under any other firmware.
struct Foreign(SimTransport);

impl Transport for Foreign {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        let ours = |word: &Extension| word.bar_offset() == bar_offset;
        if Extension::ALL.iter().any(ours) {
            return Ok(0);
        }
        self.0.read(bar_offset)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.0.write(bar_offset, value)
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        self.0.config_read(offset)
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.0.config_write(offset, value)
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        self.0.allocate(bytes)
    }

    fn wait_interrupt(&mut self, timeout: Duration) -> Result<bool, TransportError> {
        self.0.wait_interrupt(timeout)
    }

    fn unmask_interrupt(&mut self) -> Result<(), TransportError> {
        self.0.unmask_interrupt()
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.0.reset()
    }
}

/// Host/NIC software interface: the send consumer index comes by DMA to the host; by
/// MMIO only our own firmware gives it, even to a driver that would rather have that.
#[test]
fn a_driver_sends_on_without_the_extension_words() -> Result<(), Box<dyn std::error::Error>> {
    let card = SimTransport::power_on(Board::default());
    let machine = card.machine();
    let config = Config {
        send_consumer: SendConsumer::Register,
        ..Config::default()
    };
    let mut nic = Nic::probe(Foreign(card), config)?;
    nic.load(&stage::firmware())?;
    nic.open()?;
    nic.wait_link(Duration::from_secs(5))?;
    assert!(!nic.has_extension());
    let (mut sent, mut left) = (0, 0);
    // More than the send ring has room for.
    for turn in 0.. {
        let frame = frames::numbered(frames::PEER, nic.station(), sent);
        if sent < 1500 && nic.queue(&[IoSlice::new(&frame)])? {
            sent += 1;
        } else {
            nic.submit()?;
            if nic.wait(Duration::from_millis(1))? {
                nic.acknowledge()?;
            }
            nic.service()?;
        }
        while machine.lock().take_frame().is_some() {
            left += 1;
        }
        if left == 1500 {
            break;
        }
        assert!(turn < 100_000, "{left} of {sent} frames have left");
    }
    let statistics = nic.statistics()?;
    assert_eq!(statistics.driver.frames_sent, 1500);
    assert_eq!(statistics.firmware_drops.total(), 0);
    nic.shut_down()?;
    Ok(())
}
