//! `tigonctl bridge`: the card under a TAP device, with one thread or with one for each
//! receive queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use host_driver::bridge::queues::{self, QueuesPlan};
use host_driver::knet::{self, PaceSettings};
use host_driver::nic::{Link, QueueSettings};
use host_driver::rss::words;
use host_driver::status::StatusServer;
use host_driver::tap::Tap;
use host_driver::{NicError, bridge};
use serde_json::json;

use super::cli::{Arguments, BridgeOptions, QueueOptions};
use super::connect::AnyNic;
use super::output::{Output, link_text, station_text};
use super::session::{bring_up, finish, start};
use super::spine;

/// `tigonctl bridge`
pub fn bridge(
    arguments: &Arguments,
    options: &BridgeOptions,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    // First what can fail without a card.
    let plan = plan(arguments, options)?;
    let policy = options.extensions.as_deref().map(spine::policy);
    let policy = policy.transpose()?;
    let status = match &options.status {
        Some(path) => {
            let server = StatusServer::bind(path);
            let server = server.with_context(|| format!("status socket {}", path.display()))?;
            Some(match policy {
                Some(policy) => server.with_extensions(policy),
                None => server,
            })
        }
        None => None,
    };
    let Some(plan) = plan else {
        return with_one_thread(arguments, options, status, output, stop);
    };
    with_queues(arguments, options, &plan, status, output, stop)
}

/// Says that the device is there.
fn ready(nic: &Ready<'_>, options: &BridgeOptions, output: &Output) {
    let value = json!({
        "tap": options.tap,
        "station": station_text(nic.station),
        "link": nic.link,
        "firmware_version": nic.firmware_version,
    });
    let text = format!(
        "ready: {} is the card {}, link {}",
        options.tap,
        station_text(nic.station),
        link_text(nic.link)
    );
    output.result("ready", value, &text);
}

struct Ready<'a> {
    station: [u8; 6],
    link: Link,
    firmware_version: &'a str,
}

fn with_one_thread(
    arguments: &Arguments,
    options: &BridgeOptions,
    status: Option<StatusServer>,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let mut nic = bring_up(arguments, &options.run)?;
    let station = nic.station();
    let tap = Tap::create(&options.tap, station, nic.config().mtu, options.up)?;
    let there = Ready {
        station,
        link: nic.link(),
        firmware_version: &nic.firmware_version(),
    };
    ready(&there, options, output);
    let report = bridge::run_attended(&mut nic, &tap, options.run.vlan, stop, |nic| {
        if let Some(status) = &status {
            status.serve(nic);
        }
    })?;
    if let Some(status) = status {
        status.close(&mut nic);
    }
    drop(tap);
    let text = format!(
        "{} frames to the card, {} to {}, {} recoveries",
        report.to_card, report.to_tap, options.tap, report.recoveries
    );
    output.result("bridge", serde_json::to_value(report)?, &text);
    finish(nic, &options.run, output)
}

/// What the options want of receive queues; none for classic mode.
fn plan(arguments: &Arguments, options: &BridgeOptions) -> Result<Option<QueuesPlan>> {
    let QueueOptions {
        queues: Some(queues),
        classifier,
        queue_entries,
        cpus,
        budget,
        defer_polls,
        defer_us,
        busy_poll,
    } = &options.queues
    else {
        return Ok(None);
    };
    let kind = words::classifier(classifier)?;
    let mut settings = QueueSettings::new(*queues).with_classifier(kind);
    settings.entries = *queue_entries;
    settings.check()?;
    let pace = PaceSettings::default();
    let threads = knet::Settings {
        cpus: cpus.clone(),
        pace: PaceSettings {
            least: pace.least.min(*budget),
            most: *budget,
            empty_polls: *defer_polls,
            defer: defer_us.map(Duration::from_micros),
            busy: *busy_poll || arguments.polling,
        },
    };
    threads.cpus_of((*queues).into())?;
    Ok(Some(QueuesPlan {
        queues: settings,
        threads,
        vlan: options.run.vlan,
    }))
}

fn with_queues(
    arguments: &Arguments,
    options: &BridgeOptions,
    plan: &QueuesPlan,
    status: Option<StatusServer>,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let mut nic: AnyNic = start(arguments, &options.run)?;
    nic.set_all_multicast(true)?;
    if options.run.promiscuous {
        nic.set_promiscuous(true)?;
    }
    let queues = usize::from(plan.queues.queues);
    let mtu = nic.config().mtu;
    let taps = Tap::create_queues(&options.tap, nic.station(), mtu, options.up, queues)?;
    let patience = Duration::from_secs(options.run.link_timeout);
    let begun = Instant::now();
    let (mut is_ready, mut late, mut reported) = (false, None, 0);
    let (mut nic, report) = queues::run(nic, &taps, plan, stop, |control, progress| {
        if let Some(status) = &status {
            status.serve(control);
        }
        for death in progress.deaths.iter().skip(reported) {
            output.error(&format!(
                "the thread of queue {} has ended, the others go on: {}",
                death.queue, death.reason
            ));
        }
        reported = progress.deaths.len();
        if !is_ready && control.link() != Link::Down {
            is_ready = true;
            let there = Ready {
                station: control.station(),
                link: control.link(),
                firmware_version: &control.firmware_version(),
            };
            ready(&there, options, output);
        } else if !is_ready && begun.elapsed() >= patience && late.is_none() {
            let state = control.card_state();
            late = Some(state.map(|state| NicError::NoLink {
                after: patience,
                state,
            }));
            stop.store(true, Ordering::Relaxed);
        }
    })?;
    if let Some(status) = status {
        status.close(&mut nic);
    }
    drop(taps);
    if let Some(late) = late {
        nic.shut_down()?;
        return Err(late?.into());
    }
    let mut text = format!(
        "{} frames to the card, {} to {}, {} recoveries",
        report.bridge.to_card, report.bridge.to_tap, options.tap, report.bridge.recoveries
    );
    for thread in &report.threads {
        text += &format!(
            "\nqueue {}: {} frames, {} looks, {} of them empty, {} naps",
            thread.queue, thread.frames, thread.polls, thread.empty_polls, thread.naps
        );
    }
    let turns = report.send.turns.max(1);
    text += &format!(
        "\nsend ring: {} turns of {} ns, {} waited for, {} ns a turn",
        report.send.turns,
        report.send.held_ns / turns,
        report.send.waited,
        report.send.waited_ns / turns
    );
    output.result("bridge", serde_json::to_value(&report)?, &text);
    finish(nic, &options.run, output)
}
