//! Tests firmware of other origin, which has no extension words: the driver works without them and
//! reports what it knows.

use host_driver::nic::SendConsumer;
use host_driver::{Config, DmaMemory, Nic, NicError, Transport, TransportError, Vector};
use host_interface::extension::Extension;
use host_interface::image::{SEAL, SEAL_BYTES, SEALED};
use integration_tests::{frames, stage};
use std::io::IoSlice;
use std::time::Duration;
use tigon2_model::Board;
use tigon2_sim::SimTransport;
use tigon2_sim::asm;

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

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        self.0.wait(vector, timeout)
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        self.0.unmask(vector)
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

/// Version 12.4.11, without our seal.
const FOREIGN: [u8; 4] = [12, 4, 11, 0];

/// An image of somebody else's that never comes up: it runs in a circle.
fn silent() -> Vec<u8> {
    let mut image = FOREIGN.to_vec();
    image.extend(asm::bytes(&[0x4000, 0x4000, asm::j(0x4000), asm::NOP]));
    image
}

/// What is said of a card whose firmware does not come up.
fn said_of(image: &[u8]) -> String {
    let config = Config {
        firmware_timeout: Duration::from_millis(50),
        ..Config::default()
    };
    let card = SimTransport::power_on(Board::default());
    let mut nic = Nic::probe(card, config).expect("a card");
    match nic.load(image) {
        Err(error @ NicError::FirmwareSilent { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// It cannot sign in, so that says nothing of it; its version and its event do.
#[test]
fn of_a_foreign_image_is_said_what_is_known() {
    let said = said_of(&silent());
    assert!(said.contains("CPU A runs at 0x400"), "{said}");
    assert!(said.contains("another's, version 12.4.11"), "{said}");
    assert!(
        said.contains("has not reported that it is operational"),
        "{said}"
    );
    assert!(!said.contains("signed in"), "{said}");

    let mut image = stage::firmware();
    image[..4].copy_from_slice(&FOREIGN);
    let card = SimTransport::power_on(Board::default());
    let mut nic = Nic::probe(Foreign(card), Config::default()).expect("a card");
    nic.load(&image).expect("it comes up");
    let said = nic.card_state().expect("the card is there").to_string();
    assert!(
        said.contains("has reported that it is operational"),
        "{said}"
    );
}

/// Ours can.
#[test]
fn of_our_own_image_is_said_that_it_has_not_signed_in() {
    let mut code = asm::bytes(&[asm::j(0x4000), asm::NOP]);
    let mut image = vec![1, 0, 0, SEALED];
    image.extend(asm::bytes(&[0x4000, 0x4000]));
    image.append(&mut code);
    let length = (image.len() + SEAL_BYTES) as u32;
    image.extend(asm::bytes(&[SEAL, length]));
    let said = said_of(&image);
    assert!(said.contains("firmware has not signed in"), "{said}");
}
