//! The timing of the DMA channels, and of the PCI bus that they share.
//!
//! ```text
//!            descriptor          latency   beats                    effects
//!   idle ──► 4 reads ─► start ─► [........|===============] ─► end ─► idle
//!            SRAM port             PCI bus, a beat of 8 bytes a clock,
//!                                  through a FIFO to or from the SRAM port
//! ```
//!
//! One transaction at a time uses the bus, with at most [`Parameters::burst`] bytes; the channels
//! alternate when both request it, and so do card and host, if the host's accesses take any time
//! ([`Parameters::pio_wr`]). A transaction may [stall](super::parameters::BusStalls) between two beats. On a bus with other cards (`share`) a card takes the bus only while it
//! has been given the grant.

mod bus;
mod data;
mod share;
mod stall;

pub(super) use bus::Transaction;
pub use bus::{BusUse, HostAccess};
pub(super) use data::Live;
pub(crate) use share::BusRequest;
pub use share::Latency;

use super::fine::{FRACTION, Fine};
use super::parameters::Parameters;
use crate::timing::port::{Client, Port};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use tigon2_model::dma::Transfer;
use tigon2_model::{Board, Direction};

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u32 = 32;
/// Bits of a data beat.
const BEAT_BITS: u64 = 64;

/// What a channel is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing; it looks for work.
    Idle,
    /// It reads a descriptor: so many reads are left.
    Descriptor(u32),
    /// The transfer begins in this cycle.
    Start(u64),
    /// Data moves.
    Live(Live),
    /// The side effects come in this cycle.
    End(u64),
}

/// What the machine has to do for a channel now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Begin the transfer ([`DmaEngine::begun`] wants what it is).
    Begin(Direction),
    /// Make the side effects of its end.
    Complete(Direction),
}

/// What a channel could do next, as the card says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Nothing,
    /// Load the next descriptor of its ring.
    Descriptor,
    /// A transfer that software started by the registers.
    Direct,
}

/// Both channels and the bus.
#[derive(Clone, Debug)]
pub struct DmaEngine {
    /// The first cycle in which there is something to do.
    pub wake: u64,
    pub(super) phases: [Phase; 2],
    /// Idle channels that have not looked for work since the card changed.
    pub(super) look: [bool; 2],
    pub(super) bus: Option<Transaction>,
    bus_free: Fine,
    bus_last: Direction,
    /// Time of a data beat of 8 bytes.
    pub(super) beat: Fine,
    latency: [Fine; 2],
    jitter: u64,
    random: SplitMix64,
    busy: Fine,
    share: share::Share,
    stalling: stall::Stalling,
    host: bus::HostOnBus,
}

impl DmaEngine {
    /// Idle channels of a board.
    pub fn new(parameters: &Parameters, board: &Board, seed: u64) -> DmaEngine {
        let pci_hz = u64::from(board.pci.mhz) * 1_000_000;
        let clock = Fine::periods(1, board.clock.core_hz.into(), pci_hz);
        // A narrow bus takes two clocks for a beat of the channels.
        let beat = clock.times(BEAT_BITS / u64::from(board.pci.bits.max(1)));
        DmaEngine {
            wake: 0,
            phases: [Phase::Idle; 2],
            look: [true; 2],
            bus: None,
            bus_free: Fine::default(),
            bus_last: Direction::Write,
            beat,
            latency: [parameters.pci_rd, parameters.pci_wr].map(|clocks| clock.times(clocks)),
            jitter: (parameters.jit * f64::from(1 << FRACTION)).round() as u64,
            random: SplitMix64::seed_from_u64(seed),
            busy: Fine::default(),
            share: share::Share::new(clock),
            stalling: stall::Stalling::new(parameters.stalls, seed),
            host: bus::HostOnBus::new(parameters, clock),
        }
    }

    /// Whether a channel does nothing.
    #[inline]
    pub fn idle(&self, direction: Direction) -> bool {
        self.phases[direction.index()] == Phase::Idle
    }

    /// The card has changed: idle channels look for work in the next cycle.
    #[inline]
    pub fn recheck(&mut self) {
        self.wake = 0;
        self.look = [true; 2];
    }

    /// Whether a channel is idle and has not looked for work yet; it has from now on.
    #[inline]
    pub fn looks(&mut self, direction: Direction) -> bool {
        let looks = self.look[direction.index()] && self.idle(direction);
        self.look[direction.index()] &= !looks;
        looks
    }

    /// An idle channel finds work.
    pub fn start(
        &mut self,
        cycle: u64,
        direction: Direction,
        work: Work,
        parameters: &Parameters,
        port: &mut Port,
    ) {
        self.phases[direction.index()] = match work {
            Work::Nothing => return,
            Work::Descriptor => {
                port.request(Client::dma(direction), false);
                Phase::Descriptor((DESCRIPTOR_BYTES / parameters.port_bytes).max(1))
            }
            Work::Direct => Phase::Start(cycle + parameters.dma_dir),
        };
    }

    /// The card has begun the transfer, or found that there is none any more.
    pub fn begun(
        &mut self,
        cycle: u64,
        direction: Direction,
        transfer: Option<Transfer>,
        parameters: &Parameters,
        port: &mut Port,
    ) {
        let phase = match transfer {
            None => {
                self.look[direction.index()] = true;
                Phase::Idle
            }
            Some(transfer) => match data::beats(&transfer) {
                0 => Phase::End(cycle + parameters.dma_end),
                beats => {
                    if direction == Direction::Write {
                        port.request(Client::dma(direction), false);
                    }
                    Phase::Live(Live {
                        bus: beats,
                        sram: beats,
                        fifo: 0,
                    })
                }
            },
        };
        self.phases[direction.index()] = phase;
    }

    /// The channel's transfer has ended and its effects are made.
    pub fn completed(&mut self, direction: Direction) {
        self.phases[direction.index()] = Phase::Idle;
    }

    /// Lets a channel go on in `cycle`.
    #[inline]
    pub fn tick(
        &mut self,
        cycle: u64,
        direction: Direction,
        parameters: &Parameters,
        port: &mut Port,
    ) -> Action {
        match self.phases[direction.index()] {
            Phase::Start(at) if at <= cycle => Action::Begin(direction),
            Phase::End(at) if at <= cycle => Action::Complete(direction),
            Phase::Live(live) => {
                self.move_on(cycle, direction, live, parameters, port);
                Action::Nothing
            }
            _ => Action::Nothing,
        }
    }

    /// Lets data move in `cycle`, if that is all there is to do: no transfer begins or ends,
    /// none is looked for. Returns whether it was.
    #[inline]
    pub fn only_moves(&mut self, cycle: u64, parameters: &Parameters, port: &mut Port) -> bool {
        let moves = |direction: Direction| match self.phases[direction.index()] {
            Phase::Idle => !self.look[direction.index()],
            Phase::Start(at) | Phase::End(at) => at > cycle,
            Phase::Descriptor(_) | Phase::Live(_) => true,
        };
        if !Direction::ALL.into_iter().all(moves) {
            return false;
        }
        for direction in Direction::ALL {
            if let Phase::Live(live) = self.phases[direction.index()] {
                self.move_on(cycle, direction, live, parameters, port);
            }
        }
        self.arbitrate(cycle, parameters);
        self.plan(cycle, parameters);
        true
    }

    /// The first cycle in which a transfer may begin or end, for channels that have had
    /// their turn in `cycle`. No more than a beat a cycle passes the SRAM port, and no more
    /// than one a beat's time the bus.
    #[inline]
    pub(crate) fn quiet_until(&self, cycle: u64, parameters: &Parameters) -> u64 {
        let until = |direction: Direction| match self.phases[direction.index()] {
            Phase::Idle => u64::MAX,
            Phase::Descriptor(left) => cycle + u64::from(left) + parameters.dma_start,
            Phase::Start(at) | Phase::End(at) => at,
            Phase::Live(live) => {
                let left = match direction {
                    Direction::Read => u64::from(live.sram / (parameters.port_bytes / 8)),
                    Direction::Write => {
                        let time = self.beat.times(u64::from(live.bus).saturating_sub(1));
                        time.0 >> FRACTION
                    }
                };
                cycle + left.max(1) + parameters.dma_end
            }
        };
        until(Direction::Read).min(until(Direction::Write))
    }

    /// Works out when there is something to do after `cycle`, unless a grant of the SRAM
    /// port comes before.
    pub fn plan(&mut self, cycle: u64, parameters: &Parameters) {
        let mut wake = u64::MAX;
        for direction in Direction::ALL {
            wake = wake.min(match self.phases[direction.index()] {
                // What it waits for wakes the engine.
                Phase::Idle if !self.look[direction.index()] => u64::MAX,
                Phase::Idle
                    if !matches!(self.phases[direction.other().index()], Phase::Live(_)) =>
                {
                    u64::MAX
                }
                Phase::Idle => cycle + 1,
                Phase::Descriptor(_) => u64::MAX,
                Phase::Start(at) | Phase::End(at) => at,
                Phase::Live(_) => match &self.bus {
                    Some(transaction) if transaction.owner == direction => transaction.next.ceil(),
                    Some(_) => u64::MAX,
                    None if self.share.may_take() && self.asks(direction, parameters) => {
                        Fine(self.bus_free.0.saturating_sub(self.beat.0)).ceil()
                    }
                    None => u64::MAX,
                },
            });
        }
        if self.host.waits.is_some() && self.bus.is_none() {
            wake = wake.min(Fine(self.bus_free.0.saturating_sub(self.beat.0)).ceil());
        }
        self.wake = wake.max(cycle + 1);
    }
}
