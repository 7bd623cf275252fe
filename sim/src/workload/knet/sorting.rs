//! The cost of sorting: frames of many flows into the card, compared with classic mode.
//!
//! One host CPU, which spends no time on packets, serves all queues, so the card or the wire is
//! the limit. The driver is the same in both modes, split into control and queues.

use super::flows::{FlowMismatch, FlowSink, Flows, Version};
use crate::machine::Machine;
use crate::timeline::capture::{self, Window};
use crate::timeline::{Recorder, Timeline};
use crate::timing::counts::{Activity, Counts};
use crate::transport::{HostTiming, SharedMachine, SimTransport};
use crate::workload::WorkloadError;
use crate::workload::datagram::{self, Flow};
use crate::workload::experiment::{Duration, wire_limit};
use crate::workload::search::{Look, highest};
use crate::workload::testbench::Setup;
use host_driver::nic::{Control, QueueParts, QueueSettings, ReceiveQueue, SendOptions, SendQueue};
use host_driver::{Config, Nic};
use std::io::IoSlice;
use tigon2_model::is_flow_control;

/// How many flows there are, unless more are asked for.
pub const FLOWS: usize = 64;
/// Frames that a queue may have at the end of a look and not have reported: it reports so many at
/// once.
const REPORTED: f64 = 64.0;
/// How far ahead of the card's clock frames are put on the wire, and how many may wait there.
const LOOKAHEAD_NS: u64 = 500_000;
const WIRE_DEPTH: usize = 1024;
/// The longest that a frame may take alone, in nanoseconds.
const PATIENCE: u64 = 50_000_000;
/// For how long the host waits before it looks whether there is something to do.
const LOOK: std::time::Duration = std::time::Duration::from_micros(100);
/// Send BDs that the sender keeps free: with fewer the driver requests a report of every frame.
const KEPT_FREE: u32 = 64;

/// What arrives, and what leaves beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Which IP.
    pub version: Version,
    /// Bytes of each datagram.
    pub datagram: usize,
    /// What leaves meanwhile.
    pub out: Outbound,
    /// How many flows they are of, mixed at random.
    pub flows: usize,
}

/// Frames that leave while others arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outbound {
    /// None.
    Nothing,
    /// As many as arrive.
    Equal,
    /// As many as the card sends: the host always has one more.
    Most,
}

impl Outbound {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Outbound::Nothing => "in",
            Outbound::Equal => "both",
            Outbound::Most => "full",
        }
    }
}

impl Traffic {
    /// Frames a second that the wire carries towards the card.
    pub fn wire_limit(&self) -> f64 {
        let more = self.version.headers() - datagram::HEADERS;
        wire_limit(self.datagram + more)
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// Frames a second that the host got.
    pub rate: f64,
    /// That as a part of what the wire carries.
    pub of_wire: f64,
    /// Cycles for each frame of CPU A and B, waiting for work not among them.
    pub cycles: [f64; 2],
    /// The share of its time in which each did not idle.
    pub busy: [f64; 2],
    /// Where the cycles of the two CPUs went.
    pub counts: Vec<Counts>,
    /// Interrupts for each received frame.
    pub interrupts: f64,
    /// Frames that each queue got.
    pub queues: Vec<u64>,
    /// Frames that the card dropped.
    pub dropped: u64,
}

/// Measures a traffic; `settings` is None for classic mode.
///
/// # Errors
/// [`WorkloadError`] of the driver, or a frame that is not what was sent.
pub fn measure(
    setup: &Setup<'_>,
    settings: Option<&QueueSettings>,
    traffic: Traffic,
    duration: Duration,
) -> Result<Sorted, WorkloadError> {
    let look = |rate| look(setup, settings, traffic, rate, duration);
    let limit = traffic.wire_limit();
    if traffic.out == Outbound::Nothing {
        return Ok(look(limit)?.0);
    }
    highest(limit, duration, |rate| {
        let (sorted, sent) = look(rate)?;
        let lost = sorted.dropped as f64 / (sorted.rate * seconds(duration)).max(1.0);
        let seen = sorted.rate + REPORTED / seconds(duration);
        let least = sent.min(seen) / rate - 1.0 + 0.005;
        let surplus = if lost > 0.0 { -lost.max(0.005) } else { least };
        Ok(Look {
            surplus,
            carried: f64::midpoint(sent, sorted.rate),
            measured: sorted,
        })
    })
}

fn seconds(duration: Duration) -> f64 {
    duration.window as f64 / 1e9
}

/// One look at a rate; what was sorted, and frames a second that left.
fn look(
    setup: &Setup<'_>,
    settings: Option<&QueueSettings>,
    traffic: Traffic,
    rate: f64,
    duration: Duration,
) -> Result<(Sorted, f64), WorkloadError> {
    let mut bench = Bench::start(setup, settings, traffic)?;
    bench.distance = 1e9 / rate;
    bench.next = bench.now() as f64 + 1000.0;
    bench.next_out = bench.next;
    bench.run(duration.warm_up)?;
    let before = bench.reading();
    bench.run(duration.window)?;
    let after = bench.reading();
    let seconds = seconds(duration);
    let received = (after.received - before.received) as f64;
    let counts: Vec<_> = after
        .counts
        .iter()
        .zip(&before.counts)
        .map(|(after, before)| after.since(before))
        .collect();
    let busy = [0, 1].map(|cpu| counts.get(cpu).map_or(0, busy));
    let cycles = (after.cycle - before.cycle) as f64;
    let sorted = Sorted {
        rate: received / seconds,
        of_wire: received / seconds / traffic.wire_limit(),
        cycles: busy.map(|busy| busy as f64 / received.max(1.0)),
        busy: busy.map(|busy| busy as f64 / cycles),
        counts,
        interrupts: (after.interrupts - before.interrupts) as f64 / received.max(1.0),
        queues: after
            .queues
            .iter()
            .zip(before.queues)
            .map(|(after, before)| after - before)
            .collect(),
        dropped: after.missing - before.missing,
    };
    Ok((sorted, (after.sent - before.sent) as f64 / seconds))
}

/// Records a window of a traffic at a rate of frames a second in queue mode.
///
/// # Errors
/// [`WorkloadError`] of the driver, or a frame that is not what was sent.
pub fn capture(
    setup: &Setup<'_>,
    settings: &QueueSettings,
    traffic: Traffic,
    rate: f64,
    recorder: Recorder,
    window: Window,
) -> Result<Timeline, WorkloadError> {
    let mut bench = Bench::start(setup, Some(settings), traffic)?;
    let start = bench.now();
    bench.machine.lock().record(recorder);
    bench.distance = 1e9 / rate;
    bench.next = start as f64 + 1000.0;
    bench.next_out = bench.next;
    bench.run(window.to + capture::AFTER)?;
    capture::recorded(&bench.machine, start, window)
}

/// What had been counted at a time.
struct Reading {
    cycle: u64,
    received: u64,
    sent: u64,
    missing: u64,
    interrupts: u64,
    counts: Vec<Counts>,
    queues: Vec<u64>,
}

/// Cycles in which a CPU did not wait for work.
fn busy(counts: &Counts) -> u64 {
    let busy = counts.iter().filter(|(what, _)| *what != Activity::Idle);
    busy.map(|(_, tally)| tally.total()).sum()
}

/// A card, its host and its wire.
pub(super) struct Bench {
    control: Control<SimTransport>,
    send: SendQueue,
    receive: Vec<ReceiveQueue>,
    machine: SharedMachine,
    service: Box<dyn Fn(u32) -> u64>,
    flows: Flows,
    sink: FlowSink,
    /// When the next frame is put on the wire, and the time between two, in nanoseconds.
    next: f64,
    distance: f64,
    outbound: Option<Flow>,
    /// When the next frame leaves, if they leave as others arrive.
    next_out: f64,
    equal: bool,
    sent: u64,
    queues: Vec<u64>,
    /// When the driver took frames last.
    taken: Option<u64>,
}

impl Bench {
    pub(super) fn start(
        setup: &Setup<'_>,
        settings: Option<&QueueSettings>,
        traffic: Traffic,
    ) -> Result<Bench, WorkloadError> {
        let machine = Machine::timed(setup.board.clone(), setup.parameters.clone(), setup.seed);
        let mut transport = SimTransport::new(machine);
        transport.set_timing(HostTiming::of(&setup.parameters));
        let machine = transport.machine();
        let config = Config {
            coalescing: setup.coalescing,
            send_interrupts_by_count: true,
            firmware_timeout: setup.patience,
            command_timeout: setup.patience,
            watchdog: setup.patience,
            ..setup.host.config(setup.one_dma)
        };
        let mut nic = Nic::probe(transport, config)?;
        nic.load(setup.firmware)?;
        let (mut control, send, receive) = match settings {
            Some(settings) => {
                let parts = nic.open_queues(settings).map_err(|split| split.error)?;
                let QueueParts {
                    control,
                    send,
                    receive,
                } = parts;
                (control, send, receive)
            }
            None => {
                nic.open()?;
                let (control, send, receive) = nic.split().map_err(|split| split.error)?;
                (control, send, vec![receive])
            }
        };
        control.wait_link(setup.patience)?;
        if setup.unlimited {
            machine.lock().set_unlimited(true);
        }
        let station = control.station();
        let flows = Flows::new(
            traffic.flows,
            station,
            traffic.version,
            traffic.datagram,
            setup.seed,
        );
        let parameters = setup.parameters.clone();
        let queues = vec![0; receive.len()];
        let mut sink = flows.sink();
        if settings.is_some_and(is_round_robin) {
            sink.let_flows_spread();
        }
        Ok(Bench {
            send,
            receive,
            machine,
            service: Box::new(move |frames| parameters.service_time(frames)),
            sink,
            flows,
            next: 0.0,
            distance: 0.0,
            outbound: (traffic.out != Outbound::Nothing)
                .then(|| Flow::new(station, datagram::PEER, traffic.datagram)),
            next_out: 0.0,
            equal: traffic.out == Outbound::Equal,
            sent: 0,
            queues,
            taken: None,
            control,
        })
    }

    fn now(&self) -> u64 {
        self.machine.lock().now()
    }

    /// Lets the load run for a while.
    fn run(&mut self, nanoseconds: u64) -> Result<(), WorkloadError> {
        let end = self.now() + nanoseconds;
        loop {
            self.feed();
            self.refill()?;
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            let left = std::time::Duration::from_nanos(end - now);
            if self.control.wait(LOOK.min(left))? {
                self.service()?;
            }
        }
    }

    pub(super) fn machine(&self) -> SharedMachine {
        self.machine.clone()
    }

    /// Lets a while pass in which no frame comes.
    pub(super) fn rest(&mut self, nanoseconds: u64) -> Result<(), WorkloadError> {
        self.next = f64::INFINITY;
        self.run(nanoseconds)
    }

    /// Puts a frame on the wire and serves it alone. Returns nanoseconds until the driver has it.
    pub(super) fn one(&mut self) -> Result<u64, WorkloadError> {
        let (start, before) = (self.now(), self.sink.received());
        let frame = self.flows.frame();
        self.machine.lock().send_frame(0, frame);
        self.taken = None;
        while self.sink.received() == before {
            if self.now() - start > PATIENCE {
                return Err(WorkloadError::Stalled(PATIENCE / 1_000_000));
            }
            if self.control.wait(LOOK)? {
                self.service()?;
            }
        }
        Ok(self.taken.unwrap_or(start) - start)
    }

    /// Puts what begins soon on the wire, and takes what has left it.
    fn feed(&mut self) {
        let mut machine = self.machine.lock();
        let horizon = (machine.now() + LOOKAHEAD_NS) as f64;
        while self.next < horizon && machine.pending_frames() < WIRE_DEPTH {
            machine.send_frame(self.next as u64, self.flows.frame());
            self.next += self.distance;
        }
        while let Some(frame) = machine.take_frame() {
            self.sent += u64::from(!is_flow_control(&frame.bytes));
        }
    }

    fn refill(&mut self) -> Result<(), WorkloadError> {
        let now = self.now() as f64;
        let Some(flow) = &mut self.outbound else {
            return Ok(());
        };
        while self.send.room() > KEPT_FREE && !(self.equal && self.next_out > now) {
            self.next_out += self.distance;
            let frame = flow.frame();
            if !self
                .send
                .queue(&[IoSlice::new(&frame)], SendOptions::default())?
            {
                break;
            }
        }
        self.send.submit()?;
        Ok(())
    }

    /// The service routine: takes all queues empty, then re-arms them.
    fn service(&mut self) -> Result<(), WorkloadError> {
        loop {
            let mut frames = 0;
            let every = self.receive.iter_mut().zip(&mut self.queues);
            for (number, (queue, count)) in every.enumerate() {
                let mut wrong: Option<FlowMismatch> = None;
                let sink = &mut self.sink;
                let taken = queue.receive(u32::MAX, |frame| {
                    if let Err(mismatch) = sink.take(number, &frame.to_vec()?) {
                        wrong.get_or_insert(mismatch);
                    }
                    Ok(())
                })?;
                if let Some(mismatch) = wrong {
                    return Err(WorkloadError::Misdirected(mismatch));
                }
                *count += u64::from(taken);
                frames += taken;
            }
            if frames != 0 {
                self.taken = Some(self.now());
            }
            self.pass((self.service)(frames));
            self.control.take_events()?;
            self.send.reclaim()?;
            if frames == 0 {
                break;
            }
        }
        for queue in &mut self.receive {
            queue.rearm()?;
        }
        Ok(())
    }

    fn pass(&self, nanoseconds: u64) {
        let mut machine = self.machine.lock();
        let cycles = machine.clock().cycle_at(nanoseconds);
        machine.run(cycles);
    }

    fn reading(&self) -> Reading {
        let machine = self.machine.lock();
        let counts = |cpu: usize| {
            let counts = machine.timing().map(|timed| &timed.pipelines[cpu].counts);
            counts.cloned().unwrap_or_default()
        };
        Reading {
            cycle: machine.cycle(),
            received: self.sink.received(),
            sent: self.sent,
            missing: self.sink.missing(),
            interrupts: self.control.counters().interrupts,
            counts: vec![counts(0), counts(1)],
            queues: self.queues.clone(),
        }
    }
}

/// Whether flows may be reordered on purpose.
fn is_round_robin(settings: &QueueSettings) -> bool {
    settings.classification.kind == host_interface::queue::ClassifierKind::RoundRobin
}
