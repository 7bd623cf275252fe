//! A web server through the packet processing engine beside the same server through the kernel.
//!
//! ```text
//!   clients, in a namespace ── TAP ── ppe ── queues ── userver        dusi
//!   clients, in a namespace ── veth ── kernel ── epoll ── userver     epoll
//! ```
//!
//! Eight clients with a request under way each ask as fast as they are answered. All arms run in
//! each round, in changing order, and `dusi` twice: what its two rows differ by is noise. The cables
//! are not equal: the kernel's carries super-frames that no segment of 1500 bytes is cut from, and
//! each packet through a TAP device costs the engine a system call. Behind the card all have the
//! same wire and the same firmware.

mod arms;
mod arrivals;
mod clients;
mod crowd;
mod offer;
mod outside;
mod overload;
mod page;
mod processor;
mod rates;
mod requests;
mod soak;

pub use soak::run as soak;

use crate::report::write_json;
use anyhow::Result;
use std::time::Duration;
use testbed::net::namespace;
use testbed::setup::{self, Need};
use testbed::tools::Tools;

/// One part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// System calls of a request, by strace.
    Calls,
    /// Requests and processor time of each arm.
    Rates,
    /// Replies up to twice saturation, for each accept policy.
    Overload,
    /// How long replies take at fixed rates of connections.
    Arrivals,
    /// curl, wrk, httperf, h2load and nmap.
    Clients,
    /// A hundred active connections among ten thousand.
    Crowd,
}

/// Measures and reports; `store` puts the figures of what was measured into the page.
///
/// # Errors
/// Without the privilege for namespaces, and if a server does not answer.
pub fn run(quick: bool, store: bool, only: Option<Part>) -> Result<()> {
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Traffic, Need::Web])?;
    namespace::permitted()?;
    let tools = Tools::build()?;
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    for load in requests::LOADS {
        std::fs::write(root.join(load.file.to_string()), vec![b'x'; load.file])?;
    }
    let report = |name: &str, path: Result<std::path::PathBuf>| {
        path.map(|path| println!("report of {name}: {}", path.display()))
    };
    let wanted = |part| only.is_none_or(|only| only == part);
    let mut summary = page::stored()?;
    if wanted(Part::Calls) {
        let time = Duration::from_secs(if quick { 1 } else { 2 });
        let rows = outside::run(&tools, root, time)?;
        report("calls", write_json("bench-eta-calls", &rows))?;
        summary.calls = outside::summary(&rows);
    }
    if wanted(Part::Rates) {
        let (rows, rates) = rates::run(&tools, root, quick)?;
        report("rates", write_json("bench-eta", &rows))?;
        summary.rates = rates;
    }
    if wanted(Part::Overload) {
        let (rows, overload) = overload::run(quick)?;
        report("overload", write_json("bench-eta-overload", &rows))?;
        summary.overload = overload;
    }
    if wanted(Part::Arrivals) {
        let (rows, arrivals) = arrivals::run(&tools, root, quick)?;
        report("arrivals", write_json("bench-eta-arrivals", &rows))?;
        summary.arrivals = arrivals;
    }
    if wanted(Part::Clients) {
        let rows = clients::run(root)?;
        report("clients", write_json("bench-eta-clients", &rows))?;
        summary.clients = clients::summary(&rows);
    }
    if wanted(Part::Crowd) {
        let crowd = crowd::run(root, quick)?;
        report("crowd", write_json("bench-eta-crowd", &crowd))?;
        summary.crowd = crowd::summary(&crowd);
    }
    if only.is_none() {
        report("the page", write_json("bench-eta-page", &summary))?;
    }
    if store {
        page::store(&summary)?;
        println!("stored: {}, {}", page::STORED, page::PAGE);
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
