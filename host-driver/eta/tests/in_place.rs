//! Sending without a copy: the bytes stay where they are until the peer has them.

mod support;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dusi::Status;
use eta::Settings;
use eta::memory_wire::{MemoryRx, MemoryTx, MemoryWire, pair};
use host_driver::DmaMemory;
use host_driver::nic::InPlace;
use host_driver::stack::{StackError, Wire};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{Ipv4Packet, TcpControl, TcpPacket};
use support::peer::Peer;
use support::*;

/// A wire that reads payload where it is, as a card does, and gives it back when the test says so.
struct Gathering {
    wire: MemoryWire,
    queued: u64,
    returned: Arc<AtomicU64>,
    /// Memory files that it has mapped.
    mapped: Arc<AtomicU64>,
}

/// The card's part: a segment's checksum.
fn sum(frame: &mut [u8]) {
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[14..]);
    let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
    let mut tcp = TcpPacket::new_unchecked(packet.payload_mut());
    tcp.fill_checksum(&from, &to);
}

/// Room for a frame whose checksum the wire makes.
struct GatheringTx<'a>(MemoryTx<'a>);

impl TxToken for GatheringTx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        self.0.consume(len, |frame| {
            let result = f(frame);
            if frame[12..14] == [8, 0] && frame[23] == 6 {
                sum(frame);
            }
            result
        })
    }
}

impl Device for Gathering {
    type RxToken<'t> = MemoryRx;
    type TxToken<'t> = GatheringTx<'t>;

    fn receive(&mut self, _: Instant) -> Option<(MemoryRx, GatheringTx<'_>)> {
        let frame = self.wire.take()?;
        Some((MemoryRx::of(frame), GatheringTx(self.wire.room())))
    }

    fn transmit(&mut self, _: Instant) -> Option<GatheringTx<'_>> {
        Some(GatheringTx(self.wire.room()))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = self.wire.capabilities();
        capabilities.checksum.tcp = Checksum::Rx;
        capabilities
    }
}

impl Wire for Gathering {
    fn flush(&mut self) -> Result<(), StackError> {
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), StackError> {
        self.wire.wait(timeout)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.wire.descriptor()
    }

    fn map(&mut self, file: OwnedFd) -> Result<Option<DmaMemory>, StackError> {
        self.mapped.fetch_add(1, Ordering::Relaxed);
        Ok(Some(DmaMemory::of_file(file, 0x1000)?))
    }

    fn unmap(&mut self, _: &DmaMemory) -> Result<(), StackError> {
        self.mapped.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn room_in_place(&self) -> usize {
        1
    }

    fn send_in_place(&mut self, frame: &mut [u8], header: usize, parts: &[InPlace<'_>]) {
        let mut whole = frame[..header].to_vec();
        for part in parts {
            let start = whole.len();
            whole.resize(start + part.bytes, 0);
            let place = &mut whole[start..];
            part.memory.read_bytes(part.offset, place).expect("in it");
        }
        assert_eq!(whole.len(), frame.len());
        sum(&mut whole);
        self.wire.put(whole);
        self.queued += 1;
    }

    fn queued(&self) -> u64 {
        self.queued
    }

    fn returned(&self) -> u64 {
        self.returned.load(Ordering::Relaxed)
    }
}

#[test]
fn bytes_stay_where_they_are_until_they_are_acknowledged() {
    let (near, far) = pair().expect("descriptors");
    let engine = Running::start(near, 1, Settings::default());
    let mut server = Application::new(&engine);
    let listener = server.listener(80, 4);
    let peer = Peer::new(far, 50_000);
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    let next = peer.open(80, 1000);
    let child = server.event(accept.1).child.expect("a connection");
    let region = server.region(4096);
    server.ual.write(&region, b"first words").expect("in it");
    let done = server.done();
    let posted = server.ual.transmit_in_place(child, &region, (0, 11), done);
    posted.expect("room");
    let heard = peer.hear();
    assert_eq!(
        (heard.sequence, &heard.payload[..]),
        (next, &b"first words"[..])
    );
    assert!(heard.whole, "a wrong checksum");
    // Not acknowledged: the engine sends the same bytes again, as they are then.
    server.ual.write(&region, b"other words").expect("in it");
    let heard = peer.hear();
    assert_eq!(
        (heard.sequence, &heard.payload[..]),
        (next, &b"other words"[..])
    );
    assert!(heard.whole, "a wrong checksum");
    let queue = server.queue;
    assert_eq!(server.ual.number_of_events(queue).expect("honest"), 0);
    let region = server.ual.deregister(region).expect_err("it is in use").0;
    // What is posted behind it completes behind it.
    let copied = server.done();
    server
        .ual
        .transmit_part(child, &region, (8, 3), copied)
        .expect("room");
    let heard = peer.hear();
    assert_eq!(&heard.payload[..], b"rds");
    assert_eq!(server.ual.number_of_events(queue).expect("honest"), 0);
    peer.send(80, TcpControl::None, 1001, Some(next.wrapping_add(14)));
    let event = server.event(done.1);
    assert_eq!((event.status, event.length), (Status::Ok, 11));
    assert_eq!(server.event(copied.1).status, Status::Ok);
    let counts = engine.statistics();
    assert_eq!((counts.in_place, counts.sent), (11, 3));
    // This wire takes whole frames: each of both is filled.
    assert_eq!((counts.stack.placeholders, counts.stack.filled), (22, 22));
    server.ual.deregister(region).expect("no operation uses it");
}

#[test]
fn a_socket_closed_before_the_acknowledgement_is_reset() {
    let (near, far) = pair().expect("descriptors");
    let engine = Running::start(near, 1, Settings::default());
    let mut server = Application::new(&engine);
    let listener = server.listener(80, 4);
    let peer = Peer::new(far, 50_000);
    let accept = server.done();
    server.ual.accept(listener, accept).expect("room");
    peer.open(80, 1000);
    let child = server.event(accept.1).child.expect("a connection");
    let region = server.region(64);
    let done = server.done();
    let posted = server.ual.transmit_in_place(child, &region, (0, 64), done);
    posted.expect("room");
    assert_eq!(peer.hear().payload.len(), 64);
    let ended = server.done();
    server.ual.shutdown(child, ended).expect("room");
    assert_eq!(peer.hear().control, TcpControl::Fin);
    let closed = server.status(|ual, done| ual.close(child, done));
    assert_eq!(closed, Status::Ok);
    assert_eq!(server.event(done.1).status, Status::Cancelled);
    assert_eq!(server.event(ended.1).status, Status::Cancelled);
    // The region is the application's again: nothing of it may be sent any more.
    assert_eq!(peer.hear().control, TcpControl::Rst);
    server.ual.deregister(region).expect("no operation uses it");
    engine.until("the connection is gone", |found| {
        found.stack.connections == 0
    });
}

#[test]
fn a_wire_that_gathers_reads_the_bytes_and_gives_them_back_before_the_event() {
    let (near, far) = pair().expect("descriptors");
    let (returned, mapped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let wire = Gathering {
        wire: near,
        queued: 0,
        returned: returned.clone(),
        mapped: mapped.clone(),
    };
    let near = Running::start(wire, 1, Settings::default());
    let far = Running::start(far, 2, Settings::default());
    let (mut server, mut client) = (Application::new(&near), Application::new(&far));
    let listener = server.listener(80, 4);
    let (child, socket) = connected(&mut server, listener, &mut client, address(1, 80));
    // Two regions, so that a frame has parts of both.
    let bytes: Vec<u8> = (0..30_000u32).map(|byte| (byte % 249) as u8).collect();
    let (front, rest) = bytes.split_at(1003);
    let regions = [front, rest].map(|part| {
        let region = server.region(part.len());
        server.ual.write(&region, part).expect("in it");
        region
    });
    let tags = regions.each_ref().map(|region| {
        let done = server.done();
        let range = (0, region.len());
        let posted = server.ual.transmit_in_place(child, region, range, done);
        posted.expect("room");
        done.1
    });
    assert!(receive(&mut client, socket, bytes.len()) == bytes);
    // All is acknowledged, but the wire has not said that it reads nothing of it any more.
    std::thread::sleep(Duration::from_millis(50));
    let queue = server.queue;
    assert_eq!(server.ual.number_of_events(queue).expect("honest"), 0);
    returned.store(u64::MAX, Ordering::Relaxed);
    for tag in tags {
        assert_eq!(server.event(tag).status, Status::Ok);
    }
    let counts = near.statistics();
    assert_eq!((counts.in_place, counts.sent), (bytes.len() as u64, 0));
    assert_eq!(counts.stack.filled, 0, "nobody has copied a byte");
    // An application that ends under way: its memory is the wire's until that has returned it.
    returned.store(0, Ordering::Relaxed);
    assert_eq!(mapped.load(Ordering::Relaxed), 1);
    drop(server);
    near.until("the application's end", |found| found.ended == 1);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(mapped.load(Ordering::Relaxed), 1);
    returned.store(u64::MAX, Ordering::Relaxed);
    near.until("a turn", |_| mapped.load(Ordering::Relaxed) == 0);
}
