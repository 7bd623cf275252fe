//! `cargo xtask setup`: the system packages that the other commands need.
//!
//! On Debian and its like they are installed (as root, or by `sudo` where it
//! asks nothing); elsewhere, or without the privilege, they are named in one
//! line that can be pasted.

use crate::{cache, firmware, process, qemu_build};
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

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
    /// Debug with gdb.
    Gdb,
}

/// All there are.
pub const EVERYTHING: &[Need] = &[
    Need::Firmware,
    Need::Qemu,
    Need::Guest,
    Need::Traffic,
    Need::Gdb,
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
            Need::Gdb => vec!["gdb-multiarch"],
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
        println!(
            "setup: not a Debian system, so nothing is installed; needed here are the \
             counterparts of: {}",
            wanted.join(" ")
        );
        return Ok(());
    }
    let missing = missing(&wanted)?;
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
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    process::run(&mut command)
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
