//! Opens and closes queue mode.
//!
//! ```text
//!  Nic, running ──open_queues──> QueueParts   Control        commands, events, link
//!       ^                                     SendQueue      mailbox 2
//!       │                                     ReceiveQueue 0 mailboxes 8, 16
//!       │                                     ReceiveQueue 1 mailboxes 9, 17 ...
//!       └──close── Nic, open ◄──join_queues──────┘
//! ```
//!
//! Closed queues keep their memory and reuse it if they are opened again with the same rings, so a
//! driver may open and close queues forever.

use std::fmt;

use host_interface::info::{HostAddress, RcbFlags, RingControlBlock};
use host_interface::queue::{QueueCommand, QueueControl, QueueControlBlock, QueueResult};
use zerocopy::IntoBytes;

use super::block::{Block, QueueCounters};
use super::settings::{Classification, QueueSettings};
use super::{ReceiveQueue, SendQueue};
use crate::nic::bar::Whole;
use crate::nic::commands::Completion;
use crate::nic::control::Control;
use crate::nic::error::NicError;
use crate::nic::layout::CONTROL_WORDS;
use crate::nic::layout::{QueueControlLayout, ReceiveLayout};
use crate::nic::line::{Waiter, Watch};
use crate::nic::memory::words_of;
use crate::nic::plan::{QueuePlan, ReceivePlan};
use crate::nic::receive::{ReceiveMemory, ReceiveRings};
use crate::nic::receive_path::ReceivePath;
use crate::nic::region::Table;
use crate::nic::rings::Ring;
use crate::nic::sizes::{JUMBO_SLOT_BYTES, SLOT_BYTES, largest_frame};
use crate::nic::split::SplitError;
use crate::nic::{Nic, Phase};
use crate::transport::{Port, Transport, TransportError, Vector};

/// Control of a card in queue mode and its queues, for one thread each.
pub struct QueueParts<T: Transport> {
    /// Commands, events, statistics, link.
    pub control: Control<T>,
    /// The one send queue.
    pub send: SendQueue,
    /// The receive queues, by number.
    pub receive: Vec<ReceiveQueue>,
}

impl<T: Transport> fmt::Debug for QueueParts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues = self.receive.len();
        f.debug_struct("QueueParts")
            .field("receive", &queues)
            .finish()
    }
}

/// Control's state of queue mode.
#[derive(Default)]
pub(in crate::nic) struct QueueMode {
    /// The control block's memory, once it is allocated.
    memory: Option<Table<CONTROL_WORDS>>,
    /// Rings of closed queues, each with its plan.
    closed: Vec<(ReceivePlan, ReceiveRings)>,
    open: Option<OpenQueues>,
}

struct OpenQueues {
    settings: QueueSettings,
    block: Block,
    plans: Vec<ReceivePlan>,
}

impl QueueMode {
    /// Whether the card is in queue mode.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The card was reset.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// The rings of a plan: a closed queue's, or new ones.
    fn rings<T: Transport>(
        &mut self,
        transport: &mut T,
        plan: &ReceivePlan,
        bad_frames: bool,
    ) -> Result<ReceiveRings, NicError> {
        let same = self.closed.iter().position(|(closed, _)| closed == plan);
        let mut rings = match same {
            Some(place) => self.closed.swap_remove(place).1,
            None => {
                let layout = ReceiveLayout::of(plan);
                let memory = transport.allocate(layout.bytes)?;
                ReceiveRings::new(plan, ReceiveMemory::new(layout, &memory), bad_frames)
            }
        };
        rings.restart()?;
        Ok(rings)
    }

    /// Keeps the rings of queues that are about to close.
    fn keep(&mut self, queues: Vec<ReceiveQueue>) {
        let plans = self
            .open
            .as_mut()
            .map(|open| std::mem::take(&mut open.plans));
        let plans = plans.unwrap_or_default();
        for queue in queues {
            let rings = queue.path.into_rings();
            let number = rings.queue_number();
            let plan = plans
                .iter()
                .find(|plan| plan.queue.map(|queue| queue.number) == number);
            if let Some(plan) = plan {
                self.closed.push((plan.clone(), rings));
            }
        }
    }

    /// The control block's memory.
    fn control<T: Transport>(
        &mut self,
        transport: &mut T,
    ) -> Result<&Table<CONTROL_WORDS>, NicError> {
        if self.memory.is_none() {
            let layout = QueueControlLayout::new();
            let memory = transport.allocate(layout.bytes)?;
            self.memory = Some(layout.control.within(&memory));
        }
        self.memory.as_ref().ok_or(NicError::NoQueues)
    }
}

/// A queue's part of the control block.
fn control_of(rings: &ReceiveRings, entries: u32) -> Result<QueueControl, NicError> {
    let (returns, status) = rings.return_addresses()?;
    let buffers = rings.address_of(Ring::Standard)?.unwrap_or_default();
    let block = |address| RingControlBlock::new(address, entries as u16, RcbFlags::new());
    Ok(QueueControl {
        buffers: block(buffers),
        returns: block(returns),
        status: HostAddress::new(status),
        ..QueueControl::default()
    })
}

impl<T: Transport> Nic<T> {
    /// Opens queue mode on a card that is running and not open: the card sorts frames into receive
    /// queues, one for each thread. Sending and receiving take no lock.
    ///
    /// # Errors
    /// With the driver unchanged: [`NicError::WrongState`], [`NicError::NoQueues`] if the firmware
    /// has none, [`NicError::BadSetting`], [`NicError::QueuesRefused`]; errors of the firmware or
    /// the transport.
    pub fn open_queues(
        mut self,
        settings: &QueueSettings,
    ) -> Result<QueueParts<T>, Box<SplitError<T>>> {
        let (ways, paths) = match self.begin_queues(settings) {
            Ok(begun) => begun,
            Err(error) => return Err(Box::new(SplitError { nic: self, error })),
        };
        let Self {
            mut control,
            send,
            receive,
            ..
        } = self;
        control.classic = Some(receive);
        let (port, waiter) = ways.control;
        control.wake = Some((waiter, port));
        let (port, waiter) = ways.send;
        let receive = paths.into_iter().zip(ways.receive);
        Ok(QueueParts {
            control,
            send: SendQueue::new(send, port, waiter),
            receive: receive
                .map(|(path, (port, waiter))| ReceiveQueue::new(path, port, waiter))
                .collect(),
        })
    }

    /// Prepares everything for the queues, and opens them on the card.
    fn begin_queues(
        &mut self,
        settings: &QueueSettings,
    ) -> Result<(Ways, Vec<ReceivePath>), NicError> {
        self.need(Phase::Running)?;
        self.must_have_host_send_ring()?;
        settings.check()?;
        let control = &mut self.control;
        let block = Block::find(control, settings)?;
        let plans = control.plans_of(settings, &block)?;
        let mut queues = Vec::new();
        for plan in &plans {
            let bad_frames = control.config.mode.bad_frames();
            queues.push(
                control
                    .queues
                    .rings(&mut control.transport, plan, bad_frames)?,
            );
        }
        let ways = control.ways(&queues)?;
        control.give_control_block(settings, &block, &queues)?;
        control.queue_command("open queues", QueueCommand::Open)?;
        control.queues.open = Some(OpenQueues {
            settings: *settings,
            block,
            plans,
        });
        let started = control.start_queues(queues);
        if started.is_err() {
            // The card uses the queues' memory until the driver stops them.
            let _ = control.end_queues();
        }
        Ok((ways, started?))
    }

    /// Joins the parts of [`Nic::open_queues`]. The card stays in queue mode until [`Nic::close`]
    /// or [`Nic::recover`]; missing queues are ignored.
    ///
    /// # Errors
    /// With the parts unchanged, if they do not belong to the same card.
    pub fn join_queues(parts: QueueParts<T>) -> Result<Self, Box<QueueParts<T>>> {
        let QueueParts {
            mut control,
            send,
            receive,
        } = parts;
        let whole = control.wake.as_ref().is_some_and(|(waiter, _)| {
            let mut queues = receive.iter().map(|queue| &queue.waiter);
            waiter.is_beside(&send.waiter) && queues.all(|queue| waiter.is_beside(queue))
        });
        let classic = if whole { control.classic.take() } else { None };
        let Some(classic) = classic else {
            return Err(Box::new(QueueParts {
                control,
                send,
                receive,
            }));
        };
        control.wake = None;
        control.queues.keep(receive);
        Ok(Self {
            control,
            send: send.path,
            receive: classic,
            look_first: true,
        })
    }
}

/// The ports and waiters of all parts.
struct Ways {
    control: Way,
    send: Way,
    /// In the order of the queues.
    receive: Vec<Way>,
}

type Way = (Box<dyn Port>, Waiter);

impl<T: Transport> Control<T> {
    /// The plans of each queue's rings, for frames of the MTU.
    fn plans_of(
        &self,
        settings: &QueueSettings,
        block: &Block,
    ) -> Result<Vec<ReceivePlan>, NicError> {
        let slot = if largest_frame(self.config.mtu) > SLOT_BYTES {
            JUMBO_SLOT_BYTES
        } else {
            SLOT_BYTES
        };
        let plan = |number| {
            let (buffers, rearm) = block.mailboxes(number)?;
            let queue = QueuePlan { number, rearm };
            Ok(ReceivePlan::queue(queue, settings.entries, slot, buffers))
        };
        (0..settings.queues).map(plan).collect()
    }

    fn ways(&mut self, queues: &[ReceiveRings]) -> Result<Ways, NicError> {
        // Writes that the transport holds must precede those of the ports.
        self.transport.flush()?;
        let all = [None, None].into_iter();
        let watches = all.chain(queues.iter().map(|rings| Some(Watch::new(rings.status()))));
        let waiters = Waiter::all(Vector::INTERRUPT, self.config.notice, &self.counts, watches)?;
        let mut ways = Vec::new();
        for waiter in waiters {
            ways.push((self.transport.port()?, waiter));
        }
        let mut ways = ways.into_iter();
        let (Some(control), Some(send)) = (ways.next(), ways.next()) else {
            return Err(TransportError::NotShared.into());
        };
        Ok(Ways {
            control,
            send,
            receive: ways.collect(),
        })
    }

    /// Fills the control block and writes its address to the card.
    fn give_control_block(
        &mut self,
        settings: &QueueSettings,
        block: &Block,
        queues: &[ReceiveRings],
    ) -> Result<(), NicError> {
        let controls: Result<Vec<_>, _> = queues
            .iter()
            .map(|rings| control_of(rings, settings.entries))
            .collect();
        let words = settings.control_block(controls?.into_iter());
        let table = self.queues.control(&mut self.transport)?;
        table.write(0, &words_of(words.as_bytes()))?;
        block.set_control(&mut self.transport, table.address()?)
    }

    /// Gives the open queues their buffers and enables traffic.
    fn start_queues(&mut self, queues: Vec<ReceiveRings>) -> Result<Vec<ReceivePath>, NicError> {
        let mut paths = Vec::new();
        for mut rings in queues {
            rings.fill(|_| true)?;
            let (counts, readers) = (self.counts.clone(), self.readers.clone());
            let mut path = ReceivePath::new(rings, counts, readers, self.config.give_back);
            path.publish_buffers(&mut Whole(&mut self.transport), true)?;
            paths.push(path);
        }
        self.clear_statistics()?;
        self.set_stack(true)?;
        self.phase = Phase::Open;
        self.restore_filters()?;
        Ok(paths)
    }

    /// Returns a card in queue mode to classic mode, with its stack down.
    pub(in crate::nic) fn end_queues(&mut self) -> Result<(), NicError> {
        if self.queues.open.is_none() {
            return Ok(());
        }
        self.set_stack(false)?;
        self.queue_command("close queues", QueueCommand::Close)?;
        self.queues.open = None;
        self.phase = Phase::Running;
        Ok(())
    }

    /// Issues a command of queue mode, and checks the event that answers it.
    fn queue_command(&mut self, name: &'static str, command: QueueCommand) -> Result<(), NicError> {
        let completion = Completion::Queues(command.answer());
        self.issue_word(name, command.word(0), &[], completion)?;
        match self.events.queues {
            Some((_, QueueResult::Done, _)) | None => Ok(()),
            Some((_, result, index)) => Err(NicError::QueuesRefused {
                command: name,
                result,
                index,
            }),
        }
    }

    /// Changes the classification. It takes effect at once: a flow whose queue changes may be
    /// reordered.
    ///
    /// # Errors
    /// [`NicError::WrongState`] without open queues; [`NicError::BadSetting`],
    /// [`NicError::QueuesRefused`]; errors of the firmware or the transport.
    pub fn set_classification(&mut self, wanted: &Classification) -> Result<(), NicError> {
        let Some(open) = &mut self.queues.open else {
            return Err(closed());
        };
        wanted.rss(open.settings.queues)?;
        let before = std::mem::replace(&mut open.settings.classification, *wanted);
        let result = self.report_classification();
        if let (Err(_), Some(open)) = (&result, &mut self.queues.open) {
            open.settings.classification = before;
        }
        result
    }

    /// Writes the classifier's part of the control block, and makes the card read it again.
    fn report_classification(&mut self) -> Result<(), NicError> {
        let (Some(open), Some(table)) = (&self.queues.open, &self.queues.memory) else {
            return Err(closed());
        };
        let mut block = QueueControlBlock::default();
        let words = table.read(0)?;
        block.as_mut_bytes().copy_from_slice(words.as_bytes());
        open.settings
            .classification
            .fill(open.settings.queues, &mut block);
        table.write(0, &words_of(block.as_bytes()))?;
        self.queue_command("update classifier", QueueCommand::UpdateClassifier)
    }

    /// The settings of the open queues; None in classic mode.
    pub fn queue_settings(&self) -> Option<&QueueSettings> {
        self.queues.open.as_ref().map(|open| &open.settings)
    }

    /// The firmware's counters of each open queue.
    ///
    /// # Errors
    /// [`NicError::WrongState`] without open queues; what the transport says.
    pub fn queue_counters(&mut self) -> Result<Vec<QueueCounters>, NicError> {
        let open = self.queues.open.as_ref().ok_or_else(closed)?;
        open.block
            .counters(&mut self.transport, open.settings.queues)
    }
}

fn closed() -> NicError {
    NicError::WrongState {
        is: "in classic mode",
        needs: "in queue mode",
    }
}
