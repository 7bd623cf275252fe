//! Linux on both sides: ping and iperf3 between two namespaces.

use super::Arguments;
use super::shell::Shell;
use anyhow::{Context, Result};
use host_driver::log::{BuildId, LogTexts};
use spine_linker::policy::Policy;
use std::path::Path;
use std::process::Stdio;
use testbed::hosts::{HOST, Options, PEER, Testbed};
use testbed::net::iperf::{self, Direction, Protocol, Server};
use testbed::net::ping;
use testbed::tools::{Tools, build_tigonctl};
use tigon_bench::report::{CardReport, Report};

/// Payloads of the echo requests: ping's usual one, and one that fills a frame.
const PAYLOADS: [u32; 2] = [56, 1472];

/// UDP's rate, in Mb/s: well below what the card carries, so that loss means a
/// fault and not an overload.
const UDP_MBPS: u32 = 50;

/// Runs the traffic and reports on it.
pub fn run(tools: &Tools, arguments: &Arguments) -> Result<Report> {
    let options = Options {
        eeprom: arguments.eeprom.clone(),
        dma_channels: arguments.dma_channels,
        ..Options::default()
    };
    let mut testbed = start(tools, &options)?;
    let mut report = Report {
        engine: "qemu".into(),
        stack: "linux".into(),
        dma_channels: arguments.dma_channels,
        ..Report::default()
    };
    for payload in PAYLOADS {
        println!("qemu-run: ping, {} times {payload} bytes", arguments.count);
        report.add_ping(ping::run(
            &testbed.host,
            PEER,
            payload,
            u32::from(arguments.count),
        )?);
        testbed.check()?;
    }
    let mut iperf = |protocol, direction| {
        println!(
            "qemu-run: iperf3, {protocol:?} {direction:?}, {} s",
            arguments.seconds
        );
        let (host, peer) = (&testbed.host, &testbed.peer);
        let result = iperf::run(host, peer, PEER, protocol, direction, arguments.seconds);
        testbed.check()?;
        result
    };
    report.set_tcp(
        iperf(Protocol::Tcp, Direction::Out)?,
        iperf(Protocol::Tcp, Direction::In)?,
    );
    report.set_udp(
        iperf(Protocol::Udp(UDP_MBPS), Direction::Out)?,
        iperf(Protocol::Udp(UDP_MBPS), Direction::In)?,
    );
    let statistics = testbed.finish()?;
    report.firmware_version = statistics.firmware_version.clone();
    report.card = CardReport::from(&statistics);
    Ok(report)
}

fn start(tools: &Tools, options: &Options) -> Result<Testbed> {
    let firmware = if options.eeprom.is_some() {
        "booting it from its EEPROM"
    } else {
        "loading the firmware"
    };
    println!("qemu-run: starting the card, {firmware}, bringing the link up");
    Testbed::start(tools, options)
}

/// Whether an ELF file is that of the firmware on a card.
fn is_of(elf: &Path, build: Option<BuildId>) -> bool {
    let Ok(elf) = std::fs::read(elf) else {
        return false;
    };
    let texts = LogTexts::parse(&elf);
    texts.is_ok_and(|texts| Some(texts.build()) == build)
}

/// A policy file.
fn policy(path: &Path) -> Result<Policy> {
    let named = || format!("policy {}", path.display());
    let text = std::fs::read_to_string(path).with_context(named)?;
    Policy::parse(&text).with_context(named)
}

/// A shell behind the card, until the user leaves it.
pub fn interactive(tools: &Tools, arguments: &Arguments) -> Result<()> {
    let tigonctl = build_tigonctl()?;
    let gdb = arguments.gdb;
    let options = Options {
        attended: true,
        gdb,
        eeprom: arguments.eeprom.clone(),
        dma_channels: arguments.dma_channels,
        extensions: arguments.extensions.as_deref().map(policy).transpose()?,
    };
    let testbed = start(tools, &options)?;
    let folder = tempfile::tempdir().context("cannot make a folder for the shell")?;
    let shell = Shell::prepare(&tigonctl, folder.path())?;
    let elf = Some(&tools.firmware.elf).filter(|elf| is_of(elf, testbed.build));
    println!("This is {HOST}, behind the card. At the other end of the wire is {PEER}.");
    // For the life of the shell.
    let server = Server::start(&testbed.peer, PEER.parse()?);
    match &server {
        Ok(_) => println!("There is an iperf3 server over there: iperf3 -c {PEER}, with -R in."),
        Err(error) => println!("There is no iperf3 server over there: {error:#}."),
    }
    let completed = if shell.completes() {
        "; Tab completes it"
    } else {
        ""
    };
    println!(
        "Try: ping {PEER}, tigonctl stats, tigonctl top{completed}. Another shell over there: ip \
         netns exec {} {}\n\
         Look at frames: tigonctl capture - | tcpdump -n -r -\n\
         From any other terminal: {} --attach {} stats\n\
         Leave with exit or Ctrl-D; everything goes away then.",
        testbed.peer.name(),
        shell.name(),
        tigonctl.display(),
        testbed.status().display()
    );
    if gdb {
        println!(
            "gdb, both CPUs as threads: gdb-multiarch {} -ex 'target remote {}'",
            tools.firmware.elf.display(),
            testbed.card.gdb().display()
        );
    }
    // The shell has the terminal: Ctrl-C is for what runs in it.
    let mut shell = shell.command(&testbed.host);
    if let Some(elf) = elf {
        shell.env("TIGON_ELF", elf);
    } else {
        println!(
            "The firmware is not the one of this tree: tigonctl log needs its ELF file, --elf FILE."
        );
    }
    let status = shell
        .env("TIGON_ATTACH", testbed.status())
        .stdin(Stdio::inherit())
        .status()
        .context("cannot start the shell")?;
    let _ = status; // the user's last command may have failed; that is theirs
    drop(server);
    let statistics = testbed.finish()?;
    let driver = statistics.driver;
    println!(
        "qemu-run: {} frames sent, {} received",
        driver.frames_sent, driver.frames_received
    );
    Ok(())
}
