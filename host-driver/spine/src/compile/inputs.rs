//! What a container depends on besides its own crate: the build id is a hash of it.

use super::{CompileError, Compiler, read, system};
use crate::gate;
use sha2::{Digest, Sha256};
use spine_image::interface;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of what judges crates and compiles them. The wrapper, both manifests, the flags of
/// compiler and linker and the rules of the gate stand in them.
const SOURCES: [(&str, &str); 8] = [
    ("compile.rs", include_str!("../compile.rs")),
    ("compile/inputs.rs", include_str!("inputs.rs")),
    ("gate.rs", include_str!("../gate.rs")),
    ("gate/arguments.rs", include_str!("../gate/arguments.rs")),
    ("gate/interfaces.rs", include_str!("../gate/interfaces.rs")),
    ("gate/texts.rs", include_str!("../gate/texts.rs")),
    ("gate/walk.rs", include_str!("../gate/walk.rs")),
    ("object_file.rs", include_str!("../object_file.rs")),
];

/// Something that a container depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// What it is.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Input {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Input {
        Input {
            name: name.into(),
            bytes: bytes.into(),
        }
    }
}

/// The build id of these inputs.
pub fn id_of(inputs: &[Input]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for input in inputs {
        // Nothing moves from one to the next unnoticed.
        for part in [input.name.as_bytes(), &input.bytes] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    id
}

impl Compiler {
    /// Which compiler, API, flags and gate make containers: what is built with others is refused.
    ///
    /// # Errors
    /// [`CompileError::System`].
    pub fn build_id(&self) -> Result<[u8; 16], CompileError> {
        Ok(id_of(&self.inputs()?))
    }

    /// What the build id is a hash of.
    ///
    /// # Errors
    /// [`CompileError::System`].
    pub fn inputs(&self) -> Result<Vec<Input>, CompileError> {
        let version = Command::new(&self.rustc).arg("-vV").output();
        let version = version.map_err(system("start the compiler"))?;
        let mut inputs = vec![
            Input::new("compiler", version.stdout),
            Input::new("target", read(&self.target_description())?),
        ];
        let interfaces = interface::ALL.iter();
        inputs.extend(interfaces.map(|one| Input::new(one.name, one.hash().to_be_bytes())));
        let texts = self.root.join("firmware/spine/text");
        for (name, folder) in [("spine", self.api()), ("spine-text", texts)] {
            let sources = folder.join("src");
            for path in files_below(&sources)? {
                let inside = path.strip_prefix(&sources).unwrap_or(&path).display();
                inputs.push(Input::new(format!("{name}/{inside}"), read(&path)?));
            }
        }
        inputs.extend(SOURCES.map(|(name, text)| Input::new(name, text)));
        Ok(inputs)
    }
}

/// All files below a folder, in the order of their names.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, CompileError> {
    let mut files = Vec::new();
    for path in gate::sorted_entries(folder).map_err(system("read the API's folders"))? {
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
