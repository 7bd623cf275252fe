//! Files over TCP from a server with several CPUs to closed-loop clients (paper, section 5).

use super::measured::{Reading, Window};
use crate::hosts::application::Application;
use crate::hosts::card::{CardSetup, HostCard};
use crate::hosts::clients::{Clients, Load, Seen};
use crate::hosts::connections::Connections;
use crate::hosts::file;
use crate::hosts::kernel::Kernel;
use crate::hosts::policy::PolicyKind;
use crate::hosts::profile::HostProfile;
use crate::hosts::system::{System, World};
use crate::hosts::web::{SendCall, Web};
use crate::workload::WorkloadError;
use crate::workload::testbench::Setup;

/// First port of the server.
const PORT: u16 = 8080;

/// A point of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// How frames are received.
    pub policy: PolicyKind,
    /// CPUs of the server.
    pub cpus: usize,
    /// Threads of the server.
    pub threads: usize,
    /// Client machines, each with its own address. Consecutive addresses belong to
    /// consecutive queues, so that as many machines as queues use all of them alike.
    pub machines: usize,
    /// Connections at a time, of all machines.
    pub connections: usize,
    /// Bytes of a file.
    pub file_bytes: usize,
    /// Largest packet.
    pub mtu: u16,
    /// How files are sent.
    pub call: SendCall,
    /// Listening ports, each with its own instance of the server.
    pub ports: u16,
}

impl Point {
    /// The paper's: 4 CPUs, 4 clients, 80 connections, 20 KB, MTU 1500, `sendfile`, a port.
    pub fn new(policy: PolicyKind) -> Point {
        Point {
            policy,
            cpus: 4,
            threads: 4,
            machines: 4,
            connections: 80,
            file_bytes: 20 * 1024,
            mtu: 1500,
            call: SendCall::Sendfile,
            ports: 1,
        }
    }
}

/// For how long a point is looked at, in nanoseconds of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// Until the load is steady.
    pub warm_up: u64,
    /// From then on.
    pub measure: u64,
}

impl Duration {
    /// For a look.
    pub const QUICK: Duration = Duration {
        warm_up: 120_000_000,
        measure: 120_000_000,
    };
    /// For figures.
    pub const FULL: Duration = Duration {
        warm_up: 100_000_000,
        measure: 400_000_000,
    };
}

/// What a point has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Host and card.
    pub window: Window,
    /// Files that clients got whole in the window.
    pub files: u64,
    /// Bytes of files that they got.
    pub bytes: u64,
    /// Mean time from a connection's first frame to its last, in microseconds.
    pub latency_us: f64,
    /// Connections without their file, and bytes that were none of it, since the beginning:
    /// 0 of a host that works.
    pub failed: u64,
    /// Timers of clients that expired since the beginning.
    pub expired: u64,
    /// Frames that the policy or a queue dropped since the beginning.
    pub dropped: u64,
    /// Share of all CPUs' time that was spent waiting for listening sockets.
    pub listener_wait: f64,
}

impl Measured {
    /// Connections in a second.
    pub fn rate(&self) -> f64 {
        self.files as f64 / self.window.seconds
    }

    /// What the clients get, in Mb/s of files.
    pub fn mbps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.window.seconds / 1e6
    }
}

/// Builds a point's system, with its clients about to begin.
///
/// # Errors
/// What the driver reports.
pub fn build(
    setup: &Setup<'_>,
    profile: &HostProfile,
    point: &Point,
) -> Result<System, WorkloadError> {
    let card = CardSetup::classic(point.mtu, true).with_queues(point.policy.queues(point.cpus));
    let mut card = HostCard::start(setup, card, profile.card)?;
    let policy = point.policy.build(point.cpus, &mut card);
    let (now, station) = (card.now(), card.station());
    let services: Vec<u16> = (0..point.ports).map(|port| PORT + port).collect();
    let load = Load {
        machines: point.machines,
        connections: point.connections,
        file_bytes: point.file_bytes,
        services: services.clone(),
        mtu: point.mtu,
    };
    let clients = Clients::new(load, station, setup.seed, now);
    let listeners = services.len();
    let tcp = Connections::new(point.mtu, station, services, setup.seed);
    let web = Web::new(tcp, listeners, point.threads, file::of(point.file_bytes));
    let profile = HostProfile {
        packet: profile.packet.with_buffers_for(point.mtu),
        ..profile.clone()
    };
    let kernel = Kernel::new(profile, card, point.cpus, point.threads);
    Ok(System::new(
        kernel,
        Application::Web(Box::new(web.sending_by(point.call))),
        policy,
        World::Clients(Box::new(clients)),
    ))
}

fn seen(system: &System) -> Seen {
    match &system.world {
        World::Clients(clients) => clients.seen().clone(),
        World::Source(_) => Seen::default(),
    }
}

fn listener_wait(system: &System) -> u64 {
    match &system.application {
        Application::Web(web) => web.listener_wait(),
        Application::Datagrams(_) => 0,
    }
}

/// Measures a point.
///
/// # Errors
/// What the driver reports.
pub fn measure(
    setup: &Setup<'_>,
    profile: &HostProfile,
    point: &Point,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let mut system = build(setup, profile, point)?;
    let start = system.now() + duration.warm_up;
    system.run(start)?;
    let (before, seen_before) = (Reading::of(&mut system), seen(&system));
    let waited = listener_wait(&system);
    system.run(start + duration.measure)?;
    let (after, seen) = (Reading::of(&mut system), seen(&system));
    let window = Window::between(&before, &after);
    let files = seen.files - seen_before.files;
    let latency = (seen.latency_ns - seen_before.latency_ns) as f64;
    let all = window.seconds * 1e9 * point.cpus as f64;
    Ok(Measured {
        files,
        bytes: seen.bytes - seen_before.bytes,
        latency_us: latency / 1e3 / files.max(1) as f64,
        failed: seen.failed + seen.wrong,
        expired: seen.expired,
        dropped: system.policy.wasted() + system.policy.refused(&mut system.kernel)?,
        listener_wait: (listener_wait(&system) - waited) as f64 / all,
        window,
    })
}
