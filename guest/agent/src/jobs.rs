//! Running commands: each has its own process group.

use crate::outbox::Outbox;
use crate::wire::{Answer, PIECE};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the output of a command that has ended is waited for when something
/// that it left behind still holds its pipes.
const STRAGGLERS: Duration = Duration::from_millis(300);

/// The commands under way, by their numbers.
#[derive(Clone, Default)]
pub struct Jobs(Arc<Mutex<HashMap<u32, Pid>>>);

impl Jobs {
    /// Starts `sh -c command`; its output and its end go to `outbox`.
    pub fn run(&self, id: u32, command: &str, outbox: &Outbox) {
        let spawned = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        match spawned {
            Ok(child) => self.watch(id, child, outbox.clone()),
            Err(error) => outbox.send(&Answer::Failed {
                id,
                reason: format!("cannot start a shell: {error}"),
            }),
        }
    }

    /// Ends a command and all of its group. One that has ended is no error: the
    /// two words may have crossed.
    pub fn kill(&self, id: u32) {
        if let Some(group) = self.lock().get(&id) {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }

    fn watch(&self, id: u32, mut child: Child, outbox: Outbox) {
        if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
            self.lock().insert(id, group);
        }
        let (ended, ends) = channel();
        let pass = |pipe: Option<Box<dyn Read + Send>>, answer: fn(u32, Vec<u8>) -> Answer| {
            let (outbox, ended) = (outbox.clone(), ended.clone());
            thread::spawn(move || pass_on(pipe, |bytes| outbox.send(&answer(id, bytes)), ended));
        };
        pass(
            child
                .stdout
                .take()
                .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            |id, bytes| Answer::Output { id, bytes },
        );
        pass(
            child
                .stderr
                .take()
                .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            |id, bytes| Answer::Complaint { id, bytes },
        );
        drop(ended);
        let jobs = self.clone();
        thread::spawn(move || {
            let answer = match child.wait() {
                Ok(status) => {
                    await_both(&ends);
                    Answer::Done {
                        id,
                        status: number(status),
                    }
                }
                Err(error) => Answer::Failed {
                    id,
                    reason: format!("cannot wait for the command: {error}"),
                },
            };
            jobs.lock().remove(&id);
            outbox.send(&answer);
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves a pipe's bytes to the host until it ends, and says so.
fn pass_on(pipe: Option<Box<dyn Read + Send>>, send: impl Fn(Vec<u8>), ended: Sender<()>) {
    let mut bytes = vec![0; PIECE];
    if let Some(mut pipe) = pipe {
        while let Ok(count @ 1..) = pipe.read(&mut bytes) {
            send(bytes[..count].to_vec());
        }
    }
    // The command's watcher may have given up waiting.
    let _ = ended.send(());
}

/// Waits for the ends of both pipes, but not for ever.
fn await_both(ends: &Receiver<()>) {
    for _ in 0..2 {
        if ends.recv_timeout(STRAGGLERS).is_err() {
            return;
        }
    }
}

/// The exit status as a shell would say it.
fn number(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}
