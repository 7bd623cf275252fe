//! A card in queue mode under QEMU, between two Linux hosts: each queue has a network thread on
//! a CPU of its own and a queue of the TAP device.
//!
//! TCP and UDP conversations with checked bytes, as many for each queue, run both ways at once.
//! Their ports are those that the classifier says lead to the wanted queue, so a report in which
//! the queues do not share the packets is one of a card that sorts them otherwise.

pub mod flows;
pub mod report;

use anyhow::Result;
use flows::{Talk, choose, hold};
use host_driver::bridge::queues::QueuesPlan;
use host_driver::knet;
use host_driver::nic::QueueSettings;
use host_driver::rss::{HashTypes, Protocol};
use paycheck::account::Flow;
use report::{Account, Messages, Queue, Report};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use testbed::conditions::DmaChannels;
use testbed::hosts::{HOST, PEER};
use testbed::interrupt;
use testbed::queue_hosts::{QueueStatistics, QueueTestbed};
use testbed::tools::Tools;

/// TCP conversations for each queue.
const TCP_EACH: usize = 8;
/// What each of them sends, each way, in Mb/s: together well below what the card carries
/// under QEMU, so that a loss is a fault and not an overload.
const TCP_MBPS: f64 = 1.0;
/// The same of the UDP conversation of each queue.
const UDP_MBPS: f64 = 1.0;
/// Time in which what is on its way arrives.
const QUIET: Duration = Duration::from_millis(500);

/// Runs the traffic for so long, over so many queues.
///
/// # Errors
/// Whatever does not come up; more queues than CPUs.
pub fn run(tools: &Tools, queues: u8, seconds: u32, channels: DmaChannels) -> Result<Report> {
    let mut settings = QueueSettings::new(queues);
    // The datagrams here are never fragments.
    settings.classification.hash_types = HashTypes::USUAL.with_udp_ipv4(true);
    let plan = QueuesPlan {
        queues: settings,
        threads: knet::Settings::default(),
        vlan: None,
    };
    let cpus = plan.threads.cpus_of(queues.into())?;
    let ends: [Ipv4Addr; 2] = [PEER.parse()?, HOST.parse()?];
    let tcp = choose(&settings, Protocol::Tcp, TCP_EACH, ends)?;
    let udp = choose(&settings, Protocol::Udp, 1, ends)?;
    let talks = tcp.iter().map(|talk| (*talk, TCP_MBPS));
    let talks = talks.chain(udp.iter().map(|talk| (*talk, UDP_MBPS)));
    let talks: Vec<(Talk, f64)> = talks.collect();

    println!("qemu-run: starting the card, loading the firmware, opening {queues} queues");
    let mut testbed = QueueTestbed::start(tools, &plan, channels)?;
    println!(
        "qemu-run: {} TCP and {} UDP conversations both ways, {seconds} s",
        tcp.len(),
        udp.len()
    );
    let time = Duration::from_secs(seconds.into());
    // The testbed is looked at while its namespaces are in use.
    let QueueTestbed {
        ref host, ref peer, ..
    } = testbed;
    let said = hold(&talks, host, peer, time, || {
        Ok(interrupt::sleep(Duration::ZERO)?)
    })?;
    testbed.check()?;
    interrupt::sleep(QUIET)?;
    let out_of_order =
        testbed.host.tcp_count("TCPOFOQueue")? + testbed.peer.tcp_count("TCPOFOQueue")?;
    let unread =
        testbed.host.udp_count("RcvbufErrors")? + testbed.peer.udp_count("RcvbufErrors")?;
    let host = testbed.host.frames(&testbed.host_device)?;
    let peer = testbed.peer.frames(&testbed.peer_device)?;
    let host_held = testbed.host.held_frames(&testbed.host_device)?;
    let peer_held = testbed.peer.held_frames(&testbed.peer_device)?;
    let counts = testbed.finish()?;

    let (of_tcp, of_udp) = said.split_at(tcp.len());
    let drops = drops(&counts);
    let dropped = drops.values().sum();
    let pauses = counts.all.emulator.get("pauses").copied().unwrap_or(0);
    let threads = &counts.bridge.threads;
    let naps = |queue| {
        let thread = threads.iter().find(|thread| thread.queue == queue);
        thread.map_or(0, |thread| thread.naps)
    };
    let mut queues = Queue::all(&counts.queues, naps);
    for (queue, cpu) in queues.iter_mut().zip(&cpus) {
        queue.cpu = u32::try_from(*cpu).ok();
    }
    Ok(Report {
        firmware_version: counts.all.firmware_version.clone(),
        seconds,
        queues,
        tcp: messages(of_tcp),
        udp: messages(of_udp),
        out_of_order,
        inward: Account {
            sent: peer.sent,
            arrived: host.received,
            dropped,
            held: peer_held,
        },
        outward: Account {
            sent: host.sent + pauses,
            arrived: peer.received,
            dropped: 0,
            held: host_held,
        },
        pauses,
        unread,
        drops,
        send: counts.bridge.send,
    })
}

/// What card and driver have dropped between the two kernels, by reason. What the card counts for
/// each queue is part of what its firmware counts.
fn drops(counts: &QueueStatistics) -> BTreeMap<String, u64> {
    let mut drops = BTreeMap::new();
    let mut add = |name: String, count: u64| {
        if count > 0 {
            *drops.entry(name).or_default() += count;
        }
    };
    for (reason, count) in &counts.all.driver_drops.0 {
        add((*reason).to_owned(), *count);
    }
    for (reason, count) in &counts.all.firmware_drops.0 {
        add(format!("firmware: {reason}"), *count);
    }
    drops
}

fn messages(reports: &[paycheck::report::Report]) -> Messages {
    let flows = reports.iter().map(|report| report.total);
    Messages {
        conversations: reports.len(),
        flow: flows.fold(Flow::default(), Flow::plus),
        mbps: reports.iter().map(|report| report.mbps).sum(),
    }
}
