//! A peer that opens a connection anew from a port whose last connection the engine still has.

mod support;

use std::time::Duration;

use dusi::Status;
use eta::Settings;
use eta::memory_wire::pair;
use smoltcp::wire::TcpControl;
use support::peer::Peer;
use support::*;

/// What "at once" means: less than the peer's first repetition.
const SOON: Duration = Duration::from_millis(500);

fn site() -> (Running, Application, dusi::Socket, Peer) {
    let (near, far) = pair().expect("descriptors");
    let engine = Running::start(near, 1, Settings::default());
    let mut server = Application::new(&engine);
    let listener = server.listener(80, 4);
    (engine, server, listener, Peer::new(far, 50_000))
}

#[test]
fn a_port_used_again_is_answered_though_the_application_has_not_closed_yet() {
    let (_engine, mut server, listener, peer) = site();
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let next = peer.open(80, 1000);
    let child = server.event(accept.1).child.expect("a connection");
    // Both sides end it: the engine is in TIME-WAIT, and the application still has the socket.
    let ended = server.status(|ual, done| ual.shutdown(child, done));
    assert_eq!(ended, Status::Ok);
    let fin = peer.hear();
    assert_eq!((fin.control, fin.sequence), (TcpControl::Fin, next));
    peer.send(80, TcpControl::Fin, 1001, Some(next.wrapping_add(1)));
    assert_eq!(peer.hear().acknowledged, Some(1002));
    // Linux gives out a port again at once.
    peer.send(80, TcpControl::Syn, 90_000, None);
    let answer = peer.hear_within(SOON).expect("an answer at once");
    assert_eq!(answer.control, TcpControl::Syn);
    assert_eq!(answer.acknowledged, Some(90_001));
    // The old socket is not the new connection's.
    let closed = server.status(|ual, done| ual.close(child, done));
    assert_eq!(closed, Status::Ok);
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let next = answer.sequence.wrapping_add(1);
    peer.send_with(80, TcpControl::None, 90_001, Some(next), b"again");
    let child = server.event(accept.1).child.expect("a connection");
    assert_eq!(receive(&mut server, child, 5), b"again");
}

#[test]
fn a_peer_that_has_forgotten_its_connection_gets_a_new_one() {
    let (_engine, mut server, listener, peer) = site();
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let next = peer.open(80, 1000);
    let child = server.event(accept.1).child.expect("a connection");
    // It starts again without a word, and asks from the same port.
    peer.send(80, TcpControl::Syn, 500_000, None);
    let challenge = peer.hear_within(SOON).expect("a challenge");
    assert_eq!(challenge.control, TcpControl::None);
    assert_eq!(challenge.acknowledged, Some(1001));
    assert_eq!(challenge.sequence, next);
    // RFC 9293, 3.5.1: who has no such connection answers by a reset, and repeats its SYN.
    peer.send(80, TcpControl::Rst, 1001, None);
    let room = server.region(64);
    let (_, event) = server.run(|ual, done| ual.receive(child, &room, done));
    assert_eq!(event.status, Status::Reset);
    let closed = server.status(|ual, done| ual.close(child, done));
    assert_eq!(closed, Status::Ok);
    peer.open(80, 500_000);
}

#[test]
fn a_forged_syn_ends_no_connection() {
    let (_engine, mut server, listener, peer) = site();
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let next = peer.open(80, 1000);
    let child = server.event(accept.1).child.expect("a connection");
    for guess in [0, 1001, 1002, 40_000, i32::MAX, i32::MIN] {
        peer.send(80, TcpControl::Syn, guess, None);
    }
    peer.send_with(80, TcpControl::None, 1001, Some(next), b"still here");
    assert_eq!(receive(&mut server, child, 10), b"still here");
}
