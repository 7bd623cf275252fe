//! A host with several receive queues, on the machine of the other tests.

use crate::machine::{Machine, Setup, words_to_host};
use host_interface::bd::{BdFlags, ReceiveBd, ReturnBd};
use host_interface::command::{Command, CommandCode, STACK_DOWN, STACK_UP};
use host_interface::event::EventCode;
use host_interface::extension::Extension;
use host_interface::info::{HostAddress, RcbFlags, RingControlBlock};
use host_interface::queue::{
    BlockWord, ClassifierKind, HashTypes, QueueCommand, QueueControl, QueueControlBlock,
    QueueCounter, QueueEvent, QueueResult, RearmWord, block,
};
use tigon2_model::testing::HOST_BASE;
use zerocopy::IntoBytes;

// The host's memory, as offsets from its base.
const CONTROL: u64 = 0xA_0000;
const STATUS: u64 = 0xA_1000;
const BUFFER_RINGS: u64 = 0xB_0000;
const RETURN_RINGS: u64 = 0xD_0000;
/// Bytes between the rings of two queues.
const RING: u64 = 0x4000;
const BUFFERS: u64 = 0x5_0000;
/// Bytes of a buffer, and buffers of a queue.
const BUFFER: u64 = 1536;
pub const BUFFERS_EACH: u32 = 16;

/// The published key.
pub const KEY: [u8; 40] = flow_classify::Key::PUBLISHED.0;

/// What a test may change before the queues are opened.
pub fn control(queues: u32, kind: ClassifierKind) -> QueueControlBlock {
    let mut control = QueueControlBlock {
        queues,
        classifier: kind as u32,
        hash_types: HashTypes::ALL.into_bits(),
        ..QueueControlBlock::default()
    };
    control.set_key(&KEY);
    control.set_table(flow_classify::IndirectionTable::equal(queues.clamp(1, 8) as u8).entries());
    for (number, queue) in (0u64..).zip(&mut control.queue) {
        let ring = |base: u64| HOST_BASE + base + number * RING;
        *queue = QueueControl {
            buffers: RingControlBlock::new(ring(BUFFER_RINGS), 64, RcbFlags::new()),
            returns: RingControlBlock::new(ring(RETURN_RINGS), 64, RcbFlags::new()),
            status: HostAddress::new(HOST_BASE + STATUS + 16 * number),
            coalescing_ticks: 50,
            coalescing_frames: 8,
            ..QueueControl::default()
        };
    }
    control
}

/// One queue as the host has it.
#[derive(Clone, Copy, Default)]
struct Queue {
    entries: u32,
    return_entries: u32,
    producer: u32,
    consumer: u32,
}

/// The card, and its queues as the host has them.
pub struct QueueHost {
    pub machine: Machine,
    queues: [Queue; 8],
    /// NIC address of the queue block.
    block: u32,
}

impl QueueHost {
    /// The card in classic mode, its stack down and its standard ring full.
    pub fn new(setup: &Setup) -> QueueHost {
        let mut machine = Machine::up(setup);
        machine.command(&[Command::new(CommandCode::HostState, STACK_DOWN).pack()]);
        let block = machine.extension(Extension::Queues);
        QueueHost {
            machine,
            queues: [Queue::default(); 8],
            block,
        }
    }

    /// The same with queues open and full, and the stack up.
    pub fn open(control: &QueueControlBlock) -> QueueHost {
        let mut host = QueueHost::new(&Setup::default());
        assert_eq!(host.try_open(control), (QueueResult::Done, 0));
        for queue in 0..control.queues {
            host.give(queue, BUFFERS_EACH);
        }
        host.stack(STACK_UP);
        host.machine.interrupts = 0;
        host
    }

    pub fn stack(&mut self, code: u16) {
        self.machine
            .command(&[Command::new(CommandCode::HostState, code).pack()]);
    }

    /// Gives the control block and the command; what is answered.
    pub fn try_open(&mut self, control: &QueueControlBlock) -> (QueueResult, u16) {
        self.take(control);
        self.command(QueueCommand::Open)
    }

    /// The same among other events.
    pub fn ask_open(&mut self, control: &QueueControlBlock) -> (QueueResult, u16) {
        self.take(control);
        self.ask(QueueCommand::Open)
    }

    /// Writes the control block, and begins anew with its queues.
    fn take(&mut self, control: &QueueControlBlock) {
        self.write_control(control);
        self.machine.host_write(STATUS, &[0; 16 * 8]);
        for (queue, wanted) in self.queues.iter_mut().zip(&control.queue) {
            *queue = Queue {
                entries: wanted.buffers.max_len().into(),
                return_entries: wanted.returns.max_len().into(),
                ..Queue::default()
            };
        }
    }

    /// Writes the control block and its address.
    pub fn write_control(&mut self, control: &QueueControlBlock) {
        let words = words_to_host(control.as_bytes());
        self.machine.host_write(CONTROL, &words);
        self.set_control(HOST_BASE + CONTROL);
    }

    /// Says where the control block is.
    pub fn set_control(&mut self, address: u64) {
        let at = self.block + BlockWord::ControlHigh as u32;
        let words = [(address >> 32) as u32, address as u32];
        self.machine.through_window(at, &words);
    }

    /// Gives a command; what is answered.
    pub fn command(&mut self, command: QueueCommand) -> (QueueResult, u16) {
        self.machine.command(&[command.word(0)]);
        let mut answers = Vec::new();
        for _ in 0..10 {
            self.machine.pass(1000);
            answers.extend(self.machine.event_words());
        }
        let found: Vec<_> = answers
            .iter()
            .map(|word| QueueEvent::unpack(*word))
            .collect();
        match found[..] {
            [Some((event, result, index))] if event == command.answer() => (result, index),
            _ => panic!("answers to {command:?}: {answers:x?}"),
        }
    }

    /// Gives a command; what is answered among other events.
    pub fn ask(&mut self, command: QueueCommand) -> (QueueResult, u16) {
        let mut words = self.machine.event_words();
        assert!(answers(&words, command).is_empty(), "nobody has asked");
        words.clear();
        self.machine.command(&[command.word(0)]);
        for _ in 0..10 {
            self.machine.pass(1000);
            words.extend(self.machine.event_words());
        }
        match answers(&words, command)[..] {
            [answer] => answer,
            _ => panic!("answers to {command:?}: {words:x?}"),
        }
    }

    /// Gives a command that is unknown while no queues are open.
    pub fn ask_in_vain(&mut self, command: QueueCommand) {
        self.machine.event_words();
        self.machine.command(&[command.word(0)]);
        self.machine.pass(1000);
        let events = self.machine.events();
        let errors = events
            .iter()
            .filter(|event| event.event == EventCode::Error);
        assert_eq!(errors.count(), 1, "{command:?}: {events:?}");
    }

    /// Gives a queue so many buffers more.
    pub fn give(&mut self, number: u32, count: u32) {
        let queue = &mut self.queues[number as usize];
        for _ in 0..count {
            let at = queue.producer;
            let place = u64::from(number * BUFFERS_EACH + at % BUFFERS_EACH);
            let address = HOST_BASE + BUFFERS + place * BUFFER;
            let bd = ReceiveBd::new(address, BUFFER as u16, BdFlags::new(), at as u16, 0xC0 + at);
            let offset = BUFFER_RINGS + u64::from(number) * RING + 32 * u64::from(at);
            self.machine
                .host_write(offset, &words_to_host(bd.as_bytes()));
            queue.producer = (at + 1) % queue.entries;
        }
        let producer = queue.producer;
        self.mailbox(block::BUFFER_MAILBOX + number, producer);
    }

    /// Writes a mailbox by its number.
    pub fn mailbox(&mut self, number: u32, value: u32) {
        self.machine.ring_number(number, value);
        self.machine.settle();
    }

    /// Re-arms a queue at what was taken of it.
    pub fn rearm(&mut self, number: u32) {
        let consumer = self.queues[number as usize].consumer;
        self.rearm_at(number, consumer, false);
    }

    /// Writes a re-arm word.
    pub fn rearm_at(&mut self, number: u32, consumer: u32, stay_polled: bool) {
        let word = RearmWord::new()
            .with_consumer(consumer as u16)
            .with_stay_polled(stay_polled);
        self.mailbox(block::REARM_MAILBOX + number, word.into_bits());
    }

    /// Producer and interrupt count in a queue's status line.
    pub fn status(&self, number: u32) -> (u32, u32) {
        let at = STATUS + 16 * u64::from(number);
        (self.machine.host_word(at), self.machine.host_word(at + 4))
    }

    /// The frames that a queue was told of since the last call.
    pub fn received(&mut self, number: u32) -> Vec<(ReturnBd, Vec<u8>)> {
        let (producer, _) = self.status(number);
        let mut frames = Vec::new();
        let mut consumer = self.queues[number as usize].consumer;
        while consumer != producer {
            let at = RETURN_RINGS + u64::from(number) * RING + 32 * u64::from(consumer);
            let word = |n: usize| self.machine.host_word(at + 4 * n as u64);
            let bd = ReturnBd::from_words(std::array::from_fn(word));
            let bytes = self
                .machine
                .host_bytes(bd.address.get(), bd.length().into());
            frames.push((bd, bytes));
            consumer = (consumer + 1) % self.queues[number as usize].return_entries;
        }
        self.queues[number as usize].consumer = consumer;
        self.machine.acknowledge();
        frames
    }

    /// A queue's counter, once the firmware has copied it.
    pub fn counter(&mut self, number: u32, counter: QueueCounter) -> u32 {
        self.machine.pass(11_000);
        let at = self.block + block::counter(number, counter);
        self.machine.bench().word(at)
    }

    /// A word of the queue block.
    pub fn block_word(&self, word: BlockWord) -> u32 {
        self.machine.bench().word(self.block + word as u32)
    }
}

/// The answers to a command among events.
fn answers(words: &[u32], command: QueueCommand) -> Vec<(QueueResult, u16)> {
    let events = words.iter().filter_map(|word| QueueEvent::unpack(*word));
    let answers = events.filter(|(event, ..)| *event == command.answer());
    answers.map(|(_, result, index)| (result, index)).collect()
}
