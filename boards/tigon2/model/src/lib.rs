//! The Tigon II card as a sans-IO hardware model.
//!
//! [`Card`] is one AceNIC: registers, events, DMA, MAC, link, EEPROM, timers and PCI function of
//! the hardware reference, without the two CPUs, without its own memory, without threads and
//! without a clock. An engine (the QEMU machine, the simulator, a test) passes in what the card
//! may access as an [`Environment`] and takes out [`Effect`]s:
//!
//! ```text
//!   register access, frame, time ──►┌────────┐
//!                           device()│        │──► Effect::Interrupt, Transmit,
//!   DMA and sending, in parts ─────►│  Card  │    CpuStart, CpuHalt, SpillBase
//!                           stages()│        │
//!   Sram, HostMemory, CpuPort ◄────►└───┬────┘
//!                              inspect()└──────► what can be read without changing it
//! ```
//!
//! Principles:
//! 1. Register accesses only store, compare and queue. DMA and MAC work happens in
//!    [`Device::run`], bounded per call, or in the begin and complete halves of [`Stages`].
//! 2. No input from firmware, host, descriptor or wire can make the model panic,
//!    loop without bound or allocate an unchecked size.
//! 3. What the reference does not define is counted and logged ([`UndefinedLog`]).
//! 4. Inside, integers are integers: NIC memory is big-endian at the edge only
//!    ([`memory`]).
//!
//! | module | what | reference |
//! | --- | --- | --- |
//! | [`board`] | sizes and ids of one board, from TOML | |
//! | [`environment`] | what an engine provides and receives | |
//! | [`memory`], [`window`] | SRAM wrap, spill window; the host's view of it | 2, 9 |
//! | [`cpu`] | start, halt, program counters | 3.4 |
//! | [`semaphore`] | the one hardware semaphore | 4 |
//! | [`events`] | the two event registers | 5 |
//! | [`dma`] | channels, descriptor rings, checksums | 6 |
//! | [`timers`] | microsecond counter and references | 7 |
//! | [`mailbox`], [`interrupt`] | host to NIC and NIC to host signals | 8 |
//! | [`control`], [`eeprom`] | chip control registers, the two-wire EEPROM | 9 |
//! | [`mac`] | rings, buffers, filter, statistics | 10 |
//! | [`link`], [`partner`] | fibre or copper, and the link partner | 10.4, 11 |
//! | [`mdio`], [`phy`] | the management bus and the copper PHY on it | 9, 11 |
//! | [`faults`] | damaged frames and collisions on request | 10.3, 10.5 |
//! | [`pci`] | configuration space | host interface |
//! | [`undefined`] | the log of undefined accesses | |
//! | [`testing`] | plain memory and a bench for tests | |
#![forbid(unsafe_code)]

pub mod board;
mod card;
pub mod control;
pub mod cpu;
pub mod dma;
pub mod eeprom;
pub mod environment;
pub mod events;
pub mod faults;
pub mod interrupt;
pub mod link;
pub mod mac;
pub mod mailbox;
pub mod mdio;
pub mod memory;
pub mod operations;
pub mod partner;
pub mod pci;
pub mod phy;
pub mod semaphore;
pub mod testing;
pub mod timers;
pub mod undefined;
pub mod window;

pub use board::{Board, BoardError};
pub use card::{BootCodeTooLarge, Card, Device, DmaWork, Inspect, Stages};
pub use cpu::CpuFault;
pub use dma::Direction;
pub use environment::{CpuPort, Effect, Environment, HostMemory, HostMemoryError, Sram};
pub use faults::{Fault, FaultError};
pub use mac::{DropReason, Reception, is_flow_control};
pub use operations::{Operation, OperationError};
pub use partner::{Partner, PartnerError};
pub use tigon2_chip::Cpu;
pub use undefined::{Accessor, UndefinedAccess, UndefinedKind, UndefinedLog};
