//! `cargo xtask eta`: a packet processing engine on a TAP device or on the card in QEMU, a web server
//! on it, and a shell in the network namespace at the other end.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use testbed::eta::{ADDRESS, Build, Site};
use testbed::net::namespace;
use testbed::paths;
use testbed::setup::{self, Need};
use testbed::tools::Tools;

/// What is served, and what is done there.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder to serve [default: docs]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The engine on the card in QEMU, instead of a TAP device
    #[arg(long)]
    pub card: bool,
    /// Send replies without a copy
    #[arg(long)]
    pub in_place: bool,
    /// How the engine waits: spin, adaptive or sleep
    #[arg(long, value_name = "MODE", default_value = "adaptive")]
    pub idle: String,
    /// Run this in the namespace instead of a shell
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Runs it until the shell or the command has ended.
///
/// # Errors
/// Without the privilege for namespaces, if a program does not begin, or if the command fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    setup::ensure(&[Need::Traffic])?;
    if arguments.card {
        setup::ensure(&[Need::Firmware, Need::Qemu])?;
    }
    namespace::permitted()?;
    let root = arguments.root.clone();
    let root = root.unwrap_or_else(|| paths::root().join("docs"));
    let in_place: &[&str] = if arguments.in_place {
        &["--in-place"]
    } else {
        &[]
    };
    let site = if arguments.card {
        let tools = Tools::build()?;
        Site::start_on_card(&tools, Build::Release, &arguments.idle, &root, in_place)?
    } else {
        Site::start_with(&arguments.idle, &root, in_place)?
    };
    println!("eta: {} is served at http://{ADDRESS}/", root.display());
    println!(
        "eta: counts: tigonctl --attach {} stats",
        site.status().display()
    );
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
    let mut shell = match &arguments.command {
        Some(_) => site.namespace.command("sh"),
        None => site.namespace.command(&shell),
    };
    shell.args(arguments.command.iter().flat_map(|line| ["-c", line]));
    let status = shell.status().context("a shell")?;
    ensure!(
        status.success() || arguments.command.is_none(),
        "the command ended with {status}"
    );
    Ok(())
}
