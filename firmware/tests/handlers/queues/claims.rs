//! Which frames CPU A claims, so that CPU B does not classify them.

use super::from;
use super::host::{QueueHost, control};
use host_interface::queue::ClassifierKind;
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
