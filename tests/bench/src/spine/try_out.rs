//! An extension on a simulated card that keeps the chip's time, with frames from the wire.

mod log;

use self::log::Log;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use host_driver::nic::ExtensionCard;
use host_driver::{Config, Nic};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Address,
    Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};
use spine_linker::extensions::Extensions;
use spine_linker::guard::GuardText;
use spine_linker::policy::Policy;
use std::path::PathBuf;
use std::time::Duration;
use testbed::firmware::{self, FirmwareOptions, Placement, Variant};
use testbed::paths;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::{Machine, SimTransport};

/// The card's timing profile, one of the board file.
const PROFILE: &str = "default";
/// On the card's clock.
const LINK: Duration = Duration::from_secs(10);
/// Nanoseconds that a frame has for its way through the card.
const PATIENCE: u64 = 1_000_000;
/// Cycles between two looks at the wire.
const LOOK: u64 = 100;
/// Cycles in which what the last run has sent is with the host.
const SETTLES: u64 = 10_000;
/// The peer on the wire.
const PEER: (EthernetAddress, Ipv4Address) = (
    EthernetAddress([2, 0, 0, 0, 0, 2]),
    Ipv4Address::new(10, 77, 0, 2),
);
/// The host behind the card.
const HOST: Ipv4Address = Ipv4Address::new(10, 77, 0, 1);

/// What to send to which handler.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The crate's folder
    pub folder: PathBuf,
    /// Which frames go to it: any, ether:TYPE, ip:PROTOCOL or udp:PORT, and =HANDLER behind it
    #[arg(long = "guard", value_name = "GUARD", default_value = "any")]
    pub guards: Vec<GuardText>,
    /// UDP port of the datagrams that come from the wire
    #[arg(long, default_value_t = 4711)]
    pub port: u16,
    /// The text in each datagram
    #[arg(long, default_value = "who is there?")]
    pub text: String,
    /// How many datagrams come
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
}

/// What became of the datagrams.
#[derive(Debug, Default)]
struct Outcome {
    answers: u32,
    first: Option<Vec<u8>>,
    nanoseconds: (u64, u64),
    of_host: u32,
}

/// Loads a container, sends, and prints what became of it.
///
/// # Errors
/// Which wall refuses it, or what the driver reports.
pub fn run(options: &Options, container: &[u8], policy: Policy) -> Result<()> {
    let variant = Variant::from_str("spine", false);
    let Ok(variant) = variant else {
        bail!("this checkout has no variant that loads extensions");
    };
    let built = firmware::build(FirmwareOptions {
        variant,
        placement: Placement::Scratch,
        quiet: false,
    })?;
    let image = std::fs::read(&built.tg2)
        .with_context(|| format!("cannot read {}", built.tg2.display()))?;
    let text = paths::board_file()?;
    let parameters = Parameters::from_toml(&text, PROFILE)?;
    let transport = SimTransport::new(Machine::timed(Board::default(), parameters, 0));
    let machine = transport.machine();
    let mut nic = Nic::probe(transport, Config::default())?;
    nic.load(&image).context("the firmware does not start")?;
    nic.open()?;
    nic.wait_link(LINK)?;
    let mut loaded = Extensions::new(policy);
    let mut log = Log::open(&mut loaded, &mut nic)?;
    let card = &mut ExtensionCard(&mut nic);
    let domain = loaded.load(card, container, &options.guards)?;
    let frame = datagram(nic.station(), options);
    let mut outcome = Outcome::default();
    for _ in 0..options.count {
        let arrival = machine.lock().send_frame(0, frame.clone());
        let mut answer = None;
        while answer.is_none() && machine.lock().now() < arrival + PATIENCE {
            let mut running = machine.lock();
            running.run(LOOK);
            answer = running.take_frame();
        }
        if let Some(answer) = answer {
            let took = answer.at - arrival;
            let (least, most) = outcome.nanoseconds;
            let least = if outcome.answers == 0 { took } else { least };
            outcome.nanoseconds = (least.min(took), most.max(took));
            outcome.answers += 1;
            outcome.first.get_or_insert(answer.bytes);
        }
        nic.service()?;
        log.take(&mut loaded, &mut nic)?;
        outcome.of_host += nic.receive_batch(64)?.len() as u32;
    }
    machine.lock().run(SETTLES);
    log.take(&mut loaded, &mut nic)?;
    let reports = loaded.reports(&mut ExtensionCard(&mut nic))?;
    let report = reports.iter().find(|one| one.domain == domain);
    let report = report.context("it is not loaded any more")?;
    println!(
        "{}: {} runs for {} datagrams; cut off {} times",
        report.name,
        report.runs,
        options.count,
        report.overruns + report.panics + report.faults
    );
    for (number, value) in report.counters.iter().enumerate() {
        if *value != 0 {
            println!("  counter {number}: {value}");
        }
    }
    log.print();
    println!("  the host received {}", outcome.of_host);
    println!("  the card answered {}", outcome.answers);
    if let Some(first) = &outcome.first {
        let (least, most) = outcome.nanoseconds;
        println!(
            "  behind the question's last byte the answer's comes after {:.1} to {:.1} us",
            least as f64 / 1000.0,
            most as f64 / 1000.0
        );
        println!("  the first answer: {}", text_of(first));
    }
    nic.shut_down()?;
    Ok(())
}

/// A datagram from the peer to the host.
fn datagram(station: [u8; 6], options: &Options) -> Vec<u8> {
    let text = options.text.as_bytes();
    let udp = UdpRepr {
        src_port: 40_000,
        dst_port: options.port,
    };
    let length = udp.header_len() + text.len();
    let ip = Ipv4Repr {
        src_addr: PEER.1,
        dst_addr: HOST,
        next_header: IpProtocol::Udp,
        payload_len: length,
        hop_limit: 64,
    };
    let ethernet = EthernetRepr {
        src_addr: PEER.0,
        dst_addr: EthernetAddress(station),
        ethertype: EthernetProtocol::Ipv4,
    };
    let behind = ethernet.buffer_len() + ip.buffer_len();
    let mut bytes = vec![0; behind + length];
    let sums = ChecksumCapabilities::default();
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &sums);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    let (from, to) = (PEER.1.into(), HOST.into());
    let fill = |payload: &mut [u8]| payload.copy_from_slice(text);
    udp.emit(&mut datagram, &from, &to, text.len(), fill, &sums);
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// What a frame says to a reader: a datagram's text, or how long it is.
fn text_of(frame: &[u8]) -> String {
    let datagram = || {
        let frame = EthernetFrame::new_checked(frame).ok()?;
        let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
        let udp = UdpPacket::new_checked(packet.payload()).ok()?;
        let good = packet.next_header() == IpProtocol::Udp
            && packet.verify_checksum()
            && udp.verify_checksum(&packet.src_addr().into(), &packet.dst_addr().into());
        good.then(|| format!("{:?}", String::from_utf8_lossy(udp.payload())))
    };
    datagram().unwrap_or_else(|| format!("{} bytes, no datagram with right sums", frame.len()))
}
