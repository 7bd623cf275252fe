//! A burst of descriptors on the bus: Figure 3 of the paper.
//!
//! While the first datagram is fetched, the process goes on posting. With one level of queues each
//! descriptor goes over the bus, word by word; with two levels, a doorbell does, for each of them or
//! for some at once.

use super::card::Bench;
use anyhow::{Context, Result};
use eudp::{Card, Checksum, CutThrough};
use host_interface::eudp::send_slot;
use host_interface::extension::Extension;
use std::net::Ipv4Addr;
use tigon2_model::{Board, Direction};
use tigon2_sim::timeline::event::Event;
use tigon2_sim::timeline::{LIMIT, Recorder, number};
use tigon2_sim::timing::Parameters;
use tigon2_sim::{Machine, SimTransport};

/// Nanoseconds that a process takes to make a descriptor.
const MAKE: u64 = 50;
/// Bytes of a datagram: a frame of its own.
const BYTES: u32 = 8972;

/// How a burst is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// One datagram, and nothing else on the bus.
    Alone,
    /// All descriptors by the process's own writes to NIC memory.
    OneLevel,
    /// In the process's memory, with a doorbell each.
    DoorbellEach,
    /// In the process's memory, with a doorbell for 64 of them.
    DoorbellForSome,
}

/// Nanoseconds for which the read channel fetches the first datagram of `count`, on a bus where the
/// host's accesses take time.
///
/// # Errors
/// If it is not fetched.
pub fn first_fetch(image: &[u8], posted: Posted, count: u32) -> Result<f64> {
    let parameters = Parameters::default().with_host_on_the_bus();
    let machine = Machine::timed(Board::default(), parameters, 1);
    let ends = (
        Ipv4Addr::new(10, 0, 0, 1),
        Ipv4Addr::new(10, 0, 0, 2),
        [2, 0, 0, 0, 0, 2],
    );
    let how = (CutThrough::Off, Checksum::None, 9000);
    let mut bench = Bench::on(SimTransport::new(machine), image, how, ends)?;
    let (machine, mut card, endpoint, (peer, region)) = bench.parts();
    machine
        .lock()
        .record(Recorder::new(LIMIT, number::of_datagram));
    let piece = [region.segment(0, BYTES)];
    let to = (peer, 9);
    endpoint.send(&mut card, to, &piece, 0)?;
    let mut block = [0];
    card.read(Extension::Eudp.nic_address(), &mut block)?;
    for number in 1..count {
        if posted != Posted::Alone {
            machine.pass(MAKE);
        }
        match posted {
            Posted::Alone => break,
            // Into slots that nobody looks at.
            Posted::OneLevel => card.write(block[0] + send_slot(15, number), &[0; 6])?,
            Posted::DoorbellEach => endpoint.send(&mut card, to, &piece, number)?,
            Posted::DoorbellForSome => {
                endpoint.queue(&mut card, to, &piece, number)?;
                if number % 64 == 0 {
                    endpoint.submit(&mut card)?;
                }
            }
        }
    }
    endpoint.submit(&mut card)?;
    machine.pass(300_000);
    let timeline = machine.lock().recorded().context("no recording")?;
    let fetched = timeline.events.iter().find_map(|event| match event {
        Event::Dma(transfer)
            if transfer.direction == Direction::Read && transfer.length == BYTES =>
        {
            Some(transfer.span.end - transfer.begun)
        }
        _ => None,
    });
    let cycles = fetched.context("the datagram is not fetched")?;
    Ok(timeline.clock.nanoseconds(cycles) as f64)
}
