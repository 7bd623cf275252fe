//! Downloads the distribution's packages that the guest is made of, without installing them.
//!
//! ```text
//! <cache>/guest/packages-<hash of the list>/*.deb
//! ```
//!
//! Downloaded packages are kept for good; to get newer ones, remove the folder.

use super::remove;
use crate::{interrupt, process, setup};
use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Environment variable: the kernel's package, by its name or as a `.deb` file.
pub const KERNEL_VARIABLE: &str = "TIGON_GUEST_KERNEL_PACKAGE";

/// The distribution's stock kernel.
const KERNEL: &str = "linux-image-amd64";

/// Whose programs are in the guest. Their libraries come by themselves.
const PROGRAMS: &[&str] = &[
    "bash",
    "busybox-static",
    "dash",
    "ethtool",
    "iperf3",
    "iproute2",
    "iputils-ping",
    "kmod",
    "tcpdump",
];

const QUERY_LIMIT: Duration = Duration::from_secs(120);
const FETCH_LIMIT: Duration = Duration::from_secs(1200);

/// Packages on this machine.
#[derive(Debug)]
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Those in the cache, fetched if they are not there.
    ///
    /// # Errors
    /// One clear line if they cannot be had.
    pub fn ensure(cache: &Path) -> Result<Packages> {
        let kernel = Kernel::requested()?;
        let mut hash = Sha256::new();
        for word in PROGRAMS
            .iter()
            .copied()
            .chain([kernel.identity()?.as_str()])
        {
            hash.update(word);
            hash.update([0]);
        }
        let name = format!("packages-{}", &HEXLOWER.encode(&hash.finalize())[..16]);
        let folder = cache.join(name);
        if !folder.is_dir() {
            fetch(&kernel, &folder)?;
        }
        Ok(Packages { folder })
    }

    /// What stands for these packages in the name of what is made of them.
    pub fn identity(&self) -> Result<String> {
        let names = self.files()?.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        });
        Ok(names.collect::<Vec<_>>().join("\n"))
    }

    /// Unpacks the kernel's package.
    pub fn unpack_kernel(&self, to: &Path) -> Result<()> {
        self.unpack(to, |name| name.starts_with("linux-image-"))
    }

    /// Unpacks all the others, into one folder.
    pub fn unpack_programs(&self, to: &Path) -> Result<()> {
        self.unpack(to, |name| !name.starts_with("linux-image-"))
    }

    fn unpack(&self, to: &Path, wanted: impl Fn(&str) -> bool) -> Result<()> {
        for path in self.files()? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if wanted(&name) {
                let mut command = Command::new("dpkg-deb");
                command.arg("--extract").arg(&path).arg(to);
                process::output(&mut command, FETCH_LIMIT)?;
            }
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.folder)
            .with_context(|| format!("cannot read {}", self.folder.display()))?;
        let mut files: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .collect();
        files.sort();
        Ok(files)
    }
}

/// Which kernel is wished for.
#[derive(Debug, PartialEq, Eq)]
enum Kernel {
    Package(String),
    File(PathBuf),
}

impl Kernel {
    fn requested() -> Result<Kernel> {
        match std::env::var(KERNEL_VARIABLE) {
            Ok(requested) => Kernel::parse(&requested),
            Err(_) => Ok(Kernel::Package(KERNEL.into())),
        }
    }

    fn parse(requested: &str) -> Result<Kernel> {
        if requested.ends_with(".deb") {
            return Ok(Kernel::File(PathBuf::from(requested)));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if !requested.starts_with("linux-image-") || !requested.chars().all(fits) {
            bail!(
                "{KERNEL_VARIABLE} names neither a linux-image package nor a .deb file: {requested:?}"
            );
        }
        Ok(Kernel::Package(requested.to_owned()))
    }

    fn identity(&self) -> Result<String> {
        Ok(match self {
            Kernel::Package(name) => name.clone(),
            Kernel::File(path) => {
                let data = fs::metadata(path)
                    .with_context(|| format!("{KERNEL_VARIABLE} names {}", path.display()))?;
                format!("{} {} {:?}", path.display(), data.len(), data.modified()?)
            }
        })
    }
}

/// Downloads everything into `folder`, which exists only when all is there.
fn fetch(kernel: &Kernel, folder: &Path) -> Result<()> {
    if !process::exists("apt-get") || !process::exists("dpkg-deb") {
        bail!("the guest is made of Debian's packages, and there is no apt-get or dpkg-deb here");
    }
    println!("guest: fetching the kernel and the programs of the guest");
    let work = folder.with_extension("part");
    remove(&work)?;
    fs::create_dir_all(&work)?;
    download(kernel, &work).or_else(|error| {
        interrupt::check()?;
        // The lists may be missing or out of date; it is tried once more with new ones.
        setup::refresh().map_err(|_| error)?;
        remove(&work)?;
        fs::create_dir_all(&work)?;
        download(kernel, &work)
    })?;
    fs::rename(&work, folder).with_context(|| format!("cannot keep {}", folder.display()))
}

fn download(kernel: &Kernel, work: &Path) -> Result<()> {
    let mut names = libraries(&depends(PROGRAMS, true)?);
    names.extend(PROGRAMS.iter().map(|name| (*name).to_owned()));
    match kernel {
        Kernel::Package(name) => names.push(real_kernel(name)?),
        Kernel::File(path) => {
            let to = work.join(format!("linux-image-{}", file_name(path)));
            fs::copy(path, to).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    let mut command = Command::new("apt-get");
    // The folder is the user's own; the sandbox user could not write there.
    command
        .args(["download", "-o", "APT::Sandbox::User=root"])
        .args(names)
        .current_dir(work);
    let done = process::collect(&mut command, FETCH_LIMIT)?;
    if !done.status.success() {
        let reason = done
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("E: "));
        bail!("apt-get download: {}", reason.unwrap_or("failed"));
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What packages depend on, as `apt-cache` prints it.
fn depends(packages: &[&str], recurse: bool) -> Result<String> {
    let mut command = Command::new("apt-cache");
    command.args(["depends", "--important"]);
    if recurse {
        command.arg("--recurse");
    }
    process::output(command.args(packages), QUERY_LIMIT)
}

/// Of all that the programs depend on, the shared libraries. The rest is for
/// installing and configuring, which is not done.
fn libraries(depends: &str) -> Vec<String> {
    let is_library = |name: &&str| {
        (name.starts_with("lib") || *name == "zlib1g")
            && !name.contains("perl")
            && !name.ends_with("-bin")
    };
    let mut names: Vec<String> = depends
        .lines()
        .filter(|line| !line.starts_with([' ', '|', '<']))
        // Of other architectures than the machine's, with a colon.
        .filter(|name| !name.contains(':'))
        .filter(is_library)
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The package that a kernel's metapackage stands for, or the package itself.
fn real_kernel(name: &str) -> Result<String> {
    Ok(kernel_behind(&depends(&[name], false)?).unwrap_or_else(|| name.to_owned()))
}

fn kernel_behind(depends: &str) -> Option<String> {
    let depended = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    depended
        .map(str::trim)
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_libraries_of_what_the_programs_need_are_fetched() {
        let said = "iperf3\n  PreDepends: init-system-helpers\n  Depends: libc6\n |Depends: debconf\n\
            libc6\n  Depends: libgcc-s1\nlibgcc-s1\n<debconf-2.0>\n  cdebconf\nperl-base\n\
            libperl5.36\nlibpam-modules-bin\nzlib1g\nlibc6:i386\nlibc6\n";
        assert_eq!(libraries(said), ["libc6", "libgcc-s1", "zlib1g"]);
    }

    #[test]
    fn the_metapackage_leads_to_the_kernel() {
        let said = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n";
        assert_eq!(
            kernel_behind(said).as_deref(),
            Some("linux-image-6.1.0-56-amd64")
        );
        let real = "linux-image-6.1.0-56-amd64\n  Depends: kmod\n  Depends: linux-base\n";
        assert_eq!(kernel_behind(real), None);
    }

    #[test]
    fn another_kernel_is_named_by_package_or_by_file() {
        assert_eq!(
            Kernel::parse("linux-image-cloud-amd64").expect("a package"),
            Kernel::Package("linux-image-cloud-amd64".into())
        );
        assert_eq!(
            Kernel::parse("./kernel.deb").expect("a file"),
            Kernel::File("./kernel.deb".into())
        );
        for wrong in ["", "vim", "linux-image-x y", "linux-image-$(id)"] {
            let error = Kernel::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(KERNEL_VARIABLE), "{error}");
        }
        let absent = Kernel::File("/nonexistent/kernel.deb".into());
        assert!(absent.identity().is_err());
    }
}
