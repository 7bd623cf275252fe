//! Tests a driver's answers about its receive queues, and changes of their settings.

use crate::host::{Queues, reference};
use host_driver::nic::{QueueReport, QueueSettings};
use host_driver::rss::words::{RssWords, weights};
use host_driver::status::{Request, StatusServer, ask};
use host_interface::queue::ClassifierKind;
use integration_tests::{Engine, stories};
use serde_json::Value;
use std::time::Duration;
use tigon2_sim::workload::knet::random::RandomFrames;

stories!(
    the_driver_answers_about_its_queues,
    queues_are_chosen_as_the_driver_was_configured,
);

const FRAMES: usize = 60;

/// Asks while the driver serves its card.
fn asked<E: Engine>(
    server: &StatusServer,
    card: &mut Queues<E>,
    request: Request,
) -> Result<Value, String> {
    let path = server.path().to_owned();
    let asker = std::thread::spawn(move || ask(&path, &request));
    while !asker.is_finished() {
        server.serve(&mut card.control);
        std::thread::sleep(Duration::from_millis(1));
    }
    let answer = asker.join().expect("no panic");
    answer.map_err(|error| error.to_string())
}

fn server(folder: &tempfile::TempDir) -> StatusServer {
    StatusServer::bind(&folder.path().join("status")).expect("a socket")
}

fn the_driver_answers_about_its_queues<E: Engine>() {
    let settings = QueueSettings::new(2);
    let mut card = Queues::<E>::open(&settings);
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut random = RandomFrames::new(4);
    let frames: Vec<_> = (0..FRAMES).map(|_| card.inbound(random.frame())).collect();
    let lengths: Vec<u64> = card
        .exchange(&frames)
        .iter()
        .map(|queue| queue.len() as u64)
        .collect();
    card.receive[1].bound_to(7);
    drop(card.receive.remove(0));
    let mut answer = asked(&server, &mut card, Request::Queues).expect("queues are open");
    let queues: Vec<QueueReport> = serde_json::from_value(answer["queues"].take()).expect("two");
    for (queue, length) in queues.iter().zip(&lengths) {
        assert_eq!(
            (u64::from(queue.card.frames), queue.frames),
            (*length, *length)
        );
        assert_eq!((queue.entries, queue.card.dropped()), (settings.entries, 0));
        assert!(queue.buffers > 0 && !queue.polled, "it was armed again");
    }
    let hands: Vec<_> = queues
        .iter()
        .map(|queue| (queue.served, queue.cpu))
        .collect();
    assert_eq!(hands, [(false, None), (true, Some(7))]);
}

fn queues_are_chosen_as_the_driver_was_configured<E: Engine>() {
    let settings = QueueSettings::new(2);
    let mut card = Queues::<E>::open(&settings);
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder);
    let mut answer = asked(&server, &mut card, Request::Rss).expect("queues are open");
    let words: RssWords = serde_json::from_value(answer["rss"].take()).expect("settings");
    assert_eq!(words, RssWords::from(&settings));

    let mut three = words.clone();
    three.queues = 3;
    let mut high = words.clone();
    high.table[5] = 2;
    let mut short = words.clone();
    short.key.truncate(78);
    for (wrong, said) in [
        (three, "2 queues are open, not 3"),
        (high, "table entry 5 names a queue that is not open"),
        (short, "a key has 40 bytes, not 39"),
    ] {
        let refused = asked(&server, &mut card, Request::SetRss { rss: wrong });
        assert_eq!(refused.expect_err("a refusal"), said);
    }
    assert_eq!(card.control.queue_settings(), Some(&settings));

    let mut wanted = words;
    wanted.table = weights("1,3", 2).expect("two weights").entries().to_vec();
    wanted.fields.push("udp-ipv4".to_owned());
    asked(&server, &mut card, Request::SetRss { rss: wanted }).expect("good settings");
    let now = *card.control.queue_settings().expect("queues are open");
    assert_eq!(now.classification.kind, ClassifierKind::Toeplitz);
    let reference = reference(&now);
    let mut random = RandomFrames::new(9);
    let frames: Vec<_> = (0..FRAMES).map(|_| card.inbound(random.frame())).collect();
    let mut expected = vec![Vec::new(); 2];
    for frame in &frames {
        expected[reference.classify(frame, &mut 0).queue as usize].push(frame.clone());
    }
    let came = card.exchange(&frames).into_iter();
    let came = came.map(|queue| queue.into_iter().map(|frame| frame.bytes).collect());
    assert_eq!(came.collect::<Vec<Vec<_>>>(), expected);
}
