//! The link restarts while frames leave early and are cut off: CPU B alone writes `R[200]`.

use crate::card::{Card, PORT, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Status};
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_chip::Register;
use tigon2_chip::bits::MacTxState;
use tigon2_model::Operation;
use tigon2_sim::timing::Parameters;

/// The cable is pulled out in these microseconds behind a datagram's call: before, while and after its
/// frame is on the wire.
const PULLED: [u64; 6] = [5, 40, 60, 80, 100, 130];

const LIMIT: Duration = Duration::from_secs(5);

/// The values that each CPU has written to `R[200]`.
fn written(card: &mut Card) -> [Vec<MacTxState>; 2] {
    let mut written = [Vec::new(), Vec::new()];
    for operation in card.stage.engine.machine().lock().take_operations() {
        if let Operation::Write {
            by: Some(cpu),
            offset,
            value,
        } = operation
            && offset == Register::MacTxState.offset()
        {
            written[cpu.index()].push(MacTxState::from_bits(value));
        }
    }
    written
}

/// Waits until the link has gone up or down so many times since the start.
fn wait_changes(card: &mut Card, count: u64) {
    let changed = card.stage.nic.wait_link_changes(count, LIMIT);
    assert!(changed.expect("the card is there"), "change {count}");
}

/// A slow bus has frames cut off by CPU B, and the cable is pulled out meanwhile, so that CPU A
/// restarts the link. Each time the link comes up again, and datagrams pass both ways.
#[test]
fn the_link_restarts_beside_frames_that_are_cut_off() {
    let parameters = Parameters {
        pci_rd: 150,
        jit: 1.0,
        ..Parameters::default()
    };
    let sim = Sim::timed_by(parameters, 3);
    let mut card = Card::on(sim, CutThrough::Lead(512), Checksum::None, 9000);
    card.stage.engine.machine().lock().record_operations();
    let out = bytes(1, 8972);
    let mut changes = 1;
    let mut resets = 0;
    for (cookie, microseconds) in (0..).zip(PULLED) {
        card.send(4096, &out, 2 * cookie);
        card.stage.engine.pass(Duration::from_micros(microseconds));
        card.stage.engine.plug(false);
        wait_changes(&mut card, changes + 1);
        card.stage.engine.plug(true);
        changes += 2;
        wait_changes(&mut card, changes);
        // What was on its way is lost or not, but its descriptor comes back.
        let done = |cookie| Completion::Sent {
            cookie,
            status: Status::Done,
        };
        assert_eq!(card.completion(), done(2 * cookie), "{microseconds} us");
        while card.stage.engine.receive_now().is_some() {}

        card.send(4096, &out, 2 * cookie + 1);
        assert!(data(&card.wire().bytes) == out, "{microseconds} us");
        assert_eq!(card.completion(), done(2 * cookie + 1));
        card.post(0, 2048, 100 + cookie);
        let frame = card.inbound(PORT, &out[..700]);
        card.stage.engine.send(&frame);
        assert_eq!(card.completed(700), 100 + cookie);

        let [by_a, by_b] = written(&mut card);
        assert_eq!(by_a, [], "{microseconds} us");
        let enables = by_b.iter().filter(|state| state.enable() && !state.reset());
        assert!(enables.count() > 0, "{by_b:?}");
        resets += by_b.iter().filter(|state| state.reset()).count();
    }
    card.follow();
    // One of each restart, and those of frames that were late.
    assert!(card.cuts()[1] > 0 && resets > PULLED.len());
}
