//! Tests the change from classic mode to queue mode and back.

use crate::host::{BURST, PATIENCE, Queues, reference};
use host_driver::nic::{Classification, QueueSettings};
use host_driver::rss::Key;
use host_driver::{Config, Nic, NicError, Transport};
use host_interface::queue::ClassifierKind;
use integration_tests::spy::Spy;
use integration_tests::{Engine, Stage, stories};
use std::io::IoSlice;
use tigon2_sim::workload::knet::random::RandomFrames;

stories!(
    classic_mode_goes_on_after_queues_were_closed,
    queues_open_again_with_the_same_memory,
    a_card_that_is_reset_opens_its_queues_again,
    the_classifier_changes_while_frames_arrive,
    frames_leave_while_queues_are_open,
    queues_take_jumbo_frames,
    settings_that_cannot_be_are_refused_and_classic_mode_still_opens,
);

fn random_frames<E: Engine, T: Transport>(
    card: &Queues<E, T>,
    seed: u64,
    count: usize,
) -> Vec<Vec<u8>> {
    let mut random = RandomFrames::new(seed);
    (0..count).map(|_| card.inbound(random.frame())).collect()
}

/// Sends frames at random to a card in queue mode, and counts them in.
fn some_frames<E: Engine, T: Transport>(card: &mut Queues<E, T>, seed: u64, count: usize) {
    let frames = random_frames(card, seed, count);
    let came = card.exchange(&frames);
    assert_eq!(came.iter().map(Vec::len).sum::<usize>(), count);
}

fn classic_mode_goes_on_after_queues_were_closed<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let first: Vec<_> = (0..40).map(|number| stage.inbound(number)).collect();
    let second: Vec<_> = (40..80).map(|number| stage.inbound(number)).collect();
    for frame in &first {
        stage.engine.send(frame);
    }
    assert_eq!(stage.receive(first.len()), first);
    stage.nic.close().expect("an open card");
    let Stage { nic, engine, .. } = stage;
    let mut card = Queues::open_on(nic, engine, &QueueSettings::new(4));
    some_frames(&mut card, 7, 100);
    let (mut nic, engine) = card.join();
    nic.close().expect("a card in queue mode");
    assert!(nic.queue_settings().is_none());
    nic.open().expect("a card in classic mode");
    nic.wait_link(PATIENCE).expect("the link is still there");
    let mut stage = Stage::resume(nic, engine);
    for frame in &second {
        stage.engine.send(frame);
    }
    assert_eq!(stage.receive(second.len()), second);
}

/// Were memory allocated each time, the driver's share would grow for ever.
fn queues_open_again_with_the_same_memory<E: Engine>() {
    let (mut engine, transport) = E::start();
    let (spy, shared) = Spy::on(transport);
    let mut nic = Nic::probe(spy, Config::default()).expect("a card");
    nic.load(&E::firmware()).expect("good firmware");
    let mut allocations = Vec::new();
    for turn in 0..5 {
        let mut card = Queues::open_on(nic, engine, &QueueSettings::new(2));
        some_frames(&mut card, turn, 30);
        allocations.push(shared.allocations());
        (nic, engine) = card.join();
        nic.close().expect("a card in queue mode");
    }
    allocations.dedup();
    assert_eq!(allocations.len(), 1, "{allocations:?}");
}

fn a_card_that_is_reset_opens_its_queues_again<E: Engine>() {
    let settings = QueueSettings::new(2);
    let mut card = Queues::<E>::open(&settings);
    for seed in 0..3 {
        some_frames(&mut card, seed, 40);
        let (mut nic, engine) = card.join();
        nic.recover().expect("the card is well");
        card = Queues::open_on(nic, engine, &settings);
    }
    some_frames(&mut card, 9, 40);
    assert_eq!(card.control.counters().recoveries, 3);
}

fn the_classifier_changes_while_frames_arrive<E: Engine>() {
    let settings = QueueSettings::new(4);
    let mut card = Queues::<E>::open(&settings);
    // The same frames each time: what the card remembers of a flow must go with the key.
    let mut frames = random_frames(&card, 11, 60);
    frames.extend_from_within(..);
    let other_key = Key(std::array::from_fn(|at| Key::PUBLISHED.0[39 - at]));
    let ways = [
        (ClassifierKind::SourceAddress, Key::PUBLISHED),
        (ClassifierKind::Single, Key::PUBLISHED),
        (ClassifierKind::Toeplitz, Key::PUBLISHED),
        (ClassifierKind::Toeplitz, other_key),
        (ClassifierKind::Toeplitz, Key::SYMMETRIC),
    ];
    for (kind, key) in ways {
        let mut wanted = settings.with_classifier(kind);
        wanted.classification.key = key;
        let set = card.control.set_classification(&wanted.classification);
        set.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(card.control.queue_settings(), Some(&wanted));
        let reference = reference(&wanted);
        let mut expected = vec![Vec::new(); 4];
        for frame in &frames {
            expected[reference.classify(frame, &mut 0).queue as usize].push(frame.clone());
        }
        let came = card.exchange(&frames);
        let bytes = |queue: &Vec<host_driver::nic::Received>| -> Vec<_> {
            queue.iter().map(|frame| frame.bytes.clone()).collect()
        };
        assert_eq!(
            came.iter().map(bytes).collect::<Vec<_>>(),
            expected,
            "{kind:?} {key:?}"
        );
    }
    let wrong = Classification {
        table: Some(flow_classify::IndirectionTable::equal(5)),
        ..settings.classification
    };
    let refused = card.control.set_classification(&wrong);
    assert!(matches!(refused, Err(NicError::Classification(_))));
    some_frames(&mut card, 12, 20);
}

fn frames_leave_while_queues_are_open<E: Engine>() {
    let mut card = Queues::<E>::open(&QueueSettings::new(3));
    let incoming = random_frames(&card, 3, BURST);
    card.wait_for_cpu_b();
    let frame =
        integration_tests::frames::numbered(integration_tests::frames::PEER, card.station, 5);
    for _ in 0..20 {
        let queued = card.send.queue(&[IoSlice::new(&frame)], Default::default());
        assert!(queued.expect("a good frame"));
    }
    card.send.submit().expect("the card is there");
    let came = card.burst(&incoming);
    assert_eq!(came.iter().map(Vec::len).sum::<usize>(), BURST);
    let mut left = 0;
    while left < 20 {
        card.turn();
        while let Some(out) = card.engine.receive_now() {
            assert_eq!(out, frame);
            left += 1;
        }
        card.send.reclaim().expect("the card is well");
    }
}

fn queues_take_jumbo_frames<E: Engine>() {
    let config = Config {
        mtu: 9000,
        ..Config::default()
    };
    let mut card = Queues::<E>::open_with(config, &QueueSettings::new(2));
    for bytes in [60, 1514, 4000, 9014] {
        let frame = card.inbound((0..bytes).map(|byte| byte as u8).collect());
        card.engine.send(&frame);
        let came = card.receive(1);
        let came: Vec<_> = came
            .into_iter()
            .flatten()
            .map(|frame| frame.bytes)
            .collect();
        assert_eq!(came, [frame]);
    }
}

fn settings_that_cannot_be_are_refused_and_classic_mode_still_opens<E: Engine>() {
    let mut stage = Stage::<E>::probed(Config::default());
    stage.nic.load(&E::firmware()).expect("good firmware");
    let Stage {
        mut nic, engine, ..
    } = stage;
    let three = QueueSettings::new(3).with_classifier(ClassifierKind::SourceAddress);
    let mut short = QueueSettings::new(1);
    short.entries = 32;
    for settings in [QueueSettings::new(0), QueueSettings::new(9), three, short] {
        let refused = nic.open_queues(&settings).expect_err("a refusal");
        let what = matches!(
            refused.error,
            NicError::Classification(_) | NicError::BadSetting { .. }
        );
        assert!(what, "{}", refused.error);
        nic = refused.nic;
    }
    nic.open().expect("a running card");
    let refused = nic
        .open_queues(&QueueSettings::new(2))
        .expect_err("a refusal");
    assert!(matches!(refused.error, NicError::WrongState { .. }));
    let mut stage = Stage::resume(refused.nic, engine);
    stage.nic.wait_link(PATIENCE).expect("a link");
    let frame = stage.inbound(1);
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
}
