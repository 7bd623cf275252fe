//! Tests the server's TCP and the clients, with a wire between them that each test controls.

use super::clients::{Clients, Load, Seen};
use super::connections::Connections;
use super::file;
use smoltcp::wire::{EthernetFrame, Ipv4Packet, TcpPacket};

const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FILE: usize = 20 * 1024;
const MS: u64 = 1_000_000;

/// What becomes of the frames that the server sends next.
type Wire = fn(number: u64, frames: Vec<Vec<u8>>) -> Vec<Vec<u8>>;

/// Serves all requests for some milliseconds, without a host in between.
fn talk(mtu: u16, ms: u64, wire: Wire) -> (Seen, Connections) {
    let load = Load {
        machines: 2,
        connections: 4,
        file_bytes: FILE,
        services: vec![80, 81],
        mtu,
    };
    let mut clients = Clients::new(load.clone(), SERVER, 1, 0);
    let mut server = Connections::new(mtu, SERVER, load.services, 2);
    let (content, mut number) = (file::of(FILE), 0);
    let mut now = 0;
    while now < ms * MS {
        let due = clients.due().unwrap_or(u64::MAX);
        let tick = (now / MS + 1) * MS;
        now = due.min(tick);
        let mut answers = if now == tick {
            server.expire(now)
        } else {
            Vec::new()
        };
        for frame in clients.act(now) {
            let (outcome, frames) = server.receive(now, frame);
            answers.extend(frames);
            if outcome.readable
                && let Some(connection) = outcome.connection
                && server.read(connection)
            {
                answers.extend(server.respond(now, connection, &content));
            }
        }
        if !answers.is_empty() {
            number += 1;
            for frame in wire(number, answers) {
                clients.arrive(now, frame);
            }
        }
    }
    (clients.seen().clone(), server)
}

#[test]
fn files_arrive_whole() {
    for mtu in [1500, 9000] {
        let (seen, server) = talk(mtu, 100, |_, frames| frames);
        assert!(seen.files > 40, "{seen:?}");
        assert_eq!((seen.failed, seen.wrong, seen.expired), (0, 0, 0));
        assert!(server.len() <= 4, "closed connections are forgotten");
    }
}

/// What arrives in another order is put in order by the receiver, not lost or doubled. A FIN stays
/// behind the data: a client forgets one that comes early, and the server sends it again a second
/// later.
#[test]
fn reordered_segments_make_a_whole_file() {
    let (seen, _) = talk(1500, 300, |_, mut frames| {
        frames.reverse();
        frames.sort_by_key(|frame| ends_a_connection(frame));
        frames
    });
    assert!(seen.files > 40, "{seen:?}");
    assert_eq!((seen.failed, seen.wrong), (0, 0));
}

/// What is lost is sent again: late, but nothing is missing.
#[test]
fn lost_segments_are_sent_again() {
    let (seen, _) = talk(1500, 5_000, |number, frames| {
        if number % 23 == 0 { Vec::new() } else { frames }
    });
    assert!(seen.files > 10, "{seen:?}");
    assert_eq!((seen.failed, seen.wrong), (0, 0));
}

/// A first window of one segment, and one more for each acknowledgement: most of a file is
/// sent because of acknowledgements, as the paper's model wants it.
#[test]
fn most_segments_answer_acknowledgements() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static LARGEST: AtomicU64 = AtomicU64::new(0);
    talk(1500, 100, |_, frames| {
        LARGEST.fetch_max(frames.len() as u64, Ordering::Relaxed);
        frames
    });
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!((2..=4).contains(&largest), "{largest} of 15 at once");
}

fn ends_a_connection(frame: &[u8]) -> bool {
    let frame = EthernetFrame::new_checked(frame).expect("a frame");
    let packet = Ipv4Packet::new_checked(frame.payload()).expect("a packet");
    TcpPacket::new_checked(packet.payload()).is_ok_and(|segment| segment.fin())
}
