//! Attaching over a control socket, and what each side sees of the other's end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dti::bell::Doorbell;
use dti::control::{self, Answer, Heard};
use dti::layout::Sizes;
use dti::mapped::Mapping;

/// The next application that says hello; others, such as an engine that looks whether one
/// listens already, are let go.
fn greet(listener: BorrowedFd<'_>) -> OwnedFd {
    loop {
        let Some(socket) = control::accept(listener).expect("a listener") else {
            std::thread::yield_now();
            continue;
        };
        while control::hear(socket.as_fd()) == Heard::Nothing {
            std::thread::yield_now();
        }
        // The hello was taken by the look above if it was one; an end can be seen again.
        if control::hear(socket.as_fd()) != Heard::End {
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
    let files = [memory.file(), doorbell.as_fd()];
    control::answer(accepted.as_fd(), Answer::Attached, Sizes::default(), &files);
    let attachment = application.join().expect("no panic").expect("attached");
    assert_eq!(control::peer(&accepted).process, std::process::id());
    let other = Mapping::open(attachment.memory).expect("a sealed file");
    assert_eq!(dti::words::Words::len(&other), 64);

    control::wake(accepted.as_fd());
    assert!(control::take_wake_ups(attachment.control.as_fd()));
    drop(accepted);
    assert!(!control::take_wake_ups(attachment.control.as_fd()));
}

#[test]
fn an_application_that_ends_or_talks_nonsense_is_seen() {
    let (near, far) = control::pair().expect("a pair");
    assert_eq!(control::hear(near.as_fd()), Heard::Nothing);
    control::wake(far.as_fd());
    assert_eq!(control::hear(near.as_fd()), Heard::Nonsense);
    drop(far);
    assert_eq!(control::hear(near.as_fd()), Heard::End);
}

#[test]
fn an_engine_that_is_full_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ppe.sock");
    let listener = control::listen(&path).expect("a socket");
    let place = path.clone();
    let application = std::thread::spawn(move || control::attach(&place, Sizes::default()));
    let accepted = greet(listener.as_fd());
    control::answer(accepted.as_fd(), Answer::Full, Sizes::default(), &[]);
    let refused = application.join().expect("no panic");
    let refused = refused.expect_err("full");
    assert_eq!(refused.kind(), std::io::ErrorKind::QuotaExceeded);
}
