//! `cargo xtask man`: writes the manual pages of `cargo xtask`, one for each verb.

use anyhow::{Context, Result};
use clap::Command;
use std::path::PathBuf;
use testbed::paths;

/// The name of the pages.
const NAME: &str = "cargo-xtask";

/// The folder for the pages.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder for the pages [default: target/man]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Writes the pages of a command.
///
/// # Errors
/// If a file cannot be written.
pub fn run(command: Command, arguments: &Arguments) -> Result<()> {
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| paths::target().join("man"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| clap_mangen::generate_to(command.name(NAME), &folder))
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    println!("manual: man -l {}", folder.join("cargo-xtask.1").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let verb = Command::new("bench").about("Measure throughput");
        let command = Command::new("cargo xtask").subcommand(verb);
        let arguments = Arguments {
            out: Some(folder.path().join("man1")),
        };
        run(command, &arguments).expect("pages");
        let read = |page: &str| {
            let path = folder.path().join("man1").join(page);
            std::fs::read_to_string(path).expect("a page")
        };
        assert!(read("cargo-xtask.1").contains("bench"));
        assert!(read("cargo-xtask-bench.1").contains("Measure throughput"));
    }
}
