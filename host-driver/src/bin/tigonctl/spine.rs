//! `tigonctl spine`: extensions of a card that another process drives.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use host_driver::status::Request;
use serde_json::{Value, json};
use spine_linker::endpoint::{HandlerOf, RingSizes};
use spine_linker::extensions::{EndpointReport, HandlerReport, Ledger, Report};
use spine_linker::load::lease::Lease;
use spine_linker::policy::Policy;
use spine_linker::sign::digits_of_bytes;

use super::cli::{Arguments, SpineAction};
use super::output::Output;
use super::rss::driver;

mod log;
mod routes;
mod video;

/// Rings of this program's own endpoint.
const SIZES: RingSizes = RingSizes { slots: 16, bulk: 0 };

/// A policy file.
pub fn policy(path: &Path) -> Result<Policy> {
    let named = || format!("policy {}", path.display());
    let text = std::fs::read_to_string(path).with_context(named)?;
    Policy::parse(&text).with_context(named)
}

/// `tigonctl spine`
pub fn spine(
    arguments: &Arguments,
    action: &SpineAction,
    output: &Output,
    stop: &AtomicBool,
) -> Result<()> {
    let request = match action {
        SpineAction::Load { container, guards } => {
            let named = || format!("extension {}", container.display());
            let bytes = std::fs::read(container).with_context(named)?;
            Request::LoadExtension {
                container: digits_of_bytes(&bytes),
                guards: guards.clone(),
            }
        }
        SpineAction::Log => return log::log(arguments, output),
        SpineAction::Message { .. } => return message(arguments, action, output),
        SpineAction::Route { domain, action } => {
            return routes::route(arguments, *domain, action, output);
        }
        SpineAction::Video { action } => return video::video(arguments, action, output, stop),
        SpineAction::Lease {
            domain,
            address,
            bytes,
        } => {
            let lease = address.zip(*bytes);
            let lease = lease.map(|(address, bytes)| Lease { address, bytes });
            Request::Lease {
                domain: *domain,
                lease: lease.unwrap_or(Lease::NONE),
            }
        }
        SpineAction::List
        | SpineAction::Stats { .. }
        | SpineAction::Endpoints
        | SpineAction::Ledger => Request::Extensions,
        SpineAction::Send {
            domain,
            handler,
            arguments,
        } => Request::SendMessage {
            domain: *domain,
            handler: *handler,
            arguments: arguments.clone(),
        },
        SpineAction::Unload { domain } => Request::UnloadExtension { domain: *domain },
        SpineAction::Resume { domain } => Request::ResumeExtension { domain: *domain },
    };
    let mut answer = driver(arguments)?.request(&request)?;
    let reports: Vec<Report> = serde_json::from_value(answer["extensions"].take())?;
    match action {
        SpineAction::Load { .. } => {
            let domain = answer["domain"].as_u64();
            let loaded = reports
                .iter()
                .find(|one| Some(one.domain.into()) == domain)
                .context("the driver does not say what it has loaded")?;
            let text = format!(
                "domain {}: {}, {} bytes, {} bytes of stack",
                loaded.domain, loaded.name, loaded.bytes, loaded.stack
            );
            output.result("loaded", serde_json::to_value(loaded)?, &text);
        }
        SpineAction::Send {
            domain, handler, ..
        } => {
            let text = format!("handler {handler} of domain {domain} has run");
            let value = json!({ "domain": domain, "handler": handler });
            output.result("sent", value, &text);
        }
        SpineAction::Log
        | SpineAction::Message { .. }
        | SpineAction::Route { .. }
        | SpineAction::Video { .. } => {}
        SpineAction::Lease { domain, .. } => {
            let report = reports.iter().find(|one| one.domain == *domain);
            let lease = report.map_or(Lease::NONE, |one| one.lease);
            let text = format!("domain {domain} {}", leased(lease));
            output.result("lease", json!({ "domain": domain, "lease": lease }), &text);
        }
        SpineAction::Endpoints => {
            let reports: Vec<EndpointReport> = serde_json::from_value(answer["endpoints"].take())?;
            let text = endpoints(&reports);
            output.result("endpoints", serde_json::to_value(&reports)?, &text);
        }
        SpineAction::Ledger => {
            let ledger: Ledger = serde_json::from_value(answer["ledger"].take())?;
            output.result("ledger", serde_json::to_value(&ledger)?, &kept(&ledger));
        }
        SpineAction::Unload { domain } => {
            let text = format!("domain {domain} is unloaded");
            output.result("unloaded", json!({ "domain": domain }), &text);
        }
        SpineAction::Resume { domain } => {
            let text = format!("domain {domain} runs");
            output.result("resumed", json!({ "domain": domain }), &text);
        }
        SpineAction::List => {
            let value = json!({ "free": answer["free"], "extensions": reports });
            output.result("extensions", value, &list(&reports, &answer["free"]));
        }
        SpineAction::Stats { domain } => {
            let wanted = |one: &&Report| domain.is_none_or(|domain| one.domain == domain);
            let found: Vec<&Report> = reports.iter().filter(wanted).collect();
            if let (Some(domain), true) = (domain, found.is_empty()) {
                bail!("domain {domain} is not loaded");
            }
            for one in found {
                output.result("extension", serde_json::to_value(one)?, &statistics(one));
            }
        }
    }
    Ok(())
}

/// `tigonctl spine message`: this process is an application.
fn message(arguments: &Arguments, action: &SpineAction, output: &Output) -> Result<()> {
    let SpineAction::Message {
        domain,
        handler,
        arguments: words,
        answers,
        patience,
    } = action
    else {
        return Ok(());
    };
    let mut application = driver(arguments)?.open_endpoint(SIZES, &[*domain])?;
    let to = HandlerOf {
        domain: *domain,
        handler: *handler,
    };
    application.send(to, words)?;
    for _ in 0..*answers {
        let patience = Duration::from_millis(*patience);
        let answer = application.receive(patience)?;
        let answer = answer.context("no answer has come")?;
        let text = format!(
            "domain {}, handler {}: {}",
            answer.from.domain,
            answer.from.handler,
            words_text(&answer.arguments)
        );
        let value = json!({
            "domain": answer.from.domain,
            "handler": answer.from.handler,
            "arguments": answer.arguments,
        });
        output.result("message", value, &text);
    }
    Ok(())
}

fn words_text(words: &[u32]) -> String {
    let words = words.iter().map(|word| format!("{word:#x}"));
    words.collect::<Vec<_>>().join(" ")
}

fn leased(lease: Lease) -> String {
    match lease {
        Lease::NONE => "has no lease".to_owned(),
        Lease { address, bytes } => format!("writes to {bytes} bytes at {address:#x}"),
    }
}

fn endpoints(reports: &[EndpointReport]) -> String {
    let mut lines = vec![
        "endpoint    fetched  delivered       sent  malformed  no handler  not allowed  beyond  cut"
            .to_owned(),
    ];
    for one in reports {
        let mut dropped = one.dropped.iter().copied();
        let mut next = || dropped.next().unwrap_or_default();
        lines.push(format!(
            "{:>8} {:>10} {:>10} {:>10} {:>10} {:>11} {:>12} {:>7} {:>4}",
            one.endpoint,
            one.fetched,
            one.delivered,
            one.sent,
            next(),
            next(),
            next(),
            next(),
            next()
        ));
    }
    lines.join("\n")
}

fn kept(ledger: &Ledger) -> String {
    let mut lines: Vec<String> = (0..)
        .zip(&ledger.kept)
        .map(|(domain, frames): (u32, _)| format!("domain {domain} keeps {frames} frames"))
        .collect();
    lines.push(format!("{} slots of the pool are free", ledger.free));
    lines.join("\n")
}

fn list(reports: &[Report], free: &Value) -> String {
    let mut lines =
        vec!["domain  name              bytes  in pad  stack       runs  state".to_owned()];
    for one in reports {
        let state = if one.suspended { "suspended" } else { "runs" };
        lines.push(format!(
            "{:>6}  {:<16} {:>6} {:>7} {:>6} {:>10}  {state}",
            one.domain, one.name, one.bytes, one.in_pad, one.stack, one.runs
        ));
    }
    lines.push(format!("{free} bytes of the arena are free"));
    lines.join("\n")
}

fn statistics(one: &Report) -> String {
    let state = if one.suspended { ", suspended" } else { "" };
    let mut lines = vec![format!("domain {}: {}{state}", one.domain, one.name)];
    for (name, value) in [
        ("runs", one.runs),
        ("cut off: too long", one.overruns),
        ("cut off: panic", one.panics),
        ("cut off: fault", one.faults),
        ("frames consumed", one.consumed),
        ("frames dropped", one.dropped),
        ("frames transmitted", one.transmitted),
    ] {
        lines.push(format!("  {name:<18} {value:>10}"));
    }
    if one.lease != Lease::NONE {
        lines.push(format!("  it {}", leased(one.lease)));
    }
    for (number, value) in one.counters.iter().enumerate() {
        if *value != 0 {
            lines.push(format!("  counter {number:<10} {value:>10}"));
        }
    }
    for handler in &one.handlers {
        lines.push(handled(handler));
    }
    lines.join("\n")
}

/// What a handler did.
fn handled(handler: &HandlerReport) -> String {
    let mut line = format!("  {:<12} {} runs", handler.name(), handler.runs);
    if let Some(mean) = handler.mean() {
        line += &format!(" of {mean:.1} us");
    }
    for (what, count) in [
        ("too long", handler.overruns),
        ("panicked", handler.panics),
        ("met a fault", handler.faults),
    ] {
        if count != 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_says_what_is_loaded() {
        let report = Report {
            domain: 1,
            name: "hello".to_owned(),
            bytes: 640,
            in_pad: 128,
            stack: 48,
            suspended: true,
            runs: 12,
            overruns: 3,
            panics: 0,
            faults: 0,
            consumed: 9,
            dropped: 0,
            transmitted: 9,
            lease: Lease {
                address: 0xD000_0000,
                bytes: 4096,
            },
            counters: vec![9, 0],
            handlers: vec![
                HandlerReport {
                    number: Some(2),
                    runs: 200,
                    overruns: 3,
                    panics: 0,
                    faults: 0,
                    timed: (104, 20),
                },
                HandlerReport {
                    number: None,
                    runs: 7,
                    overruns: 0,
                    panics: 1,
                    faults: 0,
                    timed: (0, 0),
                },
            ],
        };
        let text = list(std::slice::from_ref(&report), &json!(25_000));
        let expected = "\
            domain  name              bytes  in pad  stack       runs  state\n     \
                 1  hello               640     128     48         12  suspended\n\
            25000 bytes of the arena are free";
        assert_eq!(text, expected);
        let text = statistics(&report);
        assert!(text.starts_with("domain 1: hello, suspended\n"), "{text}");
        assert!(text.contains("\n  counter 0                   9"), "{text}");
        assert!(!text.contains("counter 1"), "{text}");
        let lease = "\n  it writes to 4096 bytes at 0xd0000000\n";
        assert!(text.contains(lease), "{text}");
        let handlers = "\
            \n  handler 2    200 runs of 5.2 us, 3 too long\
            \n  procedures   7 runs, 1 panicked";
        assert!(text.ends_with(handlers), "{text}");
    }
}
