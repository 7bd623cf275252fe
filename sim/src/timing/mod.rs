//! The cycle model of the board: what each access costs, and who waits for whom.
//!
//! The machine of the paper: two in-order CPUs, two DMA channels and both sides of the MAC
//! share one SRAM port; both DMA channels share one PCI bus.
//!
//! ```text
//!   MAC receive ─┐ 1                         ┌─ DMA read  ─┐
//!   MAC transmit ┤ 2     one access          │             ├─ PCI bus ── host memory
//!   DMA read ────┤ 3 ──► of 8 bytes ──► SRAM └─ DMA write ─┘
//!   DMA write ───┤ 4     a cycle
//!   CPU A ───────┤ 5          CPU: scratch pad, one instruction line of 64 bytes,
//!   CPU B ───────┘ 6               a store buffer
//! ```
//!
//! Within one cycle the order is: timers, DMA and PCI, MAC, one grant of the SRAM port,
//! CPU A, CPU B, and on a board beyond the chip the others in their order. What a CPU asks for in a cycle is granted in the next one at the
//! earliest. Functional effects happen when a load, store or register access issues, when
//! a DMA transfer completes, when a frame starts to leave and when one has arrived.
//!
//! | module | what |
//! | --- | --- |
//! | [`parameters`] | the figures, by profile, from the board file |
//! | [`variation`] | the board file with one figure changed |
//! | [`port`] | who gets the SRAM port |
//! | [`pipeline`] | a CPU between two instructions |
//! | [`counts`] | where a CPU's cycles went |
//! | [`dma`] | both channels and the PCI bus |
//! | [`mac`] | both sides of the MAC |
//! | `flow` | cycles in a row in which both only move data |

pub mod counts;
pub mod dma;
mod flow;
#[cfg(test)]
mod flow_tests;
pub mod mac;
pub mod parameters;
pub mod pipeline;
pub mod port;
pub mod variation;

use crate::machine::{Lead, Parked};
use crate::timing::dma::DmaEngine;
use crate::timing::mac::MacEngine;
use crate::timing::pipeline::Pipeline;
use crate::timing::port::{Client, Port};
pub(crate) use flow::Flowed;
pub use parameters::{Parameters, ProfileError};
use tigon2_chip::Cpu;
use tigon2_model::{Board, Direction};

/// Bits behind the point of a [`Fine`] time.
const FRACTION: u32 = 20;

/// A time since power-on in 2^-20 core cycles: byte times and PCI clocks are no whole
/// number of cycles, and their rounding must not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fine(u64);

impl Fine {
    /// The start of a cycle.
    #[inline]
    pub const fn cycle(cycle: u64) -> Fine {
        Fine(cycle << FRACTION)
    }

    /// `count` periods of `numerator / denominator` cycles.
    pub fn periods(count: u64, numerator: u64, denominator: u64) -> Fine {
        let product = (u128::from(count) * u128::from(numerator)) << FRACTION;
        Fine((product / u128::from(denominator.max(1))) as u64)
    }

    /// The first cycle that does not start before this time.
    #[inline]
    pub const fn ceil(self) -> u64 {
        (self.0 + ((1 << FRACTION) - 1)) >> FRACTION
    }

    /// This, or the start of `cycle` if that is more than a cycle later.
    #[inline]
    pub const fn no_earlier_than(self, cycle: u64) -> Fine {
        if self.ceil() >= cycle {
            self
        } else {
            Fine::cycle(cycle)
        }
    }

    /// Later by `other`.
    #[inline]
    pub const fn plus(self, other: Fine) -> Fine {
        Fine(self.0 + other.0)
    }

    /// `count` times this.
    #[inline]
    pub const fn times(self, count: u64) -> Fine {
        Fine(self.0 * count)
    }

    /// This times `factor` / 2^20.
    #[inline]
    pub const fn scaled(self, factor: u64) -> Fine {
        Fine(((self.0 as u128 * factor as u128) >> FRACTION) as u64)
    }
}

/// A CPU's last look at its event register, and what it has done since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Poll {
    /// The instruction that looked, and what it saw.
    pub seen: Option<(u32, u32)>,
    /// Whether a register has been written since.
    pub wrote: bool,
}

/// The board's engines and pipelines between two cycles.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The figures.
    pub parameters: Parameters,
    /// The SRAM port.
    pub port: Port,
    /// The DMA channels and the PCI bus.
    pub dma: DmaEngine,
    /// The MAC.
    pub mac: MacEngine,
    /// The CPUs, by [`tigon2_chip::Cpu::index`].
    pub pipelines: [Pipeline; Cpu::MOST],
    /// Whether data [flows](Self::flow) through this board.
    pub(crate) flows: bool,
    /// The last poll of each CPU, if instructions take no time.
    pub(crate) unlimited: Option<[Poll; Cpu::MOST]>,
    /// CPUs whose waiting is not executed.
    pub(crate) parked: [Option<Parked>; Cpu::MOST],
    /// CPUs that have executed more than is certain.
    pub(crate) leads: [Lead; Cpu::MOST],
}

impl Timed {
    /// Everything idle, with the clocks of a board.
    pub fn new(parameters: Parameters, board: &Board, seed: u64) -> Timed {
        let core_hz = board.clock.core_hz;
        let timed = Timed {
            port: Port::new(&parameters),
            dma: DmaEngine::new(&parameters, board, seed),
            mac: MacEngine::new(core_hz, parameters.port_bytes),
            pipelines: std::array::from_fn(|_| Pipeline::default()),
            flows: false,
            unlimited: None,
            parked: [const { None }; Cpu::MOST],
            leads: Default::default(),
            parameters,
        };
        Timed {
            flows: timed.may_flow(),
            ..timed
        }
    }

    /// Gives the SRAM port away if anybody wants it; CPUs that did not get it are held up.
    #[inline(always)]
    pub(crate) fn grant(&mut self, cycle: u64) {
        let Timed {
            parameters,
            port,
            dma,
            mac,
            pipelines,
            ..
        } = self;
        let Some(client) = port.grant(cycle) else {
            return;
        };
        pipeline::hold_up(pipelines, port.outvoted(client), 1);
        match client {
            Client::MacReceive => mac.receive_granted(cycle, port),
            Client::MacTransmit => mac.transmit_granted(port),
            Client::DmaRead => dma.granted(cycle, Direction::Read, parameters, port),
            Client::DmaWrite => dma.granted(cycle, Direction::Write, parameters, port),
            cpu => pipelines[cpu.cpu_index()].granted(cycle, parameters, port, cpu),
        }
    }

    /// The card has changed: idle engines look for work again.
    #[inline]
    pub fn recheck(&mut self) {
        self.dma.recheck();
        self.mac.recheck();
    }
}

#[cfg(test)]
mod tests {
    use super::Fine;

    /// A gigabit byte takes 0.704 cycles of 88 MHz, a 66 MHz clock 4/3.
    #[test]
    fn fractions_of_cycles_do_not_add_up_to_errors() {
        let byte = Fine::periods(1, 88, 125);
        assert_eq!(byte.times(125_000).ceil(), 88_000);
        assert_eq!(Fine::periods(3, 4, 3), Fine::cycle(4));
        assert_eq!(Fine::cycle(7).plus(Fine::periods(1, 1, 3)).ceil(), 8);
        assert_eq!(Fine::cycle(100).scaled(3 << 19), Fine::cycle(150));
    }
}
