//! `cargo xtask eta`: a packet processing engine on a TAP device with a web server on it, and a
//! shell in the network namespace at the other end.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use testbed::eta::{ADDRESS, Site};
use testbed::net::namespace;
use testbed::{paths, setup};

/// What is served, and what is done there.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder to serve [default: docs]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
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
    setup::ensure(&[setup::Need::Traffic])?;
    namespace::permitted()?;
    let root = arguments.root.clone();
    let root = root.unwrap_or_else(|| paths::root().join("docs"));
    let site = Site::start(&arguments.idle, &root)?;
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
