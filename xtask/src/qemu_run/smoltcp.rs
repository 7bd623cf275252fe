//! Without privileges: smoltcp behind the driver and at the end of the wire.

use super::Arguments;
use super::report::{CardReport, Report};
use crate::card::{Card, CardOptions};
use crate::interrupt;
use crate::net::iperf::Throughput;
use crate::net::ping::{Percentiles, Ping};
use crate::testbed::open_nic;
use crate::tools::Tools;
use crate::worker::Worker;
use anyhow::Result;
use host_driver::peer::{self, DatagramWire};
use host_driver::stack::card::CardWire;
use host_driver::stack::ping::PingReport;
use host_driver::stack::throughput::{
    DatagramReport, DatagramRun, StreamReport, tcp_receive, tcp_send, udp_receive, udp_send,
};
use host_driver::stack::{Host, Identity, StackError, ping};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Locally administered, as smoltcp is no real card.
const PEER_STATION: [u8; 6] = [0x02, 0x54, 0x47, 0, 0, 2];
const PREFIX: u8 = 24;

/// One UDP datagram of 1472 bytes each 235 us is 50 Mb/s, as with iperf3.
const UDP_PAYLOAD: usize = 1472;
const UDP_INTERVAL: Duration = Duration::from_micros(235);

/// Runs the traffic and reports on it.
pub fn run(tools: &Tools, arguments: &Arguments) -> Result<Report> {
    println!("qemu-run: starting the card, loading the firmware, bringing the link up");
    let card = Card::start(tools, &CardOptions::default())?;
    let mut peer = start_peer(&card)?;
    let mut nic = open_nic(tools, &card)?;
    let identity = Identity {
        station: nic.station(),
        address: smoltcp_address(HOST),
    };
    let mut report = Report {
        engine: "qemu".into(),
        stack: "smoltcp".into(),
        ..Report::default()
    };
    let mut host = Host::new(CardWire::new(&mut nic), identity);
    let stop = interrupt::flag();
    for payload in [56, 1472] {
        println!("qemu-run: ping, {} times {payload} bytes", arguments.count);
        let request = ping::Ping {
            target: PEER,
            count: arguments.count,
            payload,
            interval: Duration::from_millis(2),
            timeout: Duration::from_secs(2),
        };
        report.add_ping(said(ping::ping(&mut host, request, stop))?.into());
    }
    let time = Duration::from_secs(u64::from(arguments.seconds));
    println!("qemu-run: TCP, {} s each way", arguments.seconds);
    report.set_tcp(
        said(tcp_send(&mut host, PEER, time, stop))?.into(),
        said(tcp_receive(&mut host, PEER, time, stop))?.into(),
    );
    println!("qemu-run: UDP, {} s each way", arguments.seconds);
    let run = DatagramRun {
        target: PEER,
        payload: UDP_PAYLOAD,
        count: (time.as_micros() / UDP_INTERVAL.as_micros()) as u64,
        interval: UDP_INTERVAL,
    };
    report.set_udp(
        said(udp_send(&mut host, run, stop))?.into(),
        said(udp_receive(&mut host, run, stop))?.into(),
    );
    drop(host);
    let statistics = nic.statistics()?;
    nic.shut_down()?;
    peer.join()?;
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

/// The thread at the end of the wire.
fn start_peer(card: &Card) -> Result<Worker<()>> {
    let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())?;
    let identity = Identity {
        station: PEER_STATION,
        address: smoltcp_address(PEER),
    };
    Ok(Worker::start(move |stop| {
        Ok(peer::serve(wire, identity, stop)?)
    }))
}

impl From<PingReport> for Ping {
    fn from(report: PingReport) -> Ping {
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ping {
            payload: number(report.payload as u64),
            sent: number(report.sent),
            // A reply with other contents is no reply.
            received: number(report.received - report.corrupt.min(report.received)),
            duplicates: 0,
            round_trip_us: Percentiles {
                min: report.min_us,
                p50: report.p50_us,
                p90: report.p90_us,
                p99: report.p99_us,
                max: report.max_us,
            },
        }
    }
}

impl From<StreamReport> for Throughput {
    fn from(report: StreamReport) -> Throughput {
        Throughput {
            mbps: report.mbps,
            bytes: report.bytes,
            ..Throughput::default()
        }
    }
}

impl From<DatagramReport> for Throughput {
    fn from(report: DatagramReport) -> Throughput {
        Throughput {
            mbps: report.mbps,
            bytes: report.received * report.payload as u64,
            datagrams: report.sent,
            lost: report.sent.saturating_sub(report.received),
            ..Throughput::default()
        }
    }
}
