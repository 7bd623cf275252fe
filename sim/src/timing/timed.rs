//! The board's engines and pipelines, and the arbitration of the SRAM port between them.

use super::dma::DmaEngine;
use super::mac::MacEngine;
use super::parameters::Parameters;
use super::pipeline::{self, Pipeline};
use super::port::{Client, Port};
use crate::memory::SramBytes;
use tigon2_chip::Cpu;
use tigon2_model::{Board, Direction};

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
            parameters,
        };
        Timed {
            flows: timed.may_flow(),
            ..timed
        }
    }

    /// Gives the SRAM port away if anybody wants it; CPUs that did not get it are held up.
    #[inline(always)]
    pub(crate) fn grant(&mut self, cycle: u64, sram: &SramBytes) {
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
            cpu => pipelines[cpu.cpu_index()].granted(cycle, parameters, port, cpu, sram),
        }
    }

    /// [`Counts::stale_fetches`](super::counts::Counts::stale_fetches) of all CPUs.
    pub fn stale_fetches(&self) -> u64 {
        let counts = self.pipelines.iter().map(|pipeline| &pipeline.counts);
        counts.map(|counts| counts.stale_fetches()).sum()
    }

    /// The card has changed: idle engines look for work again.
    #[inline]
    pub fn recheck(&mut self) {
        self.dma.recheck();
        self.mac.recheck();
    }
}
