//! Tests that both engines do the same: the firmware's register writes, the card's DMA transfers
//! and frames are equal, except for timing.
//!
//! Each story runs on QEMU's card and on the simulator's, step by step: a step begins when the
//! card is idle, so the engines' speed has no influence. The model's operations
//! ([`tigon2_model::operations`]) are split by channel: the writes of each CPU to each register,
//! both DMA channels, both directions of the wire. Each channel's sequence must be the same.
//! [`housekeeping`] defines the exceptions, with reasons.

use host_driver::Config;
use host_driver::checksum;
use host_driver::nic::{ChecksumOffload, Coalescing, SendOptions};
use integration_tests::engine::Engine;
use integration_tests::{Qemu, Sim, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testbed::card::CardOptions;
use tigon2_chip::{Cpu, Register};
use tigon2_model::{Direction, Operation};

/// No updates but those that frames cause, one for each: no timer decides anything.
const COALESCING: Coalescing = Coalescing {
    receive_ticks: 600_000_000,
    transmit_ticks: 600_000_000,
    statistics_ticks: 600_000_000,
    max_transmit_bds: 1,
    max_receive_bds: 1,
};

/// An engine that keeps its card's operations.
trait Recorded: Engine {
    fn start_recorded() -> (Self, Self::Transport);
    fn operations(&mut self) -> Vec<Operation>;
}

impl Recorded for Qemu {
    fn start_recorded() -> (Self, Self::Transport) {
        Qemu::with(&CardOptions {
            operations: true,
            monitor: true,
            ..CardOptions::default()
        })
    }

    fn operations(&mut self) -> Vec<Operation> {
        let text = self.card.operations().expect("they are recorded");
        let parse = |line: &str| line.parse().expect("an operation");
        text.lines().map(parse).collect()
    }
}

impl Recorded for Sim {
    fn start_recorded() -> (Self, Self::Transport) {
        let (engine, transport) = Sim::start();
        engine.machine().lock().record_operations();
        (engine, transport)
    }

    fn operations(&mut self) -> Vec<Operation> {
        self.machine().lock().take_operations()
    }
}

/// Where an operation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Register(Cpu, u32),
    DmaRead,
    DmaWrite,
    Sent,
    Received,
}

/// Why the writes of a CPU to a register are not compared, if they are not.
fn housekeeping(register: Register) -> Option<&'static str> {
    match register {
        Register::TimerReferenceA | Register::TimerReferenceB => {
            Some("the next tick of a clock that runs on between the steps")
        }
        Register::MailboxEventA | Register::MailboxEventB => {
            Some("mailboxes that were written close to each other are acknowledged together")
        }
        Register::EventA | Register::EventB => {
            Some("handlers raise events for each other as often as they find work left")
        }
        Register::AssistReadReference
        | Register::AssistWriteReference
        | Register::RxDescriptorReference
        | Register::TxDescriptorReference => {
            Some("what has ended close to each other is taken note of together")
        }
        _ => None,
    }
}

/// The channel of an operation that is compared.
fn channel(operation: &Operation) -> Option<Channel> {
    match operation {
        // The driver waits in its own time; what it says is what the steps are made of.
        Operation::Write { by: None, .. } => None,
        Operation::Write {
            by: Some(cpu),
            offset,
            ..
        } => {
            let left_out = Register::from_offset(*offset).and_then(housekeeping);
            left_out
                .is_none()
                .then_some(Channel::Register(*cpu, *offset))
        }
        Operation::Dma { direction, .. } => Some(match direction {
            Direction::Read => Channel::DmaRead,
            Direction::Write => Channel::DmaWrite,
        }),
        Operation::Sent(_) => Some(Channel::Sent),
        Operation::Received(_) => Some(Channel::Received),
    }
}

/// Operations by channel, each channel in its order.
fn project(operations: &[Operation]) -> BTreeMap<Channel, Vec<String>> {
    let mut channels: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for operation in operations {
        if let Some(channel) = channel(operation) {
            channels
                .entry(channel)
                .or_default()
                .push(operation.to_string());
        }
    }
    channels
}

/// Lets the card come to rest, and the driver take what there is.
fn rest<E: Recorded>(stage: &mut Stage<E>) {
    for _ in 0..3 {
        stage.engine.pass(Duration::from_millis(3));
        stage.turn();
    }
}

/// A card that is up, whose operations are kept from power-on on.
fn opened<E: Recorded>(config: Config) -> Stage<E> {
    let (engine, transport) = E::start_recorded();
    let config = Config {
        coalescing: COALESCING,
        ..config
    };
    let mut stage = Stage::on(engine, transport, config);
    stage.load_and_open();
    rest(&mut stage);
    stage
}

fn receive<E: Recorded>(stage: &mut Stage<E>, frame: &[u8]) {
    stage.engine.send(frame);
    assert_eq!(stage.receive(1)[0][..frame.len()], *frame);
    rest(stage);
}

fn send<E: Recorded>(stage: &mut Stage<E>, frame: &[u8], cut: usize, options: SendOptions) {
    let (head, rest_of_it) = frame.split_at(cut);
    let parts = [head, rest_of_it];
    let parts = if cut == 0 { &parts[1..] } else { &parts[..] };
    stage.transmit_as(parts, options);
    let sent = stage.wire();
    assert_eq!(sent[..12], frame[..12]);
    rest(stage);
}

fn compare(ours: &[Operation], theirs: &[Operation], least: usize) {
    let (ours, theirs) = (project(ours), project(theirs));
    let count: usize = ours.values().map(Vec::len).sum();
    assert!(count >= least, "{count} operations were compared");
    let mut wrong = Vec::new();
    let channels: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    for channel in channels {
        let empty = Vec::new();
        let ours = ours.get(channel).unwrap_or(&empty);
        let theirs = theirs.get(channel).unwrap_or(&empty);
        let pairs = ours.iter().zip(theirs);
        let same = pairs.take_while(|(ours, theirs)| ours == theirs).count();
        if same < ours.len() || same < theirs.len() {
            let name = match channel {
                Channel::Register(cpu, offset) => {
                    format!("CPU {cpu}, {:?}", Register::from_offset(*offset))
                }
                other => format!("{other:?}"),
            };
            wrong.push(format!(
                "{name}: of {} (simulator) and {} (QEMU) operations, the first {same} are equal; then\n  {:?}\n  {:?}",
                ours.len(),
                theirs.len(),
                ours.get(same..(same + 3).min(ours.len())),
                theirs.get(same..(same + 3).min(theirs.len())),
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Makes a test that tells a story to both engines; it compares so many operations at least.
macro_rules! lockstep {
    ($($(#[$doc:meta])* $story:ident: $least:expr;)*) => {
        mod lockstep {
            $($(#[$doc])* #[test] fn $story() {
                let ours = super::$story::<super::Sim>();
                let theirs = super::$story::<super::Qemu>();
                super::compare(&ours, &theirs, $least);
            })*
        }
    };
}

lockstep! {
    boot: 50;
    sending: 100;
    receiving: 100;
    offload: 100;
    jumbo: 100;
}

/// Hardware reference, section 3.4 and 6; interface, bring-up: load, start, link.
fn boot<E: Recorded>() -> Vec<Operation> {
    opened::<E>(Config::default()).engine.operations()
}

/// Frames of several lengths, in one piece and in two.
fn sending<E: Recorded>() -> Vec<Operation> {
    let mut stage = opened::<E>(Config::default());
    for (number, (length, cut)) in (0..).zip([
        (60, 0),
        (61, 14),
        (127, 1),
        (590, 42),
        (1513, 0),
        (1514, 54),
        (64, 63),
        (1000, 500),
    ]) {
        let mut frame = stage.outbound(number);
        frame.resize(length, number as u8);
        send(&mut stage, &frame, cut, SendOptions::default());
    }
    stage.engine.operations()
}

/// Frames of several lengths from the wire.
fn receiving<E: Recorded>() -> Vec<Operation> {
    let mut stage = opened::<E>(Config::default());
    for (number, length) in (0..).zip([60, 61, 64, 127, 590, 1000, 1513, 1514]) {
        let mut frame = stage.inbound(number);
        frame.resize(length, number as u8);
        receive(&mut stage, &frame);
    }
    stage.engine.operations()
}

/// A UDP datagram with its checksums.
fn datagram(destination: [u8; 6], source: [u8; 6], payload: usize) -> Vec<u8> {
    let mut frame = [&destination[..], &source, &[0x08, 0x00]].concat();
    frame.extend([0x45, 0]);
    frame.extend((28 + payload as u16).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 84, 0, 1, 10, 84, 0, 2]);
    let header = !checksum::sum(&frame[14..]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame.extend([0x30, 0x39, 0x00, 0x07]);
    frame.extend((8 + payload as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|n| (n * 131 + payload) as u8));
    frame
}

/// Sums of received datagrams, and sums that the card puts into sent ones.
fn offload<E: Recorded>() -> Vec<Operation> {
    let mut stage = opened::<E>(Config {
        receive_checksums: ChecksumOffload::FULL,
        send_checksums: ChecksumOffload::FULL,
        vlan: true,
        ..Config::default()
    });
    let (station, peer) = (stage.nic.station(), integration_tests::frames::PEER);
    for payload in [18, 19, 100, 1000, 1471, 1472] {
        receive(&mut stage, &datagram(station, peer, payload));
        let frame = datagram(peer, station, payload);
        let options = SendOptions {
            transport_checksum: true,
            ip_checksum: true,
            ..SendOptions::default()
        };
        send(&mut stage, &frame, 42, options);
    }
    stage.engine.operations()
}

/// Frames of up to 9000 bytes, both ways.
fn jumbo<E: Recorded>() -> Vec<Operation> {
    let mut stage = opened::<E>(Config {
        mtu: 9000,
        ..Config::default()
    });
    for (number, length) in (0..).zip([1514, 1515, 4001, 9013, 9014]) {
        let mut frame = stage.inbound(number);
        frame.resize(length, number as u8);
        receive(&mut stage, &frame);
        let mut frame = stage.outbound(number);
        frame.resize(length, number as u8);
        send(&mut stage, &frame, 14, SendOptions::default());
    }
    stage.engine.operations()
}
