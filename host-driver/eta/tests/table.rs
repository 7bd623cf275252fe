//! Table I from Rust: each operation with its results and refusals, between two engines on a
//! memory wire.

mod support;

use std::time::{Duration, Instant};

use dti::layout::Descriptor;
use dusi::{DusiError, Operation, Sizes, SocketOption, Status};
use eta::{EngineError, IdleMode};
use support::*;

const PORT: u16 = 80;

#[test]
fn open_ual_gives_queues_of_the_sizes_asked_for() {
    let (near, _far) = engines(IdleMode::Adaptive);
    let sizes = Sizes {
        work: 8,
        events: 16,
        pool: 4096,
        sockets: 3,
        ..Sizes::default()
    };
    let mut small = Application::with_sizes(&near, sizes);
    assert_eq!(small.ual.room().expect("honest"), 8);
    for _ in 0..3 {
        small.socket();
    }
    let done = small.done();
    assert!(matches!(
        small.ual.socket(done),
        Err(DusiError::Exhausted("socket"))
    ));
    assert!(matches!(
        small.ual.register(8192),
        Err(DusiError::Exhausted("pool memory"))
    ));
    let odd = Sizes { work: 7, ..sizes };
    let refused = near.with(move |engine| engine.attach_with(odd).err());
    assert!(
        matches!(refused, Some(EngineError::Sizes(_))),
        "{refused:?}"
    );
    let large = Sizes {
        sockets: u32::MAX,
        ..sizes
    };
    let refused = near.with(move |engine| engine.attach_with(large).err());
    assert!(
        matches!(refused, Some(EngineError::Sizes(_))),
        "{refused:?}"
    );
}

#[test]
fn create_evq_makes_as_many_as_were_asked_for_and_an_operation_names_its_own() {
    let (near, _far) = engines(IdleMode::Adaptive);
    let sizes = Sizes {
        queues: 64,
        events: 64,
        ..Sizes::default()
    };
    let mut one = Application::with_sizes(&near, sizes);
    let second = (1..64).map(|_| one.ual.create_event_queue().expect("a queue"));
    let second = second.last().expect("more than one");
    assert_eq!(second.number(), 63);
    assert!(matches!(
        one.ual.create_event_queue(),
        Err(DusiError::Exhausted(_))
    ));
    one.ual.socket((second, 7)).expect("room");
    let events = one.ual.wait_all(second, LIMIT).expect("the engine lives");
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].tag, events[0].status), (7, Status::Ok));
    assert_eq!(one.ual.number_of_events(one.queue).expect("honest"), 0);
}

#[test]
fn socket_refuses_a_handle_in_use_and_its_handle_comes_back() {
    let (near, _far) = engines(IdleMode::Adaptive);
    let sizes = Sizes {
        sockets: 1,
        ..Sizes::default()
    };
    let mut one = Application::with_sizes(&near, sizes);
    let socket = one.socket();
    let raw = |operation: Operation, socket: u32, tag| Descriptor {
        operation: operation as u16,
        queue: 0,
        socket,
        tag,
        offset: 0,
        length: 0,
        argument: 0,
    };
    one.ual
        .post(raw(Operation::Socket, socket.handle(), 1))
        .expect("room");
    assert_eq!(one.event(1).status, Status::BadHandle);
    one.ual.post(raw(Operation::Socket, 1, 2)).expect("room");
    assert_eq!(one.event(2).status, Status::BadHandle);
    for _ in 0..3 {
        assert_eq!(one.status(|ual, done| ual.close(socket, done)), Status::Ok);
        assert_eq!(
            one.status(|ual, done| ual.close(socket, done)),
            Status::BadHandle
        );
        assert_eq!(one.socket(), socket);
    }
}

#[test]
fn bind_gives_a_port_once() {
    let (near, _far) = engines(IdleMode::Adaptive);
    let (mut one, mut two) = (Application::new(&near), Application::new(&near));
    let (first, second) = (one.socket(), two.socket());
    assert_eq!(
        one.status(|ual, done| ual.bind(first, 0, done)),
        Status::Invalid
    );
    assert_eq!(
        one.status(|ual, done| ual.bind(first, PORT, done)),
        Status::Ok
    );
    assert_eq!(
        one.status(|ual, done| ual.bind(first, 81, done)),
        Status::BadState
    );
    assert_eq!(
        two.status(|ual, done| ual.bind(second, PORT, done)),
        Status::PortInUse
    );
    assert_eq!(one.status(|ual, done| ual.close(first, done)), Status::Ok);
    assert_eq!(
        two.status(|ual, done| ual.bind(second, PORT, done)),
        Status::Ok
    );
}

#[test]
fn listen_needs_a_port_and_drops_what_exceeds_its_backlog() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let unbound = server.socket();
    assert_eq!(
        server.status(|ual, done| ual.listen(unbound, 4, done)),
        Status::BadState
    );
    let listener = server.listener(PORT, 2);
    assert_eq!(
        server.status(|ual, done| ual.listen(listener, 4, done)),
        Status::BadState
    );
    // Two may be half open, and a SYN is dropped while two wait: so not all five come to be.
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let (socket, done) = (client.socket(), client.done());
        client
            .ual
            .connect_to(socket, address(1, PORT), done)
            .expect("room");
        waiting.push(done.1);
    }
    near.until("a dropped SYN", |found| found.stack.refused > 0);
    // It is dropped, not refused: it connects when there is room.
    for _ in 0..waiting.len() {
        let (_, event) = server.run(|ual, done| ual.accept(listener, done));
        assert_eq!(event.status, Status::Ok);
    }
    for connection in waiting {
        assert_eq!(client.event(connection).status, Status::Ok);
    }
}

#[test]
fn accept_names_parent_child_and_peer() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let fresh = server.socket();
    let made_before = server.socket();
    assert_eq!(
        server.status(|ual, done| ual.accept(fresh, done)),
        Status::BadState
    );
    assert_eq!(
        server.status(|ual, done| ual.accept_as(listener, listener, done)),
        Status::BadHandle
    );
    let first = server.done();
    server
        .ual
        .accept_as(listener, made_before, first)
        .expect("room");
    let second = server.done();
    server.ual.accept(listener, second).expect("room");
    let own = client.socket();
    assert_eq!(
        client.status(|ual, done| ual.bind(own, 5000, done)),
        Status::Ok
    );
    let connected = client.status(|ual, done| ual.connect_to(own, address(1, PORT), done));
    assert_eq!(connected, Status::Ok);
    let event = server.event(first.1);
    assert_eq!((event.socket, event.child), (listener, Some(made_before)));
    assert_eq!(event.peer, Some(address(2, 5000)));
    // The other accept is cancelled with its listener.
    assert_eq!(
        server.status(|ual, done| ual.close(listener, done)),
        Status::Ok
    );
    assert_eq!(server.event(second.1).status, Status::Cancelled);
    // The connection outlives the listener.
    send(&mut client, own, b"after the listener");
    assert_eq!(receive(&mut server, made_before, 18), b"after the listener");
}

#[test]
fn connect_fails_by_refusal_silence_and_nonsense() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (_server, mut client) = (Application::new(&near), Application::new(&far));
    let socket = client.socket();
    let mut to = |to| client.status(|ual, done| ual.connect_to(socket, to, done));
    assert_eq!(to(address(1, 0)), Status::Invalid);
    assert_eq!(
        to("0.0.0.0:80".parse().expect("an address")),
        Status::Invalid
    );
    assert_eq!(
        to("10.78.0.1:80".parse().expect("an address")),
        Status::Unreachable
    );
    assert_eq!(to(address(2, PORT)), Status::Unreachable);
    assert_eq!(to(address(1, PORT)), Status::Refused);
    // It has had its connection.
    assert_eq!(to(address(1, PORT)), Status::BadState);
    let socket = client.socket();
    let patience = SocketOption::ConnectTimeout;
    let set = client.status(|ual, done| ual.set_option(socket, patience, 300, done));
    assert_eq!(set, Status::Ok);
    let start = Instant::now();
    // Nobody has this address.
    let late = client.status(|ual, done| ual.connect_to(socket, address(9, PORT), done));
    assert_eq!(late, Status::TimedOut);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_bound_port_connects_once_to_the_same_peer() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let (_child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let local = client.run(|ual, done| ual.get_option(socket, SocketOption::LocalAddress, done));
    let port = local.1.address().port();
    // The port of a connection that was not bound can be bound, but not for the same peer.
    let second = client.socket();
    assert_eq!(
        client.status(|ual, done| ual.bind(second, port, done)),
        Status::Ok
    );
    let again = client.status(|ual, done| ual.connect_to(second, address(1, PORT), done));
    assert_eq!(again, Status::PortInUse);
}

#[test]
fn send_and_receive_carry_every_length_and_half_closes() {
    let (near, far) = engines(IdleMode::Sleep);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    for length in [1, 7, 8, 9, 1459, 1460, 1461, 65_535, 300_001] {
        let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
        let bytes: Vec<u8> = (0..length).map(|byte| (byte * 31 % 253) as u8).collect();
        let region = client.region(length);
        client.ual.write(&region, &bytes).expect("in it");
        let sent = client.done();
        client
            .ual
            .transmit(socket, &region, length, sent)
            .expect("room");
        let ended = client.done();
        client.ual.shutdown(socket, ended).expect("room");
        // The end of the stream comes after every byte.
        assert!(
            receive(&mut server, child, usize::MAX) == bytes,
            "{length} bytes"
        );
        assert_eq!(client.event(sent.1).length, length);
        assert_eq!(client.event(ended.1).status, Status::Ok);
        let late = client.status(|ual, done| ual.transmit(socket, &region, 1, done));
        assert_eq!(late, Status::Ended);
        // The other direction is open still.
        send(&mut server, child, b"thanks");
        assert_eq!(receive(&mut client, socket, 6), b"thanks");
        assert_eq!(
            server.status(|ual, done| ual.close(child, done)),
            Status::Ok
        );
        assert_eq!(
            client.status(|ual, done| ual.close(socket, done)),
            Status::Ok
        );
    }
}

#[test]
fn a_peer_that_resets_is_an_error_of_each_operation() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let region = client.region(64);
    let waiting = client.done();
    client.ual.receive(socket, &region, waiting).expect("room");
    // Closed without a shutdown.
    assert_eq!(
        server.status(|ual, done| ual.close(child, done)),
        Status::Ok
    );
    assert_eq!(client.event(waiting.1).status, Status::Reset);
    let late = client.status(|ual, done| ual.transmit(socket, &region, 64, done));
    assert_eq!(late, Status::Reset);
    let late = client.status(|ual, done| ual.receive(socket, &region, done));
    assert_eq!(late, Status::Reset);
}

#[test]
fn set_and_get_socket_ops_keep_their_ranges_and_states() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.socket();
    let set = |one: &mut Application, on, option, value| {
        one.status(|ual, done| ual.set_option(on, option, value, done))
    };
    let get = |one: &mut Application, on, option| {
        let (_, event) = one.run(|ual, done| ual.get_option(on, option, done));
        (event.status, event.value)
    };
    let settable = [
        (SocketOption::NoDelay, 0, 2),
        (SocketOption::KeepAlive, 5000, u32::MAX),
        (SocketOption::UserTimeout, 7000, u32::MAX),
        (SocketOption::ConnectTimeout, 9000, 0),
        (SocketOption::HopLimit, 3, 256),
        (SocketOption::SendBuffer, 8192, 1),
        (SocketOption::ReceiveBuffer, 16_384, u32::MAX),
        (SocketOption::Congestion, 1, 3),
    ];
    for (option, value, wrong) in settable {
        assert_eq!(
            set(&mut server, listener, option, wrong),
            Status::Invalid,
            "{option:?}"
        );
        assert_eq!(
            set(&mut server, listener, option, value),
            Status::Ok,
            "{option:?}"
        );
        let expected = (Status::Ok, u64::from(value));
        assert_eq!(get(&mut server, listener, option), expected, "{option:?}");
    }
    let local = SocketOption::LocalAddress;
    assert_eq!(set(&mut server, listener, local, 1), Status::Invalid);
    assert_eq!(get(&mut server, listener, local).0, Status::BadState);
    server.status(|ual, done| ual.bind(listener, PORT, done));
    server.status(|ual, done| ual.listen(listener, 4, done));
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    // A connection begins with its listener's options.
    assert_eq!(
        get(&mut server, child, SocketOption::HopLimit),
        (Status::Ok, 3)
    );
    let buffer = SocketOption::SendBuffer;
    assert_eq!(set(&mut server, child, buffer, 8192), Status::BadState);
    assert_eq!(
        set(&mut server, child, SocketOption::HopLimit, 9),
        Status::Ok
    );
    let (_, own) = server.run(|ual, done| ual.get_option(child, local, done));
    assert_eq!(own.address(), address(1, PORT));
    let peer = SocketOption::PeerAddress;
    let (_, seen) = client.run(|ual, done| ual.get_option(socket, peer, done));
    assert_eq!(seen.address(), address(1, PORT));
    send(&mut client, socket, &[1; 100]);
    let start = Instant::now();
    while get(&mut server, child, SocketOption::Unread) != (Status::Ok, 100) {
        assert!(start.elapsed() < LIMIT, "100 bytes do not arrive");
    }
}

#[test]
fn wait_all_takes_all_and_waits_no_longer_than_asked() {
    let (near, _far) = engines(IdleMode::Sleep);
    let mut one = Application::new(&near);
    let start = Instant::now();
    let none = one.ual.wait_all(one.queue, Duration::from_millis(30));
    assert!(none.expect("the engine lives").is_empty());
    assert!(start.elapsed() >= Duration::from_millis(30));
    for tag in 0..5 {
        one.ual.socket((one.queue, tag)).expect("room");
    }
    while one.ual.number_of_events(one.queue).expect("honest") < 5 {
        assert!(start.elapsed() < LIMIT, "five events do not come");
        std::thread::yield_now();
    }
    // Done takes one, Wait_All the others, in the order in which they were posted.
    assert_eq!(
        one.ual
            .done(one.queue)
            .expect("honest")
            .expect("an event")
            .tag,
        0
    );
    let events = one
        .ual
        .wait_all(one.queue, Duration::ZERO)
        .expect("the engine lives");
    let tags: Vec<u64> = events.iter().map(|event| event.tag).collect();
    assert_eq!(tags, [1, 2, 3, 4]);
    assert_eq!(one.ual.done(one.queue).expect("honest"), None);
}

#[test]
fn register_and_deregister_protect_memory() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let region = client.ual.register_with_tag(64, 0xC0FFEE).expect("memory");
    let transmit = |offset, length, argument, tag| Descriptor {
        operation: Operation::Transmit as u16,
        queue: 0,
        socket: socket.handle(),
        tag,
        offset,
        length,
        argument,
    };
    let argument = |number, tag: u32| dti::layout::region_argument(number, tag);
    let number = region.number();
    let wrong = [
        transmit(0, 64, argument(number, 0xC0FFEF), 1),
        transmit(0, 64, argument(number + 1, 0xC0FFEE), 2),
        transmit(8, 64, argument(number, 0xC0FFEE), 3),
        transmit(65, 0, argument(number, 0xC0FFEE), 4),
        transmit(u32::MAX - 7, 16, argument(number, 0xC0FFEE), 5),
        transmit(0, u32::MAX, argument(number, 0xC0FFEE), 6),
    ];
    for descriptor in wrong {
        client.ual.post(descriptor).expect("room");
        assert_eq!(
            client.event(descriptor.tag).status,
            Status::Protection,
            "{descriptor:?}"
        );
    }
    // Nothing of it was sent.
    assert_eq!(near.statistics().received, 0);
    send(&mut client, socket, b"fine");
    assert_eq!(receive(&mut server, child, 4), b"fine");

    // A region in use stays.
    let waiting = client.done();
    client.ual.receive(socket, &region, waiting).expect("room");
    let region = client
        .ual
        .deregister(region)
        .expect_err("a receive uses it")
        .0;
    let end = Descriptor {
        operation: Operation::Deregister as u16,
        argument: argument(number, 0xC0FFEE),
        ..transmit(0, 0, 0, 7)
    };
    client.ual.post(end).expect("room");
    assert_eq!(client.event(7).status, Status::Busy);
    assert_eq!(
        client.status(|ual, done| ual.close(socket, done)),
        Status::Ok
    );
    assert_eq!(client.event(waiting.1).status, Status::Cancelled);
    client.ual.deregister(region).expect("no operation uses it");
}

#[test]
fn cancel_ends_what_has_its_tag() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let (_, event) = server.run(|ual, done| ual.cancel(listener, accept.1, done));
    assert_eq!((event.status, event.length), (Status::Ok, 1));
    assert_eq!(server.event(accept.1).status, Status::Cancelled);

    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let region = client.region(64);
    let waiting = client.done();
    client.ual.receive(socket, &region, waiting).expect("room");
    let (_, event) = client.run(|ual, done| ual.cancel(socket, waiting.1, done));
    assert_eq!((event.status, event.length), (Status::Ok, 1));
    assert_eq!(client.event(waiting.1).status, Status::Cancelled);
    let (_, event) = client.run(|ual, done| ual.cancel(socket, waiting.1, done));
    assert_eq!((event.status, event.length), (Status::Ok, 0));
    // The stream has lost nothing.
    send(&mut server, child, b"whole");
    assert_eq!(receive(&mut client, socket, 5), b"whole");

    // A connect under way leaves a fresh socket.
    let late = client.socket();
    let connect = client.done();
    client
        .ual
        .connect_to(late, address(9, PORT), connect)
        .expect("room");
    let (_, event) = client.run(|ual, done| ual.cancel(late, connect.1, done));
    assert_eq!((event.status, event.length), (Status::Ok, 1));
    assert_eq!(client.event(connect.1).status, Status::Cancelled);
    let again = client.status(|ual, done| ual.connect_to(late, address(1, 7), done));
    assert_eq!(again, Status::Refused);
}

#[test]
fn an_unknown_operation_or_queue_is_invalid() {
    let (near, _far) = engines(IdleMode::Adaptive);
    let mut one = Application::new(&near);
    let raw = |operation, queue, tag| Descriptor {
        operation,
        queue,
        socket: 0,
        tag,
        offset: 0,
        length: 0,
        argument: 0,
    };
    for (descriptor, tag) in [
        (raw(99, 0, 1), 1),
        (raw(1, 9, 2), 2),
        (raw(1, u16::MAX, 3), 3),
    ] {
        one.ual.post(descriptor).expect("room");
        let event = one.event(tag);
        assert_eq!((event.status, event.operation), (Status::Invalid, None));
    }
    assert_eq!(near.statistics().expelled, 0);
}
