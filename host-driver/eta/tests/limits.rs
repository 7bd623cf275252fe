//! Limits of smoltcp that stay, each as it shows at the wire. A test here that fails because smoltcp
//! has become better is good news: the page that lists them is to be changed with it.

mod support;

use std::time::{Duration, Instant};

use dusi::{Socket, Status};
use eta::Settings;
use eta::memory_wire::pair;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpAddress, Ipv4Address, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};
use support::peer::{Heard, Peer};
use support::*;

const SEGMENT: usize = 1460;

struct Site {
    _engine: Running,
    server: Application,
    peer: Peer,
    child: Socket,
    /// The engine's next number.
    next: i32,
}

impl Site {
    fn new() -> Self {
        let (near, far) = pair().expect("descriptors");
        let engine = Running::start(near, 1, Settings::default());
        let mut server = Application::new(&engine);
        let listener = server.listener(80, 4);
        let peer = Peer::new(far, 50_000);
        let accept = server.done();
        server.ual.accept(listener, accept).expect("room");
        let next = peer.open(80, 1000);
        let child = server.event(accept.1).child.expect("a connection");
        Self {
            _engine: engine,
            server,
            peer,
            child,
            next,
        }
    }

    fn transmit(&mut self, bytes: usize) {
        let region = self.server.region(bytes);
        let (child, done) = (self.child, self.server.done());
        let posted = self.server.ual.transmit(child, &region, bytes, done);
        posted.expect("room");
    }

    /// The segments with payload until there is none for a while.
    fn burst(&self, pause: Duration) -> Vec<Heard> {
        let mut all = Vec::new();
        while let Some(heard) = self.peer.hear_within(pause) {
            if !heard.payload.is_empty() {
                all.push(heard);
            }
        }
        all
    }
}

#[test]
fn the_first_window_is_two_segments() {
    let mut site = Site::new();
    site.transmit(20 * SEGMENT);
    let sent = site.burst(Duration::from_millis(200));
    let bytes: usize = sent.iter().map(|one| one.payload.len()).sum();
    // Linux sends ten.
    assert!(bytes > 0 && bytes <= 2 * SEGMENT, "{bytes} bytes");
}

#[test]
fn nothing_is_sent_again_before_a_second() {
    let mut site = Site::new();
    site.transmit(100);
    let first = site.burst(Duration::from_millis(1));
    let start = Instant::now();
    let first = first.first().cloned().unwrap_or_else(|| site.peer.hear());
    let again = site.peer.hear();
    assert_eq!(again.sequence, first.sequence);
    // Linux waits 200 ms on such a wire.
    let waited = start.elapsed();
    assert!(waited > Duration::from_millis(800), "{waited:?}");
}

#[test]
fn what_the_peer_has_selectively_acknowledged_is_sent_again() {
    let mut site = Site::new();
    site.transmit(2 * 1000);
    let sent = site.burst(Duration::from_millis(100));
    let all: usize = sent.iter().map(|one| one.payload.len()).sum();
    assert_eq!(all, 2000, "{sent:?}");
    // The first hundred bytes are lost; the peer has the others, and says so.
    let lost = site.next;
    let kept = (lost as u32 + 100, lost as u32 + 2000);
    let tcp = TcpRepr {
        src_port: 50_000,
        dst_port: 80,
        control: TcpControl::None,
        seq_number: TcpSeqNumber(1001),
        ack_number: Some(TcpSeqNumber(lost)),
        window_len: 60_000,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [Some(kept), None, None],
        timestamp: None,
        payload: &[],
    };
    let plain = TcpControl::None;
    let mut frame = site
        .peer
        .frame_from(50_000, 80, plain, 1001, Some(lost), &[0; 12]);
    // In place of those twelve bytes the option.
    assert_eq!(tcp.buffer_len(), 20 + 12);
    let (from, to) = (
        Ipv4Address::new(10, 77, 0, 9),
        Ipv4Address::new(10, 77, 0, 1),
    );
    tcp.emit(
        &mut TcpPacket::new_unchecked(&mut frame[34..]),
        &IpAddress::Ipv4(from),
        &IpAddress::Ipv4(to),
        &ChecksumCapabilities::default(),
    );
    site.peer.put(frame);
    let again = site.burst(Duration::from_millis(1500));
    let bytes: usize = again.iter().map(|one| one.payload.len()).sum();
    // A sender that looks at the ranges sends a hundred bytes.
    assert!(bytes > 1000, "{bytes} bytes again");
}

#[test]
fn any_reset_in_the_window_ends_a_connection() {
    let mut site = Site::new();
    // RFC 5961 asks for the exact number: 1001.
    site.peer.send(80, TcpControl::Rst, 1001 + 5000, None);
    let room = site.server.region(64);
    let child = site.child;
    let (_, event) = site.server.run(|ual, done| ual.receive(child, &room, done));
    assert_eq!(event.status, Status::Reset);
}

#[test]
fn a_reset_beyond_the_window_does_not() {
    let mut site = Site::new();
    for beyond in [900, 1001 + 70_000, i32::MIN] {
        site.peer.send(80, TcpControl::Rst, beyond, None);
    }
    let next = Some(site.next);
    let plain = TcpControl::None;
    site.peer.send_with(80, plain, 1001, next, b"lives");
    assert_eq!(receive(&mut site.server, site.child, 5), b"lives");
}

#[test]
fn one_neighbour_a_second_is_asked_for() {
    let (near, far) = pair().expect("descriptors");
    let engine = Running::start(near, 1, Settings::default());
    let mut client = Application::new(&engine);
    for last in [20, 21, 22] {
        let (socket, done) = (client.socket(), client.done());
        let posted = client.ual.connect_to(socket, address(last, 80), done);
        posted.expect("room");
    }
    let start = Instant::now();
    let (mut soon, mut later) = (0, 0);
    while start.elapsed() < Duration::from_millis(1600) {
        match far.take() {
            Some(frame) if frame[12..14] == [8, 6] => {
                if start.elapsed() < Duration::from_millis(700) {
                    soon += 1;
                } else {
                    later += 1;
                }
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    assert_eq!(soon, 1, "of three neighbours");
    assert!((1..=2).contains(&later), "{later} later");
}

#[test]
fn first_numbers_are_the_systems_random_ones() {
    let numbers: Vec<_> = (0..4).map(|_| Site::new().next).collect();
    for (place, number) in numbers.iter().enumerate() {
        assert!(!numbers[..place].contains(number), "{numbers:?}");
    }
}
