//! `cargo xtask test`: runs format check, lints and every test, and a core of the stories with the
//! other variant of the firmware; with `--guest` the stories in which a Linux guest is the judge, and a
//! core of them with each variant made from another one.
//! A failure does not stop the rest; the end lists all failures.

use anyhow::{Result, bail, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use testbed::firmware::choice::{self, Variant};
use testbed::guest::GuestTools;
use testbed::net::namespace;
use testbed::programs::{self, Program};
use testbed::qemu_build::Target;
use testbed::tools::{Tools, beside_qemu, build_client, build_tigonctl};
use testbed::{interrupt, paths, process, setup};

/// The tests to run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Skip formatting and clippy
    #[arg(long)]
    pub no_lint: bool,
    /// Run only the tests of this package
    #[arg(long, short)]
    pub package: Option<String>,
    /// Run only the tests with a Linux guest
    #[arg(long, conflicts_with_all = ["no_lint", "package"])]
    pub guest: bool,
    /// Seed for the order of programs and tests [default: random, and printed]
    #[arg(long, value_name = "N", conflicts_with = "guest")]
    pub seed: Option<u32>,
    /// Arguments for the test programs, such as a part of a test's name
    #[arg(last = true)]
    pub words: Vec<String>,
}

/// Runs them.
///
/// # Errors
/// When something cannot be built, and when a test has failed, after all have been run.
pub fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    if let Some(package) = &arguments.package {
        programs::judge_package(package)?;
    }
    setup::ensure(setup::EVERYTHING)?;
    // The card's and the PC's at once: one build of QEMU's source.
    let qemu = beside_qemu(&[Target::Mips, Target::X86_64])?;
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
        no_networks: namespace::permitted().err().map(|why| format!("{why:#}")),
    };
    if let Some(why) = &built.no_networks {
        step(&format!("{why}: leaving out the tests that need them"));
    }
    let mut failed = Vec::new();
    if !arguments.no_lint {
        failed.extend(lint(&built)?);
    }
    let packages = match &arguments.package {
        Some(package) => vec!["--package", package],
        None => vec!["--workspace"],
    };
    let seed = arguments.seed.unwrap_or_else(programs::any_seed);
    let programs = programs::build(cargo(&built)?, &packages, seed)?;
    step(&format!(
        "{} programs, in the order of --seed {seed}",
        programs.len()
    ));
    let name = |command: &mut Command| built.name_in(command);
    failed.extend(programs::run(&programs, name, seed, &arguments.words)?);
    if programs.iter().any(|program| program.is_library) {
        step("examples of the documentation");
        let mut examples = cargo(&built)?;
        examples
            .args(["test", "--doc", "--no-fail-fast"])
            .args(&packages)
            .arg("--")
            .args(&arguments.words);
        failed.extend(programs::failures_of(&mut examples)?);
    }
    if arguments.package.is_none() && arguments.words.is_empty() {
        failed.extend(core_of_the_other(&programs, &built, seed)?);
    }
    let seconds = start.elapsed().as_secs();
    if failed.is_empty() {
        match &built.no_networks {
            None => println!("test: all passed in {seconds} s"),
            Some(why) => println!("test: all others passed in {seconds} s ({why})"),
        }
        return Ok(());
    }
    println!("test: failed in {seconds} s, with --seed {seed}:");
    for test in &failed {
        println!("  {test}");
    }
    bail!("{} failed", failed.len())
}

/// Format and clippy; what of them fails.
fn lint(built: &Built) -> Result<Vec<String>> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet"];
    let clippy = [&clippy[..], &["--", "-D", "warnings"]].concat();
    let mut failed = Vec::new();
    for (name, words, advice) in [
        (
            "format",
            &["fmt", "--all", "--check"][..],
            ": cargo fmt --all mends this",
        ),
        ("clippy", &clippy, ""),
    ] {
        step(name);
        if process::run(cargo(built)?.args(words)).is_err() {
            interrupt::check()?;
            failed.push(format!("{name}{advice}"));
        }
    }
    Ok(failed)
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
fn core_of_the_other(programs: &[Program], built: &Built, seed: u32) -> Result<Vec<String>> {
    let variant = if choice::chosen().0.is_parallel() {
        Variant::Uniprocessor
    } else {
        Variant::Parallel
    };
    let other = Built {
        tools: built.tools.with_variant(variant)?,
        variant,
        pc: built.pc.clone(),
        client: built.client.clone(),
        tigonctl: built.tigonctl.clone(),
        no_networks: built.no_networks.clone(),
    };
    step(&format!("tests, {}", variant.name()));
    let is_core = |program: &&Program| !program.is_library && CORE.contains(&program.name.as_str());
    let core: Vec<Program> = programs.iter().filter(is_core).cloned().collect();
    let name = |command: &mut Command| other.name_in(command);
    let failed = programs::run(&core, name, seed, &[])?;
    let named = |test| format!("{test}, {}", variant.name());
    Ok(failed.into_iter().map(named).collect())
}

/// The guest's stories that are told with the variants made from others, too: the driver starts, and
/// frames of all sizes, checksums and the link are right while nobody has opened a system.
const GUEST_CORE: [&str; 4] = [
    "the_driver_finds_a_card_that_it_knows",
    "ping_of_every_size",
    "tcp_and_udp_with_checksums_by_the_card",
    "the_cable_is_pulled_while_traffic_flows",
];

/// The stories of the test program `guest`, which tells of its progress itself; and a core of them with
/// each variant made from another one, unless the user has chosen some or a variant.
fn guest(arguments: &Arguments, tools: &Tools, start: Instant) -> Result<()> {
    let guest = GuestTools::build()?;
    let chosen = choice::chosen().0;
    step("guest");
    let told = tell(&guest, (chosen, tools), &arguments.words);
    let mut failed: Vec<_> = told.is_err().then(|| chosen.name()).into_iter().collect();
    interrupt::check()?;
    if chosen == Variant::default() && arguments.words.is_empty() {
        let core = GUEST_CORE.map(String::from);
        let made = Variant::for_chip().filter(|variant| matches!(variant, Variant::Own(_)));
        for variant in made {
            step(&format!("guest, {}", variant.name()));
            let tools = tools.with_variant(variant)?;
            if tell(&guest, (variant, &tools), &core).is_err() {
                interrupt::check()?;
                failed.push(variant.name());
            }
        }
    }
    let seconds = start.elapsed().as_secs();
    ensure!(
        failed.is_empty(),
        "stories failed with {}, in {seconds} s",
        failed.join(" and ")
    );
    println!("test: all passed in {seconds} s");
    Ok(())
}

/// Runs the test program `guest` with a variant.
fn tell(guest: &GuestTools, with: (Variant, &Tools), words: &[String]) -> Result<()> {
    // As the other tests are built: for its package alone, crates would have other features.
    let test = ["test", "--workspace", "--test", "guest", "--quiet", "--"];
    let mut command = process::cargo();
    command.args(test).current_dir(paths::root());
    let (variant, tools) = with;
    name_tools_in(&mut command, tools, variant)?;
    command.args(words).envs(guest.environment());
    process::run(&mut command)
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
    /// Why this user may make no network namespaces.
    no_networks: Option<String>,
}

fn step(name: &str) {
    println!("test: {name}");
}

impl Built {
    /// Sets the variables by which the tests find what was built.
    fn name_in(&self, command: &mut Command) -> Result<()> {
        command
            .env("TIGON_GUEST_QEMU", &self.pc)
            .env("TIGON_GUEST_CLIENT", &self.client)
            .env("TIGON_TIGONCTL", &self.tigonctl);
        if self.no_networks.is_some() {
            command.env(namespace::LEFT_OUT, "1");
        }
        name_tools_in(command, &self.tools, self.variant)
    }
}

/// Cargo, with those variables.
fn cargo(built: &Built) -> Result<Command> {
    let mut command = process::cargo();
    command.current_dir(paths::root());
    built.name_in(&mut command)?;
    Ok(command)
}

fn name_tools_in(command: &mut Command, tools: &Tools, variant: Variant) -> Result<()> {
    let (_, placement) = choice::chosen();
    command
        .env("TIGON_QEMU_MIPS", &tools.qemu)
        .env("TIGON_QEMU_MODEL", &tools.model)
        .env("TIGON_FIRMWARE_ELF", &tools.firmware.elf)
        .env("TIGON_FIRMWARE_TG2", &tools.firmware.tg2)
        .env("TIGON_BOOT_CODE", &tools.boot)
        .env("TIGON_XTASK", std::env::current_exe()?)
        .env(choice::VARIANT, variant.name())
        .env(choice::PLACEMENT, placement.name());
    Ok(())
}
