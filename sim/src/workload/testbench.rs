//! The card, the driver and both ends of the wire under a load, on the card's clock.
//!
//! The host is interrupt-driven: its service routine starts [`Parameters::int_delay_ns`] after the
//! interrupt line rises, and takes [`Parameters::service_ns`] plus [`Parameters::rx_ns`] for each
//! received frame. A sender fills the send ring at the end of each routine and writes the mailbox
//! once.

use super::WorkloadError;
use super::arrivals::{Arrivals, Mix};
use super::datagram::{Flow, HEADERS, LARGEST, Mismatch, PEER, SMALLEST, Sink};
use super::host::Host;
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::timing::counts::Counts;
use crate::timing::port::Client;
use crate::transport::{HostTiming, SharedMachine, SimTransport};
use crate::wire::Frame;
use host_driver::nic::Coalescing;
use host_driver::{Config, Nic};
use std::io::IoSlice;
use std::time::Duration;
use tigon2_model::{Board, is_flow_control};

/// For how long the host waits before it looks whether there is something to do.
const LOOK_NS: u64 = 200_000;
/// How far ahead of the card's clock frames are put on the wire: the longest wait of the host
/// and the longest service behind it, in which nobody does.
const LOOKAHEAD_NS: u64 = 2_000_000;
/// How many frames may wait on the wire: more than come in that time.
const WIRE_DEPTH: usize = 4096;
/// Time without a frame after which a run counts as stalled.
const STALL_MS: u64 = 200;
/// Time for whatever the driver waits for. It looks at this computer's clock, which must
/// not decide anything here; what hangs, hangs on the card's clock ([`STALL_MS`]).
const PATIENCE: Duration = Duration::from_secs(3600);
/// BDs that the sender keeps free: with fewer the driver requests a report of every frame.
const KEPT_FREE: u32 = 64;

/// What is measured on.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The board.
    pub board: Board,
    /// The timing profile.
    pub parameters: Parameters,
    /// The firmware, in the drivers' load format.
    pub firmware: &'a [u8],
    /// What varies, varies by this.
    pub seed: u64,
    /// BDs of a sent frame: 1, or 2 with the headers in a buffer of their own.
    pub fragments: u32,
    /// When the host is notified.
    pub coalescing: Coalescing,
    /// Only one DMA channel moves data at a time: operating mode, bit 6.
    pub one_dma: bool,
    /// Whose host it is.
    pub host: Host,
    /// Whether the CPUs take no time once the link is up.
    pub unlimited: bool,
    /// How long the driver waits for anything, on this computer's clock.
    pub patience: Duration,
}

/// The coalescing of the BSD driver of the paper's time, as in the calibration of the
/// timing model.
pub const BSD: Coalescing = Coalescing {
    receive_ticks: 170,
    transmit_ticks: 2000,
    statistics_ticks: 1_000_000,
    max_transmit_bds: 32,
    max_receive_bds: 64,
};

impl<'a> Setup<'a> {
    /// The paper's: BSD's coalescing, and two BDs for a sent frame.
    pub fn new(board: Board, parameters: Parameters, firmware: &'a [u8]) -> Setup<'a> {
        Setup {
            board,
            parameters,
            firmware,
            seed: 1,
            fragments: 2,
            coalescing: BSD,
            one_dma: false,
            host: Host::Driver,
            unlimited: false,
            patience: PATIENCE,
        }
    }
}

/// What runs through the card.
#[derive(Debug, Default)]
pub struct Load {
    /// Datagrams that the host sends as fast as it can.
    pub send: Option<Flow>,
    /// Frames that arrive.
    pub receive: Option<Source>,
}

/// Frames towards the card.
#[derive(Debug)]
pub struct Source {
    flow: Flow,
    arrivals: Arrivals,
    /// The next frame's time, drawn already.
    next: Option<u64>,
}

impl Source {
    /// A flow with its times.
    pub fn new(flow: Flow, arrivals: Arrivals) -> Source {
        Source {
            flow,
            arrivals,
            next: None,
        }
    }

    /// Puts what begins soon on the wire.
    fn feed(&mut self, machine: &mut Machine) {
        let horizon = machine.now() + LOOKAHEAD_NS;
        let depth = WIRE_DEPTH * machine.card().board().mac.times as usize;
        while machine.pending_frames() < depth {
            let at = *self.next.get_or_insert_with(|| self.arrivals.next_start());
            if at > horizon {
                return;
            }
            self.next = None;
            machine.send_frame(at, self.flow.frame());
        }
    }
}

/// What had been counted at a time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Frames that the wire got from the card.
    pub sent: u64,
    /// Frames that the host got from the card.
    pub received: u64,
    /// Bytes of the datagrams in either.
    pub sent_bytes: u64,
    /// The same into the host.
    pub received_bytes: u64,
    /// Nanoseconds for which frames towards the card were held.
    pub held_back: u64,
    /// Frames that the card dropped or that never came out of it.
    pub dropped: u64,
    /// Where the cycles of each CPU went, CPU A first.
    pub counts: Vec<Counts>,
    /// Accesses of the SRAM port, by [`Client`].
    pub grants: [u64; Client::ALL.len()],
    /// Cycles of the PCI bus.
    pub pci_busy: u64,
    /// Instructions of all CPUs.
    pub instructions: u64,
}

/// A card that carries frames, and all around it.
pub struct Testbench {
    nic: Nic<SimTransport>,
    machine: SharedMachine,
    parameters: Parameters,
    fragments: u32,
    wire: Vec<Sink>,
    host: Vec<Sink>,
}

impl Testbench {
    /// Powers a card up, loads its firmware and waits for the link.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn start(setup: &Setup<'_>) -> Result<Testbench, WorkloadError> {
        let machine = Machine::timed(setup.board.clone(), setup.parameters.clone(), setup.seed);
        Testbench::start_on(SimTransport::new(machine), setup)
    }

    /// The same with a machine of the setup's board that the caller has prepared.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub fn start_on(
        mut transport: SimTransport,
        setup: &Setup<'_>,
    ) -> Result<Testbench, WorkloadError> {
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
        nic.open()?;
        nic.wait_link(setup.patience)?;
        if setup.unlimited {
            machine.lock().set_unlimited(true);
        }
        Ok(Testbench {
            nic,
            machine,
            parameters: setup.parameters.clone(),
            fragments: setup.fragments,
            wire: Vec::new(),
            host: Vec::new(),
        })
    }

    /// A flow from this host to the peer.
    ///
    /// # Errors
    /// [`WorkloadError::Size`] for a datagram that no frame holds.
    pub fn outbound(&mut self, mix: impl Into<Mix>) -> Result<Flow, WorkloadError> {
        let mix = checked(mix.into())?;
        let flow = Flow::mixed(self.nic.station(), PEER, &mix);
        self.wire = vec![Sink::new(flow.clone())];
        Ok(flow)
    }

    /// A flow from the peer to this host.
    ///
    /// # Errors
    /// [`WorkloadError::Size`] for a datagram that no frame holds.
    pub fn inbound(&mut self, mix: impl Into<Mix>) -> Result<Flow, WorkloadError> {
        let mix = checked(mix.into())?;
        let flow = Flow::mixed(PEER, self.nic.station(), &mix);
        self.host = vec![Sink::new(flow.clone())];
        Ok(flow)
    }

    /// A flow from this host to the host of another card: that one checks what comes.
    ///
    /// # Errors
    /// [`WorkloadError::Size`] for a datagram that no frame holds.
    pub fn flow_to(
        &mut self,
        other: &mut Testbench,
        mix: impl Into<Mix>,
    ) -> Result<Flow, WorkloadError> {
        let mix = checked(mix.into())?;
        let flow = Flow::mixed(self.nic.station(), other.nic.station(), &mix);
        other.host = vec![Sink::new(flow.clone())];
        Ok(flow)
    }

    /// Nanoseconds since power-on.
    pub fn now(&self) -> u64 {
        self.machine.lock().now()
    }

    /// The machine.
    pub fn machine(&self) -> &SharedMachine {
        &self.machine
    }

    /// How many times faster than the chip's the wire of the board is.
    pub fn wire_times(&self) -> f64 {
        self.machine.lock().card().board().mac.times.into()
    }

    /// The driver.
    pub fn nic(&mut self) -> &mut Nic<SimTransport> {
        &mut self.nic
    }

    /// Lets a load run for a while.
    ///
    /// # Errors
    /// [`WorkloadError`]: the driver's, a frame that is not what was sent, or a card that
    /// carries nothing any more.
    pub fn run(&mut self, load: &mut Load, nanoseconds: u64) -> Result<(), WorkloadError> {
        let end = self.now() + nanoseconds;
        let mut moved = (self.now(), self.total());
        loop {
            if let Some(source) = &mut load.receive {
                source.feed(&mut self.machine.lock());
            }
            self.take_from_wire()?;
            if let Some(flow) = &mut load.send {
                self.refill(flow)?;
            }
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            let total = self.total();
            if total != moved.1 {
                moved = (now, total);
            } else if (load.send.is_some() || load.receive.is_some())
                && now - moved.0 > STALL_MS * 1_000_000
            {
                return Err(WorkloadError::Stalled(STALL_MS));
            }
            let patience = LOOK_NS.min(end - now);
            if self.nic.wait(Duration::from_nanos(patience))? {
                self.service()?;
            }
        }
    }

    /// Lets time pass until a frame has left the card; returns when it had left, in
    /// nanoseconds since power-on.
    ///
    /// # Errors
    /// As of [`run`](Self::run), and if none leaves in time.
    pub fn wait_sent(&mut self, patience: u64) -> Result<u64, WorkloadError> {
        let end = self.now() + patience;
        while self.now() < end {
            if let Some(frame) = self.data_frame() {
                self.check_sent(&frame.bytes)?;
                return Ok(frame.at);
            }
            if self.nic.wait(Duration::from_micros(20))? {
                self.service()?;
            }
        }
        Err(WorkloadError::Stalled(patience / 1_000_000))
    }

    /// Lets time pass until the host has got a frame; returns when it had, in nanoseconds
    /// since power-on.
    ///
    /// # Errors
    /// As of [`run`](Self::run), and if none comes in time.
    pub fn wait_received(&mut self, patience: u64) -> Result<u64, WorkloadError> {
        let end = self.now() + patience;
        let before = self.total();
        while self.now() < end {
            if self.nic.wait(Duration::from_micros(500))? {
                self.service()?;
                if self.total() != before {
                    return Ok(self.now());
                }
            }
        }
        Err(WorkloadError::Stalled(patience / 1_000_000))
    }

    fn total(&self) -> u64 {
        let sinks = self.wire.iter().chain(&self.host);
        sinks.map(Sink::received).sum()
    }

    fn pass(&self, nanoseconds: u64) {
        self.machine.pass(nanoseconds);
    }

    /// The interrupt service routine, behind the acknowledgement of [`Nic::wait`].
    fn service(&mut self) -> Result<(), WorkloadError> {
        let mut wrong = None;
        let host = &mut self.host;
        let frames = self.nic.receive(u32::MAX, |frame| {
            if let Err(mismatch) = take(host, &frame.to_vec()?) {
                wrong.get_or_insert(mismatch);
            }
            Ok(())
        })?;
        if let Some(mismatch) = wrong {
            return Err(WorkloadError::Corrupt {
                direction: "received",
                mismatch,
            });
        }
        self.pass(self.parameters.service_time(frames));
        self.nic.service()?;
        Ok(())
    }

    /// The next frame from the card that is no pause frame.
    fn data_frame(&self) -> Option<Frame> {
        let mut machine = self.machine.lock();
        loop {
            let frame = machine.take_frame()?;
            if !is_flow_control(&frame.bytes) {
                return Some(frame);
            }
        }
    }

    fn take_from_wire(&mut self) -> Result<(), WorkloadError> {
        loop {
            match self.data_frame() {
                Some(frame) => self.check_sent(&frame.bytes)?,
                None => return Ok(()),
            }
        }
    }

    fn check_sent(&mut self, frame: &[u8]) -> Result<(), WorkloadError> {
        take(&mut self.wire, frame).map_err(|mismatch| WorkloadError::Corrupt {
            direction: "sent",
            mismatch,
        })
    }

    /// Queues a frame in as many BDs as set up; false if the ring is full.
    pub(super) fn queue(&mut self, frame: &[u8]) -> Result<bool, WorkloadError> {
        let (headers, payload) = frame.split_at(HEADERS);
        let queued = if self.fragments > 1 {
            let parts = [IoSlice::new(headers), IoSlice::new(payload)];
            self.nic.queue(&parts)?
        } else {
            self.nic.queue(&[IoSlice::new(frame)])?
        };
        Ok(queued)
    }

    /// Fills the send ring and writes the mailbox.
    fn refill(&mut self, flow: &mut Flow) -> Result<(), WorkloadError> {
        while self.nic.send_room() > self.fragments + KEPT_FREE {
            if !self.queue(&flow.frame())? {
                break;
            }
            if self.parameters.gen_ns != 0 {
                self.nic.submit()?;
                self.pass(self.parameters.gen_ns);
            }
        }
        self.nic.submit()?;
        Ok(())
    }

    /// What has been counted so far.
    pub fn reading(&self) -> Reading {
        let machine = self.machine.lock();
        let counts = |index: usize| {
            machine
                .timing()
                .map(|timed| timed.pipelines[index].counts.clone())
                .unwrap_or_default()
        };
        let timed = machine.timing();
        let missing: u64 = self.wire.iter().chain(&self.host).map(Sink::missing).sum();
        Reading {
            cycle: machine.cycle(),
            sent: self.wire.iter().map(Sink::received).sum(),
            received: self.host.iter().map(Sink::received).sum(),
            sent_bytes: self.wire.iter().map(Sink::bytes).sum(),
            received_bytes: self.host.iter().map(Sink::bytes).sum(),
            held_back: machine.held_back(),
            dropped: missing,
            counts: (0..machine.cpus().all().len()).map(counts).collect(),
            grants: timed.map_or([0; Client::ALL.len()], |timed| timed.port.grants()),
            pci_busy: timed.map_or(0, |timed| timed.dma.bus_busy()),
            instructions: machine
                .cpus()
                .all()
                .iter()
                .map(|cpu| machine.cpus().core(*cpu).retired())
                .sum(),
        }
    }
}

/// Gives a frame to the sink whose flow it belongs to; without a sink it is ignored.
fn take(sinks: &mut [Sink], frame: &[u8]) -> Result<(), Mismatch> {
    for sink in sinks.iter_mut() {
        match sink.take(frame) {
            Err(Mismatch::Headers { .. }) => {}
            other => return other,
        }
    }
    Ok(())
}

fn checked(mix: Mix) -> Result<Mix, WorkloadError> {
    let wrong = mix
        .sizes()
        .find(|size| !(SMALLEST..=LARGEST).contains(size));
    wrong.map_or(Ok(mix), |bytes| {
        Err(WorkloadError::Size(bytes, SMALLEST, LARGEST))
    })
}
