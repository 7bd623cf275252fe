//! Attaching over a control socket, and what each side sees of the other's end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dti::bell::Doorbell;
use dti::control::{self, Answer, Heard};
use dti::layout::{Descriptor, Sizes};
use dti::mapped::Mapping;

/// The next application that says hello; others, such as an engine that looks whether one
/// listens already, are let go.
fn greet(listener: BorrowedFd<'_>) -> OwnedFd {
    loop {
        let Some(socket) = control::accept(listener).expect("a listener") else {
            std::thread::yield_now();
            continue;
        };
        while matches!(control::hear(socket.as_fd()), Heard::Nothing) {
            std::thread::yield_now();
        }
        // The hello was taken by the look above if it was one; an end can be seen again.
        if !matches!(control::hear(socket.as_fd()), Heard::End) {
            return socket;
        }
    }
}

#[test]
fn an_application_gets_its_files_and_both_sides_see_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ppe.sock");
    let listener = control::listen(&path).expect("a socket");
    let again = control::listen(&path).expect_err("an engine listens there");
    assert_eq!(again.kind(), std::io::ErrorKind::AddrInUse);
    let place = path.clone();
    let application = std::thread::spawn(move || control::attach(&place, Sizes::default()));
    let accepted = greet(listener.as_fd());
    let memory = Mapping::create(64).expect("memory");
    let doorbell = Doorbell::create().expect("an eventfd");
    let files = [memory.file(), memory.file(), doorbell.as_fd()];
    control::answer(
        accepted.as_fd(),
        Answer::Attached,
        (5, Sizes::default()),
        &files,
    );
    let attachment = application.join().expect("no panic").expect("attached");
    assert_eq!(control::peer(&accepted).process, std::process::id());
    assert_eq!(attachment.engine, 5);
    let other = Mapping::open(attachment.memory).expect("a sealed file");
    assert_eq!(dti::words::Words::len(&other), 64);

    control::wake(accepted.as_fd());
    // The byte, and that there is none more.
    let taken = control::take_wake_ups(attachment.control.as_fd());
    assert_eq!(taken, (true, 2));
    drop(accepted);
    let taken = control::take_wake_ups(attachment.control.as_fd());
    assert_eq!(taken, (false, 1));
}

#[test]
fn an_application_that_ends_or_talks_nonsense_is_seen() {
    let (near, far) = control::pair().expect("a pair");
    assert!(matches!(control::hear(near.as_fd()), Heard::Nothing));
    control::wake(far.as_fd());
    assert!(matches!(control::hear(near.as_fd()), Heard::Nonsense));
    drop(far);
    assert!(matches!(control::hear(near.as_fd()), Heard::End));
}

#[test]
fn a_registration_is_a_descriptor_with_a_file() {
    let (near, far) = control::pair().expect("a pair");
    let work = Descriptor {
        operation: 13,
        queue: 1,
        socket: 0,
        tag: 7,
        offset: 8,
        length: 64,
        argument: 3,
    };
    let own = Mapping::create(64).expect("memory");
    control::register(far.as_fd(), work, own.file()).expect("room");
    let Heard::Registration(heard, file) = control::hear(near.as_fd()) else {
        panic!("no registration");
    };
    assert_eq!(heard, work);
    let mapped = Mapping::open_foreign(file).expect("sealed");
    assert!(mapped.is_writable());
    // Without a file it is nonsense.
    let flags = rustix::net::SendFlags::empty();
    rustix::net::send(&far, zerocopy::IntoBytes::as_bytes(&work), flags).expect("room");
    assert!(matches!(control::hear(near.as_fd()), Heard::Nonsense));
}

#[test]
fn an_engine_that_is_full_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ppe.sock");
    let listener = control::listen(&path).expect("a socket");
    let place = path.clone();
    let application = std::thread::spawn(move || control::attach(&place, Sizes::default()));
    let accepted = greet(listener.as_fd());
    control::answer(accepted.as_fd(), Answer::Full, (5, Sizes::default()), &[]);
    let refused = application.join().expect("no panic");
    let refused = refused.expect_err("full");
    assert_eq!(refused.kind(), std::io::ErrorKind::QuotaExceeded);
}
