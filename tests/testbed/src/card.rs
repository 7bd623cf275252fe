//! A card: one `qemu-system-mips -M tigon2` with a socket for its PCI side.

use crate::monitor::{MemoryByMonitor, Monitor};
use crate::process::{self, Process};
use crate::tools::Tools;
use crate::{interrupt, paths};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toml_edit::{DocumentMut, value};

/// What the card's wire is.
#[derive(Clone, Debug, Default)]
pub enum Wire {
    /// A TAP device that QEMU makes, with this name.
    Tap(String),
    /// Two Unix datagram sockets, made as `wire.card` (QEMU's) and `wire.peer`
    /// (ours) in the card's folder: every datagram is a frame.
    #[default]
    Datagram,
    /// One end of a cable between two cards: this card makes the stream socket.
    Listen(PathBuf),
    /// The other end: the card that [`Wire::Listen`]s is there already.
    Connect(PathBuf),
}

/// How to start a card. The default is a card of the default board on a
/// [`Wire::Datagram`].
#[derive(Clone, Debug, Default)]
pub struct CardOptions {
    /// The wire.
    pub wire: Wire,
    /// Opens QEMU's gdb stub on a Unix socket `gdb` in the card's folder.
    pub gdb: bool,
    /// Opens the stub on this TCP port of this machine instead.
    pub gdb_port: Option<u16>,
    /// Keeps both CPUs still until gdb lets them go.
    pub halted: bool,
    /// Opens QEMU's monitor, through which [`Card::plug`] and [`Card::unplug`]
    /// reach the cable.
    pub monitor: bool,
    /// The board's description, if it is not `boards/tigon2/tigon2.toml`.
    pub board: Option<PathBuf>,
    /// What its boot memory holds; none: it has no boot memory.
    pub boot: Option<PathBuf>,
    /// The file that keeps its EEPROM; none: it is forgotten.
    pub eeprom: Option<PathBuf>,
    /// The station address in its EEPROM; none: QEMU's first.
    pub station: Option<[u8; 6]>,
    /// Writes what the card does to a file, see [`Card::operations`].
    pub operations: bool,
}

impl CardOptions {
    /// A card that boots the firmware in this EEPROM file, if there is one.
    pub fn booting(tools: &Tools, eeprom: Option<&PathBuf>) -> CardOptions {
        CardOptions {
            boot: eeprom.map(|_| tools.boot.clone()),
            eeprom: eeprom.cloned(),
            ..CardOptions::default()
        }
    }
}

/// A running card; dropping it ends QEMU and removes its sockets.
#[derive(Debug)]
pub struct Card {
    process: Process,
    folder: TempDir,
}

const START: Duration = Duration::from_secs(20);

/// QEMU's name of the card's wire.
const WIRE: &str = "wire";
/// The monitor's socket in the card's folder.
const MONITOR: &str = "monitor";
/// The file in the card's folder that its operations are written to.
const OPERATIONS: &str = "operations";

impl Card {
    /// Starts a card and waits until its socket can be connected to.
    ///
    /// # Errors
    /// QEMU's own last words if it does not come up.
    pub fn start(tools: &Tools, options: &CardOptions) -> Result<Card> {
        let folder = tempfile::Builder::new()
            .prefix("tigon-")
            .tempdir()
            .context("cannot make a folder for the card's sockets")?;
        let socket = folder.path().join("card");
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let board = match &options.board {
            Some(board) => board.clone(),
            None => paths::root().join("boards/tigon2/tigon2.toml"),
        };
        let board = match &options.boot {
            Some(code) => with_boot_code(&board, code, folder.path())?,
            None => board,
        };
        let eeprom = options.eeprom.as_ref().map(|file| file.display());
        let eeprom = eeprom.map_or(String::new(), |file| format!(",eeprom={file}"));
        let machine = format!(
            "tigon2,model={},socket={},board={}{eeprom}",
            tools.model.display(),
            socket.display(),
            board.display()
        );
        let mut command = outliving_nobody(&tools.qemu);
        command
            .args(["-display", "none", "-nodefaults", "-M", &machine])
            // Ctrl-C is for who started the card: that ends it, or is gdb and does not.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let netdev = netdev(&options.wire, folder.path());
        command.args(["-netdev", &format!("{netdev},id={WIRE}")]);
        command.args(["-global", &format!("tigon2-card.netdev={WIRE}")]);
        if let Some(station) = options.station {
            let octets = station.map(|octet| format!("{octet:02x}")).join(":");
            command.args(["-global", &format!("tigon2-card.mac={octets}")]);
        }
        if let Some(port) = options.gdb_port {
            command.args(["-gdb", &format!("tcp:127.0.0.1:{port}")]);
        } else if options.gdb {
            let stub = folder.path().join("gdb");
            let stub = format!("unix:{},server=on,wait=off", stub.display());
            command.args(["-gdb", &stub]);
        }
        if options.halted {
            command.arg("-S");
        }
        if options.operations {
            command.env("TIGON2_OPERATIONS", folder.path().join(OPERATIONS));
        }
        if options.monitor {
            let monitor = folder.path().join(MONITOR);
            let monitor = format!("unix:{},server=on,wait=off", monitor.display());
            command.args(["-qmp", &monitor]);
        }
        let mut process = Process::spawn(&mut command)?;
        let end = Instant::now() + START;
        while !socket.exists() {
            if process.finished()?.is_some() {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("the card did not start: {}", said.trim());
            }
            if Instant::now() > end {
                bail!("the card's socket did not appear in {} s", START.as_secs());
            }
            interrupt::sleep(Duration::from_millis(5))?;
        }
        Ok(Card { process, folder })
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// The vfio-user socket of its PCI side.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("card")
    }

    /// QEMU's end of a [`Wire::Datagram`].
    pub fn wire_card(&self) -> PathBuf {
        self.folder.path().join("wire.card")
    }

    /// Our end of a [`Wire::Datagram`].
    pub fn wire_peer(&self) -> PathBuf {
        self.folder.path().join("wire.peer")
    }

    /// The gdb stub's socket, where [`CardOptions::gdb`] asked for it.
    pub fn gdb(&self) -> PathBuf {
        self.folder.path().join("gdb")
    }

    /// Puts the cable in.
    ///
    /// # Errors
    /// Without [`CardOptions::monitor`], or when QEMU does not obey.
    pub fn plug(&self) -> Result<()> {
        self.monitor()?.set_link(WIRE, true)
    }

    /// Pulls the cable out.
    ///
    /// # Errors
    /// As [`Card::plug`].
    pub fn unplug(&self) -> Result<()> {
        self.monitor()?.set_link(WIRE, false)
    }

    /// Sets a property of the card's, such as `inject` or `partner`, in words.
    ///
    /// # Errors
    /// As [`Card::plug`]; words that mean nothing.
    pub fn set(&self, property: &str, words: &str) -> Result<()> {
        let arguments = json!({"path": "/machine/card", "property": property, "value": words});
        self.monitor()?.execute("qom-set", arguments)?;
        Ok(())
    }

    /// What explains a stall, as `name=value name=value ..` (docs/qemu.md).
    ///
    /// # Errors
    /// As [`Card::plug`].
    pub fn counts(&self) -> Result<String> {
        let arguments = json!({"path": "/machine/card", "property": "counts"});
        let counts = self.monitor()?.execute("qom-get", arguments)?;
        let counts = counts.as_str().context("the card's counts are no text")?;
        Ok(counts.to_owned())
    }

    /// NIC memory as QEMU's monitor shows it, past the driver; with [`CardOptions::monitor`].
    pub fn memory(&self) -> MemoryByMonitor {
        MemoryByMonitor(self.folder.path().join(MONITOR))
    }

    fn monitor(&self) -> Result<Monitor> {
        Monitor::connect(&self.folder.path().join(MONITOR))
    }

    /// What QEMU and the model have printed so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What there is to read when somebody gives up waiting for the card: what explains a
    /// stall, where its CPUs are, and what QEMU and the model have printed.
    pub fn testimony(&self) -> String {
        let told = |what: Result<String>| what.unwrap_or_else(|error| format!("? ({error:#})"));
        let log = self.log();
        let said = match log.trim() {
            "" => "nothing",
            said => said,
        };
        let (counts, places) = (told(self.counts()), told(self.places()));
        format!("the card: {counts}; CPUs at {places}; it has said {said}")
    }

    /// The program counter of each CPU.
    fn places(&self) -> Result<String> {
        let command = json!({"command-line": "info registers -a"});
        let said = self.monitor()?.execute("human-monitor-command", command)?;
        let words = said.as_str().unwrap_or_default().split_whitespace();
        let places: Vec<&str> = words.filter_map(|word| word.strip_prefix("pc=")).collect();
        Ok(places.join(" "))
    }

    /// What the card has done so far, a line for each operation (`tigon2_model::operations`).
    ///
    /// # Errors
    /// Without [`CardOptions::operations`].
    pub fn operations(&self) -> Result<String> {
        let path = self.folder.path().join(OPERATIONS);
        std::fs::read_to_string(&path).context("the card's operations are not recorded")
    }

    /// Fails with QEMU's last words if it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.process.finished()? {
            bail!("the card ended ({status}): {}", self.log().trim());
        }
        Ok(())
    }
}

/// A board's description with a boot memory, in the card's folder.
fn with_boot_code(board: &Path, code: &Path, folder: &Path) -> Result<PathBuf> {
    let text = std::fs::read_to_string(board)
        .with_context(|| format!("cannot read {}", board.display()))?;
    let code = std::path::absolute(code)?;
    let code = code.to_str().context("the boot code's path is no text")?;
    let mut text: DocumentMut = text.parse().with_context(|| board.display().to_string())?;
    // It may have a table of that name, as for the key of its images.
    text["boot"]["code"] = value(code);
    let path = folder.join("board.toml");
    std::fs::write(&path, text.to_string())?;
    Ok(path)
}

/// A command for a program that ends when this thread does, be it by SIGKILL,
/// where util-linux can arrange that.
pub(crate) fn outliving_nobody(program: &Path) -> Command {
    if !process::exists("setpriv") {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command
}

/// What goes behind QEMU's `-netdev`, but for the id.
fn netdev(wire: &Wire, folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    match wire {
        Wire::Tap(name) => format!("tap,ifname={name},script=no,downscript=no"),
        Wire::Datagram => format!(
            "dgram,local.type=unix,local.path={},remote.type=unix,remote.path={}",
            path("wire.card"),
            path("wire.peer")
        ),
        Wire::Listen(socket) => stream(socket, true),
        Wire::Connect(socket) => stream(socket, false),
    }
}

/// One end of a stream socket between two cards.
fn stream(socket: &Path, server: bool) -> String {
    format!(
        "stream,server={},addr.type=unix,addr.path={}",
        if server { "on" } else { "off" },
        socket.display()
    )
}
