//! Configures and compiles an unpacked QEMU source.

use super::Target;
use super::overlay::Overlay;
use super::source::Source;
use crate::progress_bar::Progress;
use crate::{interrupt, process};
use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Everything off but what the machines here use.
const OPTIONS: &[&str] = &[
    "--without-default-features",
    "--without-default-devices",
    "--with-devices-mips=tigon2",
    "--with-devices-x86_64=tigon2",
    "--enable-tcg",
    "--enable-fdt",
    "--enable-slirp",
    "--disable-debug-info",
    "--disable-docs",
    "--disable-download",
    "--disable-install-blobs",
    "--disable-tools",
    // Where Debian's packages have what a PC starts with.
    "--firmwarepath=/usr/share/qemu:/usr/share/seabios",
];

/// For guests of the host's own kind; QEMU refuses it if there are none.
const KVM: &str = "--enable-kvm";

/// What QEMU's build is itself made with, from the Python package index.
const PYTHON_PACKAGES: &[&str] = &["meson>=1.5,<1.11", "pycotap"];

const STEP_LIMIT: Duration = Duration::from_secs(1800);

/// The name of a build in the cache: hash of all that decides the result.
pub fn key(source: &Source, overlay: &Overlay) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(source.identity.as_bytes());
    for option in OPTIONS.iter().chain([&KVM]).chain(PYTHON_PACKAGES) {
        hash.update(option.as_bytes());
        hash.update([0]);
    }
    overlay.hash(&mut hash)?;
    Ok(HEXLOWER.encode(&hash.finalize()))
}

/// Builds `targets` in the folder `work`; the programs are then in
/// `work/build`.
pub fn build(
    source: &Source,
    overlay: &Overlay,
    targets: &[Target],
    work: &Path,
    progress: &mut Progress,
) -> Result<()> {
    let (tree, build, python) = (work.join("source"), work.join("build"), work.join("venv"));
    progress.step("unpacking the source");
    source.unpack(&tree)?;
    overlay.apply(&tree)?;

    progress.step("installing its build tools");
    process::output(
        Command::new("python3").args(["-m", "venv"]).arg(&python),
        STEP_LIMIT,
    )
    .context("cannot make a Python environment")?;
    process::output(
        Command::new(python.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(PYTHON_PACKAGES),
        STEP_LIMIT,
    )
    .context("cannot get meson from the Python package index")?;

    progress.step("configuring");
    fs::create_dir_all(&build)?;
    let kvm = cfg!(target_arch = "x86_64") && targets.contains(&Target::X86_64);
    let architectures: Vec<String> = targets
        .iter()
        .map(|target| format!("{}-softmmu", target.architecture()))
        .collect();
    process::output(
        Command::new(tree.join("configure"))
            .arg(format!("--python={}", python.join("bin/python3").display()))
            .arg(format!("--target-list={}", architectures.join(",")))
            .args(OPTIONS)
            .args(kvm.then_some(KVM))
            .current_dir(&build),
        STEP_LIMIT,
    )
    .context("QEMU cannot be configured")?;

    progress.step("compiling");
    ninja(&build, targets, progress)
}

/// Runs ninja, showing its count; what it says is kept in `build/ninja.log`.
fn ninja(build: &Path, targets: &[Target], progress: &mut Progress) -> Result<()> {
    let log_path = build.join("ninja.log");
    let mut log = File::create(&log_path)?;
    let mut child = Command::new("ninja")
        .args(targets.iter().map(|target| target.program()))
        .current_dir(build)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // Compilers write to ninja, ninja to its standard output.
        .stderr(log.try_clone()?)
        .spawn()
        .context("cannot start ninja")?;
    let lines = child.stdout.take().map(BufReader::new);
    for line in lines.into_iter().flat_map(BufRead::lines) {
        let line = line?;
        writeln!(log, "{line}")?;
        if let Some((done, all)) = ninja_count(&line) {
            progress.count(done, all);
        }
        if let Err(interrupted) = interrupt::check() {
            // ninja ends its compilers when it is told to end; the work
            // folder is thrown away, so it need not end tidily.
            child.kill()?;
            child.wait()?;
            return Err(interrupted.into());
        }
    }
    if !child.wait()?.success() {
        interrupt::check()?;
        let log = fs::read_to_string(&log_path).unwrap_or_default();
        let reason = log.lines().find(|line| line.contains("error:"));
        bail!(
            "compiling QEMU failed: {} (see {})",
            reason.unwrap_or("no error was named"),
            log_path.display()
        );
    }
    Ok(())
}

/// What ninja says at the start of each line: `[12/345] ...`.
fn ninja_count(line: &str) -> Option<(u64, u64)> {
    let (done, all) = line.strip_prefix('[')?.split_once(']')?.0.split_once('/')?;
    Some((done.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::ninja_count;

    #[test]
    fn ninja_lines_are_read_and_others_are_not() {
        let line = "[930/1221] Compiling C object libcommon.a.p/plugins_core.c.o";
        assert_eq!(ninja_count(line), Some((930, 1221)));
        assert_eq!(ninja_count("[930] x"), None);
        assert_eq!(ninja_count("ninja: error"), None);
        assert_eq!(ninja_count("[a/b] x"), None);
    }
}
