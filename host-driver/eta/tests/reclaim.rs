//! Applications that end or write nonsense: what they had comes back, and others see nothing.

mod support;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dti::bell::Doorbell;
use dti::layout::{Sizes, event_queue_armed};
use dti::mapped::Mapping;
use dti::words::Words;
use dusi::{DusiError, Status};
use eta::{EngineError, IdleMode, Quota, Settings};
use support::*;

#[test]
fn an_application_that_ends_leaves_nothing() {
    let (near, far) = engines(IdleMode::Sleep);
    let mut stays = Application::new(&near);
    let mut client = Application::new(&far);
    let own = stays.listener(81, 4);
    let (child, socket) = connected(&mut stays, own, &mut client, address(1, 81));

    let mut ends = Application::new(&near);
    let listener = ends.listener(80, 8);
    let (_accepted, first) = connected(&mut ends, listener, &mut client, address(1, 80));
    // One more waits to be accepted.
    let second = client.socket();
    let connect = client.status(|ual, done| ual.connect_to(second, address(1, 80), done));
    assert_eq!(connect, Status::Ok);
    let (mut waits, region) = (Vec::new(), client.region(64));
    for socket in [first, second] {
        let done = client.done();
        client.ual.receive(socket, &region, done).expect("room");
        waits.push(done.1);
    }
    let start = Instant::now();
    drop(ends);
    for tag in waits {
        assert_eq!(client.event(tag).status, Status::Reset);
    }
    let found = near.until("its end", |found| found.ended == 1);
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(found.expelled, 0);
    // Only the other application's connection is left, and the port is free.
    near.until("its connections' end", |found| found.stack.connections == 1);
    let mut next = Application::new(&near);
    next.listener(80, 4);
    send(&mut client, socket, b"undisturbed");
    assert_eq!(receive(&mut stays, child, 11), b"undisturbed");
}

#[test]
fn an_application_that_writes_nonsense_is_expelled_alone() {
    let (near, far) = engines(IdleMode::Sleep);
    let (mut stays, mut client) = (Application::new(&near), Application::new(&far));
    let listener = stays.listener(80, 4);
    let (child, socket) = connected(&mut stays, listener, &mut client, address(1, 80));
    let work = Sizes::default().work_queue().start;
    let events = Sizes::default().event_queue(0).start;
    // Producer and consumer indices that no run of the protocol gives.
    for (number, (word, value)) in [(work, 1 << 40), (events + 8, 1 << 40), (work, u64::MAX)]
        .into_iter()
        .enumerate()
    {
        let attachment = near.attach(Sizes::default());
        let doorbell = Doorbell::of(attachment.doorbell);
        let memory = Mapping::open(attachment.memory).expect("sealed");
        if word != work {
            // The event queue is looked at when there is a descriptor for it.
            memory.store(work + 16, 1, Ordering::Relaxed);
            memory.store(work, 1, Ordering::Release);
        }
        memory.store(word, value, Ordering::Release);
        doorbell.ring().expect("a doorbell");
        near.until("its expulsion", |found| found.expelled == number as u64 + 1);
        // It learns that at once.
        let control = std::os::fd::AsFd::as_fd(&attachment.control);
        assert!(!dti::control::take_wake_ups(control).0);
    }
    send(&mut client, socket, b"undisturbed");
    assert_eq!(receive(&mut stays, child, 11), b"undisturbed");
}

#[test]
fn memory_written_at_any_time_hurts_only_its_owner() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut stays, mut client) = (Application::new(&near), Application::new(&far));
    let listener = stays.listener(80, 4);
    let (child, socket) = connected(&mut stays, listener, &mut client, address(1, 80));
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..40 {
        let sizes = Sizes {
            work: 16,
            events: 16,
            pool: 4096,
            sockets: 64,
            queues: 4,
            anonymous: 4,
            ..Sizes::default()
        };
        let attachment = near.attach(sizes);
        let doorbell = Doorbell::of(attachment.doorbell);
        let memory = Mapping::open(attachment.memory).expect("sealed");
        let (work, words) = (sizes.work_queue().start, memory.len() as u64);
        for step in 0..400u64 {
            // Plausible descriptors, published one by one, beside words written anywhere.
            if step % 4 == 0 {
                memory.store((random() % words) as usize, random(), Ordering::Relaxed);
            }
            let entry = work + 16 + 4 * (step % 16) as usize;
            let queue = random() % 4;
            let operation = (random() % 19) | (queue << 16) | ((random() % 4) << 32);
            memory.store(entry, operation, Ordering::Relaxed);
            memory.store(
                entry + 2,
                (random() % 64) | (random() % 64) << 32,
                Ordering::Relaxed,
            );
            memory.store(entry + 3, random() % 5, Ordering::Relaxed);
            memory.store(work, step, Ordering::Release);
        }
        memory.store(event_queue_armed(0), 1, Ordering::Relaxed);
        doorbell.ring().expect("a doorbell");
    }
    near.until("all of their ends", |found| found.ended == 40);
    send(&mut client, socket, b"undisturbed");
    assert_eq!(receive(&mut stays, child, 11), b"undisturbed");
}

#[test]
fn an_engine_that_ends_is_an_error_at_once() {
    let (near, _far) = engines(IdleMode::Sleep);
    let mut one = Application::new(&near);
    let start = Instant::now();
    let waiter = std::thread::spawn(move || one.ual.wait_all(one.queue, LIMIT));
    std::thread::sleep(Duration::from_millis(50));
    drop(near);
    let ended = waiter.join().expect("no panic");
    assert!(matches!(ended, Err(DusiError::EngineEnded)), "{ended:?}");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn quotas_hold() {
    let (one, other) = eta::memory_wire::pair().expect("descriptors");
    let settings = Settings {
        applications: 1,
        // One connection of the usual size.
        quota: Quota {
            buffers: 128 * 1024,
            ..Quota::default()
        },
        ..Settings::default()
    };
    let near = Running::start(one, 1, settings);
    let far = Running::start(other, 2, Settings::default());
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let full = near.with(|engine| engine.attach().err());
    assert!(matches!(full, Some(EngineError::Full(1))), "{full:?}");
    let listener = server.listener(80, 4);
    let (child, _socket) = connected(&mut server, listener, &mut client, address(1, 80));
    let mut second = client.socket();
    let connect = client.status(|ual, done| ual.connect_to(second, address(1, 80), done));
    assert_eq!(connect, Status::Ok);
    assert_eq!(
        server.status(|ual, done| ual.accept(listener, done)),
        Status::Quota
    );
    let out = server.socket();
    let connect = server.status(|ual, done| ual.connect_to(out, address(2, 9), done));
    assert_eq!(connect, Status::Quota);
    // What is given back can be used again: the connection has waited.
    assert_eq!(
        server.status(|ual, done| ual.close(child, done)),
        Status::Ok
    );
    let (_, event) = server.run(|ual, done| ual.accept(listener, done));
    assert_eq!(event.status, Status::Ok);
    let child = event.child.expect("a connection");
    send(&mut server, child, b"late");
    assert_eq!(receive(&mut client, second, 4), b"late");
    second = client.socket();
    assert_eq!(
        client.status(|ual, done| ual.close(second, done)),
        Status::Ok
    );
}

#[test]
fn a_full_event_queue_holds_up_its_own_operations_and_none_is_lost() {
    let (near, _far) = engines(IdleMode::Sleep);
    let sizes = Sizes {
        work: 256,
        events: 4,
        pool: 4096,
        sockets: 256,
        ..Sizes::default()
    };
    let mut one = Application::with_sizes(&near, sizes);
    let second = one.ual.create_event_queue().expect("a queue");
    for tag in 0..4 {
        one.ual.socket((second, tag)).expect("room");
    }
    near.until("four descriptors", |found| found.descriptors == 4);
    // That queue is full now: the other one still works.
    for _ in 0..20 {
        one.socket();
    }
    // Twenty more for the full queue: all come, once each, as it is emptied.
    for tag in 4..24 {
        one.ual.socket((second, tag)).expect("room");
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(
        near.statistics().descriptors,
        24,
        "no more than it can complete"
    );
    let mut expected = 0;
    while expected < 24 {
        for event in one.ual.wait_all(second, LIMIT).expect("the engine lives") {
            assert_eq!((event.tag, event.status), (expected, Status::Ok));
            expected += 1;
        }
    }
    assert!(one.ual.calls().rings > 0);
}

#[test]
fn an_idle_engine_sleeps_and_an_idle_application_too() {
    for idle in [IdleMode::Sleep, IdleMode::Adaptive] {
        let (near, far) = engines(idle);
        let (mut server, mut client) = (Application::new(&near), Application::new(&far));
        let listener = server.listener(80, 4);
        let (child, socket) = connected(&mut server, listener, &mut client, address(1, 80));
        let before = near.statistics();
        std::thread::sleep(Duration::from_millis(200));
        let after = near.statistics();
        // The harness lets an engine sleep for a millisecond at most.
        let turns = after.idle - before.idle;
        assert!(
            after.sleeps > before.sleeps + 50,
            "{idle:?}: {before:?} {after:?}"
        );
        assert!(turns < 20_000, "{idle:?}: {turns} turns in 200 ms");
        // Whoever sleeps is woken for each of many messages.
        for round in 0..200u32 {
            let bytes = round.to_ne_bytes();
            send(&mut client, socket, &bytes);
            assert_eq!(receive(&mut server, child, 4), bytes);
        }
    }
}
