//! What a packet costs does not depend on the connections: counted, not timed.

mod support;

use std::time::Duration;

use dusi::{Sizes, Socket, Status};
use eta::{IdleMode, StackStatistics};
use support::*;

/// Connections that exchange messages.
const ACTIVE: usize = 10;
/// Messages of each.
const ROUNDS: usize = 20;

/// Opens connections on which nothing happens then.
fn open(server: &mut Application, listener: Socket, client: &mut Application, count: usize) {
    const BATCH: usize = 64;
    for first in (0..count).step_by(BATCH) {
        let mut tags = Vec::new();
        for _ in first..count.min(first + BATCH) {
            let accept = server.done();
            server.ual.accept(listener, accept).expect("room");
            let (socket, made, connect) = (
                client.ual.socket((client.queue, 0)),
                client.done(),
                client.done(),
            );
            let socket = socket.expect("a handle");
            // Small buffers, as ten thousand connections have them.
            for option in SMALL {
                client
                    .ual
                    .set_option(socket, option, 4096, made)
                    .expect("room");
            }
            client
                .ual
                .connect_to(socket, address(1, 80), connect)
                .expect("room");
            tags.push((accept.1, made.1, connect.1));
        }
        for (accept, made, connect) in tags {
            assert_eq!(client.event(0).status, Status::Ok);
            assert_eq!(client.event(made).status, Status::Ok);
            assert_eq!(client.event(made).status, Status::Ok);
            assert_eq!(client.event(connect).status, Status::Ok);
            assert_eq!(server.event(accept).status, Status::Ok);
        }
    }
}

/// Frames and sets looked at while the active connections exchange their messages, beside `idle`
/// others.
fn cost(idle: usize) -> (StackStatistics, f64) {
    let (near, far) = engines(IdleMode::Sleep);
    let sizes = Sizes {
        work: 1024,
        sockets: 16_384,
        // A batch of accepts.
        depth: 64,
        // 4 KB for each connection.
        anonymous: 32_768,
        ..Sizes::default()
    };
    let mut server = Application::with_sizes(&near, sizes);
    let mut client = Application::with_sizes(&far, sizes);
    let listener = server.small_listener(80, 256);
    open(&mut server, listener, &mut client, idle);
    let pairs: Vec<_> = (0..ACTIVE)
        .map(|_| connected(&mut server, listener, &mut client, address(1, 80)))
        .collect();
    // Delayed acknowledgements of the openings are over.
    std::thread::sleep(Duration::from_millis(100));
    let before = near.statistics();
    for round in 0..ROUNDS {
        for (child, socket) in &pairs {
            let bytes = [round as u8; 512];
            send(&mut client, *socket, &bytes);
            assert_eq!(receive(&mut server, *child, 512), bytes);
        }
    }
    let after = near.statistics();
    assert_eq!(after.stack.connections, (idle + ACTIVE) as u64);
    let frames = after.stack.frames - before.stack.frames;
    let looked_at = after.stack.looked_at - before.stack.looked_at;
    (after.stack, looked_at as f64 / frames as f64)
}

#[test]
fn ten_thousand_idle_connections_cost_the_active_ones_no_step() {
    let (_, few) = cost(0);
    let (statistics, many) = cost(10_000);
    assert_eq!(statistics.refused, 0);
    // A frame, what it makes the connection send, a timer, and an operation now and then.
    assert!(few < 6.0, "{few} sets looked at for each frame");
    assert!(
        many < few + 1.0,
        "{many} sets for each frame, {few} with few connections"
    );
}
