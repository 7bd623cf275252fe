//! Checks the tools that the build of QEMU needs.

use crate::process;
use anyhow::{Result, bail};
use std::process::{Command, Stdio};

/// The Debian packages that building QEMU needs.
pub const DEBIAN_PACKAGES: &[&str] = &[
    "bison",
    "debian-archive-keyring",
    "dpkg-dev",
    "flex",
    "gcc",
    "libc6-dev",
    "libfdt-dev",
    "libglib2.0-dev",
    "libpixman-1-dev",
    "libslirp-dev",
    "ninja-build",
    "patch",
    "pkg-config",
    "python3-venv",
    "xz-utils",
    "zlib1g-dev",
];

/// The Debian packages that `qemu-system-x86_64` needs when it runs: what a PC starts
/// with, and what then starts a kernel.
pub const PC_PACKAGES: &[&str] = &["qemu-system-data", "seabios"];

/// Programs, and the packages that have them.
const PROGRAMS: &[(&str, &str)] = &[
    ("bison", "bison"),
    ("flex", "flex"),
    ("gcc", "gcc"),
    ("ninja", "ninja-build"),
    ("patch", "patch"),
    ("pkg-config", "pkg-config"),
    ("python3", "python3-venv"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Libraries by their pkg-config names, and the packages that have them.
const LIBRARIES: &[(&str, &str)] = &[
    ("glib-2.0", "libglib2.0-dev"),
    ("pixman-1", "libpixman-1-dev"),
    ("slirp", "libslirp-dev"),
    ("zlib", "zlib1g-dev"),
];

/// Fails with all that is missing in one line.
pub fn check() -> Result<()> {
    let absent = |(program, _): &&(&str, &str)| !process::exists(program);
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(absent)
        .map(|(_, package)| *package)
        .collect();
    if process::exists("pkg-config") {
        let absent = |(library, _): &&(&str, &str)| !succeeds("pkg-config", &["--exists", library]);
        missing.extend(LIBRARIES.iter().filter(absent).map(|(_, package)| *package));
    }
    if process::exists("python3") && !succeeds("python3", &["-c", "import venv, ensurepip"]) {
        missing.push("python3-venv");
    }
    if !missing.is_empty() {
        bail!(
            "building QEMU needs packages that are not installed: {}",
            missing.join(" ")
        );
    }
    Ok(())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
