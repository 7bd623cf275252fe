//! System calls of a server under saturation, by its own count: what it asks of its engine and gets
//! from it goes through memory, and it sleeps only when there is nothing to do.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dusi::{EventQueue, Operation, Region, Sizes, Socket, Status, Ual};
use eta::memory_wire::{MemoryWire, pair};
use eta::{Engine, IdleMode};
use host_driver::stack::Identity;
use smoltcp::wire::Ipv4Cidr;
use userver::cache::Cache;
use userver::{DynamicPage, Server, Settings};

const LIMIT: Duration = Duration::from_secs(60);
/// Clients with a request under way each.
const CLIENTS: usize = 128;
/// Requests before the count begins, and those that are counted.
const BEFORE: u64 = 500;
const COUNTED: u64 = 4_000;
/// System calls for each request that the design allows.
const ALLOWED: f64 = 0.05;

fn engine(
    wire: MemoryWire,
    last: u8,
    idle: IdleMode,
    stop: &Arc<AtomicBool>,
) -> (dusi::Attachment, JoinHandle<()>) {
    let identity = Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    };
    let settings = eta::Settings {
        idle,
        ..eta::Settings::default()
    };
    let engine = Engine::with_settings(wire, identity, settings);
    let mut engine = engine.expect("descriptors");
    let sizes = Sizes {
        work: 1024,
        events: 1024,
        sockets: 256,
        depth: 64,
        anonymous: 8192,
        ..Sizes::default()
    };
    let attachment = engine.attach_with(sizes).expect("memory");
    let stop = stop.clone();
    let thread = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let turned = engine.turn(Duration::from_millis(5));
            turned.expect("a wire that holds");
        }
    });
    (attachment, thread)
}

/// What the server has done, for others to read.
#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    calls: AtomicU64,
}

/// Asks again and again on a connection.
struct Client {
    socket: Socket,
    room: Region,
}

fn ask(ual: &mut Ual, queue: EventQueue, number: usize, client: &Client, text: &Region) {
    let tag = number as u64;
    let sent = ual.transmit(client.socket, text, text.len(), (queue, tag));
    sent.expect("room");
    let whole = (0, client.room.len());
    let wanted = ual.receive_whole(client.socket, &client.room, whole, (queue, tag));
    wanted.expect("room");
}

/// The next event.
fn next(ual: &mut Ual, queue: EventQueue) -> dusi::Event {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < LIMIT, "no event");
        let some = ual.wait_any(&[queue], Duration::from_millis(50));
        some.expect("an engine that holds");
        if let Some(event) = ual.done(queue).expect("an engine that holds") {
            return event;
        }
    }
}

/// A server's system calls for a request, when its page costs so many microseconds.
fn calls(cost: u32, idle: IdleMode) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let (near, far) = pair().expect("descriptors");
    let stop = Arc::new(AtomicBool::new(false));
    let (attachment, near) = engine(near, 1, idle, &stop);
    let counts = Arc::new(Counts::default());
    let served = Arc::new(AtomicBool::new(false));
    let (told, ended) = (counts.clone(), served.clone());
    let root = folder.path().to_owned();
    let server = std::thread::spawn(move || {
        let ual = Ual::open(attachment).expect("a memory file");
        let page = format!("/page={cost}");
        let settings = Settings {
            dynamic: Some(page.parse::<DynamicPage>().expect("a page")),
            ..Settings::default()
        };
        let cache = Cache::create(1 << 20).expect("memory");
        let mut server = Server::new(ual, &root, 80, cache, settings).expect("a server");
        while !ended.load(Ordering::Relaxed) {
            if !server.step().expect("an engine that holds") {
                let waited = server.wait(Duration::from_millis(50));
                waited.expect("an engine that holds");
            }
            told.calls.store(server.calls(), Ordering::Relaxed);
            let requests = server.statistics().requests;
            told.requests.store(requests, Ordering::Release);
        }
    });
    let (attachment, far) = engine(far, 2, IdleMode::Adaptive, &stop);
    let mut ual = Ual::open(attachment).expect("a memory file");
    let queue = ual.create_event_queue().expect("a queue");
    let text = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
    let request = ual.register(text.len()).expect("memory");
    ual.write(&request, text).expect("in it");
    let to = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 80);

    // How long a reply is.
    let room = ual.register(4096).expect("memory");
    let start = Instant::now();
    let length = loop {
        assert!(start.elapsed() < LIMIT, "no answer");
        let socket = ual.socket((queue, 0)).expect("a handle");
        ual.connect_to(socket, to, (queue, 1)).expect("room");
        let connected = loop {
            let event = next(&mut ual, queue);
            if event.tag == 1 {
                break event.status == Status::Ok;
            }
        };
        if connected {
            let sent = ual.transmit(socket, &request, text.len(), (queue, 2));
            sent.expect("room");
            ual.receive(socket, &room, (queue, 3)).expect("room");
            let length = loop {
                let event = next(&mut ual, queue);
                if event.tag == 3 {
                    break event.length;
                }
            };
            let mut reply = vec![0; length];
            ual.read(&room, &mut reply).expect("in it");
            assert!(reply.ends_with(b"\n"), "a whole reply in one segment");
            break length;
        }
        ual.close(socket, (queue, 4)).expect("room");
    };

    let mut clients: Vec<Client> = Vec::new();
    for number in 0..CLIENTS {
        let socket = ual.socket((queue, 0)).expect("a handle");
        ual.connect_to(socket, to, (queue, number as u64))
            .expect("room");
        let room = ual.register(length).expect("memory");
        clients.push(Client { socket, room });
    }
    let reading = || {
        let requests = counts.requests.load(Ordering::Acquire);
        (requests, counts.calls.load(Ordering::Relaxed))
    };
    let mut first = None;
    let start = Instant::now();
    let (first, last) = loop {
        assert!(start.elapsed() < LIMIT, "{:?}", reading());
        let event = next(&mut ual, queue);
        assert_eq!(event.status, Status::Ok, "{event:?}");
        let number = event.tag as usize;
        if let Some(Operation::Connect | Operation::Receive) = event.operation {
            ask(&mut ual, queue, number, &clients[number], &request);
        }
        let now = reading();
        match first {
            None if now.0 >= BEFORE => first = Some(now),
            Some(first) if now.0 >= BEFORE + COUNTED => break (first, now),
            _ => {}
        }
    };
    served.store(true, Ordering::Relaxed);
    server.join().expect("no panic");
    stop.store(true, Ordering::Relaxed);
    for engine in [near, far] {
        engine.join().expect("no panic");
    }
    (last.1 - first.1) as f64 / (last.0 - first.0) as f64
}

/// One after the other: each wants both processors of a small computer.
#[test]
fn a_saturated_server_makes_hardly_a_system_call_a_request() {
    // The server is the slowest of all; then it waits for its engine; then the engine for it, which
    // may sleep meanwhile, so that some requests cost a doorbell.
    let cases = [
        (100, IdleMode::Spin, ALLOWED),
        (1, IdleMode::Adaptive, ALLOWED),
        (100, IdleMode::Adaptive, 3.0 * ALLOWED),
    ];
    for (cost, idle, allowed) in cases {
        let each = calls(cost, idle);
        println!("{cost} us, {idle:?}: {each:.4} system calls a request");
        assert!(each < allowed, "{cost} us, {idle:?}: {each:.4}");
    }
}
