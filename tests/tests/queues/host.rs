//! A card in queue mode, and one thread that serves all its queues.

use host_driver::nic::{Control, QueueParts, QueueSettings, ReceiveQueue, Received, SendQueue};
use host_driver::{Config, Nic, Transport};
use host_interface::queue::TABLE_ENTRIES;
use integration_tests::frames::{PEER, numbered};
use integration_tests::{Engine, Stage};
use std::io::IoSlice;
use std::time::{Duration, Instant};
use tigon2_sim::workload::knet::reference::Reference;

/// Longest time that frames may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Frames that may arrive together.
///
/// The card has up to 128 BDs of a queue in its memory, and CPU B fetches more as soon as 32 of them
/// are taken: so at rest there are 97 to 128. QEMU runs each CPU of the card in a thread of its own;
/// where the computer is busy, whole bursts arrive before CPU B runs, and a frame that finds no BD is
/// dropped.
pub const BURST: usize = 25;
/// How long the card runs between two looks.
const LOOK: Duration = Duration::from_micros(200);

/// A card in queue mode.
pub struct Queues<E: Engine, T: Transport = <E as Engine>::Transport> {
    pub control: Control<T>,
    pub send: SendQueue,
    pub receive: Vec<ReceiveQueue>,
    pub engine: E,
    pub station: [u8; 6],
}

impl<E: Engine> Queues<E> {
    /// Opens queues on a new card and waits for its link.
    pub fn open(settings: &QueueSettings) -> Self {
        Self::open_with(Config::default(), settings)
    }

    /// The same with a configuration of the story's own.
    pub fn open_with(config: Config, settings: &QueueSettings) -> Self {
        let mut stage = Stage::<E>::probed(config);
        stage.nic.load(&E::firmware()).expect("good firmware");
        let Stage { nic, engine, .. } = stage;
        Self::open_on(nic, engine, settings)
    }
}

impl<E: Engine, T: Transport> Queues<E, T> {
    /// Opens queues on a card whose firmware runs.
    pub fn open_on(nic: Nic<T>, engine: E, settings: &QueueSettings) -> Self {
        let opened = nic.open_queues(settings);
        let QueueParts {
            mut control,
            send,
            receive,
        } = opened.unwrap_or_else(|split| panic!("{}", split.error));
        control.wait_link(PATIENCE).expect("a link");
        Queues {
            station: control.station(),
            control,
            send,
            receive,
            engine,
        }
    }

    /// Joins the parts; the card stays in queue mode.
    pub fn join(self) -> (Nic<T>, E) {
        let parts = QueueParts {
            control: self.control,
            send: self.send,
            receive: self.receive,
        };
        let nic = Nic::join_queues(parts).expect("the parts of one card");
        (nic, self.engine)
    }

    /// Lets the card run for a moment, and takes its events.
    pub fn turn(&mut self) {
        self.control.wait(LOOK).expect("the card is there");
        self.control.take_events().expect("the card is well");
    }

    /// Lets CPU B do what it has to: it fetches queues' buffers, as it fetches this frame that leaves.
    pub fn wait_for_cpu_b(&mut self) {
        let frame = numbered(PEER, self.station, 1);
        let queued = self.send.queue(&[IoSlice::new(&frame)], Default::default());
        assert!(queued.expect("a good frame"));
        self.send.submit().expect("the card is there");
        let end = Instant::now() + PATIENCE;
        while self.engine.receive_now().is_none() {
            assert!(Instant::now() < end, "no frame leaves");
            self.turn();
        }
        self.send.reclaim().expect("the card is well");
    }

    /// Sends frames in bursts that the card has BDs for, whatever their queues; those of each queue, in
    /// order. No other frame may be on its way.
    pub fn exchange(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<Received>> {
        let mut all = vec![Vec::new(); self.receive.len()];
        for burst in frames.chunks(BURST) {
            self.wait_for_cpu_b();
            for (all, came) in all.iter_mut().zip(self.burst(burst)) {
                all.extend(came);
            }
        }
        all
    }

    /// Sends frames all at once, and takes them.
    pub fn burst(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<Received>> {
        for frame in frames {
            self.engine.send(frame);
        }
        self.receive(frames.len())
    }

    /// Takes frames of all queues until `count` have come; those of each queue, in order.
    pub fn receive(&mut self, count: usize) -> Vec<Vec<Received>> {
        let mut all = vec![Vec::new(); self.receive.len()];
        let end = Instant::now() + PATIENCE;
        loop {
            for (frames, queue) in all.iter_mut().zip(&mut self.receive) {
                let more = queue.receive_described(64);
                frames.extend(more.unwrap_or_else(|error| panic!("{error}")));
                queue.rearm().expect("the card is there");
            }
            let came: usize = all.iter().map(Vec::len).sum();
            if came >= count {
                return all;
            }
            if Instant::now() >= end {
                let counters = self.control.queue_counters();
                let state = self.control.card_state();
                panic!("{came} of {count} frames; {counters:?}; {state:?}");
            }
            self.turn();
        }
    }

    /// A frame as the wire carries it to this card's host: addressed to it, and not too short.
    pub fn inbound(&self, mut frame: Vec<u8>) -> Vec<u8> {
        if frame.len() < 60 {
            frame.resize(60, 0);
        }
        frame[..6].copy_from_slice(&self.station);
        frame[6..12].copy_from_slice(&PEER);
        frame
    }
}

/// What the reference says with these settings.
pub fn reference(settings: &QueueSettings) -> Reference {
    let classification = &settings.classification;
    let mut table = [0; TABLE_ENTRIES];
    table.copy_from_slice(classification.table(settings.queues).entries());
    Reference {
        kind: classification.kind,
        queues: settings.queues.into(),
        types: classification.hash_types,
        key: classification.key.0,
        table,
    }
}
