//! The trusted compiler's driver: it compiles a crate to a container.
//!
//! It checks the author's manifest but does not use it. Its own manifest forbids `unsafe_code` and
//! has no build script, no features and no dependency but the API. A generated wrapper of three
//! lines calls `init` and defines the panic handler. The compiler and the flags are the firmware's,
//! with overflow checks; the result is one object file.

mod inputs;

pub use inputs::{Input, id_of};

use crate::gate::{self, GateError};
use crate::object_file::{self, ObjectError};
use spine_image::{Builder, Grade, interface};
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// The target, which is the stem of its description in `linker/`.
const TARGET: &str = "mips-tigon2-none";

/// Why a crate becomes no container.
#[derive(Debug, Error)]
pub enum CompileError {
    /// A file cannot be read or written, or a program not be started.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What went wrong.
        error: std::io::Error,
    },
    /// The crate's manifest is none.
    #[error("the extension's manifest: {0}")]
    Manifest(#[from] toml::de::Error),
    /// The crate's manifest asks for what extensions do not have.
    #[error("the extension's manifest has {0}")]
    NotAllowed(String),
    /// Its sources are refused.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The compiler refuses them.
    #[error("the extension does not compile:\n{0}")]
    Compiler(String),
    /// The linker does.
    #[error("the extension's objects do not link:\n{0}")]
    Linker(String),
    /// Its object file is refused.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Compiler, linker and where things are.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The compiler, which has the source of its library.
    pub rustc: PathBuf,
    /// The linker.
    pub linker: PathBuf,
    /// The checkout: the target's description and the API are there.
    pub root: PathBuf,
    /// A folder for what is built.
    pub target: PathBuf,
    /// Words of the table that an extension has for the host to write (`spine::table_words`), if not
    /// as many as it says.
    pub table: Option<u32>,
}

/// Parts of a manifest that say nothing about the code.
const HARMLESS: [&str; 6] = [
    "package",
    "lints",
    "dependencies",
    "dev-dependencies",
    "workspace",
    "lib",
];

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> CompileError {
    let what = what.into();
    move |error| CompileError::System { what, error }
}

fn read(path: &Path) -> Result<String, CompileError> {
    std::fs::read_to_string(path).map_err(system(format!("read {}", path.display())))
}

/// Judges a manifest; returns the package's name.
///
/// # Errors
/// [`CompileError::NotAllowed`], [`CompileError::Manifest`].
pub fn judge_manifest(text: &str) -> Result<String, CompileError> {
    let manifest: toml::Table = toml::from_str(text)?;
    let not_allowed = |what: String| Err(CompileError::NotAllowed(what));
    for key in manifest.keys() {
        if !HARMLESS.contains(&key.as_str()) {
            return not_allowed(format!("[{key}]"));
        }
    }
    let table = |name: &str| manifest.get(name).and_then(toml::Value::as_table);
    for name in table("dependencies")
        .into_iter()
        .flat_map(toml::Table::keys)
    {
        if name != "spine" {
            return not_allowed(format!("the dependency {name}"));
        }
    }
    let package = table("package").cloned().unwrap_or_default();
    for key in ["build", "links", "metadata", "autolib"] {
        if package.contains_key(key) {
            return not_allowed(format!("package.{key}"));
        }
    }
    if let Some(key) = table("lib").and_then(|lib| lib.keys().next().cloned()) {
        return not_allowed(format!("lib.{key}"));
    }
    let name = package.get("name").and_then(toml::Value::as_str);
    match name {
        Some(name) => Ok(name.to_owned()),
        None => not_allowed("no name".to_owned()),
    }
}

impl Compiler {
    fn target_description(&self) -> PathBuf {
        self.root.join("linker").join(format!("{TARGET}.json"))
    }

    fn api(&self) -> PathBuf {
        self.root.join("firmware/spine/api")
    }

    /// Judges and compiles the crate in a folder.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn build(&self, folder: &Path) -> Result<Builder, CompileError> {
        let manifest = folder.join("Cargo.toml");
        let name = judge_manifest(&read(&manifest)?)?;
        if folder.join("build.rs").exists() {
            return Err(CompileError::NotAllowed("a build script".to_owned()));
        }
        let judged = gate::judge_folder(&folder.join("src"))?;
        let mut builder = self.compile(&name, folder)?;
        for name in &judged.interfaces.imports {
            builder.import(name, interface::procedure_hash(name));
        }
        for name in &judged.interfaces.exports {
            builder.export(name, interface::procedure_hash(name));
        }
        for text in judged.texts.iter() {
            builder.text(text);
        }
        Ok(builder)
    }

    /// Compiles without judging the sources: for tests of what stands behind the gate.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn build_ungated(&self, name: &str, folder: &Path) -> Result<Builder, CompileError> {
        self.compile(name, folder)
    }

    fn compile(&self, name: &str, folder: &Path) -> Result<Builder, CompileError> {
        let folder = std::path::absolute(folder).map_err(system("find the extension"))?;
        let made = tempfile::tempdir().map_err(system("make a folder"))?;
        let write = |path: &str, text: String| {
            let path = made.path().join(path);
            let parent = path.parent().unwrap_or(made.path());
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(system(format!("write {}", path.display())))
        };
        let api = self.api();
        write("extension/Cargo.toml", manifest_of_extension(&folder, &api))?;
        write("Cargo.toml", manifest_of_object(&api.display().to_string()))?;
        write("src/lib.rs", WRAPPER.to_owned())?;
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(made.path())
            .args(["build", "--release", "--quiet", "--target"])
            .arg(self.target_description())
            .args(["-Zbuild-std=core,compiler_builtins", "-Zjson-target-spec"])
            .arg("--target-dir")
            .arg(&self.target)
            .env("RUSTC", &self.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Cjump-tables=no");
        for setting in PROFILE {
            cargo.args(["--config", &format!("profile.release.{setting}")]);
        }
        for (variable, _) in std::env::vars_os() {
            if variable.to_str().is_none_or(changes_code) {
                cargo.env_remove(variable);
            }
        }
        match self.table {
            Some(words) => cargo.env("SPINE_TABLE", words.to_string()),
            None => cargo.env_remove("SPINE_TABLE"),
        };
        let output = cargo.output().map_err(system("start cargo"))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(CompileError::Compiler(words));
        }
        let library = self.target.join(TARGET).join("release/libspine_object.a");
        let object = made.path().join("extension.o");
        let output = Command::new(&self.linker)
            .args(["-r", "-m", "elf32btsmip", "--gc-sections"])
            .args(["-u", "spine_init", "-e", "spine_init", "-o"])
            .args([&object, &library])
            .output()
            .map_err(system("start the linker"))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(CompileError::Linker(words));
        }
        let bytes = std::fs::read(&object).map_err(system("read the object file"))?;
        let id = self.build_id()?;
        Ok(object_file::container(name, Grade::Language, id, &bytes)?)
    }
}

/// The profile. On the command line it goes before those of cargo's configuration.
const PROFILE: [&str; 6] = [
    "opt-level=\"s\"",
    "lto=\"fat\"",
    "codegen-units=1",
    "panic=\"abort\"",
    "overflow-checks=true",
    "debug-assertions=false",
];

/// Whether a variable of the environment may have cargo make other code.
fn changes_code(variable: &str) -> bool {
    const FAMILIES: [&str; 4] = [
        "CARGO_PROFILE_",
        "CARGO_BUILD_",
        "CARGO_TARGET_",
        "CARGO_UNSTABLE_",
    ];
    const OTHERS: [&str; 4] = [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTUP_TOOLCHAIN",
    ];
    OTHERS.contains(&variable) || FAMILIES.iter().any(|family| variable.starts_with(family))
}

/// What the wrapper is.
const WRAPPER: &str = "\
#![no_std]
#[unsafe(no_mangle)]
pub extern \"C\" fn spine_init() {
    spine::wrapper::begin(extension::init)
}
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    spine::wrapper::panicked()
}
";

fn manifest_of_extension(folder: &Path, api: &Path) -> String {
    format!(
        "[package]\nname = \"extension\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = {:?}\n\
         [dependencies]\nspine = {{ path = {:?} }}\n\
         [lints.rust]\nunsafe_code = \"forbid\"\n",
        folder.join("src/lib.rs").display().to_string(),
        api.display().to_string(),
    )
}

fn manifest_of_object(api: &str) -> String {
    format!(
        "[workspace]\nmembers = [\"extension\"]\n\
         [package]\nname = \"spine-object\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"staticlib\"]\n\
         [dependencies]\nspine = {{ path = {api:?} }}\nextension = {{ path = \"extension\" }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::changes_code;

    #[test]
    fn no_variable_of_the_environment_changes_code() {
        for variable in [
            "CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_TARGET_MIPS_TIGON2_NONE_RUSTFLAGS",
            "RUSTC_WRAPPER",
        ] {
            assert!(changes_code(variable), "{variable}");
        }
        for variable in ["PATH", "CARGO_HOME", "CARGO_NET_OFFLINE", "HTTP_PROXY"] {
            assert!(!changes_code(variable), "{variable}");
        }
    }
}
