//! Which frames CPU A claims, so that CPU B does not classify them.

use super::from;
use super::host::{QueueHost, control};
use host_interface::queue::{ClassifierKind, HashType};
use tigon_firmware::memory::layout::{VERDICT_SLOTS, VERDICTS};
use tigon_firmware::memory::shared;
use tigon2_model::Reception;

/// CPU A claims frames that it classifies itself. A claim of frames that have not arrived would let
/// CPU B take the MAC's ring for full, and leave verdicts by old descriptors for the next frames:
/// they would go to another connection's queue.
#[test]
fn only_frames_that_have_arrived_are_claimed() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::Toeplitz));
    let released = shared::QUEUE_RELEASED.address();
    let begin = host.machine.bench().word(released);
    let (mut arrived, mut claims) = (0, 0);
    for burst in [1, 3, 9, 2, 12, 5] {
        host.machine.watch(released);
        for number in 0..burst {
            let frame = from([10, 0, number as u8, 1], number);
            assert_eq!(host.machine.arrive(&frame), Reception::Accepted);
        }
        host.machine.pass(200);
        arrived += burst;
        let claimed = host.machine.watch(0);
        let furthest = claimed.iter().map(|position| position.wrapping_sub(begin));
        assert_eq!(furthest.max(), Some(arrived), "{claimed:x?} from {begin:x}");
        claims += claimed.len();
        for queue in 0..4 {
            let count = host.received(queue).len() as u32;
            host.give(queue, count);
            host.rearm(queue);
        }
    }
    assert!(claims > 6, "nothing was claimed");
}

/// CPU A claims more frames than it delivers in a run. If it gave up the others when the run is
/// over, CPU B would classify frames that CPU A finds in its cache.
#[test]
fn claimed_frames_stay_claimed_from_run_to_run() {
    /// More than two runs, and fewer than a claim.
    const TOGETHER: u32 = 100;
    let mut host = QueueHost::open(&control(4, ClassifierKind::Toeplitz));
    let released = shared::QUEUE_RELEASED.address();
    let begin = host.machine.bench().word(released);
    for number in 0..TOGETHER {
        let frame = from([10, 0, 0, number as u8], number);
        assert_eq!(host.machine.bench().receive(&frame), Reception::Accepted);
    }
    host.machine.watch(released);
    host.machine.pass(400);
    let claimed = host.machine.watch(0);
    let came: Vec<u32> = claimed.iter().map(|at| at.wrapping_sub(begin)).collect();
    assert!(came.is_sorted(), "{came:?}");
    assert_eq!(came.first(), Some(&TOGETHER), "{came:?}");
    assert_eq!(came.last(), Some(&TOGETHER), "{came:?}");
}

/// After a run of few frames, frames of known flows go by CPU A's cache and are not claimed: CPU B
/// hears of each once, when it is released. A frame of a new flow is claimed, alone.
#[test]
fn a_frame_alone_of_a_known_flow_is_not_claimed() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::Toeplitz));
    let released = shared::QUEUE_RELEASED.address();
    let flows = [(1, false), (1, false), (2, true), (2, false), (1, false)];
    host.machine.arrive(&from([10, 0, 0, 1], 5));
    host.machine.pass(200);
    for (flow, is_new) in flows {
        let before = host.machine.bench().word(released);
        host.machine.watch(released);
        host.machine.arrive(&from([10, 0, 0, flow], 5));
        host.machine.pass(200);
        let claimed = host.machine.watch(0);
        let next = before.wrapping_add(1);
        let expected: &[u32] = if is_new { &[next, next] } else { &[next] };
        assert_eq!(claimed, expected, "flow {flow}");
    }
    let received = (0..4).map(|queue| host.received(queue).len());
    assert_eq!(received.sum::<usize>(), 1 + flows.len());
}

/// Frames that arrive together.
const BURST: u32 = 16;
/// The hash that is left for them; it belongs to no flow.
const LEFT: u32 = 0x5EED_0001;

/// Frames of one flow arrive. CPU B has left verdicts on them before CPU A looks, if `position` is
/// that of the first. Returns their hashes.
fn burst(host: &mut QueueHost, position: Option<u32>) -> Vec<u32> {
    for number in 0..BURST {
        let reception = host.machine.bench().receive(&from([10, 0, 0, 1], number));
        assert_eq!(reception, Reception::Accepted);
    }
    if let Some(position) = position {
        let mut bench = host.machine.bench();
        for slot in (VERDICTS..VERDICTS + 8 * VERDICT_SLOTS).step_by(8) {
            bench.set_word(slot, (HashType::UdpIpv4 as u32) << 24);
            bench.set_word(slot + 4, LEFT);
        }
        bench.set_word(shared::QUEUE_AHEAD_FROM.address(), position);
        bench.set_word(shared::QUEUE_AHEAD.address(), position.wrapping_add(BURST));
    }
    host.machine.pass(200);
    let mut hashes = Vec::new();
    for queue in 0..4 {
        let received = host.received(queue);
        host.give(queue, received.len() as u32);
        host.rearm(queue);
        hashes.extend(received.iter().map(|(bd, _)| bd.hash()));
    }
    assert_eq!(hashes.len(), BURST as usize);
    hashes
}

/// CPU A's last claim lies so far behind, while it goes by CPU B's verdicts, that its frames would
/// count as the next ones. It would go by the verdicts of old frames then.
#[test]
fn a_claim_of_four_thousand_million_frames_ago_means_nothing() {
    let mut host = QueueHost::open(&control(4, ClassifierKind::Toeplitz));
    let own = burst(&mut host, None);
    let mut position = host.machine.bench().word(shared::QUEUE_RELEASED.address());
    // Turns of the MAC's ring in which the claim comes round to be 32 frames in front.
    let turns = [0; 26].into_iter().chain([1 << 30; 3]);
    for turn in turns.chain([(1 << 30) - 512]) {
        host.machine.a().count_frames(turn);
        position = position.wrapping_add(turn);
        assert_eq!(burst(&mut host, Some(position)), [LEFT; BURST as usize]);
        position = position.wrapping_add(BURST);
    }
    assert_eq!(burst(&mut host, None), own);
}
