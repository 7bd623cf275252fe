//! The recipe for QEMU with the machine `tigon2`.
//!
//! A release of QEMU 10.0 gets the files and patches of `qemu/overlay`, is configured with almost
//! everything else disabled, and is built in a folder of the cache. The finished program is kept
//! in a folder named after the hash of all inputs:
//!
//! ```text
//! <cache>/qemu/source-<version>/    release tarball, as Debian offers it
//! <cache>/qemu/<hash>/              qemu-system-mips, qemu-system-x86_64
//! <cache>/qemu/work/                a build under way
//! <cache>/qemu/lock                 held by the one build that may be under way
//! ```
//!
//! A program is moved to its place by one rename after it is complete, so an interrupted build
//! leaves nothing that looks valid. The hardware model is not part of this: QEMU loads it when it
//! starts.

mod compile;
mod overlay;
mod source;
mod tools;

use crate::progress_bar::Progress;
use crate::{cache, paths};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use source::{MIRROR_VARIABLE, SOURCE_VARIABLE};
pub use tools::{DEBIAN_PACKAGES, PC_PACKAGES};

/// The folder of the cache.
pub const CACHE: &str = "qemu";
const WAITING: &str = "qemu: waiting for another build of it to end";

/// A machine to emulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The card: machine `tigon2`.
    Mips,
    /// A PC as a host for the card.
    X86_64,
}

impl Target {
    /// QEMU's name of the architecture.
    fn architecture(self) -> &'static str {
        match self {
            Target::Mips => "mips",
            Target::X86_64 => "x86_64",
        }
    }

    fn program(self) -> String {
        format!("qemu-system-{}", self.architecture())
    }
}

/// Where the programs are, or would be had they been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuPaths {
    /// `qemu-system-mips` with the machine `tigon2`.
    pub mips: PathBuf,
    /// `qemu-system-x86_64` of the same source.
    pub x86_64: PathBuf,
}

impl QemuPaths {
    fn in_folder(folder: &Path) -> Self {
        QemuPaths {
            mips: folder.join(Target::Mips.program()),
            x86_64: folder.join(Target::X86_64.program()),
        }
    }

    /// Those of `targets` whose program is not there.
    fn without_program(&self, targets: &[Target]) -> Vec<Target> {
        let is_missing = |target: &Target| !self.of(*target).is_file();
        targets.iter().copied().filter(is_missing).collect()
    }

    fn of(&self, target: Target) -> &Path {
        match target {
            Target::Mips => &self.mips,
            Target::X86_64 => &self.x86_64,
        }
    }
}

/// Those of `targets` that [`ensure`] would have to build.
///
/// # Errors
/// As [`ensure`]; nothing is fetched or built.
pub fn missing(targets: &[Target]) -> Result<Vec<Target>> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let cache = cache::folder(CACHE)?;
    let Some(source) = source::known(&cache)? else {
        return Ok(targets.to_vec());
    };
    let overlay = overlay::Overlay::find(&paths::root().join("qemu/overlay"))?;
    let folder = folder(&cache, &source, &overlay)?;
    Ok(QemuPaths::in_folder(&folder).without_program(targets))
}

/// The folder of the cache for a build of this source.
fn folder(cache: &Path, source: &source::Source, overlay: &overlay::Overlay) -> Result<PathBuf> {
    Ok(cache.join(&compile::key(source, overlay)?[..16]))
}

/// Makes sure that QEMU for `targets` is there, building it if need be.
///
/// The first time this takes minutes (two to four on two cores) and shows how far
/// it is; afterwards it takes milliseconds. Both targets share most of the work, so
/// whoever needs both asks for both at once.
///
/// # Errors
/// One clear line if the source cannot be had, a tool is missing or the build
/// fails.
pub fn ensure(targets: &[Target]) -> Result<QemuPaths> {
    let cache = cache::folder(CACHE)?;
    let source = match source::known(&cache)? {
        Some(source) => source,
        None => {
            let _lock = cache::lock(&cache, WAITING)?;
            match source::known(&cache)? {
                Some(source) => source,
                None => source::fetch(&cache)?,
            }
        }
    };

    let overlay = overlay::Overlay::find(&paths::root().join("qemu/overlay"))?;
    let folder = folder(&cache, &source, &overlay)?;
    let qemu = QemuPaths::in_folder(&folder);
    let missing = || qemu.without_program(targets);
    if missing().is_empty() {
        return Ok(qemu);
    }
    tools::check()?;
    let _lock = cache::lock(&cache, WAITING)?;
    // Someone else may have built it while this one waited for the lock.
    let missing = missing();
    if missing.is_empty() {
        return Ok(qemu);
    }

    let start = Instant::now();
    let names: Vec<String> = missing.iter().map(|target| target.program()).collect();
    println!("qemu: building {} from {source}", names.join(" and "));
    let work = cache.join("work");
    remove(&work)?;
    fs::create_dir_all(&work)?;
    compile::build(
        &source,
        &overlay,
        &missing,
        &work,
        &mut Progress::new("qemu"),
    )?;
    fs::create_dir_all(&folder)?;
    for target in missing {
        let built = work.join("build").join(target.program());
        fs::rename(&built, qemu.of(target))
            .with_context(|| format!("cannot keep {}", built.display()))?;
    }
    remove(&work)?;
    println!("qemu: built in {} s", start.elapsed().as_secs());
    Ok(qemu)
}

/// Removes a folder if it is there.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
