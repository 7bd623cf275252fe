//! Two engines on a memory wire, each in a thread, and an application on each.
#![allow(dead_code)]

pub mod peer;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dusi::{
    Attachment, DusiError, Event, EventQueue, Region, Sizes, Socket, SocketOption, Status, Ual,
};
use eta::memory_wire::{MemoryWire, pair};
use eta::{Engine, IdleMode, Settings, Statistics};
use host_driver::stack::{Identity, Wire};
use smoltcp::wire::Ipv4Cidr;
use userver::ServerError;
use userver::cache::Cache;

/// Longest time for anything that is expected.
pub const LIMIT: Duration = Duration::from_secs(20);

pub fn identity(last: u8) -> Identity {
    Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    }
}

pub fn address(last: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, last), port)
}

/// The options that make a connection's buffers small.
pub const SMALL: [SocketOption; 2] = [SocketOption::SendBuffer, SocketOption::ReceiveBuffer];

type Command<W> = Box<dyn FnOnce(&mut Engine<W>) + Send>;

/// An engine in a thread of its own.
pub struct Running<W: Wire = MemoryWire> {
    stop: Arc<AtomicBool>,
    commands: Sender<Command<W>>,
    thread: Option<JoinHandle<()>>,
}

impl<W: Wire + Send + 'static> Running<W> {
    pub fn start(wire: W, last: u8, settings: Settings) -> Self {
        let mut engine = Engine::with_settings(wire, identity(last), settings).expect("an engine");
        let stop = Arc::new(AtomicBool::new(false));
        let ended = stop.clone();
        let (commands, heard): (Sender<Command<W>>, Receiver<Command<W>>) = channel();
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                engine
                    .turn(Duration::from_millis(1))
                    .expect("a wire that holds");
                while let Ok(command) = heard.try_recv() {
                    command(&mut engine);
                }
            }
        });
        Self {
            stop,
            commands,
            thread: Some(thread),
        }
    }

    /// Lets the engine's thread do something between two turns.
    pub fn with<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Engine<W>) -> R + Send + 'static,
    ) -> R {
        let (answer, heard) = channel();
        let command: Command<W> = Box::new(move |engine| {
            let _ = answer.send(command(engine));
        });
        self.commands.send(command).expect("the engine runs");
        heard.recv_timeout(LIMIT).expect("the engine runs")
    }

    pub fn attach(&self, sizes: Sizes) -> Attachment {
        self.with(move |engine| engine.attach_with(sizes))
            .expect("memory")
    }

    pub fn statistics(&self) -> Statistics {
        self.with(|engine| engine.statistics())
    }

    /// Waits until the engine's statistics are as expected.
    pub fn until(&self, what: &str, expected: impl Fn(&Statistics) -> bool) -> Statistics {
        let start = Instant::now();
        loop {
            let found = self.statistics();
            if expected(&found) {
                return found;
            }
            assert!(start.elapsed() < LIMIT, "{what}: {found:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl<W: Wire> Drop for Running<W> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the engine did not panic");
            }
        }
    }
}

/// Both engines.
pub fn engines(idle: IdleMode) -> (Running, Running) {
    let (one, other) = pair().expect("descriptors");
    let settings = Settings {
        idle,
        ..Settings::default()
    };
    (
        Running::start(one, 1, settings),
        Running::start(other, 2, settings),
    )
}

/// An application with one event queue.
pub struct Application {
    pub ual: Ual,
    pub queue: EventQueue,
    kept: Vec<Event>,
    next: u64,
}

impl Application {
    pub fn new<W: Wire + Send + 'static>(engine: &Running<W>) -> Self {
        Self::with_sizes(engine, Sizes::default())
    }

    pub fn with_sizes<W: Wire + Send + 'static>(engine: &Running<W>, sizes: Sizes) -> Self {
        Self::of(Ual::open(engine.attach(sizes)).expect("a memory file"))
    }

    pub fn of(mut ual: Ual) -> Self {
        let queue = ual.create_event_queue().expect("the first");
        Self {
            ual,
            queue,
            kept: Vec::new(),
            next: 1 << 32,
        }
    }

    /// Where the completion of an operation goes, and its tag.
    pub fn done(&mut self) -> (EventQueue, u64) {
        self.next += 1;
        (self.queue, self.next)
    }

    /// The event of a tag; others are kept.
    pub fn event(&mut self, tag: u64) -> Event {
        let start = Instant::now();
        loop {
            if let Some(found) = self.kept.iter().position(|event| event.tag == tag) {
                return self.kept.remove(found);
            }
            assert!(
                start.elapsed() < LIMIT,
                "no event {tag:#x}: {:?}",
                self.kept
            );
            let events = self.ual.wait_all(self.queue, Duration::from_millis(100));
            self.kept.extend(events.expect("an engine that holds"));
        }
    }

    /// Posts an operation and waits for its event.
    pub fn run<R>(
        &mut self,
        post: impl FnOnce(&mut Ual, (EventQueue, u64)) -> Result<R, DusiError>,
    ) -> (R, Event) {
        let done = self.done();
        let made = post(&mut self.ual, done).expect("room");
        (made, self.event(done.1))
    }

    pub fn status<R>(
        &mut self,
        post: impl FnOnce(&mut Ual, (EventQueue, u64)) -> Result<R, DusiError>,
    ) -> Status {
        self.run(post).1.status
    }

    pub fn socket(&mut self) -> Socket {
        let (socket, event) = self.run(|ual, done| ual.socket(done));
        assert_eq!(event.status, Status::Ok);
        socket
    }

    pub fn listener(&mut self, port: u16, backlog: u32) -> Socket {
        let socket = self.socket();
        self.listen(socket, port, backlog)
    }

    /// A socket with small buffers, as ten thousand connections have them.
    pub fn small_socket(&mut self) -> Socket {
        let socket = self.socket();
        for option in SMALL {
            let set = self.status(|ual, done| ual.set_option(socket, option, 4096, done));
            assert_eq!(set, Status::Ok);
        }
        socket
    }

    /// A listening socket whose connections have small buffers.
    pub fn small_listener(&mut self, port: u16, backlog: u32) -> Socket {
        let socket = self.small_socket();
        self.listen(socket, port, backlog)
    }

    fn listen(&mut self, socket: Socket, port: u16, backlog: u32) -> Socket {
        assert_eq!(
            self.status(|ual, done| ual.bind(socket, port, done)),
            Status::Ok
        );
        assert_eq!(
            self.status(|ual, done| ual.listen(socket, backlog, done)),
            Status::Ok
        );
        socket
    }

    pub fn region(&mut self, bytes: usize) -> Region {
        self.ual.register(bytes).expect("memory")
    }
}

/// A connection from a client to a server's listening socket.
pub fn connected(
    server: &mut Application,
    listener: Socket,
    client: &mut Application,
    to: SocketAddrV4,
) -> (Socket, Socket) {
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let socket = client.socket();
    assert_eq!(
        client.status(|ual, done| ual.connect_to(socket, to, done)),
        Status::Ok
    );
    let event = server.event(accept.1);
    assert_eq!(event.status, Status::Ok);
    (event.child.expect("a connection"), socket)
}

/// Sends bytes; waits until they are the engine's.
pub fn send(from: &mut Application, on: Socket, bytes: &[u8]) {
    let region = from.region(bytes.len());
    from.ual.write(&region, bytes).expect("room");
    let (_, event) = from.run(|ual, done| ual.transmit(on, &region, bytes.len(), done));
    assert_eq!((event.status, event.length), (Status::Ok, bytes.len()));
    from.ual.deregister(region).expect("no operation uses it");
}

/// Sends bytes without a copy; waits until the peer has acknowledged them.
pub fn send_in_place(from: &mut Application, on: Socket, bytes: &[u8]) {
    let region = from.region(bytes.len());
    from.ual.write(&region, bytes).expect("room");
    let range = (0, bytes.len());
    let (_, event) = from.run(|ual, done| ual.transmit_in_place(on, &region, range, done));
    assert_eq!((event.status, event.length), (Status::Ok, bytes.len()));
    from.ual.deregister(region).expect("no operation uses it");
}

/// Receives until there are `count` bytes, or the end of the stream.
pub fn receive(to: &mut Application, on: Socket, count: usize) -> Vec<u8> {
    let region = to.region(64 * 1024);
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let (_, event) = to.run(|ual, done| ual.receive(on, &region, done));
        assert_eq!(event.status, Status::Ok);
        if event.length == 0 {
            break;
        }
        let start = bytes.len();
        bytes.resize(start + event.length, 0);
        to.ual.read(&region, &mut bytes[start..]).expect("in it");
    }
    to.ual.deregister(region).expect("no operation uses it");
    bytes
}

/// A web server of a folder on port 80, through the engine that listens at a path, until that
/// engine ends.
pub fn serve_pages(engine: &Path, root: &Path) {
    let ual = Ual::connect(engine, Sizes::default()).expect("attached");
    let server = userver::Server::new(
        ual,
        root,
        80,
        Cache::create(1 << 20).expect("memory"),
        userver::Settings::default(),
    );
    let mut server = server.expect("a server");
    loop {
        let done = server.step();
        let done = done.and_then(|_| server.wait(Duration::from_millis(100)));
        if let Err(ServerError::Engine(DusiError::EngineEnded)) = done {
            return;
        }
        done.expect("an engine that holds");
    }
}
