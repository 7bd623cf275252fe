//! A network namespace of our own: a Linux host with nothing in it.
//!
//! Two of them stand for the two machines of every experiment: the *host*,
//! whose network device is the card behind our driver, and the *peer* at the
//! other end of the wire.

use crate::process;
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const PREFIX: &str = "tigon-";

/// A namespace; dropping it removes it with everything in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes `tigon-<role>-<pid>`, with its loopback device up. IPv6 is off in
    /// it, so that only the traffic asked for is on the wire.
    ///
    /// # Errors
    /// Without the privilege to make namespaces, or without iproute2.
    pub fn create(role: &str) -> Result<Self> {
        remove_stale();
        let name = format!("{PREFIX}{role}-{}", std::process::id());
        ip(&["netns", "add", &name])
            .with_context(|| format!("cannot make the network namespace {name}"))?;
        let namespace = Namespace { name };
        let quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done; true";
        process::output(
            namespace
                .command("sh")
                .args(["-c", quiet])
                .stderr(std::process::Stdio::null()),
            LIMIT,
        )?;
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `ip` on the inside.
    pub fn ip(&self, arguments: &[&str]) -> Result<String> {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// Takes a network device in from the namespace of this process, gives it
    /// an address (`10.0.0.1/24`) and brings it up.
    pub fn adopt(&self, device: &str, address: &str) -> Result<()> {
        ip(&["link", "set", device, "netns", &self.name])?;
        self.ip(&["address", "add", address, "dev", device])?;
        self.ip(&["link", "set", device, "up"])?;
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Whether this process may make namespaces and TAP devices; the reason if not.
///
/// # Errors
/// The first thing that is missing: the privilege, the TAP device or iproute2.
pub fn permitted() -> Result<()> {
    let tun = "/dev/net/tun";
    std::fs::File::options()
        .read(true)
        .write(true)
        .open(tun)
        .with_context(|| format!("no permission for TAP devices ({tun})"))?;
    Namespace::create("probe").map(drop)
}

fn ip(arguments: &[&str]) -> Result<String> {
    process::output(Command::new("ip").args(arguments), LIMIT)
}

/// Removes a namespace whatever the state of the command: also after Ctrl-C,
/// so not through the waits that Ctrl-C ends.
fn remove(name: &str) {
    let _ = Command::new("ip").args(["netns", "delete", name]).status();
}

/// Namespaces of earlier runs that were killed too hard to clean up.
fn remove_stale() {
    let Ok(list) = ip(&["netns", "list"]) else {
        return;
    };
    for name in list.lines().filter_map(|line| line.split(' ').next()) {
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.rsplit_once('-'))
            .and_then(|(_, pid)| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()) {
            remove(name);
        }
    }
}
