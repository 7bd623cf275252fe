//! `cargo xtask test`: format, lints and every test there is.

use crate::tools::Tools;
use crate::{paths, process, setup};
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Instant;

/// What to leave out.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Leave out formatting and clippy
    #[arg(long)]
    pub no_lint: bool,
    /// Only the tests of this package
    #[arg(long, short)]
    pub package: Option<String>,
    /// Words for the test programs, such as a part of a test's name
    #[arg(last = true)]
    pub words: Vec<String>,
}

/// Runs them; the first that fails ends the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    setup::ensure(setup::EVERYTHING)?;
    let tools = Tools::build()?;
    if !arguments.no_lint {
        step("format");
        cargo(&["fmt", "--all", "--check"], &tools).context("cargo fmt --all mends this")?;
        step("clippy");
        let clippy = ["clippy", "--workspace", "--all-targets", "--quiet"];
        cargo(&[&clippy[..], &["--", "-D", "warnings"]].concat(), &tools)?;
    }
    step("tests");
    let mut words = vec!["test"];
    match &arguments.package {
        Some(package) => words.extend(["--package", package]),
        None => words.push("--workspace"),
    }
    words.push("--");
    words.extend(arguments.words.iter().map(String::as_str));
    cargo(&words, &tools)?;
    println!("test: all passed in {} s", start.elapsed().as_secs());
    Ok(())
}

fn step(name: &str) {
    println!("test: {name}");
}

/// Cargo with the variables by which the tests find what was built.
fn cargo(words: &[&str], tools: &Tools) -> Result<()> {
    process::run(
        Command::new(env!("CARGO"))
            .args(words)
            .current_dir(paths::root())
            .env("TIGON_QEMU_MIPS", &tools.qemu)
            .env("TIGON_QEMU_MODEL", &tools.model)
            .env("TIGON_FIRMWARE_ELF", &tools.firmware.elf)
            .env("TIGON_FIRMWARE_TG2", &tools.firmware.tg2)
            .env("TIGON_XTASK", std::env::current_exe()?),
    )
}
