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
//! ([`Parameters::pio_wr`]). On a bus with other cards (`share`) a card takes the bus only while it
//! has been given the grant.

mod share;

pub(crate) use share::BusRequest;
pub use share::Latency;

use super::fine::{FRACTION, Fine};
use super::parameters::Parameters;
use crate::timing::port::{Client, Port};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tigon2_model::dma::Transfer;
use tigon2_model::{Board, Direction};

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u32 = 32;
/// Bytes of a data beat.
const BEAT_BYTES: u32 = 8;
/// Its bits.
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

/// A transfer under way, in beats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    /// Left on the bus.
    pub(super) bus: u32,
    /// Left at the SRAM port.
    pub(super) sram: u32,
    /// In the FIFO.
    pub(super) fifo: u32,
}

/// Who has the bus, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusUse {
    /// The channel.
    pub owner: Direction,
    /// When it got the bus.
    pub begin: Fine,
    /// When its first beat is due.
    pub data: Fine,
}

/// The transaction on the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) owner: Direction,
    /// When it got the bus, and when its first beat was due.
    begin: Fine,
    data: Fine,
    /// Data beats left.
    pub(super) beats: u32,
    /// When the next one is due.
    pub(super) next: Fine,
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
    host: HostOnBus,
}

/// An access of the host to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAccess {
    /// A posted write.
    Write,
    /// A read.
    Read,
}

/// The host's share of the bus.
#[derive(Clone, Copy, Debug, Default)]
struct HostOnBus {
    /// How long a write has the bus, and a read.
    times: [Fine; 2],
    /// An access that waits for the bus: how long it will have it.
    waits: Option<Fine>,
    /// When the last one leaves the bus.
    end: Fine,
    /// Whether it was the last to have the bus.
    had: bool,
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
            host: HostOnBus {
                times: [parameters.pio_wr, parameters.pio_rd].map(|clocks| clock.times(clocks)),
                ..HostOnBus::default()
            },
        }
    }

    /// Whether a channel does nothing.
    #[inline]
    pub fn idle(&self, direction: Direction) -> bool {
        self.phases[direction.index()] == Phase::Idle
    }

    /// Bytes of the read channel's transfer of `length` bytes that are in NIC memory.
    #[inline]
    pub fn arrived(&self, transfer: &Transfer) -> u32 {
        match self.phases[Direction::Read.index()] {
            Phase::Live(live) => {
                let moved = (beats(transfer) - live.sram) * BEAT_BYTES;
                moved.saturating_sub(offset(transfer)).min(transfer.length)
            }
            Phase::End(_) => transfer.length,
            _ => 0,
        }
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

    /// Cycles in which a transaction was on the bus, latencies included.
    pub fn bus_busy(&self) -> u64 {
        self.busy.0 >> FRACTION
    }

    /// Who has the bus, and the cycle from which on it was free last.
    pub fn bus_use(&self) -> (Option<BusUse>, u64) {
        let now = self.bus.map(|transaction| BusUse {
            owner: transaction.owner,
            begin: transaction.begin,
            data: transaction.data,
        });
        (now, self.bus_free.ceil())
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
            Some(transfer) => match beats(&transfer) {
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

    /// The beats that are due on the bus in `cycle`, and the FIFO's requests.
    #[inline]
    fn move_on(
        &mut self,
        cycle: u64,
        direction: Direction,
        mut live: Live,
        parameters: &Parameters,
        port: &mut Port,
    ) {
        let now = Fine::cycle(cycle);
        if let Some(transaction) = &mut self.bus
            && transaction.owner == direction
        {
            while transaction.beats != 0 && transaction.next <= now {
                let due = transaction.next;
                transaction.next = due.plus(self.beat);
                let moves = match direction {
                    Direction::Read => live.fifo < parameters.fifo,
                    Direction::Write => live.fifo > 0,
                };
                // Otherwise the bus waits.
                if moves {
                    match direction {
                        Direction::Read => live.fifo += 1,
                        Direction::Write => live.fifo -= 1,
                    }
                    live.bus -= 1;
                    transaction.beats -= 1;
                }
            }
            if transaction.beats == 0 {
                self.bus_free = transaction.next;
                self.share.used(transaction.next);
                self.bus = None;
            }
        }
        let client = Client::dma(direction);
        let done = match direction {
            Direction::Read => {
                set_request(port, client, live.fifo != 0, true);
                live.bus == 0 && live.fifo == 0
            }
            Direction::Write => {
                set_request(
                    port,
                    client,
                    live.sram != 0 && live.fifo < parameters.fifo,
                    false,
                );
                live.bus == 0
            }
        };
        self.phases[direction.index()] = if done {
            port.withdraw(client);
            Phase::End(cycle + parameters.dma_end)
        } else {
            Phase::Live(live)
        };
    }

    /// The host asks for the bus. Returns whether its access takes any time there.
    pub fn host_asks(&mut self, access: HostAccess) -> bool {
        let time = self.host.times[access as usize];
        if time == Fine::default() {
            return false;
        }
        self.host.waits = Some(time);
        self.wake = 0;
        true
    }

    /// Whether the host's access has left the bus.
    pub fn host_is_done(&self, cycle: u64) -> bool {
        self.host.waits.is_none() && self.host.end <= Fine::cycle(cycle)
    }

    /// Whether a channel wants the bus for a transaction.
    fn asks(&self, direction: Direction, parameters: &Parameters) -> bool {
        match self.phases[direction.index()] {
            Phase::Live(live) if live.bus != 0 => match direction {
                Direction::Read => true,
                Direction::Write => live.fifo >= parameters.thresh.min(live.bus),
            },
            _ => false,
        }
    }

    /// Grants the bus in `cycle`, if it is free and a channel requests it.
    #[inline]
    pub fn arbitrate(&mut self, cycle: u64, parameters: &Parameters) {
        let now = Fine::cycle(cycle);
        if self.bus.is_some() || self.bus_free > now.plus(self.beat) || !self.share.may_take() {
            return;
        }
        let other = self.bus_last.other();
        let owner = [other, self.bus_last]
            .into_iter()
            .find(|direction| self.asks(*direction, parameters));
        if let Some(time) = self.host.waits
            && !(self.host.had && owner.is_some())
        {
            self.bus_free = self.bus_free.max(now).plus(time);
            self.busy = self.busy.plus(time);
            self.host.end = self.bus_free;
            self.host.waits = None;
            self.host.had = true;
            return;
        }
        let Some(owner) = owner else {
            return;
        };
        self.host.had = false;
        let Phase::Live(live) = self.phases[owner.index()] else {
            return;
        };
        let begin = self.bus_free.max(now);
        let latency = self.latency(owner);
        let beats = live.bus.min(parameters.burst / 8);
        self.busy = self.busy.plus(latency).plus(self.beat.times(beats.into()));
        self.bus_last = owner;
        let data = begin.plus(latency);
        self.bus = Some(Transaction {
            owner,
            begin,
            data,
            beats,
            next: data,
        });
    }

    /// The latency of a transaction: uniform in [1 - jitter, 1 + jitter] times its figure.
    fn latency(&mut self, owner: Direction) -> Fine {
        const ONE: u64 = 1 << FRACTION;
        let part = u64::from(self.random.next_u32() & (ONE as u32 - 1));
        let factor = ONE - self.jitter + ((2 * self.jitter * part) >> FRACTION);
        let latency = self
            .share
            .latency(owner)
            .unwrap_or(self.latency[owner.index()]);
        latency.scaled(factor)
    }

    /// The SRAM port was given to a channel in `cycle`.
    #[inline]
    pub fn granted(
        &mut self,
        cycle: u64,
        direction: Direction,
        parameters: &Parameters,
        port: &mut Port,
    ) {
        let client = Client::dma(direction);
        match &mut self.phases[direction.index()] {
            Phase::Descriptor(left) => {
                *left -= 1;
                if *left == 0 {
                    port.withdraw(client);
                    let at = cycle + parameters.dma_start;
                    self.phases[direction.index()] = Phase::Start(at);
                    self.wake = self.wake.min(at);
                }
            }
            Phase::Live(live) => {
                // As many beats as the port is wide.
                let wide = parameters.port_bytes / 8;
                let drained = match direction {
                    Direction::Read => {
                        let beats = live.fifo.min(wide);
                        live.sram -= beats;
                        live.fifo -= beats;
                        set_request(port, client, live.fifo != 0, true);
                        live.fifo == 0 && live.bus == 0
                    }
                    Direction::Write => {
                        let beats = live.sram.min(parameters.fifo - live.fifo).min(wide);
                        live.sram -= beats;
                        live.fifo += beats;
                        let more = live.sram != 0 && live.fifo < parameters.fifo;
                        set_request(port, client, more, false);
                        false
                    }
                };
                if drained || self.bus.is_none() {
                    self.wake = self.wake.min(cycle + 1);
                }
            }
            _ => port.withdraw(client),
        }
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

#[inline]
fn set_request(port: &mut Port, client: Client, wants: bool, write: bool) {
    if wants {
        port.request(client, write);
    } else {
        port.withdraw(client);
    }
}

/// Beats of 8 bytes of a transfer, the same on both sides.
fn beats(transfer: &Transfer) -> u32 {
    if transfer.length == 0 {
        return 0;
    }
    (offset(transfer) + transfer.length).div_ceil(BEAT_BYTES)
}

/// Bytes of the first beat that are none of the transfer's.
fn offset(transfer: &Transfer) -> u32 {
    (transfer.local % BEAT_BYTES).max((transfer.host % u64::from(BEAT_BYTES)) as u32)
}
