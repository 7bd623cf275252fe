//! A private network namespace: an empty Linux host.
//!
//! Two of them represent the two machines of every experiment: the *host*, whose network device is
//! the card behind our driver, and the *peer* at the other end of the wire.

use crate::process;
use anyhow::{Context, Result, ensure};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const PREFIX: &str = "tigon-";
const NO_NAMESPACES: &str = "no permission for network namespaces";

/// Set by `cargo xtask test` where [`permitted`] fails: tests that need namespaces are left out.
pub const LEFT_OUT: &str = "TIGON_NO_NETWORKS";

/// Frames of a network device, as the kernel's stack sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct DeviceFrames {
    pub sent: u64,
    pub send_drops: u64,
    pub received: u64,
    pub receive_drops: u64,
}

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

    /// Moves this thread inside, with all that it starts and opens from now on.
    ///
    /// # Errors
    /// Without the privilege, or if the namespace is gone.
    pub fn enter(&self) -> Result<()> {
        let path = Path::new("/run/netns").join(&self.name);
        let namespace = File::open(&path).with_context(|| path.display().to_string())?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("enter {}", path.display()))
    }

    /// Frames that the kernel counts of a network device in it: sent and received by the
    /// kernel, as seen from its stack.
    ///
    /// # Errors
    /// Without iproute2, or if there is no such device.
    pub fn frames(&self, device: &str) -> Result<DeviceFrames> {
        let text = self.ip(&["-s", "-s", "-j", "link", "show", "dev", device])?;
        let links: serde_json::Value = serde_json::from_str(&text)?;
        let count = |way: &str, what: &str| {
            let count = links.pointer(&format!("/0/stats64/{way}/{what}"));
            let count = count.and_then(serde_json::Value::as_u64);
            count.with_context(|| format!("ip counts no {what} of {device}"))
        };
        Ok(DeviceFrames {
            sent: count("tx", "packets")?,
            send_drops: count("tx", "dropped")?,
            received: count("rx", "packets")?,
            receive_drops: count("rx", "dropped")?,
        })
    }

    /// Frames that found no room in front of a network device in it: in the device's own queue, or
    /// in those that the kernel keeps for it.
    ///
    /// # Errors
    /// Without iproute2, or if there is no such device.
    pub fn held_frames(&self, device: &str) -> Result<u64> {
        let mut command = self.command("tc");
        command.args(["-s", "-j", "qdisc", "show", "dev", device]);
        let text = process::output(&mut command, LIMIT)?;
        let queues: Vec<serde_json::Value> = serde_json::from_str(&text)?;
        // A queue that leads to others has their drops among its own.
        let outermost = queues.iter().find(|queue| queue["root"] == true);
        let queued = outermost.and_then(|queue| queue["drops"].as_u64());
        Ok(self.frames(device)?.send_drops + queued.unwrap_or(0))
    }

    /// A count of TCP's in it, such as `TCPOFOQueue`.
    ///
    /// # Errors
    /// If the kernel does not count that.
    pub fn tcp_count(&self, name: &str) -> Result<u64> {
        self.count("/proc/net/netstat", "TcpExt:", name)
    }

    /// A count of UDP's in it, such as `RcvbufErrors`.
    ///
    /// # Errors
    /// If the kernel does not count that.
    pub fn udp_count(&self, name: &str) -> Result<u64> {
        self.count("/proc/net/snmp", "Udp:", name)
    }

    /// A count in a file of lines that begin with a protocol: names, and below them values.
    fn count(&self, file: &str, protocol: &str, name: &str) -> Result<u64> {
        let text = process::output(self.command("cat").arg(file), LIMIT)?;
        let mut lines = text.lines().filter(|line| line.starts_with(protocol));
        let (names, values) = (lines.next(), lines.next());
        let both = names
            .zip(values)
            .into_iter()
            .flat_map(|(names, values)| names.split(' ').zip(values.split(' ')));
        let mut found = both.filter(|(known, _)| *known == name);
        let (_, value) = found
            .next()
            .with_context(|| format!("{protocol} counts no {name}"))?;
        Ok(value.parse()?)
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
/// As [`privileged`], without iproute2, and where the system refuses all the same.
pub fn permitted() -> Result<()> {
    privileged()?;
    /// Threads may try at the same time, so each tries with a name of its own.
    static TRIES: AtomicU32 = AtomicU32::new(0);
    let number = TRIES.fetch_add(1, Ordering::Relaxed);
    match Namespace::create(&format!("probe{number}")) {
        Ok(_) => Ok(()),
        Err(error) if is_refusal(&format!("{error:#}")) => Err(error.context(NO_NAMESPACES)),
        Err(error) => Err(error),
    }
}

/// Whether a test that needs namespaces can run. Where not, `cargo xtask test` has said that such
/// tests are left out.
///
/// # Panics
/// As [`permitted`] fails, if nobody has said that.
pub fn for_test() -> bool {
    match permitted() {
        Ok(()) => true,
        Err(_) if std::env::var_os(LEFT_OUT).is_some() => false,
        Err(why) => panic!("this test needs the privilege to make namespaces: {why:#}"),
    }
}

/// The part of it that is known without iproute2, and so before anything is installed.
///
/// # Errors
/// The first thing that is missing: the privilege, or the TAP device.
pub fn privileged() -> Result<()> {
    let own = rustix::thread::capabilities(None).context("the privileges of this process")?;
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    ensure!(
        own.effective.contains(needed),
        "{NO_NAMESPACES}: root may make them"
    );
    let tun = "/dev/net/tun";
    let opened = File::options().read(true).write(true).open(tun);
    opened
        .map(drop)
        .with_context(|| match Path::new(tun).exists() {
            true => format!("no permission for TAP devices ({tun})"),
            false => format!("no TAP devices here ({tun})"),
        })
}

/// Whether the system's reason is a lack of privilege. Which of the two it gives depends on
/// how far `ip` comes: a folder that it may not make, or one that it may not mount.
fn is_refusal(reason: &str) -> bool {
    ["Operation not permitted", "Permission denied"]
        .iter()
        .any(|refusal| reason.contains(refusal))
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
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_refusals_of_the_system_are_a_lack_of_permission() {
        // Where /run/netns is there, and where it is not.
        for reason in [
            "mount --make-shared /run/netns failed: Operation not permitted",
            "mkdir /run/netns failed: Permission denied",
        ] {
            assert!(is_refusal(reason), "{reason}");
        }
        for reason in ["cannot start ip: No such file", "File exists"] {
            assert!(!is_refusal(reason), "{reason}");
        }
    }
}
