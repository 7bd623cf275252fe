//! Nonsense from every side, by seeds: descriptors, frames, the control socket, HTTP. The engine does
//! not panic, loses no event, and others see nothing.
//!
//! A short fixed slice; a longer one by ETA_TEST_FUZZ, the number of rounds, and other seeds by
//! ETA_TEST_SEED. `cargo xtask soak --eta` sets both.

mod support;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dti::layout::{ANONYMOUS, BOUND, Descriptor, QUIET, number_of};
use dusi::{Direction, DusiError, EventQueue, Operation, Sizes, Socket, Status, Ual};
use eta::memory_wire::pair;
use eta::{Engine, IdleMode, Settings};
use smoltcp::wire::TcpControl;
use support::peer::Peer;
use support::*;
use userver::cache::Cache;

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn number(variable: &str, usual: u64) -> u64 {
    let text = std::env::var(variable);
    text.map_or(usual, |text| text.parse().expect("a number"))
}

/// The rounds of this run, each with its own numbers.
fn rounds() -> impl Iterator<Item = (u64, Random)> {
    let first = number("ETA_TEST_SEED", 1);
    (first..first + number("ETA_TEST_FUZZ", 8)).map(|seed| (seed, Random(seed << 20 | 0xACE1)))
}

/// Two others, whose bytes must arrive whatever a third one does.
struct Others {
    server: Application,
    client: Application,
    child: Socket,
    socket: Socket,
    message: u64,
}

impl Others {
    fn new(near: &Running, far: &Running) -> Self {
        let (mut server, mut client) = (Application::new(near), Application::new(far));
        let listener = server.listener(7, 4);
        let (child, socket) = connected(&mut server, listener, &mut client, address(1, 7));
        Self {
            server,
            client,
            child,
            socket,
            message: 0,
        }
    }

    fn talk(&mut self) {
        self.message += 1;
        let bytes = self.message.to_le_bytes().repeat(50);
        send(&mut self.client, self.socket, &bytes);
        assert!(receive(&mut self.server, self.child, bytes.len()) == bytes);
    }
}

/// The events of a hostile application: each operation has one that is its last.
struct Account {
    queues: [EventQueue; 2],
    expected: HashMap<u64, u32>,
    closes: u32,
    seed: u64,
}

impl Account {
    fn settle(&mut self, one: &mut Application) {
        for queue in self.queues {
            let events = one.ual.wait_all(queue, Duration::from_micros(100));
            for event in events.expect("the engine lives") {
                if event.more {
                    continue;
                }
                if event.tag == u64::MAX {
                    self.closes += 1;
                    continue;
                }
                let count = self.expected.get_mut(&event.tag);
                let count = count.filter(|count| **count > 0);
                let seed = self.seed;
                *count.unwrap_or_else(|| panic!("seed {seed}: a second {event:?}")) -= 1;
            }
        }
    }

    /// Posts, however long the engine has no room.
    fn post(
        &mut self,
        one: &mut Application,
        mut post: impl FnMut(&mut Ual) -> Result<(), DusiError>,
    ) {
        let start = Instant::now();
        while post(&mut one.ual).is_err() {
            assert!(start.elapsed() < LIMIT, "seed {}: no room", self.seed);
            self.settle(one);
        }
    }
}

/// Every operation with any handles, ranges, tags, numbers and flags, in any order, in the queues
/// of any socket, while event queues are full.
#[test]
fn any_descriptors_have_one_event_each() {
    for (seed, mut random) in rounds() {
        let (near, far) = engines(IdleMode::Sleep);
        let mut others = Others::new(&near, &far);
        let sizes = Sizes {
            events: 64,
            queues: 2,
            depth: 8,
            chosen: 4,
            anonymous: 256,
            ..Sizes::default()
        };
        let mut one = Application::with_sizes(&near, sizes);
        for port in [80, 81] {
            one.listener(port, 2);
        }
        let _regions: Vec<_> = (0..4).map(|_| one.region(4096)).collect();
        let second = one.ual.create_event_queue().expect("a queue");
        let mut account = Account {
            queues: [one.queue, second],
            expected: HashMap::new(),
            closes: 0,
            seed,
        };
        for step in 0..2000 {
            let flags = random.one_of(&[0, 0, 0, 0, 0x100, 0x200, 0x400, 0x500, 0x8000]);
            let operation = random.below(20) as u16 | flags;
            let queue = random.one_of(&[0, 0, 0, 0, 1, 9, 99, BOUND, QUIET]);
            let work = Descriptor {
                operation,
                queue,
                socket: random.one_of(&[0, 1, 2, 3, 4, 5, 6, 1023, 1024, 1030, u32::MAX]),
                tag: step,
                offset: random.one_of(&[0, 8, 64, 4, 4095, 4096, u32::MAX, u32::MAX - 7]),
                length: random.one_of(&[0, 1, 8, 100, 4096, u32::MAX]),
                argument: match random.below(7) {
                    0 => random.below(8),
                    1 => random.one_of(&[80, 81, 7, 0, 65_535, 65_536]),
                    // The far engine's ports, and its own.
                    2 => 0x0A4D_0002_u64 << 16 | random.one_of(&[7, 80, 9]),
                    3 => 0x0A4D_0001_u64 << 16 | 80,
                    4 => random.below(14) << 32 | random.one_of(&[0, 1, 2, 4096, 60_000]),
                    5 => ANONYMOUS.into(),
                    _ => random.next() << 8 | random.below(256),
                },
            };
            // Only a registration or a release may do without an event.
            let known = Operation::from_number(operation);
            let quiet = queue == QUIET && known.is_some_and(Operation::may_be_quiet);
            // In a queue of its socket a doorbell is an unknown operation.
            let ring = random.one_of(&[None, Some(Direction::Transmit), Some(Direction::Receive)]);
            let own = ring.filter(|_| number_of(work.socket) < sizes.handles());
            let silent = own.is_none() && known == Some(Operation::Doorbell);
            if !quiet && !silent {
                *account.expected.entry(step).or_default() += 1;
            }
            account.post(&mut one, |ual| match ring {
                None => ual.post(work),
                Some(direction) => ual.post_on(direction, work),
            });
            if step % 400 == 0 {
                others.talk();
            }
        }
        // Closing every handle there may be ends all that is under way.
        let handles = sizes.handles();
        for socket in 0..handles {
            let (socket, done) = (Socket::of_handle(socket), (one.queue, u64::MAX));
            account.post(&mut one, |ual| ual.close(socket, done));
        }
        let start = Instant::now();
        while account.closes < handles || account.expected.values().any(|count| *count > 0) {
            let missing = account.expected.iter().filter(|(_, count)| **count > 0);
            let missing: Vec<_> = missing.collect();
            let closes = account.closes;
            assert!(
                start.elapsed() < LIMIT,
                "seed {seed}: {closes} closes, no event of {missing:?}"
            );
            account.settle(&mut one);
        }
        others.talk();
        let counts = near.statistics();
        assert_eq!((counts.expelled, counts.ended), (0, 0), "seed {seed}");
        drop(one);
        near.until("its end", |found| {
            found.ended == 1 && found.stack.connections == 1
        });
    }
}

/// Segments with any flags and numbers, cut and bent frames, while a connection lives.
#[test]
fn any_frames_leave_a_connection_alone() {
    for (seed, mut random) in rounds() {
        let (near, far) = pair().expect("descriptors");
        let engine = Running::start(near, 1, Settings::default());
        let mut server = Application::new(&engine);
        let listener = server.listener(80, 16);
        let peer = Peer::new(far, 50_000);
        let accept = server.done();
        server.ual.accept(listener, accept).expect("room");
        let mut next = 1001i32;
        let own = peer.open(80, 1000);
        let child = server.event(accept.1).child.expect("a connection");
        let controls = [
            TcpControl::None,
            TcpControl::Psh,
            TcpControl::Syn,
            TcpControl::Fin,
            TcpControl::Rst,
        ];
        for step in 0..1500u32 {
            let port = random.one_of(&[80, 80, 80, 81]);
            let control = random.one_of(&controls);
            let sequence = random.next() as i32;
            let acknowledged = (random.below(3) > 0).then(|| random.next() as i32);
            let payload = vec![step as u8; random.below(600) as usize];
            // From its own port: what lies far outside its window. From others: anything.
            let other = random.one_of(&[50_001, 50_002, 1, 80]);
            let mut frame = peer.frame_from(other, port, control, sequence, acknowledged, &payload);
            if random.below(2) == 0 {
                let far_away = next.wrapping_add(i32::MAX / 2);
                frame = peer.frame_from(50_000, 80, control, far_away, Some(own), &payload);
            }
            if random.below(3) == 0 {
                // In one byte: faults in two may cancel out in a sum, and then a reset is one.
                let place = random.below(frame.len() as u64) as usize;
                frame[place] ^= 1 + random.below(255) as u8;
            }
            if random.below(5) == 0 {
                frame.truncate(random.below(frame.len() as u64 + 1) as usize);
            }
            peer.put(frame);
            if step % 100 == 0 {
                let bytes = step.to_le_bytes();
                peer.send_with(80, TcpControl::None, next, Some(own), &bytes);
                assert_eq!(
                    receive(&mut server, child, 4),
                    bytes,
                    "seed {seed}, step {step}"
                );
                next += 4;
            }
        }
        let counts = engine.statistics();
        assert!(counts.stack.connections <= 18, "seed {seed}: {counts:?}");
    }
}

/// What a stranger says at the control socket.
#[test]
fn any_words_at_the_door_keep_nobody_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ppe.sock");
    let (wire, _far) = pair().expect("descriptors");
    let door = path.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let engine = std::thread::spawn(move || {
        let mut engine = Engine::new(wire, identity(1)).expect("descriptors");
        engine.listen(&door).expect("a socket");
        while stopped.try_recv().is_err() {
            engine
                .turn(Duration::from_millis(1))
                .expect("a wire that holds");
        }
        engine.statistics()
    });
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let attached = std::cell::Cell::new(0u64);
    for (seed, mut random) in rounds() {
        for _ in 0..40 {
            let (family, kind) = (
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::SEQPACKET,
            );
            let socket = rustix::net::socket(family, kind, None).expect("a socket");
            let address = rustix::net::SocketAddrUnix::new(&path).expect("a path");
            rustix::net::connect(&socket, &address).expect("the engine listens");
            // Mostly a greeting with some bits wrong.
            let sizes = [64u32, 256, 1 << 16, 16, 4, 16, 16, 0];
            let mut hello = dti::layout::MAGIC.to_le_bytes().to_vec();
            hello.extend([0; 8]);
            hello.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
            for _ in 0..random.below(4) {
                let place = random.below(hello.len() as u64) as usize;
                hello[place] ^= 1 << random.below(8);
            }
            hello.truncate(random.one_of(&[48, 48, 48, 0, 7, 32, 47]));
            let flags = rustix::net::SendFlags::NOSIGNAL;
            let _ = rustix::net::send(&socket, &hello, flags);
        }
        let sizes = Sizes {
            work: 64,
            events: 256,
            ..Sizes::default()
        };
        let ual = Ual::connect(&path, sizes);
        let mut one = Application::of(ual.unwrap_or_else(|error| panic!("seed {seed}: {error}")));
        assert_eq!(one.status(|ual, done| ual.socket(done)), Status::Ok);
        attached.set(attached.get() + 1);
    }
    stop.send(()).expect("it runs");
    let counts = engine.join().expect("no panic");
    assert!(counts.attached >= attached.get());
}

/// What clients may say to the web server: each connection ends, and the next page is whole.
#[test]
fn any_requests_are_answered_or_ended() {
    const WORDS: [&str; 22] = [
        "GET ",
        "HEAD ",
        "POST ",
        "G",
        "/",
        "/page",
        "/../page",
        "/%00",
        "?a=b",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        " HTTP/9.9\r\n",
        "Host: a\r\n",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Range: bytes=5-\r\n",
        "Range: bytes=-99999999999999999999\r\n",
        "If-None-Match: *\r\n",
        "If-Modified-Since: Sun, 06 Nov 2044 08:49:37 GMT\r\n",
        "\r\n",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page"), "x".repeat(3000)).expect("a file");
    let (near, far) = engines(IdleMode::Sleep);
    for in_place in [false, true] {
        let ual = Ual::open(near.attach(Sizes::default())).expect("a memory file");
        let cache = Cache::create(1 << 20).expect("memory");
        let settings = userver::Settings {
            in_place,
            ..userver::Settings::default()
        };
        let server = userver::Server::new(ual, folder.path(), 80, cache, settings);
        let mut server = server.expect("a server");
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            while stopped.try_recv().is_err() {
                server.step().expect("an engine that holds");
                server
                    .wait(Duration::from_millis(1))
                    .expect("an engine that holds");
            }
            server.statistics()
        });
        let mut client = Application::new(&far);
        let mut ask = |request: &[u8], ended: bool| {
            let start = Instant::now();
            let socket = loop {
                let socket = client.socket();
                let to = address(1, 80);
                match client.status(|ual, done| ual.connect_to(socket, to, done)) {
                    Status::Ok => break socket,
                    // The server of this round does not listen yet.
                    status => assert!(start.elapsed() < LIMIT, "{status:?}"),
                }
                client.run(|ual, done| ual.close(socket, done));
            };
            let text = client.region(request.len().max(8));
            client.ual.write(&text, request).expect("in it");
            client.status(|ual, done| ual.transmit(socket, &text, request.len(), done));
            if ended {
                client.status(|ual, done| ual.shutdown(socket, done));
            }
            let room = client.region(8192);
            let mut reply = Vec::new();
            loop {
                let (_, event) = client.run(|ual, done| ual.receive(socket, &room, done));
                if event.status != Status::Ok || event.length == 0 {
                    break;
                }
                let first = reply.len();
                reply.resize(first + event.length, 0);
                client.ual.read(&room, &mut reply[first..]).expect("in it");
            }
            client.run(|ual, done| ual.close(socket, done));
            client.ual.deregister(room).expect("no operation uses it");
            client.ual.deregister(text).expect("no operation uses it");
            reply
        };
        for (seed, mut random) in rounds() {
            for _ in 0..25 {
                let mut request = Vec::new();
                for _ in 0..random.below(12) {
                    request.extend(random.one_of(&WORDS).as_bytes());
                }
                match random.below(8) {
                    0 => request.extend((0..random.below(300)).map(|_| random.next() as u8)),
                    1 => request.extend(std::iter::repeat_n(b'x', 9000)),
                    _ => {}
                }
                ask(&request, true);
            }
            let page = ask(b"GET /page HTTP/1.0\r\n\r\n", false);
            assert!(page.starts_with(b"HTTP/1.1 200 OK\r\n"), "seed {seed}");
            assert!(page.ends_with(&[b'x'; 3000]), "seed {seed}");
        }
        stop.send(()).expect("it runs");
        let counts = server.join().expect("no panic");
        assert!(counts.requests > 0);
    }
}
