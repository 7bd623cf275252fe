//! The files and settings with which a guest is started.

use super::{binaries, image};
use crate::qemu_build::{self, Target};
use crate::{paths, tools};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that a guest is made of, but for the card's firmware.
#[derive(Clone, Debug)]
pub struct GuestTools {
    /// `qemu-system-x86_64`.
    pub qemu: PathBuf,
    /// The library behind QEMU's device that is a client of a card.
    pub client: PathBuf,
    /// The kernel.
    pub kernel: PathBuf,
    /// The root file system, with our own programs in it.
    pub root: PathBuf,
}

/// The environment variables of [`GuestTools::from_environment`], in the order
/// of the fields.
pub const VARIABLES: [&str; 4] = [
    "TIGON_GUEST_QEMU",
    "TIGON_GUEST_CLIENT",
    "TIGON_GUEST_KERNEL",
    "TIGON_GUEST_ROOT",
];

impl GuestTools {
    /// Builds what is not built yet, saying what it does. What that needs has
    /// been seen to by [`crate::setup::ensure`].
    ///
    /// # Errors
    /// One clear line if something cannot be had.
    pub fn build() -> Result<GuestTools> {
        let qemu = qemu_build::ensure(&[Target::X86_64])?.x86_64;
        let client = tools::build_client()?;
        let image = image::ensure()?;
        let root = with_programs(&image.root)?;
        Ok(GuestTools {
            qemu,
            client,
            kernel: image.kernel,
            root,
        })
    }

    /// The tools that `cargo xtask test` has built, for the tests.
    ///
    /// # Errors
    /// Outside of it, where the variables that name them are not set.
    pub fn from_environment() -> Result<GuestTools> {
        let path = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .with_context(|| format!("{name} is not set: run the tests by cargo xtask test"))
        };
        let [qemu, client, kernel, root] = VARIABLES;
        Ok(GuestTools {
            qemu: path(qemu)?,
            client: path(client)?,
            kernel: path(kernel)?,
            root: path(root)?,
        })
    }

    /// The variables that hand these tools to tests.
    pub fn environment(&self) -> [(&'static str, &Path); 4] {
        let [qemu, client, kernel, root] = VARIABLES;
        [
            (qemu, &self.qemu),
            (client, &self.client),
            (kernel, &self.kernel),
            (root, &self.root),
        ]
    }
}

/// The root file system with our programs behind it, in the target folder:
/// the large part comes from the cache, and the small one may have changed.
fn with_programs(base: &Path) -> Result<PathBuf> {
    let mut bytes = fs::read(base).with_context(|| format!("cannot read {}", base.display()))?;
    bytes.extend(binaries::build()?);
    let path = paths::target().join("guest-root.cpio");
    // A guest that starts at the same time sees the old one or the new one.
    if !fs::read(&path).is_ok_and(|old| old == bytes) {
        let draft = path.with_extension(format!("{}.part", std::process::id()));
        fs::write(&draft, bytes)
            .and_then(|()| fs::rename(&draft, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}
