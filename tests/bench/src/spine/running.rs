//! Extensions on the running card of a driver: what `tigonctl spine` does there, from the crate on.

use super::made;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;
use testbed::{process, tools};

/// Which card.
#[derive(Debug, clap::Args)]
pub struct Driver {
    /// Status socket of the process that drives the card (`bridge --status`)
    #[arg(long, value_name = "PATH", env = "TIGON_ATTACH")]
    attach: PathBuf,
}

/// What is loaded, and for which frames.
#[derive(Debug, clap::Args)]
pub struct Load {
    /// The crate's folder, or a container
    extension: PathBuf,
    /// Secret key to sign the crate with [default: the development key, which anybody has]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Which frames go to it, after the guards of other extensions: any, ether:TYPE, ip:PROTOCOL
    /// or udp:PORT, and =HANDLER behind it; or message
    #[arg(long = "guard", value_name = "GUARD")]
    guards: Vec<String>,
    #[command(flatten)]
    driver: Driver,
}

/// Builds and signs a crate, and loads it; a container is loaded as it is.
///
/// # Errors
/// Which wall refuses it, or what the system says.
pub fn load(options: &Load) -> Result<()> {
    let container = if options.extension.is_dir() {
        made::build(&made::Options {
            folder: options.extension.clone(),
            out: None,
            key: options.key.clone(),
            table: None,
        })?
    } else {
        options.extension.clone()
    };
    let mut command = options.driver.tigonctl()?;
    command.arg("load").arg(&container);
    for guard in &options.guards {
        command.args(["--guard", guard]);
    }
    process::run(&mut command)
}

/// Takes a domain off the card.
///
/// # Errors
/// If it is not loaded, or nobody drives a card.
pub fn unload(domain: u32, driver: &Driver) -> Result<()> {
    process::run(driver.tigonctl()?.args(["unload", &domain.to_string()]))
}

impl Driver {
    fn tigonctl(&self) -> Result<Command> {
        let mut command = Command::new(tools::build_tigonctl()?);
        command.arg("--attach").arg(&self.attach).arg("spine");
        Ok(command)
    }
}
