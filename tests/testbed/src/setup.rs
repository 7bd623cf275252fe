//! `cargo xtask setup`: installs the system packages that the other commands need.
//!
//! On Debian and its derivatives it installs them (as root, or with a `sudo` that needs no
//! password); elsewhere, or without the privilege, it prints one line that can be pasted.

mod first_time;

use crate::progress_bar::Progress;
use crate::{cache, firmware, process, qemu_build};
use anyhow::{Context, Result, bail, ensure};
use std::process::{Command, Stdio};
use std::time::Duration;

/// For one call of apt-get.
const APT_LIMIT: Duration = Duration::from_secs(3 * 3600);

/// What a command is going to do, and so what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Build the firmware.
    Firmware,
    /// Build the QEMU machine.
    Qemu,
    /// Run a PC with the card in it.
    Guest,
    /// Run Linux traffic between namespaces.
    Traffic,
    /// Ask a web server, with clients of others.
    Web,
    /// Debug with gdb.
    Gdb,
    /// Verify the pipeline's state machines.
    Verify,
    /// Run the tests: some work on a copy of the clone.
    Tests,
}

/// All there are.
pub const EVERYTHING: &[Need] = &[
    Need::Firmware,
    Need::Qemu,
    Need::Guest,
    Need::Traffic,
    Need::Web,
    Need::Gdb,
    Need::Verify,
    Need::Tests,
];

impl Need {
    fn packages(self) -> Vec<&'static str> {
        match self {
            // Only where rustup's own compiler lacks the library's source.
            Need::Firmware if firmware::toolchain::Toolchain::find().is_ok() => Vec::new(),
            Need::Firmware => vec!["rustc-web", "rust-web-src", "lld"],
            Need::Qemu => qemu_build::DEBIAN_PACKAGES.to_vec(),
            Need::Guest => qemu_build::PC_PACKAGES.to_vec(),
            Need::Traffic => vec!["iproute2", "iputils-ping", "iperf3", "tcpdump"],
            Need::Web => vec!["curl", "httperf", "nghttp2-client", "nmap", "strace", "wrk"],
            Need::Gdb => vec!["gdb-multiarch"],
            // Spin's verifiers are programs in C.
            Need::Verify => vec!["spin", "gcc", "libc6-dev"],
            Need::Tests => vec!["git"],
        }
    }
}

/// Installs what is missing for `needs`, or fails naming it.
pub fn ensure(needs: &[Need]) -> Result<()> {
    if needs.contains(&Need::Qemu) {
        // Not when minutes have been spent on what goes there.
        cache::folder(qemu_build::CACHE)?;
    }
    let mut wanted: Vec<&str> = needs.iter().flat_map(|need| need.packages()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    if !process::exists("dpkg-query") {
        first_time::announce(needs, false)?;
        println!(
            "setup: not a Debian system, so nothing is installed; needed here are the \
             counterparts of: {}",
            wanted.join(" ")
        );
        return Ok(());
    }
    let missing = missing(&wanted)?;
    first_time::announce(needs, !missing.is_empty())?;
    if missing.is_empty() {
        return Ok(());
    }
    let Some(install) = privileged_apt() else {
        bail!(
            "missing packages; as root: apt-get install {}",
            missing.join(" ")
        );
    };
    println!("setup: installing {}", missing.join(" "));
    apt(&install, &["update"]).context("the package lists cannot be fetched")?;
    let words = ["install", "--yes", "--no-install-recommends"];
    apt(&install, &[&words, &missing[..]].concat())
        .with_context(|| format!("cannot install: {}", missing.join(" ")))
}

/// Fetches the lists of packages anew.
pub fn refresh() -> Result<()> {
    let install = privileged_apt().context("no privilege to run apt-get update")?;
    println!("setup: fetching the package lists");
    apt(&install, &["update"]).context("the package lists cannot be fetched")
}

fn apt(program: &[&str], arguments: &[&str]) -> Result<()> {
    let (name, words) = program.split_first().context("no apt-get here")?;
    let mut command = Command::new(name);
    command
        .args(words)
        .args(arguments)
        // How far it is, among its other lines.
        .args(["-o", "APT::Status-Fd=1"])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut progress = Progress::new("setup");
    let status = process::watch(&mut command, APT_LIMIT, |line| {
        if let Some(percent) = percent(line) {
            progress.count(percent, 100);
        }
    })?;
    drop(progress);
    ensure!(status.success(), "apt-get failed ({status})");
    Ok(())
}

/// What a line of apt's status says: half of the work is to fetch, half to install.
fn percent(line: &str) -> Option<u64> {
    let mut fields = line.split(':');
    let behind = match fields.next()? {
        "dlstatus" => 0.0,
        "pmstatus" => 50.0,
        _ => return None,
    };
    let part: f64 = fields.nth(1)?.parse().ok()?;
    Some((behind + part / 2.0) as u64)
}

/// Those of `packages` that are not installed.
fn missing<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["-W", "-f", "${Package} ${db:Status-Status}\n"])
        .args(packages)
        .stderr(Stdio::null());
    // The exit status only says that some of them are unknown.
    let known = query.output().context("cannot run dpkg-query")?.stdout;
    let known = String::from_utf8_lossy(&known);
    let installed = |package: &str| known.lines().any(|l| l == format!("{package} installed"));
    Ok(packages.iter().copied().filter(|p| !installed(p)).collect())
}

fn privileged_apt() -> Option<Vec<&'static str>> {
    if rustix::process::geteuid().is_root() {
        return Some(vec!["apt-get"]);
    }
    let quiet_sudo = Command::new("sudo")
        .args(["-n", "true"])
        .stderr(Stdio::null())
        .status();
    quiet_sudo
        .is_ok_and(|status| status.success())
        .then(|| vec!["sudo", "-n", "apt-get"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_tells_how_far_it_is() {
        assert_eq!(percent("dlstatus:1:40.5:Retrieving file 1 of 2"), Some(20));
        assert_eq!(percent("pmstatus:flex:60.0:Unpacking flex"), Some(80));
        assert_eq!(percent("Reading package lists..."), None);
        assert_eq!(percent("pmstatus:flex:soon:"), None);
    }
}
