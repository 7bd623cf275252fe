//! Tests the agent from the host's side, over a socket instead of the guest's port.

use guest_agent::serve::serve;
use guest_agent::wire::{self, Answer, PIECE, Request, VERSION};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A host with an agent at the other end.
struct Host(UnixStream);

impl Host {
    fn start() -> Host {
        let (host, guest) = UnixStream::pair().expect("a pair of sockets");
        host.set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        let answers = guest.try_clone().expect("a second handle");
        std::thread::spawn(move || serve(guest, answers));
        let mut host = Host(host);
        assert_eq!(host.next(), Answer::Hello { version: VERSION });
        host
    }

    fn say(&mut self, request: Request) {
        wire::write(&mut self.0, &request).expect("the agent is there");
    }

    fn next(&mut self) -> Answer {
        wire::read(&mut self.0).expect("an answer")
    }

    fn run(&mut self, id: u32, command: &str) {
        self.say(Request::Run {
            id,
            command: command.into(),
        });
    }

    /// All answers until `id` is done: its output, its complaints, its status.
    fn finish(&mut self, wanted: u32) -> (Vec<u8>, Vec<u8>, Result<i32, String>) {
        let (mut output, mut complaints) = (Vec::new(), Vec::new());
        loop {
            match self.next() {
                Answer::Output { id, bytes } if id == wanted => output.extend(bytes),
                Answer::Complaint { id, bytes } if id == wanted => complaints.extend(bytes),
                Answer::Done { id, status } if id == wanted => {
                    return (output, complaints, Ok(status));
                }
                Answer::Failed { id, reason } if id == wanted => {
                    return (output, complaints, Err(reason));
                }
                other => panic!("{other:?} while {wanted} is under way"),
            }
        }
    }
}

#[test]
fn a_command_gives_its_output_its_complaints_and_its_status() {
    let mut host = Host::start();
    host.run(7, "echo out; echo err >&2; exit 3");
    let (output, complaints, status) = host.finish(7);
    assert_eq!(output, b"out\n");
    assert_eq!(complaints, b"err\n");
    assert_eq!(status, Ok(3));
}

#[test]
fn a_short_command_does_not_wait_for_a_long_one() {
    let mut host = Host::start();
    host.run(1, "sleep 100");
    host.run(2, "echo here");
    assert_eq!(host.finish(2).0, b"here\n");
    host.say(Request::Kill { id: 1 });
    assert_eq!(host.finish(1).2, Ok(128 + 9));
}

#[test]
fn a_kill_ends_what_the_command_has_started_too() {
    let mut host = Host::start();
    host.run(1, "sleep 1000 & echo $!; wait");
    let Answer::Output { id: 1, bytes } = host.next() else {
        panic!("no process id");
    };
    let pid = String::from_utf8(bytes).expect("a number");
    host.say(Request::Kill { id: 1 });
    assert_eq!(host.finish(1).2, Ok(137));
    let end = Instant::now() + Duration::from_secs(10);
    let running = || {
        // A dead child of a dead shell may wait for init to collect it.
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    while running() {
        assert!(Instant::now() < end, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
    // And a kill that comes too late is no error.
    host.say(Request::Kill { id: 1 });
    host.run(2, "true");
    assert_eq!(host.finish(2).2, Ok(0));
}

#[test]
fn a_daemon_left_behind_does_not_keep_its_starter_open() {
    let mut host = Host::start();
    let start = Instant::now();
    host.run(1, "sleep 20 & echo started");
    assert_eq!(host.finish(1), (b"started\n".to_vec(), vec![], Ok(0)));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_long_output_comes_whole_beside_another() {
    let mut host = Host::start();
    host.run(1, "head -c 3000000 /dev/zero | tr '\\0' x");
    let (output, _, status) = host.finish(1);
    assert_eq!((output.len(), status), (3_000_000, Ok(0)));
    assert!(output.iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_file_goes_in_and_comes_out_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lib/firmware/acenic/tg2.bin");
    let name = path.to_str().expect("a name").to_owned();
    let contents: Vec<u8> = (0..3 * PIECE + 5).map(|i| i as u8).collect();
    let mut host = Host::start();
    host.say(Request::Put {
        id: 9,
        path: name.clone(),
        mode: 0o751,
    });
    for piece in contents.chunks(PIECE) {
        host.say(Request::Piece {
            id: 9,
            bytes: piece.to_vec(),
        });
    }
    assert!(!path.exists(), "it has its name before it is complete");
    host.say(Request::End { id: 9 });
    assert_eq!(host.finish(9).2, Ok(0));
    let mode = path.metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o7777, 0o751);
    host.say(Request::Get { id: 10, path: name });
    assert_eq!(host.finish(10).0, contents);
}

#[test]
fn files_that_cannot_be_had_are_said() {
    let mut host = Host::start();
    host.say(Request::Get {
        id: 1,
        path: "/nonexistent/file".into(),
    });
    let reason = host.finish(1).2.expect_err("no such file");
    assert!(reason.contains("/nonexistent/file"), "{reason}");
    host.say(Request::Put {
        id: 2,
        path: "/proc/nothing/here".into(),
        mode: 0o644,
    });
    host.say(Request::Piece {
        id: 2,
        bytes: vec![1],
    });
    host.say(Request::End { id: 2 });
    assert!(host.finish(2).2.is_err());
    host.say(Request::End { id: 3 });
    assert!(host.finish(3).2.is_err(), "it was never begun");
}

/// A message of another version is skipped; the next one is served.
#[test]
fn an_unknown_message_does_not_end_the_agent() {
    use std::io::Write;
    let mut host = Host::start();
    host.0.write_all(&[2, 0, 0, 0, 0x7F, 1]).expect("room");
    host.run(4, "echo still here");
    assert_eq!(host.finish(4).0, b"still here\n");
}
