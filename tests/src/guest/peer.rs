//! The Linux peer at the far end of the cable: a namespace with a TAP device.

use super::echo;
use anyhow::{Context, Result, bail};
use host_driver::tap::Tap;
use std::process::Stdio;
use std::time::Duration;
use testbed::net::namespace::Namespace;
use testbed::net::ping::{self, Ping};
use testbed::process::{self, Process};

/// How long an ordinary command may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The most that the peer's device carries: jumbo frames.
const JUMBO_MTU: u16 = 9000;
/// Frames that its queue in front of the cable holds. The usual 500 are a second of 5 Mb/s: on a
/// busy computer a guest does not run for longer than that, and the peer drops what it sends.
const QUEUE: &str = "10000";

/// The peer; dropping it removes it.
pub struct Peer {
    namespace: Namespace,
    device: String,
}

impl Peer {
    /// A peer with `address` (`10.79.0.2/24`) on a TAP device, whose other end is
    /// returned for a cable. Its MTU is 1500 until [`Peer::mtu`].
    ///
    /// # Errors
    /// Without the privilege to make namespaces and TAP devices.
    pub fn start(role: &str, number: u8, address: &str) -> Result<(Peer, Tap)> {
        let namespace = Namespace::create(role)?;
        let device = format!("tgp{number}x{}", std::process::id());
        let station = [0x02, 0x54, 0x47, 0x50, 0, number];
        let tap = Tap::create(&device, station, JUMBO_MTU, false)?;
        namespace.adopt(&device, address)?;
        let peer = Peer { namespace, device };
        peer.namespace
            .ip(&["link", "set", &peer.device, "txqueuelen", QUEUE])?;
        peer.mtu(1500)?;
        Ok((peer, tap))
    }

    /// Its network device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Its namespace, for traffic of the commands' own.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Sets the MTU of its device.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn mtu(&self, mtu: u32) -> Result<()> {
        let mtu = mtu.to_string();
        self.namespace
            .ip(&["link", "set", &self.device, "mtu", &mtu])?;
        Ok(())
    }

    /// A further device, with an address in a VLAN; what is returned goes to
    /// [`super::Cable::join_vlan`]. It is there until it is taken away there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn vlan(&self, vlan: u16, address: &str, mtu: u16) -> Result<Tap> {
        let device = format!("{}v{vlan}", self.device);
        let last = u8::try_from(vlan & 0xFF).unwrap_or(0);
        let tap = Tap::create(&device, [0x02, 0x54, 0x47, 0x56, 0, last], mtu, false)?;
        self.namespace.adopt(&device, address)?;
        Ok(tap)
    }

    /// The name of its device in a VLAN.
    pub fn vlan_device(&self, vlan: u16) -> String {
        format!("{}v{vlan}", self.device)
    }

    /// Runs a shell command and gives what it prints, trimmed.
    ///
    /// # Errors
    /// When it fails, with what it said; or does not end in a minute.
    pub fn sh(&self, command: &str) -> Result<String> {
        self.sh_within(command, LIMIT)
    }

    /// [`Peer::sh`] with a time limit of the story's own.
    ///
    /// # Errors
    /// As [`Peer::sh`].
    pub fn sh_within(&self, command: &str, limit: Duration) -> Result<String> {
        let mut shell = self.namespace.command("sh");
        let finished = process::collect(shell.args(["-c", command]), limit)?;
        if !finished.status.success() {
            bail!("{command}: {}{}", finished.stdout, finished.stderr);
        }
        Ok(finished.stdout.trim().to_owned())
    }

    /// Starts a command that runs until it ends or is dropped.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self, program: &str, words: &[&str]) -> Result<Process> {
        Process::spawn(
            self.namespace
                .command(program)
                .args(words)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
    }

    /// Pings an address; loss is a result.
    ///
    /// # Errors
    /// When ping cannot run.
    pub fn ping(&self, address: &str, payload: u32, count: u32) -> Result<Ping> {
        ping::run(&self.namespace, address, payload, count)
            .with_context(|| format!("ping {address} from the peer"))
    }

    /// Pings an address; every request is answered.
    ///
    /// # Panics
    /// When one is not, or wrongly.
    pub fn answered_by(&self, address: &str, payload: u32, count: u32) {
        answered(&self.namespace, address, payload, count);
    }
}

/// Pings an address from a namespace; every request is answered.
///
/// # Panics
/// When one is not, or wrongly.
pub fn answered(from: &Namespace, address: &str, payload: u32, count: u32) {
    let command = echo::command(address, payload, count);
    let mut shell = from.command("sh");
    let finished = process::collect(shell.args(["-c", &command]), echo::limit());
    let finished = finished.unwrap_or_else(|error| panic!("{command}: {error:#}"));
    echo::judge(&finished.stdout, count)
        .unwrap_or_else(|why| panic!("{command}: {why}{}", finished.stderr));
}
