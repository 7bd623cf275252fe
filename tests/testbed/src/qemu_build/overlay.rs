//! Applies this project's additions to QEMU's source: new files and a few patches.

use super::remove;
use crate::process;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `tree` is copied over the source, then `patches` are applied in the order
/// of their names.
pub struct Overlay {
    root: PathBuf,
    /// Paths below `tree`.
    files: Vec<PathBuf>,
    patches: Vec<PathBuf>,
}

impl Overlay {
    /// Lists the overlay in `root`.
    pub fn find(root: &Path) -> Result<Self> {
        let tree = root.join("tree");
        let files = list(&tree)?
            .iter()
            .map(|path| Ok(path.strip_prefix(&tree)?.to_path_buf()))
            .collect::<Result<_>>()?;
        Ok(Overlay {
            root: root.to_path_buf(),
            files,
            patches: list(&root.join("patches"))?,
        })
    }

    /// Feeds names and contents to a hash.
    pub fn hash(&self, hash: &mut Sha256) -> Result<()> {
        let tree = self.root.join("tree");
        let files = self.files.iter().map(|file| tree.join(file));
        for path in files.chain(self.patches.iter().cloned()) {
            let name = path.strip_prefix(&self.root)?;
            let data = fs::read(&path).with_context(|| format!("{}", path.display()))?;
            hash.update(name.as_os_str().as_encoded_bytes());
            hash.update((data.len() as u64).to_le_bytes());
            hash.update(&data);
        }
        Ok(())
    }

    /// Applies it to the QEMU source in `source`, which must be untouched.
    pub fn apply(&self, source: &Path) -> Result<()> {
        for file in &self.files {
            let to = source.join(file);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::copy(self.root.join("tree").join(file), &to)
                .with_context(|| format!("cannot copy {}", file.display()))?;
        }
        for patch in &self.patches {
            process::output(
                Command::new("patch")
                    .args(["-p1", "--fuzz=0", "--silent", "--forward", "--directory"])
                    .arg(source)
                    .arg("--input")
                    .arg(patch),
                std::time::Duration::from_secs(60),
            )
            .with_context(|| {
                let name = patch.file_name().unwrap_or_default().to_string_lossy();
                format!("{name} does not fit this QEMU source")
            })?;
        }
        Ok(())
    }
}

/// All files below a folder, sorted.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a source folder so that the overlay does not touch the original.
pub fn copy_source(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    process::output(
        Command::new("cp").args(["-R"]).arg(from).arg(to),
        std::time::Duration::from_secs(600),
    )
    .with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(root: &Path) -> Result<Vec<u8>> {
        let mut hash = Sha256::new();
        Overlay::find(root)?.hash(&mut hash)?;
        Ok(hash.finalize().to_vec())
    }

    #[test]
    fn every_file_and_patch_counts_for_the_hash() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        fs::create_dir_all(root.join("tree/hw"))?;
        fs::create_dir_all(root.join("patches"))?;
        fs::write(root.join("tree/hw/a.c"), "int a;")?;
        fs::write(root.join("patches/1.patch"), "patch")?;
        let first = digest(root)?;
        assert_eq!(first, digest(root)?);
        fs::write(root.join("tree/hw/a.c"), "int b;")?;
        let second = digest(root)?;
        assert_ne!(first, second);
        fs::rename(root.join("patches/1.patch"), root.join("patches/2.patch"))?;
        assert_ne!(second, digest(root)?);
        Ok(())
    }

    #[test]
    fn the_overlay_is_copied_and_its_patches_are_applied() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let (root, source) = (folder.path().join("overlay"), folder.path().join("source"));
        fs::create_dir_all(root.join("tree/hw/new"))?;
        fs::create_dir_all(root.join("patches"))?;
        fs::create_dir_all(&source)?;
        fs::write(source.join("list"), "one\n")?;
        fs::write(root.join("tree/hw/new/a.c"), "int a;")?;
        let patch = "Why.\n\n--- a/list\n+++ b/list\n@@ -1 +1,2 @@\n one\n+two\n";
        fs::write(root.join("patches/1.patch"), patch)?;
        Overlay::find(&root)?.apply(&source)?;
        assert_eq!(fs::read_to_string(source.join("hw/new/a.c"))?, "int a;");
        assert_eq!(fs::read_to_string(source.join("list"))?, "one\ntwo\n");

        fs::write(source.join("list"), "something else\n")?;
        let error = Overlay::find(&root)?.apply(&source).unwrap_err();
        assert_eq!(error.to_string(), "1.patch does not fit this QEMU source");
        Ok(())
    }
}
