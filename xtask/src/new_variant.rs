//! `cargo xtask new-variant`: creates a firmware variant from an existing one.
//!
//! It gets a feature and a binary in `firmware/Cargo.toml`, and the binary's file; nothing else
//! makes a variant ([`own`]). Its code is the same until sources use its feature.

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use host_driver::{Config, Nic};
use std::time::Duration;
use testbed::firmware::own::{self, Own};
use testbed::firmware::{self, FirmwareOptions, Placement, Variant};
use testbed::paths;
use testbed::paths::board_file;
use testbed::setup::{self, Need};
use tigon2_model::Board;
use tigon2_sim::SimTransport;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// The longest name: it stands in tables.
const LONGEST: usize = 24;
/// What Cargo, or this project, means something else by.
const TAKEN: [&str; 4] = ["default", "boot", "test", "defmt"];
/// On the card's clock.
const LINK: Duration = Duration::from_secs(10);

/// The name of the variant, and its base.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name: lower-case letters, digits and hyphens
    pub name: String,
    /// Variant that it is based on
    #[arg(long, value_enum, default_value_t)]
    pub from: Variant,
}

/// Makes the variant, builds it and starts it in the simulator. What cannot be built or
/// started is taken back.
///
/// # Errors
/// A name that cannot be one, or whatever the build or the card says.
pub fn run(arguments: &Arguments) -> Result<()> {
    let name = &arguments.name;
    judge(name)?;
    setup::ensure(&[Need::Firmware])?;
    let manifest = own::manifest()?;
    let from = arguments.from.name();
    let folder = paths::root().join("firmware");
    let binary = folder.join("src/bin").join(format!("{name}.rs"));
    ensure!(!binary.exists(), "{} is there already", binary.display());
    let path = folder.join("Cargo.toml");
    std::fs::write(&path, added(&manifest, name, from)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::write(&binary, source(name, from))
        .with_context(|| format!("cannot write {}", binary.display()))?;
    let started = start(name, from);
    if started.is_err() {
        std::fs::write(&path, manifest)?;
        std::fs::remove_file(&binary)?;
    }
    started.with_context(|| format!("{name} was taken back"))?;
    println!("new-variant: {name} is there, begins as {from}, and starts on the card");
    println!("  change it   #[cfg(feature = \"{name}\")] in firmware/src");
    println!("  run it      cargo xtask --variant {name} sim-run");
    println!("  debug it    cargo xtask --variant {name} gdb --sim --break receive_complete");
    println!("  measure it  cargo xtask bench --quick");
    Ok(())
}

/// Whether a name can be that of a new variant.
fn judge(name: &str) -> Result<()> {
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    ensure!(
        fits && name.len() <= LONGEST,
        "{name:?} is no name for a variant: small letters, digits and hyphens, \
         a letter first, at most {LONGEST}"
    );
    ensure!(!TAKEN.contains(&name), "{name} means something else here");
    let mut variants = Variant::value_variants().iter();
    if variants.any(|variant| variant.name() == name) {
        bail!("there is a variant {name} already");
    }
    for placement in Placement::value_variants() {
        let ending = format!("-{}", placement.name());
        ensure!(
            !name.ends_with(&ending),
            "{name} would be the file of another variant with its parts in {}",
            placement.name()
        );
    }
    Ok(())
}

/// The manifest with the variant.
fn added(manifest: &str, name: &str, from: &str) -> Result<String> {
    let mut manifest: DocumentMut = manifest.parse().context("firmware/Cargo.toml")?;
    let mut basis = toml_edit::Array::new();
    basis.push(from);
    manifest["features"][name] = value(basis.clone());
    let mut binary = Table::new();
    basis.clear();
    basis.push(name);
    binary["name"] = value(name);
    binary["required-features"] = value(basis);
    for kind in ["test", "bench", "doc"] {
        binary[kind] = value(false);
    }
    manifest
        .entry("bin")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()))
        .as_array_of_tables_mut()
        .context("firmware/Cargo.toml has no list of binaries")?
        .push(binary);
    Ok(manifest.to_string())
}

/// The binary's file.
fn source(name: &str, from: &str) -> String {
    format!(
        "//! The firmware `{name}`: as `{from}`, but where sources ask for the feature `{name}`.\n\
         //!\n\
         //! All code is in the library; its `start` module holds the reset entry.\n\
         #![no_std]\n\
         #![no_main]\n\
         \n\
         use tigon_firmware as _;\n"
    )
}

/// Builds it and waits for its link on a simulated card.
fn start(name: &str, from: &str) -> Result<()> {
    // The list of variants was made before this one was there.
    let own = Box::leak(Box::new(Own {
        name: name.to_owned(),
        from: from.to_owned(),
    }));
    let built = firmware::build(FirmwareOptions {
        variant: Variant::Own(own),
        ..FirmwareOptions::default()
    })?;
    let board = Board::from_toml(&board_file()?)?;
    let mut nic = Nic::probe(SimTransport::power_on(board), Config::default())?;
    nic.load(&built.image()?)
        .context("the firmware does not start")?;
    nic.open()?;
    nic.wait_link(LINK)?;
    nic.shut_down()?;
    Ok(())
}
