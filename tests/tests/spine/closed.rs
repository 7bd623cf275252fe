//! Endpoints that are closed, and whose numbers are used again.

use crate::card::{CardError, Spine, Window};
use crate::rings::{Messages, SIZES};
use host_driver::dma::DmaMemory;
use host_interface::spine::rings;
use spine_linker::endpoint::{RingSizes, doorbell};
use spine_linker::load::{Card, handlers_of};

/// Handlers of the extension.
const ANSWERS: u8 = 0;
const CONSUMES: u8 = 7;
const SUMS: u8 = 4;

/// More messages than run while an endpoint is closed.
const MANY: u32 = 60;
const LONG: RingSizes = RingSizes { slots: 64, bulk: 0 };

/// Clears memory, which must stay clear while the card runs.
fn stays_clear(messages: &mut Messages, memory: &DmaMemory) {
    let bytes = memory.len();
    memory.clear(0, bytes).expect("memory");
    messages.run(50_000);
    let mut now = vec![0xFF; bytes];
    memory.read_bytes(0, &mut now).expect("memory");
    assert!(now.iter().all(|byte| *byte == 0), "the card writes there");
}

/// Closes an endpoint, whose memory is not written any more.
fn close(messages: &mut Messages, number: u32) {
    let memory = messages.close(number);
    stays_clear(messages, &memory);
}

#[test]
fn a_closed_endpoint_is_nobodys() {
    let mut messages = Messages::open(&[10]);
    for number in 0..8 {
        messages.put(10, 0, &[number]);
    }
    messages.ring(10);
    messages.run(700);
    let memory = messages.close(10);
    messages.ring_with(10, 8);
    stays_clear(&mut messages, &memory);
    // Its number is free.
    messages.add(10, SIZES, handlers_of(messages.domain));
    messages.send(10, 0, &[1]);
    assert_eq!(messages.arguments(10), [1]);
}

/// At whatever moment of their way it is closed: none of its messages is one of the next owner's.
#[test]
fn messages_of_a_closed_endpoint_are_not_the_next_ones() {
    let mut messages = Messages::open(&[11]);
    let granted = handlers_of(messages.domain);
    for delay in (0..12_000).step_by(400) {
        messages.add(10, LONG, granted);
        for number in 0..MANY {
            messages.put(10, CONSUMES, &[number]);
        }
        messages.ring(10);
        messages.run(delay);
        messages.close(10);
        messages.add(10, LONG, granted);
        messages.run(50_000);
        let counts = messages.counts(10);
        assert_eq!((counts.fetched, counts.delivered), (0, 0), "{delay}");
        assert_eq!(counts.dropped.iter().sum::<u32>(), 0, "{delay}");
        // The next owner's own, and those of another endpoint, come through.
        for number in 0..MANY {
            messages.put(10, CONSUMES, &[number]);
        }
        messages.ring(10);
        messages.send(11, ANSWERS, &[delay as u32]);
        assert_eq!(messages.arguments(11), [delay as u32]);
        messages.ring(11);
        messages.run(100_000);
        let counts = messages.counts(10);
        assert_eq!((counts.fetched, counts.delivered), (MANY, MANY), "{delay}");
        close(&mut messages, 10);
    }
}

/// Cycles between two looks for an answer.
const LOOK: u64 = 1000;

/// A card that another process's bell rings in front of one of the looks for an answer.
struct Meanwhile<'a> {
    card: &'a mut Window,
    /// Cycles until then.
    left: u64,
    bell: (u32, u32, u32),
}

impl Card for Meanwhile<'_> {
    type Error = CardError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), CardError> {
        self.card.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), CardError> {
        self.card.write(address, words)
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), CardError> {
        self.card.ring(mailbox)
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), CardError> {
        self.card.post(mailbox, high, low)
    }

    fn wait(&mut self, turns: u32) -> bool {
        let machine = self.card.machine.clone();
        if self.left < LOOK {
            machine.lock().run(self.left);
            let (mailbox, high, low) = self.bell;
            self.post(mailbox, high, low).expect("the card is there");
            machine.lock().run(LOOK - self.left);
            self.left = u64::MAX;
        } else {
            machine.lock().run(LOOK);
            self.left -= LOOK;
        }
        turns < 100
    }

    fn lease_window(&mut self, address: u32) -> Result<(), CardError> {
        self.card.lease_window(address)
    }

    fn take_back_window(&mut self) {
        self.card.take_back_window();
    }
}

/// At whatever moment of a close they come.
#[test]
fn the_messages_of_others_run_while_an_endpoint_is_closed() {
    let mut messages = Messages::open(&[12]);
    let granted = handlers_of(messages.domain);
    for left in (0..3000).step_by(10) {
        messages.add(10, LONG, granted);
        messages.put(12, ANSWERS, &[left as u32]);
        let halfword = u32::from(doorbell(messages.of(12).memory()).expect("memory"));
        let (mailbox, is_low, shift) = rings::doorbell(12);
        let word = halfword << shift;
        let (high, low) = if is_low { (0, word) } else { (word, 0) };
        let Spine { loader, card, .. } = &mut messages.spine;
        let mut meanwhile = Meanwhile {
            card,
            left,
            bell: (mailbox, high, low),
        };
        let closed = loader.close_endpoint(&mut meanwhile, 10);
        closed.expect("it is closed");
        if meanwhile.left <= left {
            // The close took less time.
            meanwhile
                .post(mailbox, high, low)
                .expect("the card is there");
        }
        messages.endpoints.retain(|(open, _)| *open != 10);
        let answer = messages.next(12).map(|answer| answer.arguments);
        assert_eq!(answer, Some(vec![left as u32]), "{left}");
        messages.ring(12);
        messages.run(2000);
    }
}

/// The same of data, which are fetched later than their message.
#[test]
fn data_of_a_closed_endpoint_are_let_go() {
    let mut messages = Messages::open(&[10]);
    let to = messages.handler(SUMS);
    for delay in (0..6000).step_by(150) {
        for number in 0..4 {
            let data = vec![1; 1000];
            let put = messages
                .of(10)
                .put_bulk(to, &[number], 1000 * number, &data);
            put.expect("there is room");
        }
        messages.ring(10);
        messages.run(delay);
        close(&mut messages, 10);
        messages.add(10, SIZES, handlers_of(messages.domain));
        // With the next ones' data there is room for them.
        let put = messages.of(10).put_bulk(to, &[], 0, &[1; 16]);
        put.expect("there is room");
        messages.ring(10);
        let answer = messages.arguments(10);
        assert_eq!(answer.first(), Some(&16), "{delay}");
        messages.ring(10);
    }
    let Spine { loader, card, .. } = &mut messages.spine;
    let (_, free) = loader.ledger(card).expect("the card is there");
    assert_eq!(free, 12, "slots of the pool");
}

/// The only endpoint is opened, and rung with what the last owner rang with: its mailbox does not change
/// while CPU B does not look. At whatever moment behind the open it rings.
#[test]
fn the_first_message_of_the_next_owner_is_heard() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    // The host sees an answer as soon as it is there.
    messages.spine.card.look = 100;
    for delay in (0..900).step_by(6) {
        messages.run(delay);
        messages.send(10, CONSUMES, &[1]);
        messages.run(3000);
        assert_eq!(messages.counts(10).delivered, 1, "{delay}");
        messages.close(10);
        messages.add(10, SIZES, handlers_of(messages.domain));
    }
}
