//! `cargo xtask test`: format, lints and every test there is, and a core of the stories
//! with the other variant of the firmware; with `--guest` the stories in which a Linux
//! guest is the judge.

use crate::firmware::choice::{self, Variant};
use crate::firmware::{self, FirmwareOptions};
use crate::guest::GuestTools;
use crate::qemu_build::{self, Target};
use crate::tools::{Tools, build_client, build_tigonctl};
use crate::{paths, process, setup};
use anyhow::{Context, Result};
use std::path::PathBuf;
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
    /// The stories with a Linux guest instead, and nothing else
    #[arg(long, conflicts_with_all = ["no_lint", "package"])]
    pub guest: bool,
    /// Words for the test programs, such as a part of a test's name
    #[arg(last = true)]
    pub words: Vec<String>,
}

/// Runs them; the first that fails ends the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    setup::ensure(setup::EVERYTHING)?;
    // The card's and the PC's at once: one build of QEMU's source.
    let qemu = qemu_build::ensure(&[Target::Mips, Target::X86_64])?;
    let tools = Tools::build()?;
    if arguments.guest {
        return guest(arguments, &tools, start);
    }
    let built = Built {
        tools,
        variant: choice::chosen().0,
        pc: qemu.x86_64,
        client: build_client()?,
        tigonctl: build_tigonctl()?,
    };
    if !arguments.no_lint {
        step("format");
        run_cargo(&["fmt", "--all", "--check"], &built).context("cargo fmt --all mends this")?;
        step("clippy");
        let clippy = ["clippy", "--workspace", "--all-targets", "--quiet"];
        run_cargo(&[&clippy[..], &["--", "-D", "warnings"]].concat(), &built)?;
    }
    step("tests");
    let mut words = vec!["test"];
    match &arguments.package {
        Some(package) => words.extend(["--package", package]),
        None => words.push("--workspace"),
    }
    words.push("--");
    words.extend(arguments.words.iter().map(String::as_str));
    run_cargo(&words, &built)?;
    if arguments.package.is_none() && arguments.words.is_empty() {
        core_of_the_other(&built)?;
    }
    println!("test: all passed in {} s", start.elapsed().as_secs());
    Ok(())
}

/// The test programs that run with the other variant, too: the handlers, and the stories of
/// start, both ways, commands, every kind of failure, full rings and random schedules, where
/// the variants differ most.
const CORE: [&str; 6] = [
    "handlers",
    "stories",
    "failures",
    "rings",
    "bad_input",
    "explore",
];

/// The core with the variant that the user did not choose.
fn core_of_the_other(built: &Built) -> Result<()> {
    let variant = if choice::chosen().0.is_parallel() {
        Variant::Uniprocessor
    } else {
        Variant::Parallel
    };
    let other = Built {
        tools: Tools {
            firmware: firmware::build(FirmwareOptions {
                variant,
                ..FirmwareOptions::default()
            })?,
            ..built.tools.clone()
        },
        variant,
        pc: built.pc.clone(),
        client: built.client.clone(),
        tigonctl: built.tigonctl.clone(),
    };
    step(&format!("tests, {}", variant.name()));
    // The whole workspace, so that nothing is built again with fewer features.
    let mut words = vec!["test", "--workspace"];
    words.extend(CORE.iter().flat_map(|program| ["--test", program]));
    run_cargo(&words, &other)
}

/// The stories of the test program `guest`, which tells of its progress itself.
fn guest(arguments: &Arguments, tools: &Tools, start: Instant) -> Result<()> {
    let guest = GuestTools::build()?;
    step("guest");
    let words = [
        "test",
        "--package",
        "integration-tests",
        "--test",
        "guest",
        "--quiet",
        "--",
    ];
    let mut command = cargo(&words, tools, choice::chosen().0)?;
    command.args(&arguments.words).envs(guest.environment());
    process::run(&mut command)?;
    println!("test: all passed in {} s", start.elapsed().as_secs());
    Ok(())
}

/// What all other tests are run with.
struct Built {
    tools: Tools,
    /// The variant of the tools' firmware.
    variant: Variant,
    /// The PC's QEMU, and the library for its device that is a card's client.
    pc: PathBuf,
    client: PathBuf,
    /// The command, as its users run it.
    tigonctl: PathBuf,
}

fn step(name: &str) {
    println!("test: {name}");
}

fn run_cargo(words: &[&str], built: &Built) -> Result<()> {
    let mut command = cargo(words, &built.tools, built.variant)?;
    command
        .env("TIGON_GUEST_QEMU", &built.pc)
        .env("TIGON_GUEST_CLIENT", &built.client)
        .env("TIGON_TIGONCTL", &built.tigonctl);
    process::run(&mut command)
}

/// Cargo with the variables by which the tests find what was built.
fn cargo(words: &[&str], tools: &Tools, variant: Variant) -> Result<Command> {
    let mut command = process::cargo();
    command
        .args(words)
        .current_dir(paths::root())
        .env("TIGON_QEMU_MIPS", &tools.qemu)
        .env("TIGON_QEMU_MODEL", &tools.model)
        .env("TIGON_FIRMWARE_ELF", &tools.firmware.elf)
        .env("TIGON_FIRMWARE_TG2", &tools.firmware.tg2)
        .env("TIGON_BOOT_CODE", &tools.boot)
        .env("TIGON_XTASK", std::env::current_exe()?);
    let (_, placement) = choice::chosen();
    command
        .env(choice::VARIANT, variant.name())
        .env(choice::PLACEMENT, placement.name());
    Ok(command)
}
