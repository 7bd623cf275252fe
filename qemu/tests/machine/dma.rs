//! Tests DMA between NIC memory and the client's memory, and the interrupt.

use crate::assembler::{Program, T0};
use crate::card::Card;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use tigon2_chip::registers::Register;
use vfio_user_nic::message::irq;
use vfio_user_nic::{DmaHandler, DmaRange, Errno};

const BUFFER: u32 = 0x2_0000;
const BYTES: u32 = 1514;
/// State word of reference 6.1: start; bytes keep their order.
const START: u32 = 4;

/// A pattern without period.
fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Host to NIC and back to another place, as software starts it directly (reference 6.1).
fn there_and_back(card: &mut Card, from: u64, to: u64) {
    for (register, value) in [
        (Register::DmaReadHostHigh, (from >> 32) as u32),
        (Register::DmaReadHostLow, from as u32),
        (Register::DmaReadLocal, BUFFER),
        (Register::DmaReadLength, BYTES),
        (Register::DmaReadState, START),
    ] {
        card.write(register.offset(), value);
    }
    let done = |card: &mut Card, register: Register| card.read(register.offset()) & START == 0;
    card.wait("the read is done", |card| {
        done(card, Register::DmaReadState)
    });
    assert_eq!(card.read(Register::DmaReadLocal.offset()), BUFFER + BYTES);
    for (register, value) in [
        (Register::DmaWriteHostHigh, (to >> 32) as u32),
        (Register::DmaWriteHostLow, to as u32),
        (Register::DmaWriteLocal, BUFFER),
        (Register::DmaWriteLength, BYTES),
        (Register::DmaWriteState, START),
    ] {
        card.write(register.offset(), value);
    }
    card.wait("the write is done", |card| {
        done(card, Register::DmaWriteState)
    });
}

#[test]
fn memory_that_is_mapped_is_copied() {
    let mut card = Card::start();
    let memory = memfd_create("client", MemfdFlags::CLOEXEC).expect("a memfd");
    let file = File::from(memory);
    file.set_len(0x2000).expect("it has a size");
    file.write_all_at(&pattern(BYTES), 3)
        .expect("it can be written");
    let base = 0x1_2345_0000;
    let range = DmaRange::read_write(base, 0x2000);
    let mapped = card.client().dma_map(range, Some((file.as_fd(), 0)));
    mapped.expect("the card maps it");
    there_and_back(&mut card, base + 3, base + 0x1001);
    let mut back = vec![0; BYTES as usize];
    file.read_exact_at(&mut back, 0x1001)
        .expect("it can be read");
    assert_eq!(back, pattern(BYTES));
}

/// The client's memory without a file: each transfer is a message to the client.
struct Messages(Arc<Mutex<Vec<u8>>>);

impl DmaHandler for Messages {
    fn dma_read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno> {
        let memory = self.0.lock().expect("nobody has panicked");
        let at = address as usize;
        out.copy_from_slice(memory.get(at..at + out.len()).ok_or(Errno::FAULT)?);
        Ok(())
    }

    fn dma_write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno> {
        let mut memory = self.0.lock().expect("nobody has panicked");
        let at = address as usize;
        let place = memory.get_mut(at..at + data.len()).ok_or(Errno::FAULT)?;
        place.copy_from_slice(data);
        Ok(())
    }
}

#[test]
fn memory_without_a_file_is_reached_by_messages() {
    let mut card = Card::start();
    let memory = Arc::new(Mutex::new(pattern(BYTES)));
    memory
        .lock()
        .expect("nobody has panicked")
        .resize(0x2000, 0);
    let client = card.client();
    client.set_dma_handler(Some(Box::new(Messages(memory.clone()))));
    let mapped = client.dma_map(DmaRange::read_write(0, 0x2000), None);
    mapped.expect("the card takes it");
    there_and_back(&mut card, 0, 0x1000);
    let memory = memory.lock().expect("nobody has panicked");
    assert_eq!(memory[0x1000..0x1000 + BYTES as usize], pattern(BYTES));
}

/// Reference 8: firmware sets R[44] bit 2; a host write to mailbox 0 clears it (C). The
/// client hears of each rise once, and of the next after it has unmasked.
#[test]
fn firmware_interrupts_the_client() {
    let mut program = Program::new();
    program
        .li(T0, 4)
        .write(T0, Register::MiscLocalControl)
        .stop();
    let mut card = Card::start();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK);
    let event = event.expect("an eventfd");
    let connected = card
        .client()
        .set_irq_eventfd(irq::INTX, Some(event.as_fd()));
    connected.expect("the card takes it");
    let signals = || {
        let mut count = [0; 8];
        rustix::io::read(&event, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    };
    for _ in 0..10 {
        assert_eq!(signals(), 0);
        card.run_to_end(&program);
        assert_eq!(card.read(Register::MiscHostControl.offset()) & 1, 1);
        assert_eq!(signals(), 1);
        card.run_to_end(&program);
        assert_eq!(signals(), 0, "it is pending already");
        card.write(0x504, 0);
        assert_eq!(card.read(Register::MiscHostControl.offset()) & 1, 0);
        card.client()
            .unmask_irq(irq::INTX)
            .expect("it can be unmasked");
    }
}
