//! Tests the host's side against the real agent, over a socket instead of the port.

use super::*;
use guest_agent::serve::serve;

const LIMIT: Duration = Duration::from_secs(20);

struct Pair {
    connection: Arc<Connection>,
    guest: UnixStream,
    folder: tempfile::TempDir,
}

fn unserved() -> Pair {
    let folder = tempfile::tempdir().expect("a folder");
    let (host, guest) = UnixStream::pair().expect("a pair");
    let console = folder.path().join("console");
    std::fs::write(&console, "booting\r\nKernel panic - not syncing: why\r\n").expect("a file");
    let connection = Connection::new(host, &console).expect("a connection");
    Pair {
        connection,
        guest,
        folder,
    }
}

fn served() -> Pair {
    let pair = unserved();
    let (requests, answers) = (pair.guest.try_clone(), pair.guest.try_clone());
    let (requests, answers) = (requests.expect("a handle"), answers.expect("a handle"));
    thread::spawn(move || serve(requests, answers));
    pair.connection.greet(LIMIT).expect("an agent");
    pair
}

#[test]
fn commands_run_beside_each_other() {
    let pair = served();
    let connection = &pair.connection;
    let slow = connection.start("sleep 100").expect("it starts");
    let quick = connection
        .start("echo out; echo err >&2; exit 4")
        .expect("it starts");
    let output = connection
        .finish(quick, LIMIT)
        .expect("the guest")
        .expect("in time");
    assert_eq!((output.status, output.stdout.as_str()), (4, "out\n"));
    assert_eq!(output.stderr, "err\n");
    let waited = connection.finish(slow, Duration::from_millis(10));
    assert_eq!(waited.expect("the guest"), None);
    let killed = connection.kill(slow).expect("the guest").expect("in time");
    assert_eq!(killed.status, 137);
}

#[test]
fn files_pass_both_ways_while_a_command_talks() {
    let pair = served();
    let connection = &pair.connection;
    let noisy = connection.start("cat /dev/zero").expect("it starts");
    let path = pair.folder.path().join("file").display().to_string();
    let contents: Vec<u8> = (0..200_000_u32).map(|i| i as u8).collect();
    connection.put(&path, &contents, 0o600).expect("a file");
    assert_eq!(connection.get(&path).expect("a file"), contents);
    let error = connection.get("/nonexistent").expect_err("no such file");
    assert!(error.to_string().contains("/nonexistent"), "{error}");
    connection.abandon(noisy);
}

#[test]
fn a_guest_that_goes_is_told_with_its_consoles_last_lines() {
    let pair = served();
    let id = pair.connection.start("sleep 100").expect("it starts");
    pair.guest
        .shutdown(std::net::Shutdown::Both)
        .expect("an end");
    let error = pair.connection.finish(id, LIMIT).expect_err("it has gone");
    let text = error.to_string();
    assert!(text.contains("has ended"), "{text}");
    assert!(text.contains("Kernel panic - not syncing: why"), "{text}");
}

#[test]
fn an_agent_that_never_answers_is_not_waited_for_for_ever() {
    let pair = unserved();
    let error = pair
        .connection
        .greet(Duration::from_millis(20))
        .expect_err("no agent");
    assert!(error.to_string().contains("did not answer"), "{error}");
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let mut pair = unserved();
    wire::write(&mut pair.guest, &Answer::Hello { version: 99 }).expect("room");
    let error = pair.connection.greet(LIMIT).expect_err("another version");
    assert!(error.to_string().contains("version 99"), "{error}");
}

#[test]
fn a_panic_is_shown_with_what_led_to_it() {
    let mut console: Vec<String> = (0..50).map(|line| format!("line {line}")).collect();
    console.insert(30, "Kernel panic - not syncing".into());
    let shown = last_lines(&console.join("\n"));
    assert!(
        shown.contains("Kernel panic") && shown.contains("line 29"),
        "{shown}"
    );
    assert!(
        !shown.contains("line 49") && !shown.contains("line 10"),
        "{shown}"
    );
    assert!(last_lines("").contains("nothing"));
}
