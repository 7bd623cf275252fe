//! Builds our programs for the guest, linked statically so that they run there independently of
//! the build machine's libraries.

use super::archive::Archive;
use crate::{paths, process};
use anyhow::Result;

/// What the programs are built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The profile of the workspace that they are built with.
const PROFILE: &str = "guest";

/// Each with the package that it is in.
const PROGRAMS: &[(&str, &str)] = &[("guest-agent", "guest-agent"), ("host-driver", "tigonctl")];
/// Taken along when the workspace has it.
const PAYCHECK: (&str, &str) = ("paycheck", "paycheck");

/// Builds the programs and returns the archive with them in `/bin`.
pub fn build() -> Result<Vec<u8>> {
    let mut programs = PROGRAMS.to_vec();
    if paths::root().join("guest/paycheck/Cargo.toml").is_file() {
        programs.push(PAYCHECK);
    }
    println!("guest: building our own programs for it");
    let mut command = process::cargo();
    command
        .args(["build", "--quiet", "--profile", PROFILE, "--target", TARGET])
        .current_dir(paths::root())
        // The whole C library goes in; build scripts are not concerned, as the
        // target is named.
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "-C target-feature=+crt-static",
        )
        .env_remove("RUSTFLAGS");
    for (package, program) in &programs {
        command.args(["--package", package, "--bin", program]);
    }
    process::run(&mut command)?;
    let folder = paths::target().join(TARGET).join(PROFILE);
    let mut archive = Archive::default();
    for (_, program) in programs {
        archive.copy(&format!("bin/{program}"), &folder.join(program))?;
    }
    archive.finish()
}
