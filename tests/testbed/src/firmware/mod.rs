//! Builds the firmware: ELF, instruction check, memory use, `tg2.bin`.
//!
//! ```text
//! tigon-firmware --cargo, build-std--> ELF --isa--> allowed instructions only?
//!                                       |--sizes--> bytes used of each memory
//!                                       '--load---> tg2.bin, the drivers' load format
//! ```

pub mod boot;
pub mod choice;
pub mod file;
pub mod flash;
mod generation;
pub mod isa;
pub mod load;
pub mod names;
mod overlaps;
pub mod own;
pub mod pads;
pub mod sizes;
pub mod toolchain;

use crate::{paths, process, progress};
use anyhow::{Context, Result, bail};
pub use choice::{Placement, Variant};
use sizes::Sizes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use toolchain::Toolchain;

/// Name of the custom target, which is the stem of its description in `linker/`.
const TARGET: &str = "mips-tigon2-none";

/// The environment variable that the firmware's layout heeds: bytes of SRAM for handlers that
/// are loaded later.
const ROOM: &str = "TIGON_LOADABLE_BYTES";

/// What to build and what to say meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct FirmwareOptions {
    /// Which firmware.
    pub variant: Variant,
    /// Where its hot code and data lie.
    pub placement: Placement,
    /// Print nothing when all goes well; else what is built if that takes time, and with
    /// `--verbose` cargo's words and the sizes.
    pub quiet: bool,
}

impl Default for FirmwareOptions {
    /// The firmware that the user chose.
    fn default() -> FirmwareOptions {
        let (variant, placement) = choice::chosen();
        FirmwareOptions {
            variant,
            placement,
            quiet: false,
        }
    }
}

/// What a build leaves behind.
#[derive(Clone, Debug)]
pub struct FirmwareArtifacts {
    /// The firmware with symbols and debug information, for gdb and the log decoder.
    pub elf: PathBuf,
    /// The image in the drivers' load format.
    pub tg2: PathBuf,
    /// Bytes used of each memory.
    pub sizes: Sizes,
}

/// Builds a firmware and checks it. A process builds each firmware once: the next call returns what
/// the first one has built.
///
/// # Errors
/// No compiler with the standard library's source, a failed compilation, a forbidden
/// instruction, or an image that does not fit.
pub fn build(options: FirmwareOptions) -> Result<FirmwareArtifacts> {
    static BUILT: Mutex<Vec<(Variant, Placement, FirmwareArtifacts)>> = Mutex::new(Vec::new());
    let FirmwareOptions {
        variant, placement, ..
    } = options;
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., known)) = built.iter().find(|it| (it.0, it.1) == (variant, placement)) {
        return Ok(known.clone());
    }
    let folder = paths::target().join("firmware");
    let artifacts = build_in(&folder, options, Settings::default())?;
    built.push((variant, placement, artifacts.clone()));
    Ok(artifacts)
}

/// The same in a folder of its own, with those log messages only that `messages` names, in
/// the words of `DEFMT_LOG`.
///
/// # Errors
/// As [`build`].
pub fn build_with_messages(options: FirmwareOptions, messages: &str) -> Result<FirmwareArtifacts> {
    let folder = paths::target().join("firmware-messages").join(messages);
    let settings = Settings {
        messages: Some(messages),
        ..Settings::default()
    };
    build_in(&folder, options, settings)
}

/// The same in a folder of its own, with `bytes` of SRAM for handlers that are loaded later.
///
/// # Errors
/// As [`build`].
pub fn build_with_room(options: FirmwareOptions, bytes: u32) -> Result<FirmwareArtifacts> {
    let folder = paths::target()
        .join("firmware-room")
        .join(bytes.to_string());
    let settings = Settings {
        room: Some(bytes),
        ..Settings::default()
    };
    build_in(&folder, options, settings)
}

/// The same of `spine` in a folder of its own, with the router compiled in, to be compared with the
/// extension.
///
/// # Errors
/// As [`build`].
pub fn build_with_router(options: FirmwareOptions) -> Result<FirmwareArtifacts> {
    let folder = paths::target().join("firmware-builtin");
    let settings = Settings {
        feature: Some("builtin"),
        ..Settings::default()
    };
    build_in(&folder, options, settings)
}

/// The same of `eudp` in a folder of its own, whose CPU A records the transitions of its machines,
/// too: for schedules that are followed, and not measured.
///
/// # Errors
/// As [`build`].
pub fn build_with_transitions(options: FirmwareOptions) -> Result<FirmwareArtifacts> {
    let folder = paths::target().join("firmware-transitions");
    let settings = Settings {
        feature: Some("transitions"),
        ..Settings::default()
    };
    build_in(&folder, options, settings)
}

/// What a build takes from the caller instead of from the user's environment.
#[derive(Clone, Copy, Debug, Default)]
struct Settings<'a> {
    /// The messages that are built in.
    messages: Option<&'a str>,
    /// Bytes of SRAM for handlers that are loaded later.
    room: Option<u32>,
    /// A feature beside that of the binary.
    feature: Option<&'static str>,
}

fn build_in(
    target: &Path,
    options: FirmwareOptions,
    settings: Settings<'_>,
) -> Result<FirmwareArtifacts> {
    let toolchain = Toolchain::find()?;
    let binary = options.variant.name();
    let program = Program {
        package: options.variant.package(),
        binary,
        placement: options.placement,
        argument: generation::argument(options.variant),
        settings,
    };
    compile(&toolchain, program, target, options.quiet)?;

    let linked = target.join(TARGET).join("firmware").join(binary);
    let mut bytes = std::fs::read(&linked).with_context(|| format!("read {}", linked.display()))?;
    overlaps::hide(&mut bytes)?;
    names::of_b(&mut bytes)?;
    let name = choice::file_name(options.variant, options.placement);
    // Cargo's file stays as it is: Cargo would link it anew, and for a moment there is none.
    let elf = target.join(format!("{name}.elf"));
    replace(&elf, &bytes).with_context(|| format!("write {}", elf.display()))?;
    let faults = isa::check(&bytes).context("check the firmware's instructions")?;
    if !faults.is_empty() {
        let list: Vec<String> = faults.iter().map(ToString::to_string).collect();
        bail!(
            "the firmware has instructions that the chip lacks:\n  {}",
            list.join("\n  ")
        );
    }
    let astray = pads::check(&bytes, options.placement.has_code_in_scratch())?;
    if !astray.is_empty() {
        bail!(
            "hot code is not where its CPU finds it:\n  {}",
            astray.join("\n  ")
        );
    }
    let sizes = sizes::measure(&bytes)?;
    if !options.quiet && progress::is_verbose() {
        for memory in &sizes.memories {
            println!("{memory}");
        }
    }
    let tg2 = target.join(format!("{name}.tg2.bin"));
    replace(&tg2, &load::image(&bytes)?).with_context(|| format!("write {}", tg2.display()))?;
    Ok(FirmwareArtifacts { elf, tg2, sizes })
}

/// Writes a file in one step: a concurrent reader sees the old or the new one.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Flags that keep this computer's folders out of the image: panics name their source file,
/// and the image must not depend on where it was built.
fn same_paths_everywhere() -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    let mut folders: Vec<PathBuf> = sources
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    folders.sort();
    // Paths of this workspace are relative already.
    folders
        .iter()
        .map(|folder| format!("--remap-path-prefix={}=crates", folder.display()))
        .collect()
}

/// A program for the chip.
#[derive(Clone, Debug)]
struct Program<'a> {
    package: &'static str,
    /// The binary, and the feature that builds it.
    binary: &'static str,
    placement: Placement,
    /// What the compiler is told for the binary alone, not for all crates: it is what LLVM makes,
    /// from all others.
    argument: Option<String>,
    settings: Settings<'a>,
}

fn compile(toolchain: &Toolchain, program: Program<'_>, target: &Path, quiet: bool) -> Result<()> {
    let Program {
        package,
        binary,
        placement,
        argument,
        settings,
    } = program;
    let mut cargo = process::cargo();
    cargo
        .current_dir(paths::root())
        .args(["rustc", "--package", package, "--profile", "firmware"])
        .args(["--bin", binary, "--features", binary])
        .arg("--target")
        .arg(paths::root().join("linker").join(format!("{TARGET}.json")))
        .args(["-Zbuild-std=core,compiler_builtins", "-Zjson-target-spec"])
        .arg("--target-dir")
        .arg(target)
        .env("RUSTC", &toolchain.compiler)
        .env(choice::PLACEMENT, placement.name())
        // The unstable options above, on a stable compiler.
        .env("RUSTC_BOOTSTRAP", "1");
    if let Some(feature) = settings.feature {
        cargo.args(["--features", feature]);
    }
    if let Some(bytes) = settings.room {
        cargo.env(ROOM, bytes.to_string());
    }
    if let Some(messages) = settings.messages {
        cargo.env("DEFMT_LOG", messages);
    } else if std::env::var_os("DEFMT_LOG").is_none() {
        // All messages are built in; what is recorded, the host chooses at any time.
        cargo.env("DEFMT_LOG", "trace");
    }
    cargo.arg("--config").arg(format!(
        "target.{TARGET}.rustflags={:?}",
        same_paths_everywhere()
    ));
    if let Some(linker) = &toolchain.linker {
        cargo
            .arg("--config")
            .arg(format!("target.{TARGET}.linker={:?}", linker.display()));
    }
    // Flags that are meant for the host's build of this very process.
    for variable in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "RUSTC_WORKSPACE_WRAPPER",
    ] {
        cargo.env_remove(variable);
    }
    cargo.arg("--").args(argument);
    if quiet {
        let output = cargo
            .env(progress::QUIET, "true")
            .output()
            .context("start cargo")?;
        if !output.status.success() {
            bail!(
                "the firmware does not compile:\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        return Ok(());
    }
    let what = format!("firmware: building {binary}");
    progress::cargo(&mut cargo, &what).context("the firmware does not compile")
}
