//! Tests a clone that was copied or moved with the programs built in it: the old programs work on
//! the copy.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// As much of a copy as it takes to look like one, with a variant that only it has.
struct Moved(TempDir);

const VARIANT: &str = "\n[[bin]]\nname = \"only-in-the-copy\"\n\
    required-features = [\"only-in-the-copy\"]\n";

impl Moved {
    fn new() -> Moved {
        let folder = tempfile::tempdir().expect("a folder");
        let root = testbed::paths::root();
        for name in ["Cargo.toml", "firmware/Cargo.toml", "xtask/Cargo.toml"] {
            let to = folder.path().join(name);
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("room");
            let text = std::fs::read_to_string(root.join(name)).expect("a manifest");
            let feature = "[features]\nonly-in-the-copy = [\"parallel\"]\n";
            let text = if name == "firmware/Cargo.toml" {
                text.replacen("[features]\n", feature, 1) + VARIANT
            } else {
                text
            };
            std::fs::write(to, text).expect("room");
        }
        std::fs::create_dir_all(folder.path().join("firmware/src/bin")).expect("room");
        Moved(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program that was built here, run there, as by Cargo if `cargo` is its folder.
    fn xtask(&self, words: &[&str], cargo: Option<&Path>) -> Command {
        let built = std::env::var_os("CARGO_BIN_EXE_xtask").expect("cargo test");
        let mut command = Command::new(built);
        command.args(words).current_dir(self.0.path());
        for name in ["TIGON_ROOT", "TIGON_VARIANT", "CARGO_MANIFEST_DIR"] {
            command.env_remove(name);
        }
        if let Some(cargo) = cargo {
            command.env("CARGO_MANIFEST_DIR", cargo);
        }
        command
    }
}

fn said(command: &mut Command) -> String {
    let Output { stdout, stderr, .. } = command.output().expect("it starts");
    [stdout, stderr]
        .map(|said| String::from_utf8_lossy(&said).into_owned())
        .concat()
}

/// What was added to the copy is there, and not what the clone has in which it was built.
#[test]
fn it_knows_the_variants_of_the_copy() {
    let moved = Moved::new();
    for cargo in [None, Some(moved.path("xtask"))] {
        let nope = ["--variant", "nope", "build"];
        let said = said(&mut moved.xtask(&nope, cargo.as_deref()));
        assert!(
            said.contains("possible values") && said.contains("only-in-the-copy"),
            "{said}"
        );
    }
}

/// `new-variant` edits the copy. Its build is not wanted here: in place of Cargo there is a
/// program that keeps what it was given to build.
#[test]
fn a_new_variant_is_made_in_the_copy() {
    let moved = Moved::new();
    let ours = testbed::paths::root().join("firmware/Cargo.toml");
    let before = std::fs::read_to_string(&ours).expect("the manifest");
    let cargo = moved.path("cargo");
    let script =
        "#!/bin/sh\n{ pwd; cat firmware/Cargo.toml; ls firmware/src/bin; } > built\nexit 1\n";
    std::fs::write(&cargo, script).expect("room");
    std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let mut command = moved.xtask(&["new-variant", "moved-one"], None);
    let said = said(command.env("CARGO", &cargo));
    assert!(said.contains("moved-one was taken back"), "{said}");
    let built = std::fs::read_to_string(moved.path("built")).expect("it was to be built");
    let root = moved.0.path().canonicalize().expect("the copy");
    assert!(
        built.starts_with(&format!("{}\n", root.display())),
        "{built}"
    );
    assert!(built.contains("name = \"moved-one\""), "{built}");
    assert!(built.contains("moved-one.rs"), "{built}");
    let after = std::fs::read_to_string(&ours).expect("the manifest");
    assert_eq!(
        before, after,
        "the clone in which it was built is as it was"
    );
}

#[test]
fn which_one_is_meant_must_be_clear() {
    let moved = Moved::new();
    let ours = testbed::paths::root().join("xtask");
    let two = said(&mut moved.xtask(&["build"], Some(&ours)));
    assert!(two.starts_with("error: which checkout?"), "{two}");
    let nowhere = tempfile::tempdir().expect("a folder");
    let none = said(moved.xtask(&["build"], None).current_dir(nowhere.path()));
    assert!(none.contains("is in no checkout of tigon-rs"), "{none}");
    assert_eq!(none.lines().count(), 1, "{none}");
}

/// What a program is told when it is compiled stays when the clone is moved: no program and
/// no test may look for files there.
#[test]
fn no_source_remembers_where_it_was_compiled() {
    let root = testbed::paths::root();
    let mut list = Command::new("git");
    let folder = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
    let program = concat!("env!(\"CARGO_", "BIN_EXE");
    let words = [
        "grep",
        "--untracked",
        "-lF",
        "-e",
        folder,
        "-e",
        program,
        "--",
        "*.rs",
    ];
    let found = list.args(words).current_dir(root).output().expect("git");
    // Nothing found is status 1.
    let names = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(1), "{names}");
}
