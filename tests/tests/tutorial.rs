//! Tests `docs/tutorial.md` and `docs/spine-tutorial.md`: runs their commands in a copy of the
//! sources and compares their output with the page.
//!
//! In a block `console`, lines that begin with `$ ` are commands, lines that begin with `# ` are
//! input for the previous command, and all others are expected output, where `[..]` matches any
//! text in a line and `...` any lines. Blocks `diff NAME` and `rust NAME` are files of that name.

use integration_tests::tutorial::{Block, Step, blocks};
use snapbox::assert_data_eq;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testbed::net::namespace;

/// So that what is typed runs what `cargo xtask test` has built.
const PRELUDE: &str = "exec 2>&1\n\
    cargo() { if [ \"$1\" = xtask ]; then shift; \"$TIGON_XTASK\" \"$@\"; else command cargo \"$@\"; fi; }\n";

/// A copy of the sources under Git's eye, as a clone is.
struct Checkout {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Checkout {
    fn new() -> Checkout {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("tigon-rs");
        testbed::paths::copy_sources(&root).expect("a copy");
        testbed::paths::share_target(&root).expect("room");
        let clone = Checkout {
            _folder: folder,
            root,
        };
        for words in ["init -q", "add -A", "commit -q -m clone"] {
            let mut git = Command::new("git");
            git.args([
                "-c",
                "user.name=reader",
                "-c",
                "user.email=reader@example.org",
            ]);
            git.args(words.split(' ')).current_dir(&clone.root);
            assert!(git.status().expect("git").success(), "git {words}");
        }
        clone
    }

    /// What a command shows that is typed in the clone's folder, and what is typed into it.
    fn run(&self, step: &Step) -> String {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("{PRELUDE}{}", step.command))
            .current_dir(&self.root)
            .env("TIGON_ROOT", &self.root)
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            .env("SHELL", "/bin/sh")
            .env_remove("TIGON_VARIANT")
            .env_remove("TIGON_PLACEMENT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdin = child.stdin.take().expect("a pipe");
        for line in &step.typed {
            // One that has ended takes nothing more.
            let _ = writeln!(stdin, "{line}");
        }
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "$ {}\n{said}", step.command);
        said
    }
}

fn page(name: &str) -> String {
    let path = testbed::paths::root().join("docs").join(name);
    std::fs::read_to_string(path).expect(name)
}

/// Said at once, without a build: who changes lines that a patch of the tutorial's stands on
/// changes the patch.
#[test]
fn the_patches_fit_the_sources() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut patches = 0;
    for block in blocks(&page("tutorial.md")) {
        let Block::File { name, text } = block else {
            continue;
        };
        let patch = folder.path().join(&name);
        std::fs::write(&patch, text).expect("room");
        let mut git = Command::new("git");
        git.args(["apply", "--check"]).arg(&patch);
        let output = git
            .current_dir(testbed::paths::root())
            .output()
            .expect("git");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        patches += 1;
    }
    assert!(patches > 0);
}

#[test]
fn everything_in_the_tutorial_holds() {
    if !namespace::for_test() {
        return;
    }
    follow("tutorial.md");
}

#[test]
fn everything_in_the_tutorial_of_extensions_holds() {
    if !namespace::for_test() {
        return;
    }
    follow("spine-tutorial.md");
}

fn follow(name: &str) {
    let clone = Checkout::new();
    let mut commands = 0;
    for block in blocks(&page(name)) {
        match block {
            Block::File { name, text } => {
                std::fs::write(clone.root.join(name), text).expect("a file");
            }
            Block::Console(steps) => {
                for step in steps {
                    commands += 1;
                    println!("$ {}", step.command);
                    let said = clone.run(&step);
                    let heading = format!("$ {}\n", step.command);
                    assert_data_eq!(heading.clone() + said.trim_end(), heading + &step.shown);
                }
            }
        }
    }
    assert!(commands >= 10, "{commands} commands");
    let left = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(&clone.root)
        .output()
        .expect("git");
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    assert_eq!(left, "", "the end is as the beginning was");
    assert!(Path::new(&clone.root).join("docs").join(name).is_file());
}
