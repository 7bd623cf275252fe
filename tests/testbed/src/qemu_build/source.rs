//! Gets QEMU's source: a folder or tarball that the user names, or Debian's.
//!
//! Debian's comes from the source index of the release that has QEMU 10.0, with a private apt
//! configuration, so nothing else on the machine changes. The mirror is the one that the machine's
//! apt uses.

use super::overlay::copy_source;
use super::remove;
use crate::{interrupt, process};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Environment variable: a QEMU 10.0 source folder or tarball to use.
pub const SOURCE_VARIABLE: &str = "TIGON_QEMU_SRC";
/// Environment variable: the Debian mirror to fetch the source from.
pub const MIRROR_VARIABLE: &str = "TIGON_DEBIAN_MIRROR";

/// The Debian release that has QEMU 10.0.
const SUITE: &str = "trixie";
/// What the overlay is made for.
const SERIES: &str = "10.0.";

const FETCH_LIMIT: Duration = Duration::from_secs(1800);

/// A source that is on this machine.
pub struct Source {
    path: PathBuf,
    /// Equal for equal sources; part of the name of a build.
    pub identity: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl Source {
    /// Puts the untouched source into the folder `to`.
    pub fn unpack(&self, to: &Path) -> Result<()> {
        if self.path.is_dir() {
            copy_source(&self.path, to)?;
        } else {
            remove(to)?;
            fs::create_dir_all(to)?;
            process::output(
                Command::new("tar")
                    .args(["--strip-components=1", "-C"])
                    .arg(to)
                    .arg("-xf")
                    .arg(&self.path),
                FETCH_LIMIT,
            )
            .with_context(|| format!("cannot unpack {}", self.path.display()))?;
        }
        let version =
            version(to).with_context(|| format!("{} is not a QEMU source", self.path.display()))?;
        if !version.starts_with(SERIES) {
            bail!(
                "{} is QEMU {version}, but {SERIES}x is needed",
                self.path.display()
            );
        }
        Ok(())
    }
}

/// The version that a source folder states.
fn version(folder: &Path) -> Result<String> {
    Ok(fs::read_to_string(folder.join("VERSION"))?
        .trim()
        .to_owned())
}

/// The source without asking anyone: the user's, or one fetched before.
pub fn known(cache: &Path) -> Result<Option<Source>> {
    if let Some(path) = std::env::var_os(SOURCE_VARIABLE) {
        return named(PathBuf::from(path)).map(Some);
    }
    let folder = cache.join(format!("source-{SUITE}"));
    Ok(tarball(&folder).map(|path| Source {
        identity: file_name(&path),
        path,
    }))
}

/// What the user named.
fn named(path: PathBuf) -> Result<Source> {
    let data = fs::metadata(&path)
        .with_context(|| format!("{SOURCE_VARIABLE} names {}", path.display()))?;
    let identity = if data.is_dir() {
        // The folder may change: its version and place stand for it.
        let version =
            version(&path).with_context(|| format!("{} is not a QEMU source", path.display()))?;
        format!("{} in {}", version, path.display())
    } else {
        format!("{} of {} bytes", file_name(&path), data.len())
    };
    Ok(Source { path, identity })
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The release tarball in a folder that `apt-get source` has filled.
fn tarball(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let is_release = |path: &PathBuf| {
        let name = file_name(path);
        name.starts_with("qemu_") && name.contains(".orig.tar")
    };
    entries.flatten().map(|entry| entry.path()).find(is_release)
}

/// Fetches Debian's newest source of the series into the cache.
pub fn fetch(cache: &Path) -> Result<Source> {
    let advice = format!("or name a QEMU {SERIES}x source with {SOURCE_VARIABLE}");
    if !process::exists("apt-get") {
        bail!(
            "no apt-get here to fetch QEMU's source with; name a QEMU {SERIES}x source with {SOURCE_VARIABLE}"
        );
    }
    let archive = Archive::find().with_context(|| {
        format!("no Debian mirror is known; name one with {MIRROR_VARIABLE}, {advice}")
    })?;
    println!("qemu: fetching the source of QEMU {SERIES}x");
    let work = cache.join("fetch");
    remove(&work)?;
    for folder in ["lists/partial", "archives/partial", "sources", "result"] {
        fs::create_dir_all(work.join(folder))?;
    }
    fs::write(work.join("sources/qemu.sources"), archive.entry())?;
    let apt = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new("apt-get");
        command.args(private_apt(&work)).args(arguments);
        let done = process::collect(command.current_dir(work.join("result")), FETCH_LIMIT)?;
        if done.status.success() {
            return Ok(());
        }
        // The rest of what it says follows from the first error.
        let reason = done.stderr.lines().find(|line| line.starts_with("E: "));
        bail!("apt-get: {}", reason.unwrap_or("E: failed").split_at(3).1)
    };
    apt(&["update", "--error-on=any"])
        .and_then(|_| apt(&["source", "--download-only", "qemu"]))
        .or_else(|error| {
            interrupt::check()?;
            Err(error).with_context(|| {
                format!("QEMU's source is not reachable; try again, set {MIRROR_VARIABLE} {advice}")
            })
        })?;
    let result = work.join("result");
    let found = tarball(&result).context("apt-get fetched no release tarball")?;
    let version = file_name(&found);
    if !version.starts_with(&format!("qemu_{SERIES}")) {
        bail!(
            "{SUITE} now has {version}, not QEMU {SERIES}x; name a source with {SOURCE_VARIABLE}"
        );
    }
    let kept = cache.join(format!("source-{SUITE}"));
    remove(&kept)?;
    fs::rename(&result, &kept)?;
    remove(&work)?;
    known(cache)?.context("the fetched source has vanished")
}

/// Options that make apt-get use `work` instead of the system's state.
fn private_apt(work: &Path) -> Vec<OsString> {
    let mut options = Vec::new();
    let mut option = |name: &str, value: OsString| {
        let mut setting = OsString::from(format!("{name}="));
        setting.push(value);
        options.extend([OsString::from("-o"), setting]);
    };
    option("Dir::State::lists", work.join("lists").into());
    option("Dir::Etc::sourcelist", "/dev/null".into());
    option("Dir::Etc::sourceparts", work.join("sources").into());
    option("Dir::Cache", work.into());
    option("Dir::Cache::archives", work.join("archives").into());
    // The folder is the user's own; the sandbox user could not write there.
    option("APT::Sandbox::User", "root".into());
    options
}

/// A Debian archive as the machine's own apt knows it.
#[derive(Debug, PartialEq, Eq)]
struct Archive {
    uri: String,
    signed_by: Option<String>,
}

impl Archive {
    fn find() -> Option<Self> {
        let archives = configured(Path::new("/etc/apt"));
        match std::env::var(MIRROR_VARIABLE) {
            Ok(uri) => Some(Archive {
                signed_by: archives.into_iter().next().and_then(|a| a.signed_by),
                uri,
            }),
            Err(_) => archives.into_iter().next(),
        }
    }

    /// The apt source entry for the sources of the wanted release.
    fn entry(&self) -> String {
        let signed_by = self
            .signed_by
            .as_ref()
            .map_or(String::new(), |key| format!("Signed-By: {key}\n"));
        format!(
            "Types: deb-src\nURIs: {}\nSuites: {SUITE}\nComponents: main\n{signed_by}",
            self.uri
        )
    }
}

/// The Debian archives in the configuration of apt in `folder`.
fn configured(folder: &Path) -> Vec<Archive> {
    let parts = fs::read_dir(folder.join("sources.list.d"));
    let mut files: Vec<PathBuf> = parts
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    files.push(folder.join("sources.list"));
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap_or_default();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => found.extend(deb822(&text)),
            Some("list") => found.extend(text.lines().filter_map(one_line)),
            _ => {}
        }
    }
    // By convention the main archive's path ends so, on every mirror; the
    // security archive's and other vendors' do not.
    found.retain(|archive| archive.uri.trim_end_matches('/').ends_with("/debian"));
    found
}

/// `deb [signed-by=KEY] URI SUITE COMPONENT...`
fn one_line(line: &str) -> Option<Archive> {
    let rest = line.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix("-src").unwrap_or(rest);
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let key = |option: &str| option.strip_prefix("signed-by=").map(str::to_owned);
    Some(Archive {
        uri: rest.split_whitespace().next()?.to_owned(),
        signed_by: options.split_whitespace().find_map(key),
    })
}

/// Stanzas of `Field: value` lines, parted by empty lines.
fn deb822(text: &str) -> Vec<Archive> {
    let stanza = |stanza: &str| {
        let field = |name: &str| {
            stanza.lines().find_map(|line| {
                let (field, value) = line.split_once(':')?;
                field
                    .eq_ignore_ascii_case(name)
                    .then(|| value.trim().to_owned())
            })
        };
        if field("Enabled").is_some_and(|enabled| enabled == "no") {
            return None;
        }
        Some(Archive {
            uri: field("URIs")?.split_whitespace().next()?.to_owned(),
            // A key in the file itself has an empty first line.
            signed_by: field("Signed-By").filter(|key| !key.is_empty()),
        })
    };
    text.split("\n\n").filter_map(stanza).collect()
}

#[cfg(test)]
mod tests;
