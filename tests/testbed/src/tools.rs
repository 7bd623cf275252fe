//! The programs and files that the commands run: QEMU, the model that it loads, the firmware.

use crate::firmware::choice::Variant;
use crate::firmware::{self, FirmwareArtifacts, FirmwareOptions, file};
use crate::setup::{self, Need};
use crate::{paths, process, progress, qemu_build};
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Everything that a card under QEMU is made of.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `qemu-system-mips` with the machine `tigon2`.
    pub qemu: PathBuf,
    /// The hardware model, a shared library.
    pub model: PathBuf,
    /// The firmware that the user chose.
    pub firmware: FirmwareArtifacts,
    /// The boot code, as the boot memory holds it.
    pub boot: PathBuf,
}

impl Tools {
    /// Builds what is not built yet, saying what it does. What that needs has
    /// been seen to by [`setup::ensure`].
    pub fn build() -> Result<Tools> {
        let qemu = beside_qemu(&[qemu_build::Target::Mips])?.mips;
        let model = build_model()?;
        let firmware = firmware::build(FirmwareOptions::default())?;
        let boot = firmware::boot::build(false)?.binary;
        Ok(Tools {
            qemu,
            model,
            firmware,
            boot,
        })
    }

    /// The same with the firmware of another variant.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn with_variant(&self, variant: Variant) -> Result<Tools> {
        Ok(Tools {
            firmware: firmware::build(FirmwareOptions {
                variant,
                ..FirmwareOptions::default()
            })?,
            ..self.clone()
        })
    }
}

impl Tools {
    /// The tools that `cargo xtask test` has built, for the tests.
    ///
    /// # Errors
    /// Outside of it, where the variables that name them are not set.
    pub fn from_environment() -> Result<Tools> {
        let path = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .with_context(|| format!("{name} is not set: run the tests by cargo xtask test"))
        };
        let elf = path("TIGON_FIRMWARE_ELF")?;
        let sizes = firmware::sizes::measure(&std::fs::read(&elf)?)?;
        Ok(Tools {
            qemu: path("TIGON_QEMU_MIPS")?,
            model: path("TIGON_QEMU_MODEL")?,
            firmware: FirmwareArtifacts {
                elf,
                tg2: path("TIGON_FIRMWARE_TG2")?,
                sizes,
            },
            boot: path("TIGON_BOOT_CODE")?,
        })
    }
}

/// The firmware that a command runs.
#[derive(Clone, Debug)]
pub struct Given {
    /// The user's file, or the variant.
    pub name: String,
    /// The image in the drivers' load format.
    pub image: Vec<u8>,
    /// The ELF file, if the firmware is ours.
    pub elf: Option<PathBuf>,
}

/// The user's image, if there is one, else the chosen variant, which is built. `quiet`: says
/// nothing of that when all goes well.
///
/// # Errors
/// As [`file::read`] and [`firmware::build`].
pub fn given_or_built(path: Option<&PathBuf>, quiet: bool) -> Result<Given> {
    if let Some(path) = path {
        return Ok(Given {
            name: path.display().to_string(),
            image: file::read(path)?,
            elf: None,
        });
    }
    setup::ensure(&[Need::Firmware])?;
    let options = FirmwareOptions {
        quiet,
        ..FirmwareOptions::default()
    };
    let built = firmware::build(options)?;
    Ok(Given {
        name: options.variant.name().to_owned(),
        image: built.image()?,
        elf: Some(built.elf),
    })
}

/// Builds QEMU for `targets` if need be, and meanwhile what does not depend on it: a build of
/// QEMU leaves a core idle for a third of its time.
///
/// # Errors
/// QEMU's. Whoever needs the rest builds it again, in no time, and hears of its errors.
pub fn beside_qemu(targets: &[qemu_build::Target]) -> Result<qemu_build::QemuPaths> {
    if qemu_build::missing(targets)?.is_empty() {
        return qemu_build::ensure(targets);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let options = FirmwareOptions {
                quiet: true,
                ..FirmwareOptions::default()
            };
            let firmware = firmware::build(options).and_then(|_| firmware::boot::build(true));
            if firmware.is_ok() {
                let _ = build_model();
            }
        });
        qemu_build::ensure(targets)
    })
}

/// Builds the library that the card's QEMU loads; always optimised, as it runs inside
/// the emulated CPUs' register accesses.
pub fn build_model() -> Result<PathBuf> {
    if let Some(built) = built_for_tests("TIGON_QEMU_MODEL") {
        return Ok(built);
    }
    let what = "model: building the library that QEMU loads";
    build_library("tigon2-qemu", "libtigon2_qemu.so", what)
}

/// Builds the library that the guest's QEMU loads to reach a card.
pub fn build_client() -> Result<PathBuf> {
    let what = "client: building the library that the guest's QEMU loads";
    build_library("tigon2-qemu-client", "libtigon2_qemu_client.so", what)
}

/// Builds `tigonctl`.
pub fn build_tigonctl() -> Result<PathBuf> {
    if let Some(built) = built_for_tests("TIGON_TIGONCTL") {
        return Ok(built);
    }
    build_beside_xtask(
        "host-driver",
        &["--bin", "tigonctl"],
        "tigonctl: building it",
    )?;
    Ok(paths::target().join("release/tigonctl"))
}

/// What `cargo xtask test` has built already. For a test that works on a copy of the sources
/// ([`paths::root`]) it serves: in such copies only the firmware is changed.
fn built_for_tests(variable: &str) -> Option<PathBuf> {
    std::env::var_os("TIGON_ROOT")?;
    std::env::var_os(variable).map(PathBuf::from)
}

fn build_library(package: &str, file: &str, what: &str) -> Result<PathBuf> {
    build_beside_xtask(package, &["--lib"], what)?;
    Ok(paths::target().join("release").join(file))
}

/// Builds a package with the features that its dependencies have in this program: those are
/// compiled already. Alone it would have fewer of them, and nearly everything twice.
fn build_beside_xtask(package: &str, targets: &[&str], what: &str) -> Result<()> {
    progress::cargo(
        process::cargo()
            .args(["build", "--release"])
            .args(["--package", package, "--package", "xtask"])
            .args(targets)
            .current_dir(paths::root()),
        what,
    )
}
