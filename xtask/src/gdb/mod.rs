//! `cargo xtask gdb`: gdb on a card under QEMU or in the simulator that carries traffic.
//!
//! Under QEMU:
//!
//! ```text
//!   gdb-multiarch ---- stub ---- QEMU: CPU A is thread 1, CPU B is thread 2
//!    | ELF, tigon.py             |            |
//!    '- tigon.json               driver       peer      (ping without end, in this process)
//! ```
//!
//! The card starts with both CPUs halted. gdb sets its breakpoint and starts them; the driver,
//! which waits without a time-out, loads the firmware meanwhile. So a stop at the very first
//! instruction works like one in a handler. With `--sim` the stub is that of [`tigon2_sim::gdb`],
//! in this process.

mod facts;
mod simulator;
mod symbols;
mod traffic;

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::NamedTempFile;
use testbed::card::{Card, CardOptions};
use testbed::firmware::{self, FirmwareArtifacts, FirmwareOptions, names};
use testbed::setup::{self, Need};
use testbed::tools::Tools;
use testbed::{interrupt, paths};
use tigon2_chip::Cpu;

pub use facts::facts;

/// How often the driver is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The breakpoint, the engine, and the debugger.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Stop at this function: a handler such as receive_complete, or any part of a path
    #[arg(long = "break", value_name = "FUNCTION", default_value = "_start")]
    pub at: String,
    /// Whose functions to name where both CPUs have code at one address of their scratch pads
    #[arg(long, value_name = "CPU", default_value = "b")]
    pub names: Names,
    /// Use the simulator: time stops with the card, and execution can be reversed
    #[arg(long)]
    pub sim: bool,
    /// Use the traffic and the schedule of this seed, as in cargo xtask explore
    #[arg(long, value_name = "SEED", requires = "sim")]
    pub seed: Option<u64>,
    /// The timing profile of the board file
    #[arg(
        long,
        default_value = "default",
        requires = "sim",
        conflicts_with = "seed"
    )]
    pub profile: String,
    /// Do not start gdb; wait for one, such as an editor's, at this TCP port
    #[arg(long, value_name = "PORT", conflicts_with = "words")]
    pub serve: Option<u16>,
    /// Arguments for gdb, such as -batch -ex bt
    #[arg(last = true, value_name = "GDB ARGUMENTS")]
    pub words: Vec<String>,
}

/// Whose functions gdb names where both CPUs have code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Names {
    /// CPU A's: the receive path of queues and of extensions
    A,
    /// CPU B's: the send path
    B,
}

impl Names {
    fn cpu(self) -> Cpu {
        match self {
            Names::A => Cpu::A,
            Names::B => Cpu::B,
        }
    }
}

/// Starts the card and gdb, and waits for gdb to end.
pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(port) = arguments.serve {
        // QEMU would find out later, and say it in more words.
        TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("port {port}"))?;
    }
    if arguments.sim {
        return simulator::run(arguments);
    }
    let (named, place) = firmware_with(arguments)?;
    setup::ensure(&[Need::Firmware, Need::Qemu, Need::Gdb])?;
    let tools = Tools::build()?;
    let facts = write_facts()?;
    let card = Card::start(
        &tools,
        &CardOptions {
            gdb: true,
            gdb_port: arguments.serve,
            halted: true,
            ..CardOptions::default()
        },
    )?;
    let mut traffic = traffic::start(&tools, &card)?;
    let stub = match arguments.serve {
        Some(port) => format!("localhost:{port}"),
        None => card.gdb().display().to_string(),
    };
    let session = session(&facts, &stub, &place);
    let ended = if arguments.serve.is_some() {
        serve(&named.elf, &session, || traffic.check())
    } else {
        debug(&named.elf, &session, &arguments.words)
    };
    // The driver may wait for a card that stands still.
    drop(card);
    drop(traffic);
    ended
}

/// Builds the firmware, half a minute at most, and finds the function in it: before gdb is
/// installed and QEMU, which takes minutes. The ELF is the one for gdb.
fn firmware_with(arguments: &Arguments) -> Result<(FirmwareArtifacts, String)> {
    setup::ensure(&[Need::Firmware])?;
    let options = FirmwareOptions {
        quiet: true,
        ..FirmwareOptions::default()
    };
    let mut built = firmware::build(options)?;
    let cpu = arguments.names.cpu();
    let mut elf =
        std::fs::read(&built.elf).with_context(|| format!("read {}", built.elf.display()))?;
    let place = symbols::place(&elf, &arguments.at, cpu)?;
    if cpu == Cpu::A {
        names::of(&mut elf, cpu)?;
        built.elf = write("names-a.elf", &elf)?;
    }
    Ok((built, place))
}

/// Writes what `tigon.py` knows of the chip.
fn write_facts() -> Result<PathBuf> {
    write("tigon.json", facts().to_string().as_bytes())
}

/// Writes a file for gdb, in one go: another session may be reading it.
fn write(name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let folder = paths::target().join("gdb");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    let mut file = NamedTempFile::new_in(&folder)?;
    file.write_all(bytes)?;
    file.persist(&path)
        .with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The commands that begin a session.
fn session(facts: &Path, stub: &str, place: &str) -> Vec<String> {
    let script = paths::root().join("boards/tigon2/gdb/tigon.py");
    vec![
        format!(
            "python gdb.set_convenience_variable('tigon_facts', {:?})",
            facts.display().to_string()
        ),
        format!("source {}", script.display()),
        format!("directory {}", paths::root().display()),
        format!("target remote {stub}"),
        format!("tigon until {place}"),
    ]
}

fn debug(elf: &Path, session: &[String], words: &[String]) -> Result<()> {
    let mut gdb = Command::new("gdb-multiarch");
    gdb.arg("-q");
    for step in session {
        gdb.args(["-ex", step]);
    }
    // What the user wants done comes behind the stop.
    gdb.args(words).arg(elf);
    // gdb has the terminal: Ctrl-C is for what it debugs.
    let status = gdb.status().context("cannot start gdb-multiarch")?;
    if !status.success() {
        bail!("gdb failed ({status})");
    }
    Ok(())
}

/// Says what to type, and keeps the card until Ctrl-C.
fn serve(elf: &Path, session: &[String], mut check: impl FnMut() -> Result<()>) -> Result<()> {
    println!("gdb: type gdb-multiarch {}, and there:", elf.display());
    for step in session {
        println!("  {step}");
    }
    println!("gdb: the card waits; Ctrl-C ends it");
    while interrupt::sleep(LOOK).is_ok() {
        check()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of the script that name something are words of the crates.
    #[test]
    fn the_script_finds_what_it_names() {
        let script = std::fs::read_to_string(paths::root().join("boards/tigon2/gdb/tigon.py"));
        let script = script.expect("the script is there");
        let facts = facts();
        for table in facts.as_object().expect("tables").keys() {
            let quoted = ['"', '\''].map(|quote| format!("{quote}{table}{quote}"));
            let used = quoted.iter().any(|name| script.contains(name));
            assert!(used, "{table} is of no use");
        }
        let named = |table: &str, name: &str| {
            let entries = facts[table].as_array().expect("a table");
            entries.iter().any(|entry| entry["name"] == name)
        };
        for register in ["EventA", "EventB", "MailboxEventA", "MailboxEventB"] {
            assert!(named("registers", register), "{register}");
        }
        for word in ["TraceStart", "TraceLength", "TracePointer"] {
            assert!(named("words", word), "{word}");
        }
        for ring in facts["chip_rings"].as_array().expect("a table") {
            for end in ["producer", "consumer"] {
                assert!(named("registers", ring[end].as_str().expect("a name")));
            }
        }
    }
}
