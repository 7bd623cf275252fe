//! What a listening socket's backlog bounds.

mod support;

use eta::Settings;
use eta::memory_wire::pair;
use smoltcp::wire::TcpControl;
use support::peer::Peer;
use support::*;

/// Half-open and waiting connections have a backlog each: one does not take the other's places.
#[test]
fn a_connection_that_waits_leaves_room_for_syns_and_full_rooms_do_not() {
    let (near, far) = pair().expect("descriptors");
    let engine = Running::start(near, 1, Settings::default());
    let mut server = Application::new(&engine);
    server.listener(80, 2);
    let peer = Peer::new(far, 50_000);
    let knock = |port| peer.put(peer.frame_from(port, 80, TcpControl::Syn, 1000, None, &[]));
    // Nobody accepts it; by the time that its data is acknowledged it waits.
    let next = peer.open(80, 1000);
    peer.send_with(80, TcpControl::None, 1001, Some(next), b"data");
    assert_eq!(peer.hear().acknowledged, Some(1005));
    knock(50_001);
    knock(50_002);
    let found = engine.until("two half-open ones beside it", |found| {
        found.stack.opened == 3
    });
    assert_eq!(found.stack.refused, 0);
    knock(50_003);
    let found = engine.until("a SYN too many", |found| found.stack.refused == 1);
    assert_eq!(found.stack.opened, 3);
}
