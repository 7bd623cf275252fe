//! Work queues of sockets and their event queues, ports that several sockets listen on, operations
//! that stay posted.

mod support;

use dusi::{EventQueue, Sizes, Socket, SocketOption, Status};
use eta::memory_wire::pair;
use eta::{IdleMode, Settings};
use support::*;

const PORT: u16 = 80;

/// All events of a queue, until there are `count`.
fn events(one: &mut Application, queue: EventQueue, count: usize) -> Vec<dusi::Event> {
    let mut all = Vec::new();
    while all.len() < count {
        let more = one
            .ual
            .wait_all(queue, LIMIT)
            .expect("an engine that holds");
        assert!(!more.is_empty(), "{} of {count} events", all.len());
        all.extend(more);
    }
    all
}

#[test]
fn a_sockets_queues_are_bound_each_to_its_event_queue() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let transmits = server.ual.create_event_queue().expect("a queue");
    let receives = server.ual.create_event_queue().expect("a queue");
    let bound = (transmits, receives);
    let (listener, made) = server.run(|ual, done| ual.socket_bound(bound, done));
    assert_eq!(made.status, Status::Ok);
    server.status(|ual, done| ual.bind(listener, PORT, done));
    server.status(|ual, done| ual.listen(listener, 4, done));
    // An accept is of the receive queue.
    let tag = |tag| (EventQueue::BOUND, tag);
    server.ual.accept(listener, tag(1)).expect("room");
    let socket = client.socket();
    let to = address(1, PORT);
    client.status(|ual, done| ual.connect_to(socket, to, done));
    let accepted = events(&mut server, receives, 1)[0];
    assert_eq!((accepted.tag, accepted.status), (1, Status::Ok));
    // The connection's are bound as its parent's.
    let child = accepted.child.expect("a connection");
    let region = server.region(64);
    server
        .ual
        .transmit(child, &region, 64, tag(2))
        .expect("room");
    assert_eq!(events(&mut server, transmits, 1)[0].tag, 2);
    server.ual.receive(child, &region, tag(3)).expect("room");
    send(&mut client, socket, b"word");
    assert_eq!(events(&mut server, receives, 1)[0].tag, 3);
    // Each operation may name another one.
    let (_, event) = server.run(|ual, done| ual.transmit(child, &region, 8, done));
    assert_eq!(event.status, Status::Ok);
    // Queues that do not exist.
    let none = (EventQueue::BOUND, receives);
    let (_, made) = server.run(|ual, done| ual.socket_bound(none, done));
    assert_eq!(made.status, Status::Invalid);
}

#[test]
fn a_full_event_queue_stalls_its_sockets_queue_and_no_other() {
    let (near, far) = engines(IdleMode::Sleep);
    let sizes = Sizes {
        events: 8,
        depth: 32,
        ..Sizes::default()
    };
    let mut server = Application::with_sizes(&near, sizes);
    let mut client = Application::new(&far);
    let full = server.ual.create_event_queue().expect("a queue");
    let listener = server.listener(PORT, 4);
    let (slow, _) = connected(&mut server, listener, &mut client, address(1, PORT));
    let (fast, far_fast) = connected(&mut server, listener, &mut client, address(1, PORT));
    let region = server.region(1024);
    for number in 0..24u64 {
        let bytes = [number as u8; 8];
        let at = number as usize * 8;
        server.ual.write_part(&region, at, &bytes).expect("in it");
        let done = (full, number);
        server
            .ual
            .transmit_part(slow, &region, (at, 8), done)
            .expect("room");
    }
    near.until("as many as have places", |found| found.sent >= 64);
    // The engine takes what others post, on sockets and without.
    for _ in 0..20 {
        let (_, event) = server.run(|ual, done| ual.transmit(fast, &region, 8, done));
        assert_eq!(event.status, Status::Ok);
    }
    assert_eq!(receive(&mut client, far_fast, 160).len(), 160);
    assert_eq!(near.statistics().sent, 64 + 160, "eight sends have places");
    // A close comes behind what waits, and has its event after the last of that.
    let close = server.done();
    server.ual.close(slow, close).expect("room");
    let mut next = 0;
    while next < 24 {
        for event in events(&mut server, full, 1) {
            // The last ones are taken together with the close, which cancels them.
            let ended = [Status::Ok, Status::Cancelled].contains(&event.status);
            assert!(event.tag == next && ended, "{next}: {event:?}");
            next += 1;
        }
    }
    assert_eq!(server.event(close.1).status, Status::Ok);
}

#[test]
fn several_sockets_listen_on_a_port_if_each_asks_for_it() {
    let (near, far) = engines(IdleMode::Adaptive);
    let mut servers = [Application::new(&near), Application::new(&near)];
    let mut client = Application::new(&far);
    let share = SocketOption::SharePort;
    let mut listeners = Vec::new();
    for server in &mut servers {
        let socket = server.socket();
        let set = server.status(|ual, done| ual.set_option(socket, share, 1, done));
        assert_eq!(set, Status::Ok);
        let bound = server.status(|ual, done| ual.bind(socket, PORT, done));
        assert_eq!(bound, Status::Ok);
        let late = server.status(|ual, done| ual.set_option(socket, share, 0, done));
        assert_eq!(late, Status::BadState);
        let listens = server.status(|ual, done| ual.listen(socket, 4, done));
        assert_eq!(listens, Status::Ok);
        listeners.push(socket);
    }
    // Who does not ask for it gets nothing.
    let alone = servers[0].socket();
    let bound = servers[0].status(|ual, done| ual.bind(alone, PORT, done));
    assert_eq!(bound, Status::PortInUse);
    let connect = |client: &mut Application| {
        let socket = client.socket();
        let to = address(1, PORT);
        let done = client.status(|ual, done| ual.connect_to(socket, to, done));
        assert_eq!(done, Status::Ok);
        socket
    };
    // A connection goes to who accepts.
    for round in 0..4 {
        let server = &mut servers[round % 2];
        let accept = server.done();
        server
            .ual
            .accept(listeners[round % 2], accept)
            .expect("room");
        let socket = connect(&mut client);
        let child = server.event(accept.1).child.expect("a connection");
        send(&mut client, socket, &[round as u8]);
        assert_eq!(receive(server, child, 1), [round as u8]);
    }
    // In turn, if both do.
    let mut tags = [0; 2];
    for (place, server) in servers.iter_mut().enumerate() {
        for _ in 0..2 {
            let accept = server.done();
            server.ual.accept(listeners[place], accept).expect("room");
            tags[place] = accept.1;
        }
    }
    for _ in 0..4 {
        connect(&mut client);
    }
    for (place, server) in servers.iter_mut().enumerate() {
        assert_eq!(server.event(tags[place]).status, Status::Ok);
    }
    // One that ends leaves the port, and what waits there, to the other.
    let socket = connect(&mut client);
    let [first, mut second] = servers;
    drop(first);
    near.until("the first one's end", |found| found.ended == 1);
    let (_, event) = second.run(|ual, done| ual.accept(listeners[1], done));
    let child = event.child.expect("a connection");
    send(&mut second, child, b"yours");
    assert_eq!(receive(&mut client, socket, 5), b"yours");
}

#[test]
fn an_accept_of_all_takes_connections_as_handles_of_the_engine() {
    let (near, far) = engines(IdleMode::Adaptive);
    let sizes = Sizes {
        sockets: 4,
        chosen: 2,
        ..Sizes::default()
    };
    let mut server = Application::with_sizes(&near, sizes);
    let mut client = Application::new(&far);
    let listener = server.listener(PORT, 8);
    let all = server.done();
    server.ual.accept_all(listener, all).expect("room");
    let mut children = Vec::new();
    for number in 0..2 {
        let socket = client.socket();
        let to = address(1, PORT);
        client.status(|ual, done| ual.connect_to(socket, to, done));
        let event = server.event(all.1);
        assert!(event.more, "{event:?}");
        let child = event.child.expect("a connection");
        assert_eq!(child, Socket::of_handle(4 + number));
        send(&mut client, socket, b"hello");
        assert_eq!(receive(&mut server, child, 5), b"hello");
        children.push(child);
    }
    // There is no third: that accept has ended, and the connection waits.
    let socket = client.socket();
    client.status(|ual, done| ual.connect_to(socket, address(1, PORT), done));
    let event = server.event(all.1);
    assert_eq!((event.status, event.more), (Status::Quota, false));
    server.status(|ual, done| ual.close(children[0], done));
    let all = server.done();
    server.ual.accept_all(listener, all).expect("room");
    assert_eq!(server.event(all.1).child, Some(children[0]));
    // Nobody else makes such a socket.
    let (_, event) = server.run(|ual, done| ual.cancel(listener, all.1, done));
    assert_eq!(event.length, 1);
    assert_eq!(server.event(all.1).status, Status::Cancelled);
}

#[test]
fn a_whole_receive_waits_for_all_bytes_and_a_last_send_ends_the_stream() {
    let (near, far) = engines(IdleMode::Sleep);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let bytes: Vec<u8> = (0..200_003u32)
        .map(|byte| (byte * 31 % 253) as u8)
        .collect();
    let room = server.region(200_000);
    let whole = server.done();
    server
        .ual
        .receive_whole(child, &room, (0, 199_999), whole)
        .expect("room");
    // Pieces of any length.
    let mut sent = 0;
    for piece in [1, 3, 8, 13, 1459, 5, 60_000, 65_537].iter().cycle() {
        let end = (sent + piece).min(199_990);
        send(&mut client, socket, &bytes[sent..end]);
        sent = end;
        if sent == 199_990 {
            break;
        }
    }
    let region = client.region(16);
    client.ual.write(&region, &bytes[sent..]).expect("in it");
    let last = client.done();
    client
        .ual
        .transmit_last(socket, &region, (0, 13), last)
        .expect("room");
    let event = server.event(whole.1);
    assert_eq!((event.status, event.length), (Status::Ok, 199_999));
    let mut got = vec![0; 199_999];
    server.ual.read(&room, &mut got).expect("in it");
    assert!(got == bytes[..199_999]);
    // The end comes before all are there.
    let (_, event) = server.run(|ual, done| ual.receive_whole(child, &room, (0, 100), done));
    assert_eq!((event.status, event.length), (Status::Ok, 4));
    assert_eq!(client.event(last.1).status, Status::Ok);
    let late = client.status(|ual, done| ual.transmit(socket, &region, 1, done));
    assert_eq!(late, Status::Ended);
    // One that is cancelled says what it has got.
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let whole = server.done();
    server
        .ual
        .receive_whole(child, &room, (0, 100), whole)
        .expect("room");
    send(&mut client, socket, &[7; 40]);
    near.until("40 bytes more", |found| found.received >= 200_043);
    server.run(|ual, done| ual.cancel(child, whole.1, done));
    let event = server.event(whole.1);
    assert_eq!((event.status, event.length), (Status::Cancelled, 40));
}

#[test]
fn handles_carry_the_number_of_their_engine() {
    let (one, other) = pair().expect("descriptors");
    let settings = Settings {
        number: 3,
        ..Settings::default()
    };
    let near = Running::start(one, 1, settings);
    let far = Running::start(other, 2, Settings::default());
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    assert_eq!((server.ual.engine(), client.ual.engine()), (3, 0));
    let listener = server.listener(PORT, 4);
    assert_eq!(dti::layout::engine_of(listener.handle()), 3);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    assert_eq!(dti::layout::engine_of(child.handle()), 3);
    send(&mut client, socket, b"there");
    assert_eq!(receive(&mut server, child, 5), b"there");
    // One of another engine's is none here.
    let other = Socket::of_handle(dti::layout::number_of(child.handle()));
    let region = server.region(8);
    let wrong = server.status(|ual, done| ual.transmit(other, &region, 8, done));
    assert_eq!(wrong, Status::BadHandle);
    let closed = server.status(|ual, done| ual.close(other, done));
    assert_eq!(closed, Status::BadHandle);
}
