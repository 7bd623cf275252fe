//! Traffic between smoltcp behind the driver and smoltcp at the end of the wire: ping, TCP and
//! UDP, with a report, on any engine.

use crate::report::{CardReport, Report};
use anyhow::Result;
use host_driver::stack::card::CardWire;
use host_driver::stack::throughput::{DatagramRun, tcp_receive, tcp_send, udp_receive, udp_send};
use host_driver::stack::{Host, Identity, StackError, ping};
use host_driver::{Nic, Transport};
use std::net::Ipv4Addr;
use std::time::Duration;
use testbed::conditions::DmaChannels;
use testbed::interrupt;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The address of the host at the end of the wire.
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Locally administered, as smoltcp is no real card.
const PEER_STATION: [u8; 6] = [0x02, 0x54, 0x47, 0, 0, 2];
const PREFIX: u8 = 24;

/// Payloads of the echo requests: ping's usual one, and one that fills a frame.
const PAYLOADS: [usize; 2] = [56, 1472];

/// Bytes in a UDP datagram: one that fills a frame.
const UDP_PAYLOAD: usize = 1472;

/// The amount of traffic.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    /// Echo requests of each size.
    pub count: u16,
    /// How long each throughput run lasts.
    pub seconds: u32,
    /// Between two UDP datagrams.
    pub interval: Duration,
}

/// Who the peer at the end of the wire is.
pub fn peer() -> Identity {
    Identity {
        station: PEER_STATION,
        address: smoltcp_address(PEER),
    }
}

/// Who the host behind the card is.
pub fn host(station: [u8; 6]) -> Identity {
    Identity {
        station,
        address: smoltcp_address(HOST),
    }
}

/// Talks with [`peer`] through an open card. `verb` begins each line of what
/// happens, `engine` is what runs the card.
///
/// # Errors
/// When the card or the conversation fails, and on Ctrl-C.
pub fn hold<T: Transport>(
    nic: &mut Nic<T>,
    volume: Volume,
    verb: &str,
    engine: &str,
) -> Result<Report> {
    let identity = host(nic.station());
    let mut report = Report {
        engine: engine.into(),
        stack: "smoltcp".into(),
        dma_channels: DmaChannels::of(nic.config()),
        ..Report::default()
    };
    let mut host = Host::new(CardWire::new(nic), identity);
    let stop = interrupt::flag();
    let Volume {
        count,
        seconds,
        interval,
    } = volume;
    for payload in PAYLOADS {
        println!("{verb}: ping, {count} times {payload} bytes");
        let request = ping::Ping {
            target: PEER,
            count,
            payload,
            interval: Duration::from_millis(2),
            timeout: Duration::from_secs(2),
        };
        report.add_ping(said(ping::ping(&mut host, request, stop))?.into());
    }
    let time = Duration::from_secs(u64::from(seconds));
    println!("{verb}: TCP, {seconds} s each way");
    report.set_tcp(
        said(tcp_send(&mut host, PEER, time, stop))?.into(),
        said(tcp_receive(&mut host, PEER, time, stop))?.into(),
    );
    println!("{verb}: UDP, {seconds} s each way");
    let run = DatagramRun {
        target: PEER,
        payload: UDP_PAYLOAD,
        count: (time.as_micros() / interval.as_micros().max(1)) as u64,
        interval,
    };
    report.set_udp(
        said(udp_send(&mut host, run, stop))?.into(),
        said(udp_receive(&mut host, run, stop))?.into(),
    );
    drop(host);
    let statistics = nic.statistics()?;
    report.firmware_version = statistics.firmware_version.clone();
    report.card = CardReport::from(&statistics);
    Ok(report)
}

/// Ctrl-C ends a conversation; say it as every other command does.
fn said<T>(result: Result<T, StackError>) -> Result<T> {
    interrupt::check()?;
    Ok(result?)
}

fn smoltcp_address(address: Ipv4Addr) -> smoltcp::wire::Ipv4Cidr {
    smoltcp::wire::Ipv4Cidr::new(address, PREFIX)
}
