//! Tests separate control and queue handles, on the scripted card.

mod support;

use std::io::IoSlice;
use std::thread;
use std::time::{Duration, Instant};

use host_driver::nic::{
    Control, DropReason, Link, ReceiveQueue, SendOptions, SendQueue, SendRingPlace,
};
use host_driver::transport::{TransportError, Vector};
use host_driver::{Config, Nic, NicError};
use host_interface::bar;
use host_interface::event::{Event, EventCode, LINK_DOWN};
use support::shared::SharedCard;
use support::{STATION, ScriptedCard, firmware_file, frame, quick};

const SOON: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);

fn open(card: &SharedCard, config: Config) -> Nic<SharedCard> {
    let mut nic = Nic::probe(card.clone(), config).expect("a card");
    nic.load(&firmware_file()).expect("good firmware");
    nic.open().expect("a firmware that listens");
    nic.wait_link(Duration::from_millis(200)).expect("a link");
    nic
}

fn split(card: &SharedCard) -> (Control<SharedCard>, SendQueue, ReceiveQueue) {
    open(card, quick()).split().expect("an open card")
}

fn send(queue: &mut SendQueue, frame: &[u8]) -> Result<bool, NicError> {
    queue.queue(&[IoSlice::new(frame)], SendOptions::default())
}

fn received(queue: &mut ReceiveQueue) -> Vec<Vec<u8>> {
    let frames = queue.receive_described(64).expect("a good card");
    frames.into_iter().map(|frame| frame.bytes).collect()
}

#[test]
fn parts_go_to_threads_and_name_their_vector() {
    fn goes<T: Send>() {}
    goes::<Control<SharedCard>>();
    goes::<SendQueue>();
    goes::<ReceiveQueue>();
    let (_control, send, receive) = split(&SharedCard::default());
    assert_eq!(send.vector(), Vector::INTERRUPT);
    assert_eq!(receive.vector(), Vector::INTERRUPT);
}

#[test]
fn each_part_does_its_work_and_counts_it() {
    let card = SharedCard::default();
    let (mut control, mut sender, mut receiver) = split(&card);
    for number in 0..5 {
        assert!(send(&mut sender, &frame(number, 100)).expect("room"));
    }
    assert_eq!(sender.outstanding(), 5);
    sender.submit().expect("a card");
    assert!(sender.wait(SOON).expect("a card"));
    assert_eq!(sender.reclaim().expect("a good index"), 5);
    assert_eq!(sender.waiting_for(), Duration::ZERO);
    assert_eq!(card.lock().sent.len(), 5);
    for number in 0..3 {
        assert!(card.lock().deliver(&frame(number, 60)));
    }
    assert!(receiver.wait(SOON).expect("a card"));
    let expected: Vec<_> = (0..3).map(|number| frame(number, 60)).collect();
    assert_eq!(received(&mut receiver), expected);
    control.set_promiscuous(true).expect("a card that listens");
    receiver.count_drops(DropReason::NoTaker, 2);
    sender.count_drops(DropReason::Unsendable, 1);
    let counted = control.statistics().expect("a card that listens");
    assert_eq!(
        (counted.driver.frames_sent, counted.driver.send_rings),
        (5, 1)
    );
    assert_eq!(
        (
            counted.driver.frames_received,
            counted.driver.bytes_received
        ),
        (3, 180)
    );
    assert_eq!(counted.driver_drops.total(), 3);
    assert_eq!(control.station(), STATION);
}

#[test]
fn what_cannot_be_split_stays_whole() {
    let refused = |nic: Nic<SharedCard>| {
        let refused = nic.split().err().expect("not to be split");
        (refused.nic, refused.error)
    };
    let card = SharedCard::default();
    let (nic, error) = refused(Nic::probe(card.clone(), quick()).expect("a card"));
    assert!(matches!(error, NicError::WrongState { .. }), "{error}");
    drop(nic);
    let config = Config {
        send_ring_place: SendRingPlace::Card,
        ..quick()
    };
    let (mut nic, error) = refused(open(&card, config));
    assert!(matches!(error, NicError::BadSetting { .. }), "{error}");
    let frame = frame(1, 80);
    assert!(nic.queue(&[IoSlice::new(&frame)]).expect("it is whole"));
    nic.submit().expect("a card");
    assert_eq!(card.lock().sent, [frame]);
    let whole = support::open_card(quick());
    let refused = whole.split().err().expect("a card for one thread");
    assert!(matches!(
        refused.error,
        NicError::Transport(TransportError::NotShared)
    ));
}

/// Numbers of the rings go on where they were, and recovering works again.
#[test]
fn what_was_split_can_be_joined_and_recovered() {
    let card = SharedCard::default();
    let (control, mut sender, receiver) = split(&card);
    assert!(send(&mut sender, &frame(1, 70)).expect("room"));
    sender.submit().expect("a card");
    assert!(card.lock().deliver(&frame(2, 90)));
    let mut nic = Nic::join(control, sender, receiver).ok().expect("one card");
    assert!(
        nic.wait(Duration::ZERO).expect("a card"),
        "it looks at once, whatever was taken before"
    );
    nic.service().expect("a good index");
    assert_eq!(nic.send_outstanding(), 0);
    assert_eq!(nic.receive_batch(8).expect("a card"), [frame(2, 90)]);
    nic.set_mtu(1400).expect("a card");
    nic.recover().expect("the same firmware");
    nic.wait_link(SOON).expect("a link");
    let (control, mut sender, receiver) = nic.split().expect("an open card");
    assert!(send(&mut sender, &frame(3, 70)).expect("room"));
    sender.submit().expect("a card");
    assert_eq!(card.lock().sent, [frame(1, 70), frame(3, 70)]);
    assert_eq!(control.counters().recoveries, 1);
    let others = split(&SharedCard::default());
    let mixed = Nic::join(control, others.1, receiver)
        .err()
        .expect("two cards");
    assert!(Nic::join(mixed.0, sender, mixed.2).is_ok());
}

#[test]
fn a_bad_index_is_the_matter_of_its_queue() {
    let card = SharedCard::default();
    let (mut control, mut sender, mut receiver) = split(&card);
    card.lock().faults.return_producer = Some(4096);
    assert!(card.lock().deliver(&frame(1, 60)));
    let error = receiver.receive_described(8).expect_err("no such index");
    assert!(matches!(error, NicError::BadIndex { value: 4096, .. }));
    card.lock().faults.send_consumer = Some(100);
    assert!(send(&mut sender, &frame(1, 60)).expect("room"));
    sender.submit().expect("a card");
    let error = sender.reclaim().expect_err("more than it was told");
    assert!(matches!(error, NicError::BadIndex { value: 100, .. }));
    control.statistics().expect("control has no such trouble");
    card.lock().faults.event_producer = Some(256);
    let error = control.statistics().expect_err("no such index");
    assert!(matches!(error, NicError::BadIndex { value: 256, .. }));
}

/// A BD that names no queued buffer is counted, and endless ones end the queue alone.
#[test]
fn nonsense_is_judged_by_the_receive_queue() {
    let card = SharedCard::default();
    let config = Config {
        receive_buffers: 4,
        ..quick()
    };
    let nic = open(&card, config);
    let (mut control, _sender, mut receiver) = nic.split().expect("an open card");
    card.lock().faults.return_bd = Some(|mut bd| {
        bd.opaque = 0;
        bd
    });
    for _ in 0..4 {
        assert!(card.lock().deliver(&frame(1, 60)));
    }
    assert!(received(&mut receiver).is_empty());
    // The word 0 would be the mark of buffer 0, but not in its turn.
    assert_eq!(control.drops().get(DropReason::BadMark), 3);
    assert_eq!(control.drops().get(DropReason::Stale), 1);
    card.lock().hand_back(Default::default());
    let error = receiver.receive_described(8).expect_err("too much of it");
    assert!(matches!(error, NicError::Nonsense { count: 5, .. }));
    control.statistics().expect("control has no such trouble");
}

#[test]
fn bds_that_do_not_come_back_are_judged_by_control() {
    let card = SharedCard::default();
    let (mut control, mut sender, _receiver) = split(&card);
    assert!(!control.watch(sender.waiting_for()).expect("nothing waits"));
    card.lock().faults.keeps_bds = true;
    assert!(send(&mut sender, &frame(1, 60)).expect("room"));
    sender.submit().expect("a card");
    thread::sleep(quick().watchdog);
    assert_eq!(sender.reclaim().expect("a good index"), 0);
    let error = control.watch(sender.waiting_for()).err();
    assert!(matches!(error, Some(NicError::Stuck { .. })), "{error:?}");
    card.lock()
        .event(Event::new(EventCode::LinkState, LINK_DOWN));
    control.take_events().expect("a good index");
    assert_eq!(control.link(), Link::Down);
    assert!(control.watch(sender.waiting_for()).expect("an excuse"));
    sender.excuse();
    assert!(!control.watch(sender.waiting_for()).expect("it was excused"));
}

/// A queue rings its own mailboxes only.
#[test]
fn a_doorbell_is_of_its_queue() {
    let card = SharedCard::default();
    let (_control, mut sender, mut receiver) = split(&card);
    let mailboxes = |card: &SharedCard| -> Vec<u32> {
        let accesses = card.lock().accesses.replace(Vec::new()).unwrap_or_default();
        let writes = accesses.into_iter().filter(|(write, _)| *write);
        writes.map(|(_, offset)| offset).collect()
    };
    mailboxes(&card);
    assert!(send(&mut sender, &frame(1, 60)).expect("room"));
    sender.submit().expect("a card");
    assert_eq!(mailboxes(&card), [bar::MAILBOX_SEND_PRODUCER]);
    for number in 0..100 {
        assert!(card.lock().deliver(&frame(number, 60)));
    }
    assert_eq!(receiver.receive(100, |_| Ok(())).expect("a card"), 100);
    let consumer = host_interface::gencom::Gencom::ReceiveReturnConsumer.bar_offset();
    let own = [bar::MAILBOX_STANDARD_PRODUCER, consumer];
    assert_eq!(mailboxes(&card), own);
}

/// The card goes on into buffers whose queue is gone, until control halts it.
#[test]
fn a_dropped_queue_leaves_its_buffers_to_the_card() {
    let card = SharedCard::default();
    let (mut control, mut sender, receiver) = split(&card);
    drop(receiver);
    for number in 0..200 {
        assert!(card.lock().deliver(&frame(number, 1500)), "it has buffers");
    }
    assert!(send(&mut sender, &frame(1, 60)).expect("room"));
    sender.submit().expect("a card");
    assert_eq!(sender.reclaim().expect("a good index"), 1);
    control.statistics().expect("a card that works");
    control.shut_down().expect("a card that can be halted");
    drop(sender);
    let again = open(&card, quick());
    drop(again);
}

/// One line for all: whichever waiter takes an interrupt, the others hear of it, whether
/// they wait at that moment or later.
#[test]
fn an_interrupt_wakes_every_waiter_once() {
    let card = SharedCard::default();
    let (mut control, mut sender, mut receiver) = split(&card);
    // Whatever came at start.
    while control.wait(Duration::ZERO).expect("a card") {}
    let _ = (sender.wait(Duration::ZERO), receiver.wait(Duration::ZERO));
    assert!(card.lock().deliver(&frame(1, 60)));
    let interrupts = control.counters().interrupts;
    assert!(sender.wait(SOON).expect("a card"), "it takes the interrupt");
    assert!(receiver.wait(Duration::ZERO).expect("a card"), "its bell");
    assert!(control.wait(Duration::ZERO).expect("a card"), "its bell");
    assert_eq!(control.counters().interrupts, interrupts + 1);
    assert_eq!(received(&mut receiver).len(), 1);
    assert!(!receiver.wait(Duration::ZERO).expect("a card"));
    assert!(!sender.wait(Duration::ZERO).expect("a card"));
    assert!(!control.wait(Duration::ZERO).expect("a card"));
}

/// What came before the split is told of, although its interrupt was taken then.
#[test]
fn frames_from_before_are_not_slept_through() {
    let card = SharedCard::default();
    let mut nic = open(&card, quick());
    assert!(card.lock().deliver(&frame(1, 60)));
    assert!(nic.wait(SOON).expect("a card"), "it takes the interrupt");
    let (_control, _sender, mut receiver) = nic.split().expect("an open card");
    assert!(receiver.wait(Duration::ZERO).expect("a card"));
    assert_eq!(received(&mut receiver), [frame(1, 60)]);
    assert!(!receiver.wait(Duration::ZERO).expect("a card"));
}

/// Two waiters, each of whom sleeps as long as nothing tells it of its next frame or BD.
/// A wake-up that is lost leaves one of them asleep for good.
#[test]
fn no_wake_up_is_lost_between_two_waiters() {
    const ROUNDS: usize = 2000;
    let card = SharedCard::default();
    let (control, mut sender, mut receiver) = split(&card);
    let receiving = thread::spawn(move || {
        let mut count = 0;
        while count < ROUNDS {
            let taken = receiver.receive(4, |_| Ok(())).expect("a good card") as usize;
            count += taken;
            if taken == 0 {
                let woken = receiver.wait(PATIENCE).expect("a card");
                assert!(woken, "asleep with {count} of {ROUNDS} frames");
            }
        }
        receiver
    });
    let sending = thread::spawn(move || {
        for number in 0..ROUNDS {
            assert!(send(&mut sender, &frame(number, 60)).expect("room"));
            sender.submit().expect("a card");
            while sender.reclaim().expect("a good card") == 0 {
                let woken = sender.wait(PATIENCE).expect("a card");
                assert!(woken, "asleep with BD {number}");
            }
        }
        sender
    });
    let start = Instant::now();
    let mut delivered = 0;
    while delivered < ROUNDS {
        assert!(start.elapsed() < 4 * PATIENCE, "no buffer comes back");
        if card.lock().deliver(&frame(delivered, 60)) {
            delivered += 1;
        }
        if delivered % 7 == 0 {
            thread::yield_now();
        }
    }
    let receiver = receiving.join().expect("no frame was slept through");
    let sender = sending.join().expect("no BD was slept through");
    assert!(Nic::join(control, sender, receiver).is_ok());
    let _: &ScriptedCard = &card.lock();
}
