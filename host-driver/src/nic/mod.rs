//! The card as a network interface.
//!
//! [`Nic::probe`] identifies and resets a card, [`Nic::load`] puts firmware on it,
//! [`Nic::open`] lets frames through. Then [`Nic::wait`] or a poll of
//! [`Nic::interrupt_fd`], [`Nic::service`], [`Nic::receive`] and [`Nic::queue`] with
//! [`Nic::submit`] move frames in batches: one mailbox write for all that was
//! queued. Nothing that the card says is believed unchecked.
//!
//! ```text
//!  probe ──> halted ──load──> running ──open──> open ──close──> running
//!               ^                 |               |
//!               └──── recover: reset, load, open ─┘
//! ```

use std::time::Duration;

use host_interface::extension::Extension;
use tigon2_chip::registers::Register;

use crate::eeprom;
use crate::live::Readers;
use crate::transport::{Transport, TransportError};

mod bringup;
mod buffers;
mod commands;
mod config;
mod drops;
mod error;
mod events;
mod filters;
mod frame;
mod layout;
mod lifecycle;
mod log;
mod memory;
mod own;
mod plan;
mod receive;
mod region;
mod rings;
mod send;
mod settings;
mod sizes;
mod statistics;
mod trace;
mod traffic;
mod window;

pub use bringup::Identity;
pub use config::{
    Coalescing, Config, GiveBack, LinkWish, MAX_MTU, MAX_STANDARD_MTU, MulticastForm, Notice,
    SendConsumer,
};
pub use drops::{DropCounts, DropReason};
pub use error::{CardState, FatalReport, FirmwareSaid, NicError};
pub use events::Link;
/// NIC memory through the window of BAR 0.
pub mod memory_window {
    pub use super::window::{read, write};
}

pub use log::CardMemory;
pub use trace::read_trace;

pub use frame::{Received, ReceivedChecksums, ReceivedFrame};
pub use own::OwnFirmware;
pub use rings::{ChecksumOffload, JumboRing, ReturnRingSize, Ring, SendRingPlace, SendRingSize};
pub use send::{MAX_FRAGMENTS, SendOptions};
pub use settings::{LinkState, Negotiate};
pub use sizes::{JUMBO_SLOT_BYTES, MIN_FRAME, SLOT_BYTES};
pub use statistics::{DriverCounters, Named, NicStatistics, every_field};

use events::EventLog;
use filters::Filters;
use memory::{ControlMemory, SharedMemory};
use plan::Plan;
use receive::ReceiveRings;
use send::SendRing;
use sizes::largest_frame;

/// How often a wait for the firmware looks at its report.
const LOOK: Duration = Duration::from_millis(20);

/// How far a card is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Halted,
    Running,
    Open,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Halted => "halted",
            Self::Running => "running but not open",
            Self::Open => "open",
        }
    }
}

/// An AceNIC behind a transport.
pub struct Nic<T: Transport> {
    transport: T,
    config: Config,
    identity: Identity,
    memory: ControlMemory,
    phase: Phase,
    send: SendRing,
    receive: ReceiveRings,
    events: EventLog,
    command_producer: u32,
    last_command: u8,
    counters: DriverCounters,
    drops: DropCounts,
    /// The firmware file, kept for [`Nic::recover`].
    image: Vec<u8>,
    /// The card has booted its own firmware, which [`Nic::recover`] lets it do again.
    own: bool,
    /// The firmware is this project's: the extension words are valid.
    ours: bool,
    /// The address that the card answers to: the EEPROM's, unless it was changed.
    station: [u8; 6],
    filters: Filters,
    log: log::Log,
    readers: Readers,
}

impl<T: Transport> Nic<T> {
    /// Identifies a card, resets it and reads its station address. The card is
    /// halted then and DMA memory is known to it.
    ///
    /// # Errors
    /// [`NicError::UnknownDevice`] before anything is written if the function is
    /// something else; [`NicError::WrongRevision`], [`NicError::Eeprom`], or what the
    /// transport says.
    pub fn probe(mut transport: T, config: Config) -> Result<Self, NicError> {
        let config = config.within_limits();
        let (vendor, device) = bringup::identify(&mut transport)?;
        let revision = bringup::reset(&mut transport)?;
        let station = eeprom::station_address(&mut transport)?;
        let pci =
            tigon2_chip::bits::PciState::from_bits(transport.read(Register::PciState.offset())?);
        let plan = Plan::classic(&config);
        let memory = SharedMemory::allocate(&mut transport, &plan)?;
        let largest = largest_frame(config.mtu);
        let bad_frames = config.mode.bad_frames();
        let mut send = (plan.send.iter().zip(memory.send))
            .map(|(plan, memory)| SendRing::new(plan, memory, largest));
        let mut receive = (plan.receive.iter().zip(memory.receive))
            .map(|(plan, memory)| ReceiveRings::new(plan, memory, bad_frames));
        let (Some(send), Some(receive)) = (send.next(), receive.next()) else {
            return Err(TransportError::Other("a plan without queues".into()).into());
        };
        Ok(Self {
            identity: Identity {
                vendor,
                device,
                revision,
                station,
                bus_64bit: !pci.bus_32bit(),
                bus_66mhz: pci.bus_66mhz(),
            },
            phase: Phase::Halted,
            send,
            receive,
            events: EventLog::default(),
            command_producer: 0,
            last_command: 0,
            counters: DriverCounters::default(),
            drops: DropCounts::default(),
            image: Vec::new(),
            own: false,
            ours: false,
            station,
            filters: Filters::default(),
            log: log::Log::default(),
            readers: Readers::default(),
            transport,
            config,
            memory: memory.control,
        })
    }

    /// What the card is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The station address in use.
    pub fn station(&self) -> [u8; 6] {
        self.station
    }

    /// Whoever reads the frames of this card beside its user.
    pub fn readers(&mut self) -> &mut Readers {
        &mut self.readers
    }

    /// The transport, for what this interface does not offer.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Reads a word of BAR 0 below the memory window; nothing there changes by being read.
    ///
    /// # Errors
    /// [`TransportError::BadOffset`] for the window and beyond; what the transport says.
    pub fn peek_register(&mut self, offset: u32) -> Result<u32, NicError> {
        if offset >= host_interface::bar::WINDOW || !offset.is_multiple_of(4) {
            return Err(TransportError::BadOffset(offset).into());
        }
        Ok(self.transport.read(offset)?)
    }

    /// Reads words of NIC memory.
    ///
    /// # Errors
    /// What the transport says.
    pub fn peek_memory(&mut self, address: u32, out: &mut [u32]) -> Result<(), NicError> {
        Ok(window::read(&mut self.transport, address, out)?)
    }

    /// True if the firmware is this project's, with its extension words.
    pub fn has_extension(&self) -> bool {
        self.ours
    }

    /// Frames that were dropped, by reason.
    pub fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// Counts frames that the user of this driver could not take or give.
    pub fn count_drops(&mut self, reason: DropReason, frames: u64) {
        self.drops.add(reason, frames);
    }

    /// Asks an idle card whether it is still well: the way to it holds and the
    /// firmware has left no report of its end.
    ///
    /// # Errors
    /// [`NicError::FirmwareFatal`] or what the transport says.
    pub fn look_alive(&mut self) -> Result<(), NicError> {
        if self.ours {
            self.check_fatal()?;
        }
        Ok(())
    }

    /// The link as last reported.
    pub fn link(&self) -> Link {
        self.events.link
    }

    fn extension(&mut self, word: Extension) -> Result<u32, TransportError> {
        self.transport.read(word.bar_offset())
    }
}
