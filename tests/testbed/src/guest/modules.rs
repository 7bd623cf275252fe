//! Selects the kernel modules for the guest, with their dependencies.

use super::loader::Loader;
use crate::process;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// By their names as `modprobe` knows them.
pub const WANTED: &[&str] = &[
    // The card's driver, and the network device that it is compared with.
    "acenic",
    "e1000",
    // The card in the hands of our own driver.
    "tun",
    "vfio",
    "vfio_iommu_type1",
    "vfio_pci",
    // What the network is built with.
    "8021q",
    "bonding",
    "bridge",
    "dummy",
    "macvlan",
    "pktgen",
    "sch_netem",
    "veth",
    // The agent's channel, and randomness.
    "virtio_console",
    "virtio_net",
    "virtio_pci",
    "virtio_rng",
];

/// `depmod` reads all modules of a stock kernel in a few seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// Files of the kernel's list of modules that are taken along as they are.
const LISTS: &[&str] = &[
    "modules.builtin",
    "modules.builtin.modinfo",
    "modules.order",
];

/// Copies the modules of the unpacked kernel package `kernel`, and what they
/// need, to `stage`, and lists them there for `modprobe`. Returns the kernel's
/// release.
///
/// # Errors
/// When the package is no kernel's, or a module is not in it.
pub fn stage(kernel: &Path, stage: &Path, loader: &Loader) -> Result<String> {
    let base = [kernel.to_owned(), kernel.join("usr")]
        .into_iter()
        .find(|base| base.join("lib/modules").is_dir())
        .context("the kernel's package has no modules")?;
    let release = only_folder(&base.join("lib/modules"))?;
    depmod(&base, &release, loader)?;
    let from = base.join("lib/modules").join(&release);
    let to = stage.join("lib/modules").join(&release);
    let text = fs::read_to_string(from.join("modules.dep"))?;
    let builtin = fs::read_to_string(from.join("modules.builtin")).unwrap_or_default();
    for path in closure(&text, &builtin, WANTED)? {
        copy(&from.join(&path), &to.join(&path))?;
    }
    for list in LISTS {
        if from.join(list).is_file() {
            copy(&from.join(list), &to.join(list))?;
        }
    }
    depmod(stage, &release, loader)?;
    Ok(release)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn depmod(base: &Path, release: &str, loader: &Loader) -> Result<()> {
    let mut command = loader.command("depmod")?;
    process::output(command.arg("-b").arg(base).arg(release), LIMIT)?;
    Ok(())
}

fn only_folder(folder: &Path) -> Result<String> {
    let mut names = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        _ => bail!("not one kernel's modules in {}", folder.display()),
    }
}

/// The files of `wanted` and of all that they need, by `modules.dep`.
fn closure(dep: &str, builtin: &str, wanted: &[&str]) -> Result<BTreeSet<PathBuf>> {
    let mut needs: BTreeMap<String, (&str, Vec<&str>)> = BTreeMap::new();
    for line in dep.lines() {
        if let Some((path, others)) = line.split_once(':') {
            needs.insert(name(path), (path, others.split_whitespace().collect()));
        }
    }
    let builtin: BTreeSet<String> = builtin.lines().map(name).collect();
    let mut files = BTreeSet::new();
    for module in wanted {
        // `modules.dep` names all that a module needs, not only the next.
        match needs.get(*module) {
            Some((path, others)) => {
                files.insert(PathBuf::from(path));
                files.extend(others.iter().map(PathBuf::from));
            }
            None if builtin.contains(*module) => {}
            None => bail!("the kernel has no module {module}"),
        }
    }
    Ok(files)
}

/// A module's name from its file's: without folder and ending, dashes as in the
/// names that the kernel uses.
fn name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split(".ko").next().unwrap_or(file);
    stem.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/drivers/net/ethernet/alteon/acenic.ko:\n\
        kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz kernel/virt/lib/irqbypass.ko.xz\n\
        kernel/drivers/vfio/vfio.ko.xz:\n";

    #[test]
    fn a_module_brings_what_it_needs() {
        let files = closure(DEP, "", &["vfio_pci", "acenic"]).expect("all are there");
        let names: Vec<_> = files
            .iter()
            .map(|path| name(path.to_str().unwrap()))
            .collect();
        assert_eq!(names, ["acenic", "vfio_pci", "vfio", "irqbypass"]);
    }

    #[test]
    fn what_is_built_in_needs_no_file_and_what_is_nowhere_is_said() {
        let builtin = "kernel/drivers/virtio/virtio_pci.ko\n";
        assert!(
            closure(DEP, builtin, &["virtio_pci"])
                .expect("built in")
                .is_empty()
        );
        let error = closure(DEP, builtin, &["e1000"]).expect_err("nowhere");
        assert_eq!(error.to_string(), "the kernel has no module e1000");
    }
}
