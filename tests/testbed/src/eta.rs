//! A web server in front of a network namespace: through a packet processing engine on a TAP
//! device, or through the kernel on a virtual cable.

use crate::net::namespace::Namespace;
use crate::process::{self, Process};
use crate::{interrupt, paths};
use anyhow::{Result, bail, ensure};
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
    /// Where the clients are.
    pub namespace: Namespace,
    _far: Option<Namespace>,
    folder: tempfile::TempDir,
}

/// Builds the programs; the folder that they are in.
fn programs() -> Result<PathBuf> {
    process::run(process::cargo().args(["build", "--release", "-p", "eta", "-p", "userver"]))?;
    Ok(paths::target().join("release"))
}

impl Site {
    /// Builds and starts them. The engine waits as `idle` says; the server serves `root`.
    ///
    /// # Errors
    /// Without the privilege for namespaces, or if a program does not begin.
    pub fn start(idle: &str, root: &Path) -> Result<Self> {
        let programs = programs()?;
        let folder = tempfile::tempdir()?;
        let place = |name: &str| folder.path().join(name);
        let namespace = Namespace::create("eta")?;
        let mut ppe = namespace.command(&programs.join("ppe").to_string_lossy());
        ppe.args(["--tap", DEVICE, "--idle", idle, "--listen"]);
        ppe.arg(place("ppe.sock"));
        ppe.arg("--status").arg(place("status.sock"));
        let mut engine = Process::spawn(&mut ppe)?;
        begun(&mut engine, "ppe", &place("status.sock"))?;
        namespace.ip(&["address", "add", KERNEL, "dev", DEVICE])?;
        namespace.ip(&["link", "set", DEVICE, "up"])?;
        let mut server = Command::new(programs.join("userver"));
        server.arg("--ppe").arg(place("ppe.sock"));
        server.arg("--root").arg(root);
        server.stderr(File::create(place("server.log"))?);
        Ok(Self {
            server: Process::spawn(&mut server)?,
            engine: Some(engine),
            namespace,
            _far: None,
            folder,
        })
    }

    /// The same server through the kernel, in a namespace of its own on a virtual cable.
    ///
    /// # Errors
    /// As [`Site::start`].
    pub fn start_kernel(root: &Path) -> Result<Self> {
        let programs = programs()?;
        let folder = tempfile::tempdir()?;
        let (near, far) = (Namespace::create("eta")?, Namespace::create("etak")?);
        let peer = ["type", "veth", "peer", "name", DEVICE, "netns", far.name()];
        near.ip(&[&["link", "add", DEVICE][..], &peer[..]].concat())?;
        for (namespace, address) in [(&near, KERNEL), (&far, FAR)] {
            namespace.ip(&["address", "add", address, "dev", DEVICE])?;
            namespace.ip(&["link", "set", DEVICE, "up"])?;
        }
        let mut server = far.command(&programs.join("userver").to_string_lossy());
        server.args(["--kernel", ADDRESS, "--root"]).arg(root);
        server.stderr(File::create(folder.path().join("server.log"))?);
        Ok(Self {
            server: Process::spawn(&mut server)?,
            engine: None,
            namespace: near,
            _far: Some(far),
            folder,
        })
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

    /// Where to ask for the engine's counts.
    pub fn status(&self) -> PathBuf {
        self.folder.path().join("status.sock")
    }
}

/// Waits until a program has made its socket.
fn begun(program: &mut Process, name: &str, socket: &Path) -> Result<()> {
    let start = Instant::now();
    while !socket.exists() {
        if let Some(status) = program.finished()? {
            bail!("{name} ended with {status}");
        }
        ensure!(start.elapsed() < LIMIT, "{name} does not begin");
        interrupt::sleep(Duration::from_millis(10))?;
    }
    Ok(())
}
