//! The card as a network interface.
//!
//! [`Nic::probe`] identifies and resets a card, [`Nic::load`] loads firmware, and [`Nic::open`]
//! enables traffic. Then [`Nic::wait`] or a poll of [`Nic::interrupt_fd`], [`Nic::service`],
//! [`Nic::receive`] and [`Nic::queue`] with [`Nic::submit`] move frames in batches: one mailbox
//! write for everything that was queued. The driver checks everything that the card reports.
//!
//! ```text
//!  probe ──> halted ──load──> running ──open──> open ──close──> running
//!               ^                 |               |
//!               └──── recover: reset, load, open ─┘
//! ```

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use tigon2_chip::registers::Register;

use crate::eeprom;
use crate::live::Readers;
use crate::transport::{Transport, TransportError};

mod bar;
mod bringup;
mod buffers;
mod commands;
mod config;
mod control;
mod counters;
mod drops;
mod error;
mod eudp;
mod events;
mod filters;
mod frame;
mod layout;
mod lent;
mod lifecycle;
mod line;
mod log;
mod memory;
mod own;
mod plan;
mod queues;
mod receive;
mod receive_path;
mod region;
mod rings;
mod send;
mod send_path;
mod settings;
mod sizes;
mod spine;
mod split;
mod statistics;
mod trace;
mod traffic;
mod window;

pub use bringup::Identity;
pub use config::{
    Coalescing, Config, GiveBack, LinkSettings, MAX_MTU, MAX_STANDARD_MTU, MulticastForm, Notice,
    SendConsumer,
};
pub use control::Control;
pub use counters::DriverCounters;
pub use drops::{DropCounts, DropReason};
pub use error::{CardState, FatalReport, FirmwareSaid, NicError};
pub use eudp::EndpointCard;
pub use events::Link;
/// NIC memory through the window of BAR 0.
pub mod memory_window {
    pub use super::window::{read, write};
}

pub use lent::LentRing;
pub use log::CardMemory;
pub use trace::read_trace;

pub use frame::{Received, ReceivedChecksums, ReceivedFrame};
pub use own::OwnFirmware;
pub use queues::{
    Classification, QueueCounters, QueueParts, QueueReport, QueueSettings, ReceiveQueue, SendQueue,
    skew,
};
pub use rings::{ChecksumOffload, JumboRing, ReturnRingSize, Ring, SendRingPlace, SendRingSize};
pub use send::{InPlace, MAX_FRAGMENTS, SendOptions};
pub use settings::{LinkState, Negotiate};
pub use sizes::{JUMBO_SLOT_BYTES, MIN_FRAME, SLOT_BYTES};
pub use spine::ExtensionCard;
pub use split::{Parts, SplitError};
pub use statistics::{Named, NicStatistics, every_field};

use counters::Counts;
use events::EventLog;
use filters::list::Filters;
use memory::SharedMemory;
use plan::Plan;
use queues::QueueMode;
use receive::ReceiveRings;
use receive_path::ReceivePath;
use send::SendRing;
use send_path::SendPath;
use sizes::largest_frame;

/// How often a wait for the firmware reads its report.
const LOOK: Duration = Duration::from_millis(20);

/// The state of a card.
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

/// An AceNIC on a transport: its [`Control`] and its queues together.
///
/// It also offers everything that control does ([`Deref`]). [`Nic::split`] gives control and the
/// queues to separate threads.
pub struct Nic<T: Transport> {
    control: Control<T>,
    send: SendPath,
    receive: ReceivePath,
    /// Whether the next wait ends at once, because work may be pending without an interrupt.
    look_first: bool,
}

impl<T: Transport> Nic<T> {
    /// Identifies a card, resets it and reads its station address. The card is then halted and
    /// knows the DMA memory.
    ///
    /// # Errors
    /// [`NicError::UnknownDevice`] before anything is written if the function is another device;
    /// [`NicError::WrongRevision`], [`NicError::Eeprom`], or the transport's errors.
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
        let (counts, readers) = (Arc::<Counts>::default(), Readers::default());
        let send = SendPath::new(send, counts.clone(), readers.clone());
        let (own_counts, own_readers) = (counts.clone(), readers.clone());
        let receive = ReceivePath::new(receive, own_counts, own_readers, config.give_back);
        let control = Control {
            identity: Identity {
                vendor,
                device,
                revision,
                station,
                bus_64bit: !pci.bus_32bit(),
                bus_66mhz: pci.bus_66mhz(),
            },
            phase: Phase::Halted,
            events: EventLog::default(),
            command_producer: 0,
            last_command: 0,
            counts,
            memory_access: window::MemoryAccess::default(),
            image: Vec::new(),
            own: false,
            ours: false,
            station,
            filters: Filters::default(),
            log: log::state::Log::default(),
            readers,
            queues: QueueMode::default(),
            classic: None,
            wake: None,
            transport,
            config,
            memory: memory.control,
        };
        Ok(Self {
            control,
            send,
            receive,
            look_first: false,
        })
    }
}

impl<T: Transport> Deref for Nic<T> {
    type Target = Control<T>;

    fn deref(&self) -> &Control<T> {
        &self.control
    }
}

impl<T: Transport> DerefMut for Nic<T> {
    fn deref_mut(&mut self) -> &mut Control<T> {
        &mut self.control
    }
}
