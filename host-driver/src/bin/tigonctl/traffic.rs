//! Commands that move frames.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use host_driver::Transport;
use host_driver::capture::{FrameReader, FrameWriter, now};
use host_driver::peer::{self, DatagramWire};
use host_driver::replay;
use host_driver::stack::card::CardWire;
use host_driver::stack::ping::{self, Ping};
use host_driver::stack::throughput::{DatagramRun, tcp_receive, tcp_send, udp_receive, udp_send};
use host_driver::stack::{Host, Identity, StackError};
use serde_json::json;

use super::cli::{
    Arguments, Direction, PeerOptions, PingOptions, Protocol, ReplayOptions, ThroughputOptions,
};
use super::connect::seconds;
use super::output::Output;
use super::session::{bring_up, finish};

/// A wire without frames for this long is quiet.
const QUIET: Duration = Duration::from_millis(100);
/// Station address of the peer: locally administered.
const PEER_STATION: [u8; 6] = [0x02, 0x54, 0x47, 0x00, 0x00, 0x02];

/// `tigonctl replay`
pub fn replay(
    arguments: &Arguments,
    options: &ReplayOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let mut reader = FrameReader::open(&options.capture)?;
    let mut nic = bring_up(arguments, &options.run)?;
    let report = replay::replay(&mut nic, &mut reader, stop)?;
    let text = format!(
        "{} frames, {} bytes in {:.3} s; the send ring was full {} times",
        report.frames, report.bytes, report.seconds, report.full
    );
    output.result("replay", serde_json::to_value(report)?, &text);
    finish(nic, &options.run, output)
}

/// Ctrl-C ends the command; it is no failure.
fn unless_stopped<T>(result: Result<T, StackError>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StackError::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `tigonctl ping`
pub fn ping(
    arguments: &Arguments,
    options: &PingOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let mut nic = bring_up(arguments, &options.run)?;
    let identity = Identity {
        station: nic.station(),
        address: options.address.0,
    };
    let request = Ping {
        target: options.target,
        count: options.count,
        payload: usize::from(options.size),
        interval: Duration::from_millis(options.interval),
        timeout: Duration::from_secs(2),
    };
    let mut host = Host::new(CardWire::with_vlan(&mut nic, options.run.vlan), identity);
    let report = unless_stopped(ping::ping(&mut host, request, stop))?;
    drop(host);
    if let Some(report) = report {
        let text = format!(
            "{} bytes: {} sent, {} received, {} corrupt; us min {} p50 {} p90 {} p99 {} max {}",
            report.payload,
            report.sent,
            report.received,
            report.corrupt,
            report.min_us,
            report.p50_us,
            report.p90_us,
            report.p99_us,
            report.max_us
        );
        output.result("ping", serde_json::to_value(&report)?, &text);
        finish(nic, &options.run, output)?;
        anyhow::ensure!(
            report.received > 0 || report.sent == 0,
            "{} does not answer",
            options.target
        );
    }
    Ok(())
}

/// `tigonctl throughput`
pub fn throughput(
    arguments: &Arguments,
    options: &ThroughputOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let time = seconds(options.seconds)?;
    let datagrams = datagram_run(options)?;
    let mut nic = bring_up(arguments, &options.run)?;
    let identity = Identity {
        station: nic.station(),
        address: options.address.0,
    };
    let mut host = Host::new(CardWire::with_vlan(&mut nic, options.run.vlan), identity);
    let directions: &[Direction] = match &options.direction {
        Some(direction) => std::slice::from_ref(direction),
        None => &[Direction::Out, Direction::In],
    };
    for direction in directions {
        let measured = match options.protocol {
            Protocol::Tcp => tcp(&mut host, options, *direction, time, output, stop),
            Protocol::Udp => udp(&mut host, datagrams, *direction, output, stop),
        };
        if unless_stopped(measured)?.is_none() {
            break;
        }
    }
    drop(host);
    finish(nic, &options.run, output)
}

fn datagram_run(options: &ThroughputOptions) -> Result<DatagramRun> {
    let bits = f64::from(options.size) * 8.0;
    let interval = Duration::try_from_secs_f64(bits / (options.rate * 1e6))
        .with_context(|| format!("{} Mb/s is no rate", options.rate))?;
    Ok(DatagramRun {
        target: options.target,
        payload: usize::from(options.size),
        count: (options.seconds * options.rate * 1e6 / bits).max(1.0) as u64,
        interval,
    })
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "out",
        Direction::In => "in",
    }
}

fn tcp<T: Transport>(
    host: &mut Host<CardWire<'_, T>>,
    options: &ThroughputOptions,
    direction: Direction,
    time: Duration,
    output: &Output,
    stop: &AtomicBool,
) -> Result<(), StackError> {
    let report = match direction {
        Direction::Out => tcp_send(host, options.target, time, stop)?,
        Direction::In => tcp_receive(host, options.target, time, stop)?,
    };
    let way = way(direction);
    let text = format!(
        "TCP {way}: {:.1} Mb/s ({} bytes, {} corrupt)",
        report.mbps, report.bytes, report.corrupt
    );
    output.result("tcp", json!({ "direction": way, "report": report }), &text);
    Ok(())
}

fn udp<T: Transport>(
    host: &mut Host<CardWire<'_, T>>,
    run: DatagramRun,
    direction: Direction,
    output: &Output,
    stop: &AtomicBool,
) -> Result<(), StackError> {
    let report = match direction {
        Direction::Out => udp_send(host, run, stop)?,
        Direction::In => udp_receive(host, run, stop)?,
    };
    let way = way(direction);
    let text = format!(
        "UDP {way}: {:.1} Mb/s, {} of {} datagrams ({} bytes corrupt)",
        report.mbps, report.received, report.sent, report.corrupt
    );
    output.result("udp", json!({ "direction": way, "report": report }), &text);
    Ok(())
}

/// `tigonctl peer`
pub fn peer(options: &PeerOptions, output: &Output, stop: &AtomicBool) -> Result<()> {
    let wire = DatagramWire::bind(&options.local, &options.remote)
        .with_context(|| format!("socket {}", options.local.display()))?
        .with_mtu(options.mtu);
    let text = format!("ready: {}", options.local.display());
    output.result("ready", json!({ "local": options.local }), &text);
    match &options.record {
        Some(path) => {
            let mut writer = FrameWriter::create(path)?;
            let result = record_wire(wire, &mut writer, stop);
            let frames = writer.frames();
            writer.finish()?;
            result?;
            output.result(
                "peer",
                json!({ "frames": frames }),
                &format!("{frames} frames"),
            );
        }
        None => {
            let identity = Identity {
                station: PEER_STATION,
                address: options.address.0,
            };
            peer::serve(wire, identity, stop)?;
        }
    }
    Ok(())
}

fn record_wire<W: std::io::Write>(
    mut wire: DatagramWire,
    writer: &mut FrameWriter<W>,
    stop: &AtomicBool,
) -> Result<()> {
    // Frames that are still on the wire when the user stops are recorded as well.
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        while let Some(frame) = wire.receive_frame()? {
            writer.write(now(), &frame)?;
        }
        if !wire.wait_frame(QUIET)? && stopping {
            return Ok(());
        }
    }
}
