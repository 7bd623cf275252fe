//! A Linux guest: the distribution's own kernel, with cards in it.
//!
//! `docs/guest.md` describes it in full. In short: [`GuestTools`] are the files that every guest
//! is made of, [`Guest::start`] boots one and returns when its agent answers, and everything else
//! goes through the agent.

pub mod archive;
pub mod binaries;
pub mod connection;
pub mod image;
pub mod kernel;
pub mod loader;
pub mod machine;
pub mod modules;
mod network;
pub mod packages;
pub mod peer;
pub mod tools;
pub mod topology;

pub use connection::Output;
pub use tools::GuestTools;

use crate::card::outliving_nobody;
use crate::interrupt;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use archive::Archive;
use connection::Connection;
use machine::Accelerator;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where the kernel's driver looks for the card's firmware.
const FIRMWARE: &str = "lib/firmware/acenic/tg2.bin";

/// From QEMU's start to the agent's first word; a busy machine takes its time.
const BOOT: Duration = Duration::from_secs(150);
/// The same with KVM, after which TCG is tried: where KVM works this is ample.
const BOOT_KVM: Duration = Duration::from_secs(20);
/// Until QEMU has made its sockets.
const START: Duration = Duration::from_secs(20);
/// What [`Guest::sh`] gives a command.
const SHORT: Duration = Duration::from_secs(60);

/// How to start a guest.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// The cards' vfio-user sockets; they become eth0, eth1, .. in this order
    /// once the driver is loaded.
    pub cards: Vec<PathBuf>,
    /// What the driver loads into them.
    pub firmware: Vec<u8>,
    /// Further words for QEMU, such as `-netdev` and `-device` with what
    /// belongs to them.
    pub devices: Vec<String>,
    /// The guest's memory.
    pub memory_mb: u32,
    /// Asks for KVM; where the guest does not come up with it, TCG is taken and
    /// that is said.
    pub kvm: bool,
    /// Lets the guest's clock count the instructions that its CPU executes, with TCG. On a busy
    /// computer a guest then does not use up its time-outs while neither it nor a card runs.
    /// Rates that such a guest measures are not those of the computer's clock.
    pub own_clock: bool,
    /// Puts an IOMMU between the cards and the memory, as kernel VFIO needs it.
    pub iommu: bool,
    /// Joins this process's terminal to the serial console.
    pub interactive: bool,
}

impl Default for GuestOptions {
    fn default() -> Self {
        GuestOptions {
            cards: Vec::new(),
            firmware: Vec::new(),
            devices: Vec::new(),
            memory_mb: 256,
            kvm: false,
            own_clock: false,
            iommu: false,
            interactive: false,
        }
    }
}

/// A running guest; dropping it ends QEMU.
#[derive(Debug)]
pub struct Guest {
    connection: Arc<Connection>,
    process: Mutex<Process>,
    folder: TempDir,
    accelerator: Accelerator,
}

/// A command in the background; dropping it ends the command.
#[must_use = "dropping a job ends its command"]
#[derive(Debug)]
pub struct Job {
    connection: Arc<Connection>,
    id: u32,
    command: String,
}

impl Guest {
    /// Boots a guest and waits until its agent answers. The cards' driver is
    /// not loaded yet.
    ///
    /// # Errors
    /// QEMU's last words or the guest's, if it does not come up.
    pub fn start(tools: &GuestTools, options: &GuestOptions) -> Result<Guest> {
        Guest::launch(tools, options)?.finish()
    }

    /// Starts a guest's QEMU and returns: several guests boot at once.
    ///
    /// QEMU ends with the thread that calls this (see `outliving_nobody`), so
    /// it must be one that lives as long as the guest is to.
    ///
    /// # Errors
    /// QEMU's last words, if it does not start.
    pub fn launch<'a>(tools: &'a GuestTools, options: &'a GuestOptions) -> Result<Booting<'a>> {
        let accelerator = if options.kvm {
            Accelerator::Kvm
        } else {
            Accelerator::Tcg
        };
        let booting = |guest| Booting {
            guest,
            tools,
            options,
        };
        match Guest::spawn_machine(tools, options, accelerator) {
            Err(error) if accelerator == Accelerator::Kvm => {
                fall_back(&error)?;
                Guest::spawn_machine(tools, options, Accelerator::Tcg).map(booting)
            }
            result => result.map(booting),
        }
    }

    fn spawn_machine(
        tools: &GuestTools,
        options: &GuestOptions,
        accelerator: Accelerator,
    ) -> Result<Guest> {
        let folder = tempfile::Builder::new()
            .prefix("tigon-guest-")
            .tempdir()
            .context("cannot make a folder for the guest")?;
        write_root(tools, options, &folder.path().join(machine::ROOT))?;
        let cards = machine::cards(tools, options)?;
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let mut command = outliving_nobody(&tools.qemu);
        command.args(machine::words(
            tools,
            options,
            accelerator,
            &cards,
            folder.path(),
        ));
        if options.interactive {
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
        } else {
            command.stdin(Stdio::null()).stdout(output.try_clone()?);
        }
        let mut process = Process::spawn(command.stderr(output))?;
        let channel = connect(&folder.path().join(machine::AGENT), &mut process, &log)?;
        let connection = Connection::new(channel, &folder.path().join(machine::CONSOLE))?;
        Ok(Guest {
            connection,
            process: Mutex::new(process),
            folder,
            accelerator,
        })
    }

    /// Runs `sh -c command` in the guest.
    ///
    /// # Errors
    /// When the guest has gone, or at the limit: the command is ended then.
    pub fn run(&self, command: &str, limit: Duration) -> Result<Output> {
        self.spawn(command)?.wait(limit)
    }

    /// Runs a short command that must succeed; its output without the blanks
    /// around it.
    ///
    /// # Errors
    /// With what the command complained about.
    pub fn sh(&self, command: &str) -> Result<String> {
        let output = self.run(command, SHORT)?;
        if output.status != 0 {
            let said = [&output.stderr, &output.stdout]
                .into_iter()
                .map(|text| text.trim())
                .find(|text| !text.is_empty());
            bail!(
                "in the guest, {command}: {} (status {})",
                said.unwrap_or("failed"),
                output.status
            );
        }
        Ok(output.stdout.trim().to_owned())
    }

    /// Starts a command and returns.
    ///
    /// # Errors
    /// When the guest has gone.
    pub fn spawn(&self, command: &str) -> Result<Job> {
        Ok(Job {
            connection: self.connection.clone(),
            id: self.connection.start(command)?,
            command: command.to_owned(),
        })
    }

    /// Writes a file in the guest, with these permission bits.
    ///
    /// # Errors
    /// With the guest's reason.
    pub fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
        self.connection.put(path, bytes, mode)
    }

    /// Reads a file of the guest.
    ///
    /// # Errors
    /// With the guest's reason.
    pub fn get(&self, path: &str) -> Result<Vec<u8>> {
        self.connection.get(path)
    }

    /// The kernel's log, from its start.
    ///
    /// # Errors
    /// When the guest has gone.
    pub fn kernel_log(&self) -> Result<String> {
        self.sh("dmesg")
    }

    /// What the serial console has said so far.
    pub fn console(&self) -> String {
        connection::read_console(&self.folder.path().join(machine::CONSOLE))
    }

    /// What emulates its CPU.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Whether QEMU is still there.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn is_running(&self) -> Result<bool> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(process.finished()?.is_none())
    }

    fn await_agent(&self, limit: Duration) -> Result<()> {
        self.connection
            .greet(limit)
            .with_context(|| format!("the guest did not come up{}", self.complaints()))?;
        // The kernel has unpacked it into the guest's own memory by now.
        let _ = fs::remove_file(self.folder.path().join(machine::ROOT));
        Ok(())
    }

    /// What QEMU itself has complained about.
    fn complaints(&self) -> String {
        match fs::read_to_string(self.folder.path().join("log")) {
            Ok(log) if !log.trim().is_empty() => format!(" ({})", log.trim()),
            _ => String::new(),
        }
    }
}

/// A guest on its way; dropping it ends QEMU.
#[must_use = "a guest that is not waited for is ended"]
#[derive(Debug)]
pub struct Booting<'a> {
    guest: Guest,
    tools: &'a GuestTools,
    options: &'a GuestOptions,
}

impl Booting<'_> {
    /// Waits until the agent answers.
    ///
    /// # Errors
    /// QEMU's last words or the guest's, if it does not come up.
    pub fn finish(self) -> Result<Guest> {
        let limit = match self.guest.accelerator {
            Accelerator::Kvm => BOOT_KVM,
            Accelerator::Tcg => BOOT,
        };
        match self.guest.await_agent(limit) {
            Err(error) if self.guest.accelerator == Accelerator::Kvm => {
                fall_back(&error)?;
                drop(self.guest);
                let guest = Guest::spawn_machine(self.tools, self.options, Accelerator::Tcg)?;
                guest.await_agent(BOOT)?;
                Ok(guest)
            }
            result => result.map(|()| self.guest),
        }
    }
}

/// Says that KVM did not do, unless the user wants to end.
fn fall_back(error: &anyhow::Error) -> Result<()> {
    interrupt::check()?;
    let text = format!("{error:#}");
    let first = text.lines().next().unwrap_or_default();
    println!("guest: KVM is of no use here, going on with TCG ({first})");
    Ok(())
}

impl Job {
    /// Waits for its end.
    ///
    /// # Errors
    /// When the guest has gone, or at the limit: the command is ended then.
    pub fn wait(self, limit: Duration) -> Result<Output> {
        if let Some(output) = self.connection.finish(self.id, limit)? {
            return Ok(output);
        }
        let so_far = self.connection.so_far(self.id);
        let said = [so_far.stderr.trim(), so_far.stdout.trim()]
            .into_iter()
            .find_map(|text| text.lines().last())
            .map_or_else(String::new, |line| format!("; its last line: {line}"));
        bail!(
            "in the guest, {}: not done within {} s{said}",
            self.command,
            limit.as_secs()
        );
    }

    /// Waits a little longer; `None` if it is still under way.
    ///
    /// # Errors
    /// When the guest has gone.
    pub fn wait_more(&self, limit: Duration) -> Result<Option<Output>> {
        self.connection.finish(self.id, limit)
    }

    /// Takes what it has said since the last time, of its output and of its
    /// complaints; what is taken is in no [`Output`] any more.
    pub fn take(&self) -> (Vec<u8>, Vec<u8>) {
        self.connection.take(self.id)
    }

    /// Ends it and gives what it has said.
    ///
    /// # Errors
    /// When the guest has gone or does not answer.
    pub fn kill(self) -> Result<Output> {
        let ended = self.connection.kill(self.id)?;
        ended.with_context(|| format!("in the guest, {}: it cannot be ended", self.command))
    }

    /// What it has said so far.
    pub fn so_far(&self) -> Output {
        self.connection.so_far(self.id)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.connection.abandon(self.id);
    }
}

/// The root file system with what is this guest's own behind it.
fn write_root(tools: &GuestTools, options: &GuestOptions, path: &Path) -> Result<()> {
    let mut bytes =
        fs::read(&tools.root).with_context(|| format!("cannot read {}", tools.root.display()))?;
    bytes.extend(own_files(options)?);
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// What differs from guest to guest.
fn own_files(options: &GuestOptions) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    if !options.firmware.is_empty() {
        archive.file(FIRMWARE, 0o644, &options.firmware)?;
    }
    archive.finish()
}

/// The agent's channel, once QEMU has made it.
fn connect(socket: &Path, process: &mut Process, log: &Path) -> Result<UnixStream> {
    let end = Instant::now() + START;
    loop {
        if let Ok(channel) = UnixStream::connect(socket) {
            return Ok(channel);
        }
        if process.finished()?.is_some() {
            let said = fs::read_to_string(log).unwrap_or_default();
            bail!("the guest's QEMU did not start: {}", said.trim());
        }
        if Instant::now() > end {
            bail!("the guest's QEMU made no socket in {} s", START.as_secs());
        }
        interrupt::sleep(Duration::from_millis(5))?;
    }
}

/// Removes a folder if it is there.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
