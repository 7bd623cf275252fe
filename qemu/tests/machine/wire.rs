//! Tests frames between the MAC and a netdev.

use crate::assembler::{Program, T0, T1, T2, T3, T4, T5, ZERO};
use crate::card::Card;
use crate::monitor::Monitor;
use std::net::Shutdown;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;
use tempfile::TempDir;
use tigon2_chip::registers::Register;

/// The descriptor and buffer block of reference 2.2, in a 1 MB card.
const K: u32 = 0x12_F000;
const TX_RING: u32 = K + 0x2800;
const RX_RING: u32 = K + 0x3000;
const TX_BASE: u32 = K + 0x5000;
const RX_BASE: u32 = 0x18_0000;

/// A card with a datagram socket as its wire, and the other end of it.
fn start() -> (Card, UnixDatagram) {
    let mut peer = None;
    let mut card = Card::start_with("", |folder: &TempDir| {
        let (ours, cards) = (folder.path().join("peer"), folder.path().join("wire"));
        let socket = UnixDatagram::bind(&ours).expect("a socket");
        let limit = Some(Duration::from_secs(10));
        socket
            .set_read_timeout(limit)
            .expect("a time limit can be set");
        peer = Some(socket);
        let mut options = Monitor::options(folder.path());
        options.extend([
            "-netdev".into(),
            format!(
                "dgram,id=wire,local.type=unix,local.path={},remote.type=unix,remote.path={}",
                cards.display(),
                ours.display()
            ),
            "-global".into(),
            "tigon2-card.netdev=wire".into(),
        ]);
        options
    });
    let peer = peer.expect("it was made before QEMU");
    peer.connect(card.folder.path().join("wire"))
        .expect("QEMU's end is there");

    // Reference 10.1: the order of initialisation; 10.4: fibre, enabled.
    let set = |card: &mut Card, register: Register, value: u32| {
        card.write(register.offset(), value);
    };
    set(&mut card, Register::MacTxState, 1);
    set(&mut card, Register::MacRxState, 1);
    for register in [Register::RxBase, Register::RxProducer, Register::RxConsumer] {
        set(&mut card, register, RX_BASE);
    }
    for register in [Register::TxBase, Register::TxProducer, Register::TxConsumer] {
        set(&mut card, register, TX_BASE);
    }
    for register in [
        Register::RxDescriptorProducer,
        Register::RxDescriptorConsumer,
        Register::RxDescriptorReference,
    ] {
        set(&mut card, register, RX_RING);
    }
    for register in [
        Register::TxDescriptorProducer,
        Register::TxDescriptorConsumer,
        Register::TxDescriptorReference,
    ] {
        set(&mut card, register, TX_RING);
    }
    set(&mut card, Register::StationAddressHigh, 0x0211);
    set(&mut card, Register::StationAddressLow, 0x2233_4455);
    set(&mut card, Register::MacTxState, 0xE2);
    set(&mut card, Register::MacRxState, 0x1_8802);
    // The answer to a read says that the writes before it are done.
    card.read(Register::MacRxState.offset());
    (card, peer)
}

fn frame(n: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![
        0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 2, 0, 0, 0, 0, 1, 0x88, 0xB5,
    ];
    frame.extend((frame.len()..length).map(|at| (at as u8).wrapping_mul(7) ^ n));
    frame
}

/// Firmware's part: frame `n` since the start lies at `at`, with its descriptor.
fn send(card: &mut Card, n: u32, at: u32, frame: &[u8]) {
    let mut padded = frame.to_vec();
    padded.resize(frame.len().next_multiple_of(4), 0);
    for (offset, word) in (0..).step_by(4).zip(padded.chunks_exact(4)) {
        let bytes = word.try_into().expect("four bytes");
        card.store(at + offset, u32::from_be_bytes(bytes));
    }
    let descriptor = TX_RING + 8 * n;
    card.store(descriptor, at);
    card.store(descriptor + 4, frame.len() as u32);
    let end = at + frame.len() as u32;
    card.write(Register::TxProducer.offset(), end);
    card.write(Register::TxDescriptorProducer.offset(), descriptor + 8);
}

/// Reference 10.2: a descriptor and the producers send a frame, which is padded (I) and
/// leaves without its CRC here.
#[test]
fn frames_leave_byte_for_byte() {
    let (mut card, peer) = start();
    let mut at = TX_BASE;
    for (n, length) in (0..).zip([60, 61, 64, 42, 1514]) {
        let sent = frame(n as u8, length);
        send(&mut card, n, at, &sent);
        let end = at + length as u32;
        let mut buffer = [0; 2048];
        let got = peer.recv(&mut buffer).expect("a frame comes out");
        let mut expected = sent;
        expected.resize(length.max(60), 0);
        assert_eq!(buffer[..got], expected);
        at = end.next_multiple_of(8);
    }
}

/// A netdev that fails loses the frame: nobody is at the other end of this one any more.
///
/// The socket is shut down, not only closed. A process that another test starts has a copy of
/// each descriptor of this process until its `exec`, and a socket with a copy takes frames.
#[test]
fn frames_that_the_wire_loses_are_counted() {
    let (mut card, peer) = start();
    let mut monitor = Monitor::connect(card.folder.path());
    assert!(monitor.get("counts").contains("lost=0 "));
    let copy = peer.try_clone().expect("a descriptor is free");
    peer.shutdown(Shutdown::Both).expect("the socket is open");
    drop(peer);
    for n in 0..3 {
        send(&mut card, n, TX_BASE + 64 * n, &frame(n as u8, 60));
    }
    card.wait("all are counted", |_| {
        monitor.get("counts").contains("lost=3 ")
    });
    drop(copy);
}

/// Reference 10.3: a frame for the station lies in the buffer with its CRC, and has a
/// descriptor.
#[test]
fn frames_arrive_byte_for_byte() {
    let (mut card, peer) = start();
    let mut at = RX_BASE;
    for (n, length) in (0..).zip([60, 61, 1514]) {
        let sent = frame(n as u8, length);
        peer.send(&sent).expect("the wire takes it");
        let next = RX_RING + 8 * (n + 1);
        card.wait("the frame is there", |card| {
            card.read(Register::RxDescriptorProducer.offset()) & !7 == next
        });
        assert_eq!(card.load(next - 8), at);
        assert_eq!(card.load(next - 4), length as u32 + 4);
        let words = (0..length as u32 / 4).map(|word| card.load(at + 4 * word));
        let bytes: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        assert_eq!(bytes, sent[..bytes.len()]);
        at = (at + length as u32 + 4).next_multiple_of(8);
    }
}

/// Reference 10.3: every error flag of a descriptor is reachable: asked for in the monitor,
/// it is on the next frame from the wire and on no other.
#[test]
fn damaged_frames_are_asked_for_in_the_monitor() {
    let (mut card, peer) = start();
    let mut monitor = Monitor::connect(card.folder.path());
    let words = [
        ("crc", 16),
        ("collision", 17),
        ("link-lost", 18),
        ("phy-decode", 19),
        ("odd-nibbles", 20),
        ("mac-abort", 21),
        ("runt", 22),
        ("truncated", 23),
        ("giant", 24),
        ("damaged:udp-port", 16),
        ("damaged:60x8", 16),
    ];
    for (n, (word, bit)) in (0..).zip(words) {
        let answer = monitor.set("inject", &format!("receive {word}"));
        assert!(answer.contains("return"), "{answer}");
        for (n, error) in [(2 * n, 1 << bit), (2 * n + 1, 0)] {
            peer.send(&frame(n as u8, 200)).expect("the wire takes it");
            let next = RX_RING + 8 * (n + 1);
            card.wait("the frame is there", |card| {
                card.read(Register::RxDescriptorProducer.offset()) & !7 == next
            });
            assert_eq!(card.load(next - 4) & 0xFFFF_0000, error, "{word}");
        }
    }
    assert_eq!(card.read(0x4C8), 3, "three CRC errors are counted");
}

/// Reference 10.4: without room in its ring the card asks its partner to be silent, R[200]
/// bit 8; the frame is on the wire.
#[test]
fn a_card_without_room_sends_a_pause_frame() {
    let (mut card, peer) = start();
    card.write(Register::MacTxState.offset(), 0x1E2);
    // Four descriptors are free.
    card.write(Register::RxDescriptorConsumer.offset(), RX_RING + 8 * 5);
    card.read(Register::RxDescriptorConsumer.offset());
    let mut got = [0; 2048];
    let length = peer.recv(&mut got).expect("a frame comes out");
    let expected = [1, 0x80, 0xC2, 0, 0, 1, 2, 0x11, 0x22, 0x33, 0x44, 0x55];
    assert_eq!((length, &got[..12]), (60, &expected[..]));
    assert_eq!(got[12..18], [0x88, 0x08, 0, 1, 0xFF, 0xFF]);
    card.write(Register::RxDescriptorConsumer.offset(), RX_RING);
    card.read(Register::RxDescriptorConsumer.offset());
    peer.recv(&mut got).expect("another one");
    assert_eq!(got[12..18], [0x88, 0x08, 0, 1, 0, 0], "it may go on");
}

/// Sends `count` frames of 60 bytes as fast as the ring takes them; bytes 16 to 19 hold the
/// frame's number, from 1 on. The last number that was queued is at [`QUEUED`].
fn sender(count: u32) -> Program {
    let mut program = Program::new();
    program.li(T4, TX_BASE).li(T5, count).li(T2, 0);
    program.read(T3, Register::TxDescriptorProducer);
    let next = program.here();
    program.addiu(T2, T2, 1);
    let full = program.here();
    program
        .read(T0, Register::TxDescriptorNextFree)
        .beq(T0, ZERO, full);
    // The frame, its descriptor, and both producers.
    program
        .li(T1, 0xFFFF_FFFF)
        .sw(T1, 0, T4)
        .sw(T1, 4, T4)
        .sw(T1, 8, T4);
    program.li(T1, 0x88B5_0000).sw(T1, 12, T4).sw(T2, 16, T4);
    program.sw(T4, 0, T0).li(T1, 60).sw(T1, 4, T0);
    program.addiu(T1, T4, 60).write(T1, Register::TxProducer);
    program
        .addiu(T1, T0, 8)
        .write(T1, Register::TxDescriptorProducer);
    program.li(T1, QUEUED).sw(T2, 0, T1);
    // The buffer is a whole number of places of 64 bytes.
    program.addiu(T4, T4, 64).li(T1, RX_BASE);
    let skip = program.here() + 4 * 4;
    program.bne(T4, T1, skip).li(T4, TX_BASE);
    assert_eq!(program.here(), skip);
    program.bne(T2, T5, next).stop();
    program
}

const QUEUED: u32 = 0x1000;

/// A peer that does not read fills its socket, then QEMU's queue; then the transmitter
/// waits, then firmware. No frame is lost, and none is out of order.
#[test]
fn a_slow_peer_loses_nothing() {
    const FRAMES: u32 = 30_000;
    let (mut card, peer) = start();
    card.run(&sender(FRAMES));
    let mut before = 0;
    card.wait("the sender has to wait", |card| {
        std::thread::sleep(Duration::from_millis(50));
        let now = card.load(QUEUED);
        let stands = now == before && now > 0;
        before = now;
        stands
    });
    assert!(before < FRAMES, "nothing held it back");
    for n in 1..=FRAMES {
        let mut frame = [0; 2048];
        let length = peer.recv(&mut frame).expect("a frame comes out");
        assert_eq!(length, 60);
        let number = frame[16..20].try_into().expect("four bytes");
        assert_eq!(u32::from_be_bytes(number), n);
    }
    card.wait_halt(tigon2_chip::Cpu::A);
}
