//! Traffic without privileges: smoltcp behind the driver and at the end of the wire.

use super::Arguments;
use anyhow::Result;
use host_driver::peer::{self, DatagramWire};
use std::time::Duration;
use testbed::card::{Card, CardOptions};
use testbed::hosts::open_booted;
use testbed::tools::Tools;
use testbed::worker::Worker;
use tigon_bench::conversation::{self, Volume};
use tigon_bench::report::Report;

/// One UDP datagram of 1472 bytes each 235 us is 50 Mb/s, as with iperf3.
const UDP_INTERVAL: Duration = Duration::from_micros(235);

/// Runs the traffic and reports on it.
pub fn run(tools: &Tools, arguments: &Arguments) -> Result<Report> {
    println!("qemu-run: starting the card and its firmware, bringing the link up");
    let eeprom = arguments.eeprom.as_ref();
    let card = Card::start(tools, &CardOptions::booting(tools, eeprom))?;
    let mut peer = start_peer(&card)?;
    let mut nic = open_booted(tools, &card, eeprom.is_some(), arguments.dma_channels)?;
    let volume = Volume {
        count: arguments.count,
        seconds: arguments.seconds,
        interval: UDP_INTERVAL,
    };
    let report = conversation::hold(&mut nic, volume, "qemu-run", "qemu")?;
    nic.shut_down()?;
    peer.join()?;
    Ok(report)
}

/// The thread at the end of the wire.
fn start_peer(card: &Card) -> Result<Worker<()>> {
    let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())?;
    Ok(Worker::start(move |stop| {
        Ok(peer::serve(wire, conversation::peer(), stop)?)
    }))
}
