//! Runs `cargo xtask` as a user does, for tests of the commands themselves.

use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Output};

/// A command line of `cargo xtask` with the words given. The runner itself has
/// been built by whoever runs the tests.
pub fn xtask(words: &[&str]) -> Command {
    let mut command = Command::new(runner());
    command.args(words).current_dir(testbed::paths::root());
    command
}

/// Sends a signal to a command. (`kill` is a program that a small system lacks.)
///
/// # Panics
/// When that has ended, and was waited for.
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is ours");
}

/// The one line by which a failed command says why, without `error: `.
///
/// # Panics
/// When it did not fail, or said it in more or less than one line at its end.
pub fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "it should have failed");
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "one line, not: {said}");
    assert!(said.trim_end().ends_with(errors[0]), "not the last: {said}");
    errors[0].to_owned()
}

fn runner() -> PathBuf {
    std::env::var_os("TIGON_XTASK")
        .map(PathBuf::from)
        .expect("TIGON_XTASK is not set: run the tests by cargo xtask test")
}
