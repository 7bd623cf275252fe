//! The card of a host with several CPUs: the real firmware and driver, with the time of the CPU
//! that acts.

use super::driver::Driver;
use super::profile::CardCosts;
use super::transport::{ActingClock, CpuTransport};
use crate::machine::Machine;
use crate::transport::SharedMachine;
use crate::wire::Frame;
use crate::workload::WorkloadError;
use crate::workload::testbench::Setup;
use host_driver::nic::{Coalescing, Control, LinkSettings, QueueSettings, ReceiveQueue};
use host_driver::{Config, Nic};
use std::collections::VecDeque;
use tigon2_model::is_flow_control;

/// Send BDs that the driver keeps free: with fewer it would ask for an interrupt.
const KEPT_FREE: u32 = 72;

/// The card tells its host of frames at once, as the paper's does, and of sent BDs when the
/// driver asks, so that interrupts mean received frames.
const COALESCING: Coalescing = Coalescing {
    receive_ticks: 10,
    transmit_ticks: 2_000_000,
    statistics_ticks: 1_000_000,
    max_transmit_bds: 32,
    max_receive_bds: 4,
};

/// What is special about the card of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSetup {
    /// Largest packet.
    pub mtu: u16,
    /// Whether the card asks the wire to pause when it is full.
    pub pause: bool,
    /// Its receive queues; none for classic mode.
    pub queues: Option<QueueSettings>,
}

impl CardSetup {
    /// A card in classic mode.
    pub fn classic(mtu: u16, pause: bool) -> CardSetup {
        CardSetup {
            mtu,
            pause,
            queues: None,
        }
    }

    /// The same with receive queues, if there are any. The card tells of their frames as soon
    /// as of those in classic mode.
    #[must_use]
    pub fn with_queues(self, queues: Option<QueueSettings>) -> CardSetup {
        let queues = queues.map(|queues| QueueSettings {
            coalescing_ticks: COALESCING.receive_ticks,
            coalescing_frames: COALESCING.max_receive_bds,
            ..queues
        });
        CardSetup { queues, ..self }
    }
}

/// Why time stopped passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The time has come.
    Time,
    /// The card asserts its interrupt, or a frame has left it.
    Card,
}

/// A card and its driver.
pub struct HostCard {
    driver: Driver,
    machine: SharedMachine,
    clock: ActingClock,
    write_ns: u64,
    /// Frames for which the send ring had no room.
    waiting: VecDeque<Vec<u8>>,
    most_waiting: usize,
}

impl HostCard {
    /// Powers a card up, loads its firmware and waits for the link.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn start(
        setup: &Setup<'_>,
        card: CardSetup,
        costs: CardCosts,
    ) -> Result<HostCard, WorkloadError> {
        let machine = Machine::timed(setup.board.clone(), setup.parameters.clone(), setup.seed);
        let machine = SharedMachine::new(machine);
        let clock = ActingClock::default();
        let transport = CpuTransport::new(&machine, &clock, costs.read_ns, costs.write_ns);
        let config = Config {
            mtu: card.mtu,
            coalescing: COALESCING,
            link: LinkSettings::default().with_flow_control(card.pause, card.pause),
            firmware_timeout: setup.patience,
            command_timeout: setup.patience,
            watchdog: setup.patience,
            ..Config::default()
        };
        let mut nic = Nic::probe(transport, config)?;
        nic.load(setup.firmware)?;
        Ok(HostCard {
            driver: Driver::open(nic, card.queues.as_ref(), setup.patience)?,
            machine,
            clock,
            write_ns: costs.write_ns,
            waiting: VecDeque::new(),
            most_waiting: 0,
        })
    }

    /// The clock of the CPU that acts.
    pub fn clock(&self) -> &ActingClock {
        &self.clock
    }

    /// The machine.
    pub fn machine(&self) -> &SharedMachine {
        &self.machine
    }

    /// The driver's control of the card.
    pub fn control(&mut self) -> &mut Control<CpuTransport> {
        self.driver.control()
    }

    /// The receive queues, for their threads; none in classic mode, and the second time.
    pub fn take_queues(&mut self) -> Vec<ReceiveQueue> {
        self.driver.take_queues()
    }

    /// Takes the interrupt away; queues for which it came are told.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn acknowledge(&mut self) -> Result<(), WorkloadError> {
        Ok(self.driver.acknowledge()?)
    }

    /// Nanoseconds since power-on.
    pub fn now(&self) -> u64 {
        self.machine.lock().now()
    }

    /// The card's station address.
    pub fn station(&mut self) -> [u8; 6] {
        self.driver.control().station()
    }

    /// Whether the card asserts its interrupt.
    pub fn interrupt(&self) -> bool {
        self.machine.lock().interrupt()
    }

    /// Lets the card run until a time, or until a frame has left it, or, if somebody would
    /// hear it, until it interrupts.
    pub fn run_to(&self, time: u64, hear_interrupt: bool) -> Stop {
        let mut machine = self.machine.lock();
        let limit = machine.clock().cycle_at(time);
        let stopped = machine.run_until(limit, |machine| {
            machine.outgoing_frames() > 0 || (hear_interrupt && machine.interrupt())
        });
        if stopped { Stop::Card } else { Stop::Time }
    }

    /// The next frame from the card that is no pause frame.
    pub fn take_from_wire(&self) -> Option<Frame> {
        let mut machine = self.machine.lock();
        loop {
            let frame = machine.take_frame()?;
            if !is_flow_control(&frame.bytes) {
                return Some(frame);
            }
        }
    }

    /// Puts a frame on the wire towards the card.
    pub fn put_on_wire(&self, at: u64, frame: Vec<u8>) {
        self.machine.lock().send_frame(at, frame);
    }

    /// Takes at most `budget` received frames of classic mode; in queue mode there are none.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn receive(&mut self, budget: u32) -> Result<Vec<Vec<u8>>, WorkloadError> {
        Ok(self.driver.receive(budget)?)
    }

    /// Sends frames; what the ring has no room for waits in the host's queue.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn send(&mut self, frames: Vec<Vec<u8>>) -> Result<(), WorkloadError> {
        if self.driver.send_room() < KEPT_FREE + (frames.len() + self.waiting.len()) as u32 {
            self.driver.service()?;
        }
        self.waiting.extend(frames);
        self.flush()
    }

    /// Sends what waits, as far as there is room now.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn flush(&mut self) -> Result<(), WorkloadError> {
        while self.driver.send_room() > KEPT_FREE
            && let Some(frame) = self.waiting.pop_front()
        {
            self.driver.queue(&frame)?;
        }
        self.most_waiting = self.most_waiting.max(self.waiting.len());
        self.driver.submit()?;
        Ok(())
    }

    /// Handles events, takes sent BDs back and sends what waits for them.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn service(&mut self) -> Result<(), WorkloadError> {
        self.driver.service()?;
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.flush()
    }

    /// Lets the acting CPU's time pass by a write that this card has no mailbox for.
    pub(super) fn pass_write(&self) {
        self.clock.pass(self.write_ns);
    }

    /// Frames that wait for room in the send ring.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The most that ever did.
    pub fn most_waiting(&self) -> usize {
        self.most_waiting
    }
}
