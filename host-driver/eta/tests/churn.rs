//! Many connections, one after the other: memory, ports and handles come back.

mod support;

use std::time::Instant;

use dusi::Status;
use eta::Settings;
use eta::memory_wire::pair;
use support::*;

/// Kilobytes of this process's memory.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    const WARM: usize = 1500;
    // A longer run: ETA_TEST_CONNECTIONS=100000.
    let rounds = std::env::var("ETA_TEST_CONNECTIONS").map_or(Ok(6000), |text| text.parse());
    let rounds: usize = rounds.expect("a number");
    let (one, other) = pair().expect("descriptors");
    let near = Running::start(one, 1, Settings::default());
    let far = Running::start(other, 2, Settings::default());
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.small_listener(80, 16);
    let mut before = 0;
    let start = Instant::now();
    for round in 0..rounds {
        if round == WARM {
            before = memory();
        }
        let accept = server.done();
        server.ual.accept(listener, accept).expect("room");
        let socket = client.small_socket();
        let connect = client.status(|ual, done| ual.connect_to(socket, address(1, 80), done));
        assert_eq!(connect, Status::Ok, "round {round}");
        let child = server.event(accept.1).child.expect("a connection");
        // Ended by one side, by the other, or reset.
        if round % 3 == 0 {
            assert_eq!(
                server.status(|ual, done| ual.shutdown(child, done)),
                Status::Ok
            );
            assert!(receive(&mut client, socket, 1).is_empty());
        } else if round % 3 == 1 {
            assert_eq!(
                client.status(|ual, done| ual.shutdown(socket, done)),
                Status::Ok
            );
            assert!(receive(&mut server, child, 1).is_empty());
        }
        assert_eq!(
            client.status(|ual, done| ual.close(socket, done)),
            Status::Ok
        );
        assert_eq!(
            server.status(|ual, done| ual.close(child, done)),
            Status::Ok
        );
    }
    let (after, took) = (memory(), start.elapsed());
    assert!(
        after < before + 8 * 1024,
        "{before} kB after {WARM}, {after} kB after {rounds} connections"
    );
    for engine in [&near, &far] {
        // Those in TIME-WAIT are bounded.
        engine.until("the connections' ends", |found| {
            found.stack.connections <= 520
        });
    }
    println!("{rounds} connections in {took:?}");
}
