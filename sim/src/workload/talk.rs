//! Slow endless traffic for a debugging session.
//!
//! Every [`PAUSE_NS`] of the card's time a numbered datagram goes out and one comes in,
//! alternately small and of the maximum frame size; now and then the peer sends an ARP request (a
//! broadcast) or an IPv6 packet. Frames come singly, so the path of one frame can be followed.

use super::WorkloadError;
use super::arrivals::Mix;
use super::datagram::PEER;
use super::testbench::{Load, Setup, Testbench};
use crate::transport::SimTransport;
use etherparse::{ArpHardwareId, ArpPacket, EtherType, PacketBuilder};

/// Between two rounds.
pub const PAUSE_NS: u64 = 100_000;
/// One of so many rounds has an ARP request, and one an IPv6 packet.
const SPECIAL: u64 = 4;
/// Payloads: the smallest frame's, and the largest's.
const SIZES: [(usize, u32); 2] = [(18, 1), (1472, 1)];
/// The last byte of the host's address.
const HOST: u8 = 1;

/// Talks through a card of the setup's board until something fails, or for so many rounds.
///
/// # Errors
/// [`WorkloadError`]: what fails.
pub fn talk(transport: SimTransport, setup: &Setup<'_>, rounds: u64) -> Result<(), WorkloadError> {
    let mut testbench = Testbench::start_on(transport, setup)?;
    let mix = Mix::new(&SIZES);
    let (mut out, mut into) = (testbench.outbound(mix.clone())?, testbench.inbound(mix)?);
    let station = testbench.nic().station();
    for round in 0..rounds {
        let frame = out.frame();
        testbench.queue(&frame)?;
        testbench.nic().submit()?;
        let mut arriving = vec![into.frame()];
        match round % SPECIAL {
            1 => arriving.push(arp_request()),
            3 => arriving.push(ipv6(station)),
            _ => {}
        }
        for frame in arriving {
            let mut machine = testbench.machine().lock();
            let now = machine.now();
            machine.send_frame(now, frame);
        }
        testbench.run(&mut Load::default(), PAUSE_NS)?;
    }
    Ok(())
}

/// "Who has the host's address?", to everybody.
fn arp_request() -> Vec<u8> {
    let addresses = ([10, 77, 0, PEER[5]], [10, 77, 0, HOST]);
    let packet = ArpPacket::new(
        ArpHardwareId::ETHERNET,
        EtherType::IPV4,
        etherparse::ArpOperation::REQUEST,
        &PEER,
        &addresses.0,
        &[0; 6],
        &addresses.1,
    )
    .expect("the lengths are those of Ethernet and IPv4");
    let builder = PacketBuilder::ethernet2(PEER, [0xFF; 6]).arp(packet);
    let mut frame = Vec::new();
    builder
        .write(&mut frame)
        .expect("writing to memory does not fail");
    frame
}

/// A UDP datagram to the host's link-local address.
fn ipv6(station: [u8; 6]) -> Vec<u8> {
    let address = |last: u8| {
        let mut address = [0; 16];
        (address[0], address[1], address[15]) = (0xFE, 0x80, last);
        address
    };
    let builder = PacketBuilder::ethernet2(PEER, station)
        .ipv6(address(PEER[5]), address(HOST), 64)
        .udp(5001, 5002);
    let mut frame = Vec::new();
    builder
        .write(&mut frame, b"seen in gdb")
        .expect("writing to memory does not fail");
    frame
}
