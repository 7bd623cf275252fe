//! `cargo xtask` as a user runs it, for stories about the commands themselves.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A command line of `cargo xtask` with the words given. The runner itself has
/// been built by whoever runs the tests.
pub fn xtask(words: &[&str]) -> Command {
    let mut command = Command::new(runner());
    command.args(words).current_dir(xtask::paths::root());
    command
}

/// The one line that a failed command says, without `error: `.
///
/// # Panics
/// When it did not fail, or said more than one line.
pub fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "it should have failed");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 1, "one line, not: {said}");
    let complaint = lines[0].strip_prefix("error: ");
    complaint
        .unwrap_or_else(|| panic!("not an error: {said}"))
        .to_owned()
}

fn runner() -> PathBuf {
    std::env::var_os("TIGON_XTASK")
        .map(PathBuf::from)
        .expect("TIGON_XTASK is not set: run the tests by cargo xtask test")
}
