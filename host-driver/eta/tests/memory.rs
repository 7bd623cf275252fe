//! Memory of an application: regions of its own files, the anonymous pool, and what windows promise.

mod support;

use std::os::fd::{AsFd, OwnedFd};

use dti::mapped::Mapping;
use dti::words::{read_bytes, write_bytes};
use dusi::{DusiError, Sizes, SocketOption, Status};
use eta::memory_wire::pair;
use eta::{IdleMode, Quota, Settings};
use rustix::fs::{MemfdFlags, SealFlags};
use support::*;

const PORT: u16 = 80;

/// A memory file with some seals.
fn file(bytes: u64, seals: SealFlags) -> OwnedFd {
    let file = rustix::fs::memfd_create("own", MemfdFlags::ALLOW_SEALING);
    let file = file.expect("a memory file");
    rustix::fs::ftruncate(&file, bytes).expect("room");
    rustix::fs::fcntl_add_seals(&file, seals).expect("a fresh file");
    file
}

const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

#[test]
fn a_file_of_the_applications_own_is_a_region() {
    let (near, far) = engines(IdleMode::Sleep);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let own = file(1 << 20, FIXED);
    let mapping = Mapping::open(own.try_clone().expect("a handle")).expect("sealed");
    let bytes: Vec<u8> = (0..300_000u32).map(|byte| (byte * 7 % 251) as u8).collect();
    write_bytes(&mapping, 4096 / 8, &bytes);
    let range = (4096, 300_000);
    let (region, event) =
        client.run(|ual, done| ual.register_file(own.as_fd(), range, 0xBEEF, done));
    assert_eq!(event.status, Status::Ok);
    for in_place in [false, true] {
        let sent = client.done();
        let whole = (0, bytes.len());
        if in_place {
            let posted = client.ual.transmit_in_place(socket, &region, whole, sent);
            posted.expect("room");
        } else {
            let posted = client.ual.transmit_part(socket, &region, whole, sent);
            posted.expect("room");
        }
        assert!(receive(&mut server, child, bytes.len()) == bytes);
        assert_eq!(client.event(sent.1).status, Status::Ok);
    }
    // And received into.
    send(&mut server, child, b"back");
    let (_, event) = client.run(|ual, done| ual.receive(socket, &region, done));
    assert_eq!((event.status, event.length), (Status::Ok, 4));
    let mut back = [0; 4];
    read_bytes(&mapping, 4096 / 8, &mut back);
    assert_eq!(&back, b"back");
    // Its tag protects it, and its ranges are its own.
    let wrong =
        client.status(|ual, done| ual.transmit_showing(socket, &region, 0xBEE, (0, 8), done));
    assert_eq!(wrong, Status::Protection);
    assert!(matches!(
        client.ual.write(&region, b"x"),
        Err(DusiError::Range)
    ));
    let used = far.with(|engine| engine.applications().map(|(_, one)| one.files).sum::<u64>());
    assert_eq!(used, 1 << 20);
    client.ual.deregister(region).expect("no operation uses it");
    // Its number is free again, and the quota.
    let again = client.region(64);
    assert_eq!(
        client.status(|ual, done| ual.transmit(socket, &again, 64, done)),
        Status::Ok
    );
    let used = far.with(|engine| engine.applications().map(|(_, one)| one.files).sum::<u64>());
    assert_eq!(used, 0);
}

#[test]
fn files_that_could_hurt_the_engine_are_refused() {
    let (one, _other) = pair().expect("descriptors");
    let settings = Settings {
        quota: Quota {
            files: 1 << 20,
            regions: 2,
            ..Quota::default()
        },
        ..Settings::default()
    };
    let near = Running::start(one, 1, settings);
    let mut one = Application::new(&near);
    let mut register = |file: &OwnedFd, range, expected| {
        let (region, event) = one.run(|ual, done| ual.register_file(file.as_fd(), range, 0, done));
        assert_eq!(event.status, expected, "{range:?}");
        region
    };
    // It could be cut while the engine reads it.
    register(&file(4096, SealFlags::GROW), (0, 64), Status::Protection);
    register(&file(4096, SealFlags::empty()), (0, 64), Status::Protection);
    let zero = std::fs::File::open("/dev/zero").expect("a device");
    register(&zero.into(), (0, 64), Status::Protection);
    let (pipe, _end) = rustix::pipe::pipe().expect("a pipe");
    register(&pipe, (0, 64), Status::Protection);
    // Huge pages may not be there when they are touched. Systems without them make no such file.
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    if let Ok(huge) = rustix::fs::memfd_create("huge", flags)
        && rustix::fs::ftruncate(&huge, 2 << 20).is_ok()
        && rustix::fs::fcntl_add_seals(&huge, FIXED).is_ok()
    {
        register(&huge, (0, 64), Status::Protection);
    }
    // Beyond its end, and not at a word.
    let fine = file(4096, FIXED);
    register(&fine, (0, 4104), Status::Protection);
    register(&fine, (4, 64), Status::Protection);
    register(&fine, (u32::MAX - 7, 16), Status::Protection);
    // The quotas: bytes of files, and regions.
    register(&file((1 << 20) + 4096, FIXED), (0, 64), Status::Quota);
    register(&fine, (0, 64), Status::Ok);
    register(&fine, (64, 64), Status::Ok);
    register(&fine, (128, 64), Status::Quota);
    assert_eq!(near.statistics().expelled, 0);
}

#[test]
fn a_file_sealed_against_writing_is_only_sent_from() {
    let (near, far) = engines(IdleMode::Adaptive);
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(PORT, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let own = file(4096, SealFlags::empty());
    rustix::io::pwrite(&own, b"constant", 0).expect("room");
    rustix::fs::fcntl_add_seals(&own, FIXED | SealFlags::WRITE).expect("seals");
    let (region, event) = client.run(|ual, done| ual.register_file(own.as_fd(), (0, 8), 0, done));
    assert_eq!(event.status, Status::Ok);
    let sent = client.status(|ual, done| ual.transmit(socket, &region, 8, done));
    assert_eq!(sent, Status::Ok);
    assert_eq!(receive(&mut server, child, 8), b"constant");
    let got = client.status(|ual, done| ual.receive(socket, &region, done));
    assert_eq!(got, Status::Protection);
}

#[test]
fn registrations_wait_for_places_of_their_events() {
    let (near, _far) = engines(IdleMode::Sleep);
    let sizes = Sizes {
        events: 4,
        ..Sizes::default()
    };
    let mut one = Application::with_sizes(&near, sizes);
    let own = file(4096, FIXED);
    for tag in 0..20 {
        let done = (one.queue, tag);
        let made = one.ual.register_file(own.as_fd(), (0, 8), 0, done);
        made.expect("room");
    }
    let mut next = 0;
    while next < 20 {
        for event in one.ual.wait_all(one.queue, LIMIT).expect("it lives") {
            assert_eq!((event.tag, event.status), (next, Status::Ok));
            next += 1;
        }
    }
    // Who never looks at its events is let go.
    for tag in 0..100 {
        let done = (one.queue, tag);
        let made = one.ual.register_file(own.as_fd(), (0, 8), 0, done);
        if made.is_err() {
            break;
        }
    }
    near.until("its end", |found| found.expelled == 1);
}

#[test]
fn a_receive_without_a_region_takes_a_buffer_until_it_is_released() {
    let (near, far) = engines(IdleMode::Sleep);
    let sizes = Sizes {
        // Two connections of 4 KB, four buffers.
        anonymous: 4,
        ..Sizes::default()
    };
    let mut server = Application::with_sizes(&near, sizes);
    let mut client = Application::new(&far);
    let listener = server.small_listener(PORT, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, PORT));
    let receive = server.done();
    server.ual.receive_anonymous(child, receive).expect("room");
    send(&mut client, socket, b"anonymous");
    let event = server.event(receive.1);
    let buffer = event.buffer.expect("a buffer");
    let mut bytes = vec![0; buffer.len()];
    server.ual.read_buffer(buffer, &mut bytes).expect("in it");
    assert_eq!(bytes, b"anonymous");
    assert_eq!(
        server.status(|ual, done| ual.release_with(buffer, done)),
        Status::Ok
    );
    assert_eq!(
        server.status(|ual, done| ual.release_with(buffer, done)),
        Status::BadHandle
    );
    // One that stays posted takes all four, and goes on as they come back.
    let all = server.done();
    server.ual.receive_all(child, all).expect("room");
    let sent: Vec<u8> = (0..40_000u32).map(|byte| (byte * 13 % 251) as u8).collect();
    let region = client.region(sent.len());
    client.ual.write(&region, &sent).expect("in it");
    let done = client.done();
    client
        .ual
        .transmit_last(socket, &region, (0, sent.len()), done)
        .expect("room");
    let mut got: Vec<u8> = Vec::new();
    let mut kept = Vec::new();
    while kept.len() < 4 {
        let event = server.event(all.1);
        assert!(event.more, "{event:?}");
        kept.push(event.buffer.expect("a buffer"));
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(
        server.ual.number_of_events(server.queue).expect("honest"),
        0
    );
    loop {
        for buffer in kept.drain(..) {
            let start = got.len();
            got.resize(start + buffer.len(), 0);
            let read = server.ual.read_buffer(buffer, &mut got[start..]);
            read.expect("in it");
            server.ual.release(buffer).expect("room");
        }
        let event = server.event(all.1);
        match event.buffer {
            Some(buffer) => kept.push(buffer),
            None => {
                // The end of the stream.
                assert_eq!(
                    (event.status, event.length, event.more),
                    (Status::Ok, 0, false)
                );
                break;
            }
        }
    }
    assert!(got == sent);
}

#[test]
fn windows_promise_no_more_than_the_pool() {
    let (near, far) = engines(IdleMode::Adaptive);
    let sizes = Sizes {
        // 8 KB: two connections of 4 KB.
        anonymous: 4,
        ..Sizes::default()
    };
    let mut server = Application::with_sizes(&near, sizes);
    let mut client = Application::new(&far);
    let listener = server.small_listener(PORT, 8);
    let (first, _) = connected(&mut server, listener, &mut client, address(1, PORT));
    let (_second, _) = connected(&mut server, listener, &mut client, address(1, PORT));
    let promised = near.with(|engine| {
        let mut all = engine.applications();
        all.next().map(|(_, one)| one.promised)
    });
    assert_eq!(promised, Some(8192));
    let third = client.socket();
    client.status(|ual, done| ual.connect_to(third, address(1, PORT), done));
    let refused = server.status(|ual, done| ual.accept(listener, done));
    assert_eq!(refused, Status::Quota);
    let out = server.small_socket();
    let refused = server.status(|ual, done| ual.connect_to(out, address(2, 9), done));
    assert_eq!(refused, Status::Quota);
    // A connection that ends takes its promise back.
    server.status(|ual, done| ual.close(first, done));
    let (_, event) = server.run(|ual, done| ual.accept(listener, done));
    assert_eq!(event.status, Status::Ok);
    let child = event.child.expect("a connection");
    let (_, room) =
        server.run(|ual, done| ual.get_option(child, SocketOption::ReceiveBuffer, done));
    assert_eq!(room.value, 4096);
    server.status(|ual, done| ual.close(child, done));
    // Of one that never came to be, too.
    let refused = server.status(|ual, done| ual.connect_to(out, address(2, 9), done));
    assert_eq!(refused, Status::Refused);
}
