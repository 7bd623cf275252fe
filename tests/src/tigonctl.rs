//! Runs `tigonctl` as a user does: on a card, or beside the process that drives one.

use crate::engine::Engine;
use crate::stage::Stage;
use host_driver::Config;
use host_driver::status::StatusServer;
use serde_json::Value;
use spine_linker::policy::Policy;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The command, which whoever runs the tests has built.
///
/// # Panics
/// When nobody has.
pub fn program() -> PathBuf {
    std::env::var_os("TIGON_TIGONCTL")
        .map(PathBuf::from)
        .expect("TIGON_TIGONCTL is not set: run the tests by cargo xtask test")
}

/// What a command that went well printed.
///
/// # Panics
/// When it did not.
pub fn said(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The objects that a command printed with `--json`, each with its kind.
///
/// # Panics
/// When a line is none.
pub fn objects(output: &Output) -> Vec<Value> {
    let text = said(output);
    let lines = text.lines().map(|line| {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| {
            panic!("{error}: {line}");
        });
        assert!(object["kind"].is_string(), "{line}");
        object
    });
    lines.collect()
}

/// The line by which a command that failed says why.
///
/// # Panics
/// When it did not fail, or said more.
pub fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// A process that drives a card, this one, and a socket to ask it at.
pub struct Driver<E: Engine> {
    /// Driver and card.
    pub stage: Stage<E>,
    server: StatusServer,
    _folder: TempDir,
}

impl<E: Engine> Driver<E> {
    /// Opens a card.
    pub fn open() -> Self {
        Driver::of(Stage::open_with(Config::default()))
    }

    /// Drives a card that is open.
    pub fn of(stage: Stage<E>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = StatusServer::bind(&folder.path().join("status")).expect("a socket");
        Driver {
            stage,
            server,
            _folder: folder,
        }
    }

    /// Loads extensions, too: those that a policy lets in.
    #[must_use]
    pub fn with_extensions(self, policy: Policy) -> Self {
        Driver {
            server: self.server.with_extensions(policy),
            ..self
        }
    }

    /// The arguments that name the socket.
    pub fn arguments(&self) -> [String; 2] {
        let path = self.server.path().display().to_string();
        ["--attach".to_owned(), path]
    }

    /// Drives the card for a moment.
    pub fn turn(&mut self) {
        self.server.serve(&mut self.stage.nic);
        let nic = &mut self.stage.nic;
        let came = nic
            .wait(Duration::from_millis(1))
            .expect("the card is there");
        if came {
            nic.acknowledge().expect("the card is there");
        }
        nic.service().expect("the card is well");
    }

    /// Ends as the process does: nobody is served any more, the card is there.
    pub fn end(mut self) -> Stage<E> {
        self.server.close(&mut self.stage.nic);
        self.stage
    }

    /// Starts `tigonctl --attach`.
    pub fn start(&self, words: &[&str]) -> Child {
        Command::new(program())
            .args(self.arguments())
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tigonctl starts")
    }

    /// Drives the card until the command has ended.
    pub fn finish(&mut self, child: Child) -> Output {
        // It may print more than a pipe holds.
        let reader = std::thread::spawn(move || child.wait_with_output());
        while !reader.is_finished() {
            self.turn();
        }
        let output = reader.join().expect("no panic");
        output.expect("it has ended")
    }

    /// Runs `tigonctl --attach` to its end.
    pub fn run(&mut self, words: &[&str]) -> Output {
        let child = self.start(words);
        self.finish(child)
    }
}
