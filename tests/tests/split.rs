//! Tests control, sending and receiving in separate threads, on one card.

use host_driver::nic::{ReceiveQueue, SendOptions, SendQueue};
use host_driver::{DmaMemory, Nic, NicError};
use integration_tests::{Engine, Stage, stories};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tigon2_model::is_flow_control;

stories!(
    three_threads_move_frames_both_ways,
    a_queue_that_is_gone_does_not_harm_the_card,
);

/// Frames each way.
const FRAMES: u32 = 300;
/// Most frames that are on their way to the host: fewer than there are buffers.
const ON_THE_WAY: usize = 64;
/// No thread is asleep for so long while there are frames for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn send_all(queue: &mut SendQueue, frames: &[Vec<u8>]) -> Result<(), NicError> {
    for frame in frames {
        while !queue.queue(&[IoSlice::new(frame)], SendOptions::default())? {
            wait_for_sent(queue)?;
        }
        queue.submit()?;
        queue.reclaim()?;
    }
    while queue.outstanding() > 0 {
        wait_for_sent(queue)?;
    }
    Ok(())
}

fn wait_for_sent(queue: &mut SendQueue) -> Result<(), NicError> {
    if queue.reclaim()? == 0 {
        assert!(queue.wait(PATIENCE)?, "asleep with BDs to take back");
    }
    Ok(())
}

fn receive_all(queue: &mut ReceiveQueue, expected: &[Vec<u8>], seen: &AtomicUsize) {
    let mut expected = expected.iter();
    while seen.load(Ordering::Relaxed) < FRAMES as usize {
        let taken = queue.receive(16, |frame| {
            assert_eq!(Some(&frame.to_vec()?), expected.next());
            Ok(())
        });
        let taken = taken.unwrap_or_else(|error| panic!("{error}"));
        seen.fetch_add(taken as usize, Ordering::Relaxed);
        if taken == 0 {
            let woken = queue.wait(PATIENCE).expect("the card is there");
            assert!(woken, "asleep with frames to receive");
        }
    }
}

fn three_threads_move_frames_both_ways<E: Engine>()
where
    E::Transport: Send,
{
    let stage = Stage::<E>::open();
    let out: Vec<_> = (0..FRAMES).map(|number| stage.outbound(number)).collect();
    let into: Vec<_> = (0..FRAMES).map(|number| stage.inbound(number)).collect();
    let Stage {
        nic, mut engine, ..
    } = stage;
    let (mut control, mut sender, mut receiver) = nic.split().expect("an open card");
    let (seen, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut wire = VecDeque::new();
    thread::scope(|scope| {
        let sending = scope.spawn(|| send_all(&mut sender, &out));
        let receiving = scope.spawn(|| receive_all(&mut receiver, &into, &seen));
        let controlling = scope.spawn(|| -> Result<u32, NicError> {
            let mut commands = 0;
            while !done.load(Ordering::Relaxed) || commands < 10 {
                control.set_all_multicast(commands % 2 == 0)?;
                control.update_statistics()?;
                commands += 2;
                control.wait(Duration::from_millis(1))?;
                control.take_events()?;
            }
            Ok(commands)
        });
        let end = Instant::now() + 2 * PATIENCE;
        let mut given = 0;
        while (seen.load(Ordering::Relaxed) < into.len() || wire.len() < out.len())
            && !receiving.is_finished() | !sending.is_finished()
        {
            assert!(Instant::now() < end, "{given} in, {} out", wire.len());
            if let Some(frame) = into.get(given)
                && given - seen.load(Ordering::Relaxed) < ON_THE_WAY
            {
                engine.send(frame);
                given += 1;
            }
            match engine.receive_now() {
                Some(frame) if !is_flow_control(&frame) => wire.push_back(frame),
                Some(_) => {}
                None => thread::yield_now(),
            }
        }
        done.store(true, Ordering::Relaxed);
        receiving.join().expect("all frames");
        let sent = sending.join().expect("all BDs");
        sent.unwrap_or_else(|error| panic!("{error}"));
        let commands = controlling.join().expect("no panic");
        assert!(commands.unwrap_or_else(|error| panic!("{error}")) >= 10);
    });
    // Those that were still between the card and the wire's end.
    while wire.len() < out.len() {
        let frame = engine.receive().expect("the frames that were sent");
        if !is_flow_control(&frame) {
            wire.push_back(frame);
        }
    }
    assert_eq!(wire, out);
    let statistics = control.statistics().expect("the card is there");
    assert_eq!(statistics.driver.frames_sent, u64::from(FRAMES));
    assert_eq!(statistics.driver.frames_received, u64::from(FRAMES));
    assert_eq!(statistics.driver_drops.total(), 0);
    // Whole again it does what it did before.
    let nic = Nic::join(control, sender, receiver).ok();
    let mut nic = nic.expect("parts of one card");
    engine.send(&into[0]);
    let end = Instant::now() + PATIENCE;
    let received = loop {
        nic.wait(Duration::from_millis(20))
            .expect("the card is there");
        nic.service().expect("the card is well");
        let frames = nic.receive_batch(8).expect("the card is well");
        if !frames.is_empty() {
            break frames;
        }
        assert!(Instant::now() < end, "no frame for the joined driver");
    };
    assert_eq!(received, into[..1]);
}

/// The card goes on filling the buffers of a queue that its user has dropped: they are its
/// own until control halts it, so nothing fails, and the other parts work on.
fn a_queue_that_is_gone_does_not_harm_the_card<E: Engine>() {
    let stage = Stage::<E>::open();
    let into = stage.inbound(1);
    let out: Vec<_> = (0..20).map(|number| stage.outbound(number)).collect();
    let Stage {
        nic, mut engine, ..
    } = stage;
    let (mut control, mut sender, receiver) = nic.split().expect("an open card");
    drop(receiver);
    for frame in &out {
        engine.send(&into);
        let fragments = [IoSlice::new(frame)];
        let queued = sender.queue_with(|memory: &DmaMemory, offset, _| {
            memory
                .write_bytes(offset, &fragments[0])
                .map_err(std::io::Error::other)?;
            Ok((frame.len(), SendOptions::default()))
        });
        assert_eq!(queued.expect("a good frame"), Some(frame.len()));
        sender.submit().expect("the card is there");
        // Whoever waits lets the simulated card run.
        let _ = sender.wait(Duration::from_millis(1));
        assert_eq!(engine.receive().as_ref(), Some(frame));
    }
    let end = Instant::now() + PATIENCE;
    while sender.outstanding() > 0 {
        sender.reclaim().expect("a good index");
        assert!(Instant::now() < end, "the BDs stay with the card");
        let _ = sender.wait(Duration::from_millis(5));
    }
    let statistics = control.statistics().expect("the card is well");
    assert!(statistics.firmware_drops.total() == 0, "{statistics:?}");
    control.shut_down().expect("the card can be halted");
}
