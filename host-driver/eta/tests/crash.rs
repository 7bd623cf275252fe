//! `ppe` as a process on a datagram wire, and applications in processes of their own that are
//! killed at random points under load.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dusi::{DusiError, Sizes, Status, Ual};
use eta::Settings;
use host_driver::peer::DatagramWire;
use host_driver::status::{Request, ask};
use support::*;

/// Kills in this test; a soak has more, by ETA_TEST_KILLS.
const KILLS: usize = 20;
/// Tells this program that it is the application to be killed, and where its engine listens.
const VICTIM: &str = "ETA_TEST_VICTIM";
/// A folder with a page to serve.
const ROOT: &str = "ETA_TEST_ROOT";

/// A process that ends with its handle.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // If it has ended already that is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The engine on a wire, and its sockets, in a folder.
fn ppe(folder: &Path) -> Process {
    let path = |name| folder.join(name);
    let wire = format!("{},{}", path("near").display(), path("far").display());
    let ppe = Command::new(std::env::var_os("CARGO_BIN_EXE_ppe").expect("cargo test"))
        .args(["--datagram", &wire, "--address", "10.77.0.1/24"])
        .arg("--listen")
        .arg(path("ppe.sock"))
        .arg("--status")
        .arg(path("status.sock"))
        .spawn();
    Process(ppe.expect("ppe"))
}

struct Site {
    folder: tempfile::TempDir,
    ppe: Process,
    client: Running<DatagramWire>,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name| folder.path().join(name);
        std::fs::create_dir(path("root")).expect("a folder");
        std::fs::write(path("root").join("index.html"), "x".repeat(10_000)).expect("a file");
        let wire = DatagramWire::bind(&path("far"), &path("near")).expect("a socket");
        let site = Self {
            ppe: ppe(folder.path()),
            client: Running::start(wire, 2, Settings::default()),
            folder,
        };
        site.begins();
        site
    }

    fn begins(&self) {
        let start = Instant::now();
        while ask(&self.path("status.sock"), &Request::Statistics).is_err() {
            assert!(start.elapsed() < LIMIT, "ppe does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn attach(&self) -> Application {
        let ual = Ual::connect(&self.path("ppe.sock"), Sizes::default());
        Application::of(ual.expect("attached"))
    }

    fn counts(&self) -> serde_json::Value {
        let answer = ask(&self.path("status.sock"), &Request::Statistics);
        answer.expect("an answer")["statistics"].take()
    }

    /// Waits until the engine's counts are as expected, for a second.
    fn within_a_second(&self, what: &str, expected: impl Fn(&serde_json::Value) -> bool) {
        let start = Instant::now();
        loop {
            let counts = self.counts();
            if expected(&counts) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(1), "{what}: {counts}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn victim(&self) -> Process {
        let program = std::env::current_exe().expect("this program");
        let victim = Command::new(program)
            .args(["--exact", "the_application_to_be_killed", "--nocapture"])
            .env(VICTIM, self.path("ppe.sock"))
            .env(ROOT, self.path("root"))
            .stdout(Stdio::null())
            .spawn();
        Process(victim.expect("a process"))
    }
}

/// Not a test of its own: a web server until it is killed, in a process that a test started.
#[test]
fn the_application_to_be_killed() {
    let (Some(engine), Some(root)) = (std::env::var_os(VICTIM), std::env::var_os(ROOT)) else {
        return;
    };
    serve_pages(Path::new(&engine), Path::new(&root));
}

/// Requests pages from the victim, on many connections at once, until it is gone.
fn load(client: &mut Application, until: Instant) -> usize {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let text = client.region(request.len());
    client.ual.write(&text, request).expect("in it");
    let room = client.region(64 * 1024);
    let mut pages = 0;
    'next: while Instant::now() < until {
        let socket = client.socket();
        let connected = client.status(|ual, done| ual.connect_to(socket, address(1, 80), done));
        if connected == Status::Ok {
            for _ in 0..3 {
                let sent =
                    client.status(|ual, done| ual.transmit(socket, &text, request.len(), done));
                let (_, got) = client.run(|ual, done| ual.receive(socket, &room, done));
                if sent != Status::Ok || got.status != Status::Ok {
                    client.run(|ual, done| ual.close(socket, done));
                    continue 'next;
                }
                pages += usize::from(got.length > 0);
            }
        }
        client.run(|ual, done| ual.close(socket, done));
    }
    client.ual.deregister(text).expect("no operation uses it");
    client.ual.deregister(room).expect("no operation uses it");
    pages
}

#[test]
fn an_application_killed_under_load_leaves_nothing_and_hurts_nobody() {
    let site = Site::new();
    let mut stays = site.attach();
    let listener = stays.listener(7, 4);
    let mut client = Application::new(&site.client);
    let (child, socket) = connected(&mut stays, listener, &mut client, address(1, 7));
    let (mut pages, mut message) = (0, 0u64);
    let kills = std::env::var("ETA_TEST_KILLS").map_or(Ok(KILLS), |text| text.parse());
    let kills: usize = kills.expect("a number");
    for kill in 0..kills {
        let mut victim = site.victim();
        // It listens as soon as it can; the load begins before, and outlives it.
        site.within_a_second("the victim attaches", |counts| {
            counts["engine"]["attached"] == kill as u64 + 2
        });
        let after = Duration::from_micros((kill as u64 * 7919) % 40_000);
        pages += load(&mut client, Instant::now() + after);
        victim.0.kill().expect("it runs");
        pages += load(&mut client, Instant::now() + Duration::from_millis(2));
        site.within_a_second("all is reclaimed", |counts| {
            counts["engine"]["ended"] == kill as u64 + 1 && counts["engine"]["expelled"] == 0
        });
        for _ in 0..20 {
            message += 1;
            let bytes = message.to_le_bytes().repeat(100);
            send(&mut client, socket, &bytes);
            assert!(
                receive(&mut stays, child, bytes.len()) == bytes,
                "message {message}"
            );
        }
    }
    assert!(
        pages > kills,
        "{pages} pages: the victims served next to nothing"
    );
    // Their connections are reset: only that of the application that stays is left.
    site.within_a_second("no connection is left", |counts| {
        counts["stack"]["connections"] == 1
    });
    // The port is free again.
    let mut next = site.attach();
    next.listener(80, 4);
}

#[test]
fn an_engine_that_is_killed_is_an_error_at_once_and_a_new_one_serves() {
    let mut site = Site::new();
    let mut one = site.attach();
    let queue = one.queue;
    let waiter = std::thread::spawn(move || {
        let ended = one.ual.wait_all(queue, LIMIT);
        (ended, Instant::now())
    });
    std::thread::sleep(Duration::from_millis(20));
    let start = Instant::now();
    site.ppe.0.kill().expect("it runs");
    let (ended, at) = waiter.join().expect("no panic");
    assert!(matches!(ended, Err(DusiError::EngineEnded)), "{ended:?}");
    assert!(at - start < Duration::from_secs(1), "{:?}", at - start);
    site.ppe.0.wait().expect("it has ended");
    // The sockets that it left behind are replaced.
    assert!(site.path("ppe.sock").exists());
    site.ppe = ppe(site.folder.path());
    site.begins();
    site.attach().listener(80, 4);
}

#[test]
fn a_stranger_who_talks_nonsense_is_let_go() {
    let site = Site::new();
    let path = site.path("ppe.sock");
    let wrong = Sizes {
        work: 3,
        ..Sizes::default()
    };
    let refused = Ual::connect(&path, wrong);
    assert!(matches!(refused, Err(DusiError::Attach(_))));
    // More silent ones than the engine hears out at a time.
    let silent: Vec<_> = (0..40)
        .map(|_| {
            let (family, kind) = (
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::SEQPACKET,
            );
            let socket = rustix::net::socket(family, kind, None).expect("a socket");
            let address = rustix::net::SocketAddrUnix::new(&path).expect("a path");
            std::thread::spawn(move || {
                let _ = rustix::net::connect(&socket, &address);
                socket
            })
        })
        .collect();
    let start = Instant::now();
    site.attach().listener(80, 4);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    drop(site);
    for one in silent {
        one.join().expect("no panic");
    }
}
