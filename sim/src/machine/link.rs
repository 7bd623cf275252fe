//! The wire under the simulator's clock: speeds, flow control, faults, the loop.

use super::Machine;
use super::tests::{K, frame, mac};
use tigon2_chip::Register;
use tigon2_chip::memory::block;
use tigon2_model::{Board, Partner};

const TX_RING: u32 = K + block::MAC_TX_RING;
const RX_RING: u32 = K + block::MAC_RX_RING;

/// Sends frame `n` of a card that [`mac`] has set up.
fn send(machine: &mut Machine, n: u32, length: usize) -> Vec<u8> {
    let data = frame(n as u8, length);
    let start = K + block::PACKET_BUFFERS + 2048 * n;
    machine.load_image(start, &data);
    let descriptor = [start, length as u32].map(u32::to_be_bytes).concat();
    machine.load_image(TX_RING + 8 * n, &descriptor);
    let end = start + length as u32;
    machine.bar_write(Register::TxProducer.offset(), end);
    machine.bar_write(
        Register::TxDescriptorProducer.offset(),
        TX_RING + 8 * (n + 1),
    );
    data
}

fn received(machine: &mut Machine) -> u32 {
    let producer = machine.bar_read(Register::RxDescriptorProducer.offset());
    ((producer & !7) - RX_RING) / 8
}

fn partner(words: &str) -> Partner {
    words.parse().expect("words of a partner")
}

/// Reference 11: a copper link runs at what was negotiated, and frames take their time: a
/// 1514-byte frame 12.2 us, 122 us or 1.22 ms.
#[test]
fn frames_take_the_time_of_their_link() {
    for (words, interface, byte_ns) in [
        ("1000-full", 0x0D10_0055, 8),
        ("100-full", 0x0710_0055, 80),
        ("10-half", 0x0710_0055, 800),
    ] {
        let mut machine = Machine::new(Board::copper());
        machine.set_partner(partner(words));
        machine.bar_write(Register::MiscConfig.offset(), interface);
        mac(&mut machine);
        // The PHY settles in 2 ms.
        machine.run(3 * 88_000);
        let start = machine.now();
        let arrival = machine.send_frame(start, frame(1, 1514));
        assert_eq!(arrival - start, 1526 * byte_ns, "{words}");
        send(&mut machine, 0, 1514);
        machine.run(1);
        let sent = machine.take_frame().expect("it has left");
        assert!((1526 * byte_ns..1526 * byte_ns + 100).contains(&(sent.at - start)));
        assert_eq!(received(&mut machine), 0);
        machine.run(machine.clock().cycle_at(1527 * byte_ns));
        assert_eq!(received(&mut machine), 1);
    }
}

/// Reference 10.4: the transmitter is silent for the time of a pause frame (I).
#[test]
fn a_pause_frame_stops_the_card_for_its_time() {
    let mut machine = Machine::new(Board::default());
    mac(&mut machine);
    machine.bar_write(Register::MacRxState.offset(), 0x1_0802);
    let mut pause = vec![
        0x01, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 0, 1,
    ];
    // 1000 quanta are 512 us.
    pause.extend(1000u16.to_be_bytes());
    pause.resize(60, 0);
    let arrival = machine.send_frame(0, pause);
    machine.run(machine.clock().cycle_at(1_000));
    let data = send(&mut machine, 0, 60);
    machine.run(88_000);
    let sent = machine.take_frame().expect("it has left in the end");
    assert_eq!(sent.bytes, data);
    let silence = sent.at - arrival;
    assert!((512_000..514_000).contains(&silence), "{silence} ns");
}

/// Reference 10.4: a card without room asks for silence and then for more (I); the wire holds
/// what the partner has sent, and nothing is lost.
#[test]
fn a_full_card_loses_nothing_with_flow_control() {
    let mut machine = Machine::new(Board::default());
    mac(&mut machine);
    machine.bar_write(Register::MacTxState.offset(), 0x1E2);
    for n in 0..600u32 {
        machine.send_frame(0, frame(n as u8, 60));
    }
    machine.run(2 * 88_000);
    let quanta = |machine: &mut Machine| {
        let frame = machine.take_frame().map(|frame| frame.bytes)?;
        assert_eq!(frame[12..16], [0x88, 0x08, 0, 1]);
        Some(u16::from_be_bytes([frame[16], frame[17]]))
    };
    assert_eq!(quanta(&mut machine), Some(0xFFFF));
    assert_eq!(machine.received().accepted, 504);
    assert_eq!(machine.pending_frames(), 96);
    for (producer, consumer) in [
        (Register::RxProducer, Register::RxConsumer),
        (
            Register::RxDescriptorProducer,
            Register::RxDescriptorConsumer,
        ),
    ] {
        let all = machine.bar_read(producer.offset());
        machine.bar_write(consumer.offset(), all);
    }
    machine.run(88_000);
    assert_eq!(quanta(&mut machine), Some(0));
    assert_eq!(quanta(&mut machine), None);
    let received = machine.received();
    assert_eq!((received.accepted, received.dropped), (600, 0));
}

/// Damaged frames and collisions happen on request.
#[test]
fn faults_are_injected() {
    let mut machine = Machine::new(Board::default());
    mac(&mut machine);
    machine.inject("receive crc+phy-decode".parse().expect("words of a fault"));
    machine.send_frame(0, frame(1, 60));
    machine.send_frame(0, frame(2, 60));
    machine.run(88_000);
    assert_eq!(machine.word(RX_RING + 4), 0x0009_0040);
    assert_eq!(machine.word(RX_RING + 12), 0x40);
    machine.bar_write(Register::MacTxState.offset(), 0xC2);
    machine.inject("transmit late-collision".parse().expect("words of a fault"));
    send(&mut machine, 0, 60);
    let second = send(&mut machine, 1, 60);
    machine.run(88);
    assert_eq!(machine.take_frame().map(|frame| frame.bytes), Some(second));
    assert_eq!(machine.word(0xC0), 1, "one late collision");
}

/// Reference 11: in the loop of the board's SERDES, by `R[238]` or by pin 0 of `R[44]`, what
/// is sent is received; the wire sees nothing of it. The other board's control does nothing:
/// frames pass as before.
#[test]
fn the_loop_of_the_boards_serdes_returns_what_is_sent() {
    let by_register = (Register::PhyInterface, 0xC8_01F6);
    let by_pin = (Register::MiscLocalControl, 0xF080);
    for (board, own, other) in [
        (Board::default(), by_register, by_pin),
        (Board::external_serdes(), by_pin, by_register),
    ] {
        let mut machine = Machine::new(board);
        mac(&mut machine);
        machine.bar_write(other.0.offset(), other.1);
        let data = send(&mut machine, 0, 100);
        machine.run(88);
        let left = machine.take_frame().map(|frame| frame.bytes);
        assert_eq!((left, received(&mut machine)), (Some(data), 0));

        machine.set_cable(false);
        machine.bar_write(own.0.offset(), own.1);
        let data = send(&mut machine, 1, 100);
        machine.run(88);
        assert_eq!(machine.take_frame(), None);
        assert_eq!(received(&mut machine), 1);
        let mut bytes = vec![0; 100];
        machine.sram().copy_out(machine.word(RX_RING), &mut bytes);
        assert_eq!(bytes, data);
    }
}
