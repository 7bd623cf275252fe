//! Files in payload memory: a file is read from disk once and then sent from there.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use dusi::{DusiError, Region, Ual};

/// Files that are kept.
pub(crate) struct Cache {
    root: PathBuf,
    files: BTreeMap<PathBuf, Region>,
}

impl Cache {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: BTreeMap::new(),
        }
    }

    /// The file of a request's path; none if there is none below the root, or no memory for it.
    pub(crate) fn find(&mut self, ual: &mut Ual, path: &str) -> Result<Option<&Region>, DusiError> {
        let Some(path) = below(path) else {
            return Ok(None);
        };
        if !self.files.contains_key(&path) {
            let Some(bytes) = load(&self.root, &path) else {
                return Ok(None);
            };
            let Ok(region) = ual.register(bytes.len()) else {
                return Ok(None);
            };
            ual.write(&region, &bytes)?;
            self.files.insert(path.clone(), region);
        }
        Ok(self.files.get(&path))
    }
}

/// A regular file whose real place, links resolved, is below the root.
pub(crate) fn load(root: &Path, path: &Path) -> Option<Vec<u8>> {
    let root = root.canonicalize().ok()?;
    let place = root.join(path).canonicalize().ok()?;
    if !place.starts_with(&root) || !place.is_file() {
        return None;
    }
    std::fs::read(place).ok()
}

/// A request's path relative to the root; none if it names a parent. The root itself stands for
/// its `index.html`.
pub(crate) fn below(path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix('/')?);
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let named = if path.as_os_str().is_empty() {
        Path::new("index.html")
    } else {
        path
    };
    plain.then(|| named.to_owned())
}
