//! A request that comes before the reply to the one before it is complete: the server must not sleep
//! over that reply's completion.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use dusi::Ual;
use eta::Engine;
use eta::memory_wire::{MemoryWire, pair};
use host_driver::stack::{Host, Identity};
use smoltcp::socket::tcp;
use smoltcp::wire::Ipv4Cidr;
use userver::cache::Cache;
use userver::{Server, Settings, Status};

const LIMIT: Duration = Duration::from_secs(20);
/// A sleep that is too long to be none.
const NAP: Duration = Duration::from_secs(2);
/// Turns of server and engine in which all that can happen has happened.
const TURNS: u32 = 100;
const REQUEST: &[u8] = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n";

fn identity(last: u8) -> Identity {
    Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    }
}

#[test]
fn a_server_does_not_sleep_over_the_completion_that_a_request_waits_for() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page"), "page").expect("a file");
    // A cable in two parts, so that the client hears of a reply when the test lets it.
    let (near, from_server) = pair().expect("descriptors");
    let (from_client, far) = pair().expect("descriptors");
    let mut engine = Engine::new(near, identity(1)).expect("descriptors");
    let ual = Ual::open(engine.attach().expect("memory")).expect("a memory file");
    let cache = Cache::create(1 << 20).expect("memory");
    // Complete when the client has acknowledged it.
    let settings = Settings {
        in_place: true,
        ..Settings::default()
    };
    let server = Server::new(ual, folder.path(), 80, cache, settings);
    let mut server = server.expect("a server");
    let mut client = Host::new(far, identity(2));
    let start = Instant::now();
    while server.listening() != Some(Status::Ok) {
        assert!(start.elapsed() < LIMIT, "it does not listen");
        server.step().expect("an engine that holds");
        engine.turn(Duration::ZERO).expect("a wire that holds");
    }
    let buffer = || tcp::SocketBuffer::new(vec![0; 65536]);
    let handle = client.sockets.add(tcp::Socket::new(buffer(), buffer()));
    let (interface, sockets) = client.parts();
    let socket = sockets.get_mut::<tcp::Socket>(handle);
    let to = (Ipv4Addr::new(10, 77, 0, 1), 80);
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(None);
    let connecting = socket.connect(interface.context(), to, 50000);
    connecting.expect("a fresh socket");
    let to_server = |client: &mut Host<MemoryWire>| {
        client.turn().expect("a wire that holds");
        while let Some(frame) = from_client.take() {
            from_server.put(frame);
        }
    };
    let to_client = || {
        while let Some(frame) = from_server.take() {
            from_client.put(frame);
        }
    };
    let both = |engine: &mut Engine<MemoryWire>, server: &mut Server| {
        for _ in 0..TURNS {
            server.step().expect("an engine that holds");
            engine.turn(Duration::ZERO).expect("a wire that holds");
        }
        server.statistics().requests
    };
    let ask = |client: &mut Host<MemoryWire>| {
        let socket = client.sockets.get_mut::<tcp::Socket>(handle);
        let sent = socket.can_send().then(|| socket.send_slice(REQUEST));
        sent.is_some_and(|sent| sent == Ok(REQUEST.len()))
    };
    while !ask(&mut client) {
        assert!(start.elapsed() < LIMIT, "no connection");
        to_server(&mut client);
        both(&mut engine, &mut server);
        to_client();
    }
    // A whole exchange: for a first reply's completion the server waits anyhow.
    while both(&mut engine, &mut server) < 1 {
        assert!(start.elapsed() < LIMIT, "no reply");
        to_server(&mut client);
    }
    to_client();
    to_server(&mut client);
    both(&mut engine, &mut server);
    // From here on the client hears nothing.
    assert!(ask(&mut client));
    to_server(&mut client);
    assert_eq!(both(&mut engine, &mut server), 2);
    assert!(ask(&mut client));
    to_server(&mut client);
    assert_eq!(
        both(&mut engine, &mut server),
        2,
        "the reply is not complete"
    );
    // It hears the reply and acknowledges it: the engine tells the server.
    to_client();
    to_server(&mut client);
    for _ in 0..TURNS {
        engine.turn(Duration::ZERO).expect("a wire that holds");
    }
    let before = Instant::now();
    server.wait(NAP).expect("an engine that holds");
    assert!(before.elapsed() < NAP / 2, "it slept over the completion");
    for _ in 0..TURNS {
        server.step().expect("an engine that holds");
    }
    assert_eq!(server.statistics().requests, 3);
}
