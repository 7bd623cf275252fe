//! Containers: compiled, signed, and what is proven of them.

use super::try_out;
use anyhow::{Context, Result, ensure};
use spine_image::{Builder, Image, Section, interface};
use spine_linker::compile::Compiler;
use spine_linker::exports::Exported;
use spine_linker::link::{self, Runtime};
use spine_linker::policy::{MEMORY_MOST, Policy};
use spine_linker::sign::{self, Signer, digits_of_bytes};
use std::path::{Path, PathBuf};
use testbed::setup::{self, Need};
use testbed::{extensions, paths, process};

/// Where a trial is linked to: any place in NIC memory does.
const BASE: u32 = 0x1_0000;
/// Bytes of region and memory that a policy grants unless its owner changes it.
const GRANTED: [u32; 2] = [0x1000, 0x4000];
/// Words of a table, at most: all that a card has for extensions.
const TABLE_MOST: i64 = (MEMORY_MOST / 4) as i64;
/// Microseconds that a run of a trial may take.
const WATCHDOG: u32 = 10;

/// What to build.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The crate's folder
    pub folder: PathBuf,
    /// The container [default: in target/extensions]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Secret key to sign with [default: the development key, which anybody has]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Words of the table that it has for the host to write [default: as it says]
    #[arg(long, value_name = "WORDS", value_parser = clap::value_parser!(u32).range(1..=TABLE_MOST))]
    pub table: Option<u32>,
}

/// Runs the crate's tests, compiles it, and says what is proven.
///
/// # Errors
/// Which wall refuses it, or what the system says.
pub fn check(folder: &Path) -> Result<()> {
    native_tests(folder)?;
    let signer = extensions::development_signer()?;
    let container = container(folder, &signer)?;
    println!("{}", proven(&container, &signer)?);
    Ok(())
}

/// Compiles it and tries it out on a simulated card.
///
/// # Errors
/// Which wall refuses it, or what the system says.
pub fn run(options: &try_out::Options) -> Result<()> {
    let signer = extensions::development_signer()?;
    let container = container(&options.folder, &signer)?;
    let policy = Policy::parse(&policy_text(&signer, WATCHDOG, GRANTED, &[])?)?;
    try_out::run(options, &container, policy)
}

/// Compiles it and writes the container; returns its path.
///
/// # Errors
/// Which wall refuses it, or what the system says.
pub fn build(options: &Options) -> Result<PathBuf> {
    let signer = signer(options.key.as_deref())?;
    let container = container_with(&options.folder, &signer, options.table)?;
    println!("{}", proven(&container, &signer)?);
    let out = match &options.out {
        Some(out) => out.clone(),
        None => {
            let image = Image::parse(&container)?;
            let name = format!("{}.spine", image.extension());
            paths::target().join("extensions").join(name)
        }
    };
    std::fs::write(&out, &container).with_context(|| format!("cannot write {}", out.display()))?;
    println!("{}: {} bytes, signed", out.display(), container.len());
    Ok(out)
}

/// Signs a container of somebody else's, when it was not changed since that signed it, this
/// checkout's compiler and API have made it, and the verifier proves it.
///
/// # Errors
/// Which wall refuses it, or what the system says.
pub fn sign(container: &Path, key: &Path, out: &Path) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    let bytes = std::fs::read(container);
    let bytes = bytes.with_context(|| format!("cannot read {}", container.display()))?;
    let signer = signer(Some(key))?;
    let build = extensions::compiler()?.build_id()?;
    let image = sign::trusted(&bytes, &build)?;
    let signed = signer.sign_again(&image);
    println!("{}", proven(&signed, &signer)?);
    std::fs::write(out, &signed).with_context(|| format!("cannot write {}", out.display()))?;
    let name = digits_of_bytes(&signer.public());
    println!("{}: signed by {name}", out.display());
    Ok(())
}

/// What a policy is to grant.
#[derive(Clone, Debug, clap::Args)]
pub struct PolicyOptions {
    /// Secret key that signs [default: the development key, which anybody has]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Microseconds that a run may take
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..=255))]
    pub watchdog: u32,
    /// Microseconds that each run has at least, those of init included: for an emulated card,
    /// whose CPUs the computer holds up
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub floor: u32,
    /// Extension whose procedures the signer's may call; may be given several times
    #[arg(long = "call", value_name = "EXTENSION")]
    pub others: Vec<String>,
}

/// Prints a policy.
///
/// # Errors
/// Which wall refuses it, or what the system says.
pub fn print_policy(options: &PolicyOptions) -> Result<()> {
    setup::ensure(&[Need::Firmware])?;
    if options.floor != 0 {
        println!("# Each run has at least these microseconds: for an emulated card.");
        println!("floor = {}", options.floor);
    }
    let signer = signer(options.key.as_deref())?;
    let text = policy_text(&signer, options.watchdog, GRANTED, &options.others)?;
    print!("{text}");
    Ok(())
}

/// A policy by which all interfaces of the runtime, those of the extensions `others`, and so many
/// bytes of region and memory are granted to a signer, and this checkout's build is trusted.
fn policy_text(
    signer: &Signer,
    watchdog: u32,
    [region, memory]: [u32; 2],
    others: &[String],
) -> Result<String> {
    let build = extensions::compiler()?.build_id()?;
    let runtime = interface::ALL.iter().map(|one| interface::domain(one.name));
    let domains = runtime.chain(others.iter().map(String::as_str));
    let mut domains: Vec<String> = domains.map(|one| format!("{one:?}")).collect();
    domains.sort();
    domains.dedup();
    Ok(format!(
        "# Compiler and API whose containers are trusted.\nbuild = {:?}\n\n[[signer]]\n\
         key = {:?}\ndomains = [{}]\nwatchdog = {watchdog} # microseconds\npatience = 3\n\
         region = {region} # bytes\nmemory = {memory}\nstack = 256\nguards = [\"any\"]\n",
        digits_of_bytes(&build),
        digits_of_bytes(&signer.public()),
        domains.join(", "),
    ))
}

fn signer(key: Option<&Path>) -> Result<Signer> {
    let Some(path) = key else {
        return extensions::development_signer();
    };
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    Signer::from_text(&text).with_context(|| format!("{} holds no key", path.display()))
}

/// The signed container of the crate in a folder.
fn container(folder: &Path, signer: &Signer) -> Result<Vec<u8>> {
    container_with(folder, signer, None)
}

/// The same with a table of so many words, if it has one for the builder to choose.
fn container_with(folder: &Path, signer: &Signer, table: Option<u32>) -> Result<Vec<u8>> {
    ensure!(
        folder.join("Cargo.toml").is_file(),
        "{} holds no crate",
        folder.display()
    );
    setup::ensure(&[Need::Firmware])?;
    println!("extension: compiling it for the card");
    let compiler = Compiler {
        table,
        ..extensions::compiler()?
    };
    let built: Builder = compiler.build(folder)?;
    Ok(signer.sign(&built))
}

fn native_tests(folder: &Path) -> Result<()> {
    let manifest: PathBuf = folder.join("Cargo.toml");
    ensure!(manifest.is_file(), "{} holds no crate", folder.display());
    let mut command = process::cargo();
    command
        .args(["test", "--quiet", "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(paths::target().join("extensions/native"));
    process::run(&mut command).context("the extension's own tests")
}

/// Links it for a trial, and says what the verifier proves.
fn proven(container: &[u8], signer: &Signer) -> Result<String> {
    let build = extensions::compiler()?.build_id()?;
    let image = sign::trusted(container, &build)?;
    // Extensions that it calls are not there: as if they were, with procedures of no stack.
    let others = image
        .imports()
        .filter(|import| interface::find(import.name).is_none());
    let exports: Vec<Exported> = others
        .map(|import| Exported {
            name: import.name.to_owned(),
            domain: 0,
            stack: 0,
        })
        .collect();
    let domains = exports
        .iter()
        .map(|one| interface::domain(&one.name).to_owned());
    let domains: Vec<String> = domains.collect();
    let policy = Policy::parse(&policy_text(signer, WATCHDOG, [MEMORY_MOST; 2], &domains)?)?;
    let grant = policy.grant(&signer.public(), image.grade())?;
    let runtime = Runtime {
        imports: (0..interface::COUNT as u32)
            .map(|n| 0x4000 + 8 * n)
            .collect(),
    };
    let linked = link::link(
        &image,
        &runtime,
        &exports,
        grant,
        link::Place::in_arena(BASE, MEMORY_MOST),
    )?;
    let proof = spine_linker::verify(&linked, grant.stack)?;
    let imports: Vec<&str> = image.imports().map(|import| import.name).collect();
    Ok(format!(
        "{}: {} bytes of text, {} of constants, {} of region; {} functions, {} bytes of stack at \
         most\n  calls {}",
        image.extension(),
        linked.text,
        image.section(Section::Constants).len(),
        image.region(),
        linked.functions.len(),
        proof.most,
        imports.join(", ")
    ))
}
