//! A web server in front of a network namespace: through a packet processing engine on a TAP
//! device or on the card in QEMU, or through the kernel on a virtual cable.

use crate::card::{Card, CardOptions, Wire};
use crate::net::namespace::Namespace;
use crate::process::{self, Process};
use crate::tools::{Tools, build_tigonctl};
use crate::worker::Worker;
use crate::{interrupt, paths};
use anyhow::{Context, Result, bail, ensure};
use host_driver::status::{Request, ask};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the programs may take to begin.
const LIMIT: Duration = Duration::from_secs(20);
const DEVICE: &str = "ppe0";
const KERNEL: &str = "10.77.0.2/24";
const FAR: &str = "10.77.0.1/24";

/// The engine's address.
pub const ADDRESS: &str = "10.77.0.1";

/// Server, engine and namespaces; dropping it ends them.
#[derive(Debug)]
pub struct Site {
    // In the order in which they end.
    server: Process,
    engine: Option<Process>,
    card: Option<Card>,
    /// Where the clients are.
    pub namespace: Namespace,
    /// Where the server is, if the kernel has its connections.
    far: Option<Namespace>,
    folder: tempfile::TempDir,
    /// What joins two TAP devices.
    wire: Option<Worker<()>>,
}

/// How the programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// For measurements.
    Release,
    /// As the tests have built them anyhow.
    Test,
}

/// Builds the programs; the folder that they are in.
fn programs(build: Build) -> Result<PathBuf> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--bin", "ppe", "--bin", "userver"]);
    let folder = match build {
        Build::Release => {
            cargo.args(["--release", "-p", "eta", "-p", "userver"]);
            "release"
        }
        Build::Test => {
            // With all packages and a test: other features would have all crates built again.
            cargo.args(["--workspace", "--test", "sockets"]);
            "debug"
        }
    };
    process::run(&mut cargo)?;
    Ok(paths::target().join(folder))
}

impl Site {
    /// Builds and starts them. The engine waits as `idle` says; the server serves `root`.
    ///
    /// # Errors
    /// Without the privilege for namespaces, or if a program does not begin.
    pub fn start(idle: &str, root: &Path) -> Result<Self> {
        Self::start_with(idle, root, &[])
    }

    /// As [`Site::start`], with options of the server.
    ///
    /// # Errors
    /// As [`Site::start`].
    pub fn start_with(idle: &str, root: &Path, options: &[&str]) -> Result<Self> {
        let programs = programs(Build::Release)?;
        let folder = tempfile::tempdir()?;
        let namespace = Namespace::create("eta")?;
        let mut ppe = namespace.command(&programs.join("ppe").to_string_lossy());
        ppe.args(["--tap", DEVICE, "--idle", idle]);
        let engine = engine(&mut ppe, folder.path())?;
        namespace.ip(&["address", "add", KERNEL, "dev", DEVICE])?;
        namespace.ip(&["link", "set", DEVICE, "up"])?;
        let server = server(&programs, folder.path(), root, options)?;
        Ok(Self {
            server,
            engine: Some(engine),
            card: None,
            namespace,
            far: None,
            folder,
            wire: None,
        })
    }

    /// The engine on the card in QEMU, by vfio-user; the namespace is at the other end of its wire.
    ///
    /// # Errors
    /// As [`Site::start`], and if the card does not come up.
    pub fn start_on_card(
        tools: &Tools,
        build: Build,
        idle: &str,
        root: &Path,
        options: &[&str],
    ) -> Result<Self> {
        let programs = programs(build)?;
        let folder = tempfile::tempdir()?;
        let namespace = Namespace::create("etac")?;
        let device = format!("tge{}", std::process::id());
        let wire = CardOptions {
            wire: Wire::Tap(device.clone()),
            ..CardOptions::default()
        };
        let card = Card::start(tools, &wire)?;
        namespace.adopt(&device, KERNEL)?;
        let mut ppe = Command::new(programs.join("ppe"));
        ppe.arg("--socket").arg(card.socket());
        ppe.arg("--firmware").arg(&tools.firmware.tg2);
        ppe.args(["--idle", idle]);
        ppe.stderr(File::create(folder.path().join("engine.log"))?);
        let engine = engine(&mut ppe, folder.path())?;
        let server = server(&programs, folder.path(), root, options)?;
        Ok(Self {
            server,
            engine: Some(engine),
            card: Some(card),
            namespace,
            far: None,
            folder,
            wire: None,
        })
    }

    /// The same server through the kernel, in a namespace of its own on a virtual cable.
    ///
    /// # Errors
    /// As [`Site::start`].
    pub fn start_kernel(root: &Path) -> Result<Self> {
        Self::start_kernel_with(root, &[])
    }

    /// As [`Site::start_kernel`], with options of the server.
    ///
    /// # Errors
    /// As [`Site::start`].
    pub fn start_kernel_with(root: &Path, options: &[&str]) -> Result<Self> {
        let (near, far) = (Namespace::create("eta")?, Namespace::create("etak")?);
        let peer = ["type", "veth", "peer", "name", DEVICE, "netns", far.name()];
        near.ip(&[&["link", "add", DEVICE][..], &peer[..]].concat())?;
        for (namespace, address) in [(&near, KERNEL), (&far, FAR)] {
            namespace.ip(&["address", "add", address, "dev", DEVICE])?;
            namespace.ip(&["link", "set", DEVICE, "up"])?;
        }
        Self::serve_by_kernel(near, far, root, options)
    }

    /// The same between two TAP devices of this process' namespace, which `wire` joins.
    ///
    /// # Errors
    /// As [`Site::start`].
    pub fn start_kernel_between(
        devices: [&str; 2],
        wire: Worker<()>,
        root: &Path,
        options: &[&str],
    ) -> Result<Self> {
        let (near, far) = (Namespace::create("eta")?, Namespace::create("etak")?);
        near.adopt(devices[0], KERNEL)?;
        far.adopt(devices[1], FAR)?;
        let mut site = Self::serve_by_kernel(near, far, root, options)?;
        site.wire = Some(wire);
        Ok(site)
    }

    fn serve_by_kernel(
        near: Namespace,
        far: Namespace,
        root: &Path,
        options: &[&str],
    ) -> Result<Self> {
        let programs = programs(Build::Release)?;
        let folder = tempfile::tempdir()?;
        let mut server = far.command(&programs.join("userver").to_string_lossy());
        server.args(["--kernel", ADDRESS, "--root"]).arg(root);
        server.args(options);
        server.stderr(File::create(folder.path().join("server.log"))?);
        Ok(Self {
            server: Process::spawn(&mut server)?,
            engine: None,
            card: None,
            namespace: near,
            far: Some(far),
            folder,
            wire: None,
        })
    }

    /// Kills the card's process, waits until engine and server have ended, and gives what they
    /// said.
    ///
    /// # Errors
    /// If there is no card, or one of them goes on.
    pub fn kill_card(&mut self) -> Result<String> {
        ensure!(self.card.take().is_some(), "there is no card");
        let engine = self.engine.as_mut().context("there is no engine")?;
        for (name, process) in [("ppe", engine), ("userver", &mut self.server)] {
            let start = Instant::now();
            while process.finished()?.is_none() {
                ensure!(start.elapsed() < LIMIT, "{name} does not end");
                interrupt::sleep(Duration::from_millis(5))?;
            }
        }
        let said = |name| std::fs::read_to_string(self.folder.path().join(name));
        Ok(said("engine.log")? + &said("server.log")?)
    }

    /// The same server through the kernel, whose packets the driver carries between a TAP device
    /// and the card in QEMU; the namespace is at the other end of the card's wire.
    ///
    /// # Errors
    /// As [`Site::start_on_card`].
    pub fn start_kernel_on_card(tools: &Tools, root: &Path, options: &[&str]) -> Result<Self> {
        let programs = programs(Build::Release)?;
        let folder = tempfile::tempdir()?;
        let (near, far) = (Namespace::create("etac")?, Namespace::create("etak")?);
        let device = format!("tge{}", std::process::id());
        let wire = CardOptions {
            wire: Wire::Tap(device.clone()),
            ..CardOptions::default()
        };
        let card = Card::start(tools, &wire)?;
        near.adopt(&device, KERNEL)?;
        let status = folder.path().join("status.sock");
        let mut bridge = Command::new(build_tigonctl()?);
        bridge.arg("--socket").arg(card.socket());
        bridge.args(["bridge", "--tap", DEVICE, "--firmware"]);
        bridge.arg(&tools.firmware.tg2);
        bridge.arg("--status").arg(&status);
        bridge.stdout(File::create(folder.path().join("bridge.log"))?);
        let mut bridge = Process::spawn(&mut bridge)?;
        // The device is made after the socket.
        let device = Path::new("/sys/class/net").join(DEVICE);
        begun(&mut bridge, "tigonctl bridge", &device)?;
        far.adopt(DEVICE, FAR)?;
        let mut server = far.command(&programs.join("userver").to_string_lossy());
        server.args(["--kernel", ADDRESS, "--root"]).arg(root);
        server.args(options);
        server.stderr(File::create(folder.path().join("server.log"))?);
        Ok(Self {
            server: Process::spawn(&mut server)?,
            engine: Some(bridge),
            card: Some(card),
            namespace: near,
            far: Some(far),
            folder,
            wire: None,
        })
    }

    /// The process of the server.
    pub fn server(&self) -> u32 {
        self.server.id()
    }

    /// The process of the engine, or of the bridge in its place.
    pub fn engine(&self) -> Option<u32> {
        self.engine.as_ref().map(Process::id)
    }

    /// The process of the card.
    pub fn card(&self) -> Option<u32> {
        self.card.as_ref().map(Card::process)
    }

    /// The processes of server and engine.
    pub fn processes(&self) -> Vec<u32> {
        let engine = self.engine.iter().map(Process::id);
        std::iter::once(self.server.id()).chain(engine).collect()
    }

    /// Ends the server, and gives what it said.
    ///
    /// # Errors
    /// If its words cannot be read.
    pub fn end_server(&mut self) -> Result<String> {
        self.server.stop();
        Ok(std::fs::read_to_string(
            self.folder.path().join("server.log"),
        )?)
    }

    /// SYNs that the engine has dropped because a backlog was full; none through the kernel.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn refused_syns(&self) -> Result<Option<u64>> {
        if self.far.is_some() {
            return Ok(None);
        }
        let answer = ask(&self.status(), &Request::Statistics)?;
        let refused = answer["statistics"]["stack"]["refused"].as_u64();
        Ok(Some(refused.context("the engine counts no SYNs")?))
    }

    /// Where to ask for the engine's counts.
    pub fn status(&self) -> PathBuf {
        self.folder.path().join("status.sock")
    }
}

/// Starts an engine with its sockets in a folder.
fn engine(ppe: &mut Command, folder: &Path) -> Result<Process> {
    let status = folder.join("status.sock");
    ppe.arg("--listen").arg(folder.join("ppe.sock"));
    ppe.arg("--status").arg(&status);
    let mut engine = Process::spawn(ppe)?;
    begun(&mut engine, "ppe", &status)?;
    Ok(engine)
}

/// Starts a server on the engine that has its sockets in a folder.
fn server(programs: &Path, folder: &Path, root: &Path, options: &[&str]) -> Result<Process> {
    let mut server = Command::new(programs.join("userver"));
    server.arg("--ppe").arg(folder.join("ppe.sock"));
    server.arg("--root").arg(root).args(options);
    server.stderr(File::create(folder.join("server.log"))?);
    Process::spawn(&mut server)
}

/// Waits until a program has made its socket.
fn begun(program: &mut Process, name: &str, socket: &Path) -> Result<()> {
    let start = Instant::now();
    while !socket.exists() {
        if let Some(status) = program.finished()? {
            let log = socket.with_file_name("engine.log");
            let said = std::fs::read_to_string(log).unwrap_or_default();
            bail!("{name} ended with {status} {said}");
        }
        ensure!(start.elapsed() < LIMIT, "{name} does not begin");
        interrupt::sleep(Duration::from_millis(10))?;
    }
    Ok(())
}
