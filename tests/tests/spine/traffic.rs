//! Extensions come and go while frames flow in both directions.

use crate::answers::{is_answer, ping};
use crate::card::{self, Spine};
use integration_tests::Engine;
use spine_linker::load::Guard;

/// Loads and unloads of changing extensions.
const LOADS: u32 = 200;

#[test]
fn extensions_come_and_go_under_traffic() {
    let mut spine = Spine::open();
    let free = spine.loader.free();
    let containers = ["infinite", "panicking", "empty"].map(card::of_tests);
    let mut loaded = Vec::new();
    let (mut number, mut handed_up, mut expected) = (0, 0, 0);
    for round in 0..LOADS {
        // Frames of the host's in both directions are in flight while the card is written.
        for _ in 0..4 {
            let frame = spine.stage.inbound(number);
            spine.stage.engine.send(&frame);
            expected += 1;
            let out = spine.stage.outbound(number);
            spine.stage.transmit(&[&out]);
            number += 1;
        }
        if loaded.len() == 3 {
            let domain = loaded.remove((round % 3) as usize);
            let unloaded = spine.loader.unload(&mut spine.card, domain);
            unloaded.unwrap_or_else(|error| panic!("{error}"));
        }
        let domain = if round % 4 == 0 {
            spine.load(&card::ours("echo"))
        } else {
            spine.load(&containers[(round % 3) as usize])
        };
        loaded.push(domain);
        if round % 4 == 0 {
            spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
            let question = ping(&spine, round as u16, &[round as u8; 60]);
            spine.stage.engine.send(&question);
            // Behind the host's frames, or among them.
            let answer = loop {
                let frame = spine.stage.wire();
                if frame[12..14] == [8, 0] {
                    break frame;
                }
                handed_up += 1;
            };
            is_answer(&answer, &question);
        }
        spine.stage.turn();
        let received = spine
            .stage
            .nic
            .receive_batch(64)
            .expect("the card is there");
        expected -= received.len();
    }
    expected -= spine.stage.receive_until_quiet().len();
    assert_eq!(expected, 0, "frames of the host's that it did not get");
    while spine.stage.wire_now().is_some() {
        handed_up += 1;
    }
    assert_eq!(handed_up, number, "frames that came out of the wire");
    for domain in loaded {
        let unloaded = spine.loader.unload(&mut spine.card, domain);
        unloaded.unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(spine.loader.free(), free);
}
