//! The policies that turn received frames into work: those of the paper and related ones.
//!
//! | policy | the card | where the work is done |
//! | --- | --- | --- |
//! | [`interrupt`] | classic | the interrupted CPU, at interrupt level (4.4BSD) |
//! | [`napi`] | classic | one poller at a time, on the CPU that was interrupted |
//! | [`rps`] | classic | a poller spreads frames over the CPUs by their hash |
//! | [`knet`] | queues | a thread per queue, bound to its CPU |
//!
//! The card has one interrupt line; the host's interrupt controller delivers it to the CPUs in
//! turn.

pub mod interrupt;
pub mod knet;
pub mod napi;
pub mod rps;

use super::application::Application;
use super::card::HostCard;
use super::cpu::Level;
use super::kernel::Kernel;
use super::reception::{CardQueues, Spread};
use crate::workload::WorkloadError;
use host_driver::nic::QueueSettings;

/// Entries of a queue's rings.
const QUEUE_ENTRIES: u32 = 256;

/// The software that receives.
pub trait Policy {
    /// Whether the interrupt line is asserted and would be heard now. Called while the card's
    /// line is.
    ///
    /// # Errors
    /// What the driver reports.
    fn line(&mut self, kernel: &mut Kernel) -> Result<bool, WorkloadError>;

    /// Whether it matters to the policy that the card's line is asserted.
    fn hears(&self) -> bool;

    /// The CPU that takes an interrupt which the interrupt controller gives to `next`.
    fn interrupted(&self, next: usize) -> usize {
        next
    }

    /// The service routine, on a CPU that has just been interrupted; its entry is charged.
    ///
    /// # Errors
    /// What the driver reports.
    fn interrupt(&mut self, kernel: &mut Kernel, cpu: usize) -> Result<(), WorkloadError>;

    /// Begins the most urgent network work of a CPU that is more urgent than what it has set
    /// aside; false if there is none.
    ///
    /// # Errors
    /// What the driver reports.
    fn begin(
        &mut self,
        kernel: &mut Kernel,
        application: &mut Application,
        cpu: usize,
        aside: Option<Level>,
    ) -> Result<bool, WorkloadError>;

    /// The driver's part of a frame is done on a CPU ([`super::kernel::Then::Policy`]).
    fn taken(&mut self, _kernel: &mut Kernel, _cpu: usize, _frame: Vec<u8>) {}

    /// Whether a CPU without anything to do has to poll further.
    fn polls(&self, _cpu: usize) -> bool {
        false
    }

    /// The application takes frames again.
    fn relieved(&mut self, kernel: &mut Kernel, now: u64);

    /// Frames that the policy has dropped after work of the host.
    fn wasted(&self) -> u64 {
        0
    }

    /// Frames that queues of the card had no room for.
    ///
    /// # Errors
    /// What the driver reports.
    fn refused(&mut self, _kernel: &mut Kernel) -> Result<u64, WorkloadError> {
        Ok(0)
    }
}

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// `interrupt`.
    Interrupt,
    /// `napi`.
    Napi,
    /// `rps`.
    Rps,
    /// `knet`.
    Knet,
    /// `knet-rr`.
    KnetRr,
    /// `knet-deferred`.
    KnetDeferred,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [PolicyKind; 6] = [
        PolicyKind::Interrupt,
        PolicyKind::Napi,
        PolicyKind::Rps,
        PolicyKind::Knet,
        PolicyKind::KnetRr,
        PolicyKind::KnetDeferred,
    ];

    /// As tables and options call it.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::Interrupt => "interrupt",
            PolicyKind::Napi => "napi",
            PolicyKind::Rps => "rps",
            PolicyKind::Knet => "knet",
            PolicyKind::KnetRr => "knet-rr",
            PolicyKind::KnetDeferred => "knet-deferred",
        }
    }

    /// Whether the protocols' work for a flow is always the same CPU's, if frames are spread
    /// by their source.
    pub fn has_flow_cpus(self) -> bool {
        match self {
            PolicyKind::Interrupt | PolicyKind::Napi => false,
            PolicyKind::Rps | PolicyKind::Knet | PolicyKind::KnetRr | PolicyKind::KnetDeferred => {
                true
            }
        }
    }

    /// How a card spreads frames over queues for the policy; none for classic mode.
    pub fn spread(self) -> Option<Spread> {
        match self {
            PolicyKind::Interrupt | PolicyKind::Napi | PolicyKind::Rps => None,
            PolicyKind::Knet | PolicyKind::KnetDeferred => Some(Spread::SourceAddress),
            PolicyKind::KnetRr => Some(Spread::RoundRobin),
        }
    }

    /// The receive queues that the policy wants of a card on a host of `cpus` CPUs.
    pub fn queues(self, cpus: usize) -> Option<QueueSettings> {
        Some(self.spread()?.settings(cpus, QUEUE_ENTRIES))
    }

    /// The policy on a host of `cpus` CPUs, with a card that has the [`PolicyKind::queues`] it
    /// wants.
    pub fn build(self, cpus: usize, card: &mut HostCard) -> Box<dyn Policy> {
        match self {
            PolicyKind::Interrupt => Box::new(interrupt::AtInterruptLevel::default()),
            PolicyKind::Napi => Box::new(napi::Napi::default()),
            PolicyKind::Rps => Box::new(rps::Rps::new(cpus)),
            PolicyKind::Knet | PolicyKind::KnetRr | PolicyKind::KnetDeferred => {
                let pace = match self {
                    PolicyKind::KnetDeferred => knet::DEFERRED,
                    _ => knet::PACE,
                };
                Box::new(knet::Knet::new(Box::new(CardQueues::of(card)), pace))
            }
        }
    }
}
