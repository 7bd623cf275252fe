//! Builds the guest's kernel and its root file system from packages and from the files in
//! `guest/root`.
//!
//! ```text
//! <cache>/guest/<hash>/vmlinux    the kernel, unpacked
//! <cache>/guest/<hash>/root.cpio  its root file system, without our programs
//! ```
//!
//! The hash covers all inputs. A folder gets its name when it is complete, so an interrupted build
//! leaves nothing that looks valid.

use super::archive::Archive;
use super::loader::Loader;
use super::packages::Packages;
use super::{kernel, modules, remove};
use crate::{cache, paths, process};
use anyhow::{Context, Result};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Counted up when the way in which an image is made changes.
const RECIPE: u32 = 1;

/// Programs from the packages. All the others are busybox's, but for the shells:
/// Debian's busybox takes its own `ping` and `ip` in its shell, whatever the path.
const PROGRAMS: &[&str] = &[
    "bash", "bridge", "dash", "ethtool", "ip", "iperf3", "kmod", "ping", "ss", "tc", "tcpdump",
];

/// `kmod` by the names under which it is called.
const KMOD: &[&str] = &["depmod", "insmod", "lsmod", "modinfo", "modprobe", "rmmod"];

/// Folders that are there from the start.
const FOLDERS: &[&str] = &[
    "bin", "dev", "etc", "lib", "mnt", "proc", "root", "run", "sys", "tmp", "usr", "var",
];

/// One folder for programs, whatever name is used for it.
const LINKS: &[(&str, &str)] = &[
    ("init", "bin/busybox"),
    ("bin/sh", "dash"),
    ("sbin", "bin"),
    ("usr/bin", "../bin"),
    ("usr/sbin", "../bin"),
    ("usr/lib", "../lib"),
    ("var/run", "../run"),
    ("etc/mtab", "../proc/mounts"),
];

/// The two files that a guest is started with.
#[derive(Clone, Debug)]
pub struct Image {
    /// The kernel.
    pub kernel: PathBuf,
    /// The archive with the root file system.
    pub root: PathBuf,
}

/// The image in the cache, made if it is not there.
///
/// # Errors
/// One clear line if the packages cannot be had or lack something.
pub fn ensure() -> Result<Image> {
    let cache = cache::folder("guest")?;
    let _lock = cache::lock(&cache, "guest: waiting for another command to make it")?;
    let packages = Packages::ensure(&cache)?;
    let own = paths::root().join("guest/root");
    let folder = cache.join(&key(&packages, &own)?[..16]);
    let image = Image {
        kernel: folder.join("vmlinux"),
        root: folder.join("root.cpio"),
    };
    if folder.is_dir() {
        return Ok(image);
    }
    let start = Instant::now();
    println!("guest: making the kernel and the root file system");
    let work = cache.join("work");
    remove(&work)?;
    let result = work.join("result");
    fs::create_dir_all(&result)?;
    build(&packages, &own, &work, &result)?;
    fs::rename(&result, &folder).with_context(|| format!("cannot keep {}", folder.display()))?;
    remove(&work)?;
    println!("guest: made in {} s", start.elapsed().as_secs());
    Ok(image)
}

/// The name of an image: hash of all that decides what is in it.
fn key(packages: &Packages, own: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(RECIPE.to_le_bytes());
    hash.update(packages.identity()?);
    for words in [modules::WANTED, PROGRAMS, KMOD, FOLDERS] {
        hash.update(words.join(" "));
        hash.update([0]);
    }
    for (link, target) in LINKS {
        hash.update(format!("{link} {target}\n"));
    }
    let mut files = Archive::default();
    files.copy_all("own", own)?;
    hash.update(files.finish()?);
    Ok(HEXLOWER.encode(&hash.finalize()))
}

fn build(packages: &Packages, own: &Path, work: &Path, result: &Path) -> Result<()> {
    let (tree, linux, stage) = (work.join("tree"), work.join("kernel"), work.join("stage"));
    for folder in [&tree, &linux, &stage] {
        fs::create_dir_all(folder)?;
    }
    packages.unpack_programs(&tree)?;
    packages.unpack_kernel(&linux)?;
    let loader = Loader::new(&tree);
    let release = modules::stage(&linux, &stage, &loader)?;
    let packed = linux.join(format!("boot/vmlinuz-{release}"));
    kernel::extract(&packed, &result.join("vmlinux"))?;
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.folder(folder)?;
    }
    for (link, target) in LINKS {
        archive.link(link, target)?;
    }
    // What the first process's streams are, before devtmpfs is there.
    archive.device("dev/console", 0o600, (5, 1))?;
    archive.device("dev/null", 0o666, (1, 3))?;
    archive.copy_all("etc", &own.join("etc"))?;
    add_programs(&mut archive, &loader)?;
    archive.copy_all("lib/modules", &stage.join("lib/modules"))?;
    fs::write(result.join("root.cpio"), archive.finish()?)?;
    Ok(())
}

fn add_programs(archive: &mut Archive, loader: &Loader) -> Result<()> {
    let mut files = Vec::new();
    for program in PROGRAMS {
        let file = loader.program(program)?;
        archive.copy(&format!("bin/{program}"), &file)?;
        files.push(file);
    }
    for (name, file) in loader.needs(&files)? {
        archive.copy(&format!("lib/x86_64-linux-gnu/{name}"), &file)?;
    }
    let (place, file) = loader.interpreter()?;
    archive.copy(place, &file)?;
    for name in KMOD {
        archive.link(&format!("bin/{name}"), "kmod")?;
    }
    let busybox = loader.program("busybox")?;
    archive.copy("bin/busybox", &busybox)?;
    // It is static, so it runs here as it is and tells what it can be.
    let applets = process::output(
        Command::new(&busybox).arg("--list"),
        Duration::from_secs(10),
    )?;
    for applet in applets.lines().map(str::trim) {
        let taken = ["busybox", "sh"].contains(&applet)
            || PROGRAMS.contains(&applet)
            || KMOD.contains(&applet);
        if !taken && !applet.is_empty() {
            archive.link(&format!("bin/{applet}"), "busybox")?;
        }
    }
    Ok(())
}
