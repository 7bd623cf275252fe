//! A server takes no connection before the engine has its cache's memory: the cache is registered
//! over the control socket, which the engine looks at less often than at the queues.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use dti::control::{self, Attachment, Heard};
use dusi::Ual;
use eta::Engine;
use eta::memory_wire::pair;
use host_driver::stack::{Host, Identity};
use smoltcp::socket::tcp;
use smoltcp::wire::Ipv4Cidr;
use userver::cache::Cache;
use userver::reply::Meta;
use userver::{Server, Settings, Status};

const LIMIT: Duration = Duration::from_secs(20);
/// Turns of server and engine in which all that can happen has happened.
const TURNS: u32 = 300;

fn identity(last: u8) -> Identity {
    Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    }
}

#[test]
fn a_reply_is_whole_however_late_the_caches_memory_is_registered() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = "x".repeat(5003);
    std::fs::write(folder.path().join("page"), &page).expect("a file");
    let (near, far) = pair().expect("descriptors");
    let mut engine = Engine::new(near, identity(1)).expect("descriptors");
    let Attachment {
        memory,
        anonymous,
        doorbell,
        control: engine_side,
        sizes,
        engine: number,
    } = engine.attach().expect("memory");
    // What the server says at its control socket reaches the engine when the test hands it on.
    let (server_side, held) = control::pair().expect("descriptors");
    let ual = Ual::open(Attachment {
        memory,
        anonymous,
        doorbell,
        control: server_side,
        sizes,
        engine: number,
    });
    let ual = ual.expect("a memory file");
    let cache = Cache::create(1 << 20).expect("memory");
    // Another copy has read the file already.
    let file = std::fs::File::open(folder.path().join("page")).expect("a file");
    let meta = Meta {
        length: page.len() as u64,
        modified: 0,
    };
    let inserted = cache.insert("page", &file, meta).expect("it is there");
    assert!(inserted.is_some());
    let server = Server::new(ual, folder.path(), 80, cache, Settings::default());
    let mut server = server.expect("a server");
    let mut client = Host::new(far, identity(2));
    let buffer = || tcp::SocketBuffer::new(vec![0; 65536]);
    let handle = client.sockets.add(tcp::Socket::new(buffer(), buffer()));
    // The engine listens on the port.
    for _ in 0..TURNS {
        server.step().expect("an engine that holds");
        engine.turn(Duration::ZERO).expect("a wire that holds");
    }
    let Heard::Registration(work, file) = control::hear(held.as_fd()) else {
        panic!("no registration");
    };
    let mut late = Some((work, file));
    let (interface, sockets) = client.parts();
    let socket = sockets.get_mut::<tcp::Socket>(handle);
    let to = (Ipv4Addr::new(10, 77, 0, 1), 80);
    let connecting = socket.connect(interface.context(), to, 50000);
    connecting.expect("a fresh socket");
    let asked = b"GET /page HTTP/1.0\r\n\r\n";
    let (mut sent, mut reply) = (None, Vec::new());
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < LIMIT, "{} bytes", reply.len());
        server.step().expect("an engine that holds");
        engine.turn(Duration::ZERO).expect("a wire that holds");
        client.turn().expect("a wire that holds");
        let socket = client.sockets.get_mut::<tcp::Socket>(handle);
        match &mut sent {
            None if socket.can_send() => {
                assert_eq!(socket.send_slice(asked), Ok(asked.len()));
                sent = Some(0);
            }
            None => {}
            Some(turns) => *turns += 1,
        }
        if sent > Some(TURNS)
            && let Some((work, file)) = late.take()
        {
            assert_eq!(server.statistics().accepted, 0);
            let handed = control::register(engine_side.as_fd(), work, file.as_fd());
            handed.expect("room");
        }
        while socket.can_recv() {
            let part = socket.recv(|bytes| (bytes.len(), bytes.to_vec()));
            reply.extend(part.expect("an open socket"));
        }
        if sent.is_some() && !socket.may_recv() {
            break;
        }
    }
    assert_eq!(server.listening(), Some(Status::Ok));
    let reply = String::from_utf8_lossy(&reply);
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(reply.ends_with(&page), "{} bytes", reply.len());
}
