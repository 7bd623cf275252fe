//! The driver of a card with several CPUs, in both modes.

use super::transport::CpuTransport;
use host_driver::nic::{Control, QueueParts, QueueSettings, ReceiveQueue, SendOptions, SendQueue};
use host_driver::{Nic, NicError};
use std::io::IoSlice;
use std::time::Duration;

/// The driver of a card, whole or cut.
pub(super) enum Driver {
    /// Classic mode.
    Whole(Box<Nic<CpuTransport>>),
    /// Queue mode: control and the send queue, which all CPUs share. The receive queues are
    /// their threads', once those have taken them.
    Cut {
        control: Box<Control<CpuTransport>>,
        send: Box<SendQueue>,
        receive: Vec<ReceiveQueue>,
    },
}

impl Driver {
    /// Opens a card whose firmware runs, with these queues if there are any, and waits for its
    /// link.
    pub fn open(
        mut nic: Nic<CpuTransport>,
        queues: Option<&QueueSettings>,
        patience: Duration,
    ) -> Result<Driver, NicError> {
        let Some(settings) = queues else {
            nic.open()?;
            nic.wait_link(patience)?;
            nic.acknowledge()?;
            nic.service()?;
            return Ok(Driver::Whole(Box::new(nic)));
        };
        let QueueParts {
            mut control,
            send,
            receive,
        } = nic.open_queues(settings).map_err(|split| split.error)?;
        control.wait_link(patience)?;
        // What has come until now is not the experiment's.
        while control.wait(Duration::ZERO)? {}
        for queue in &receive {
            queue.take_wake_up();
        }
        Ok(Driver::Cut {
            control: Box::new(control),
            send: Box::new(send),
            receive,
        })
    }

    /// Control of the card.
    pub fn control(&mut self) -> &mut Control<CpuTransport> {
        match self {
            Driver::Whole(nic) => nic,
            Driver::Cut { control, .. } => control,
        }
    }

    /// Takes the interrupt away.
    pub fn acknowledge(&mut self) -> Result<(), NicError> {
        match self {
            Driver::Whole(nic) => nic.acknowledge(),
            // It finds the interrupt, acknowledges it, and rings the bells of those queues
            // whose status lines have counted it.
            Driver::Cut { control, .. } => control.wait(Duration::ZERO).map(drop),
        }
    }

    /// Handles events and takes sent BDs back.
    pub fn service(&mut self) -> Result<(), NicError> {
        match self {
            Driver::Whole(nic) => nic.service(),
            Driver::Cut { control, send, .. } => {
                control.take_events()?;
                send.reclaim()?;
                if control.watch(send.waiting_for())? {
                    send.excuse();
                }
                Ok(())
            }
        }
    }

    /// Send BDs that are free.
    pub fn send_room(&self) -> u32 {
        match self {
            Driver::Whole(nic) => nic.send_room(),
            Driver::Cut { send, .. } => send.room(),
        }
    }

    /// Queues a frame; false if the ring is full.
    pub fn queue(&mut self, frame: &[u8]) -> Result<bool, NicError> {
        let fragments = [IoSlice::new(frame)];
        match self {
            Driver::Whole(nic) => nic.queue(&fragments),
            Driver::Cut { send, .. } => send.queue(&fragments, SendOptions::default()),
        }
    }

    /// Tells the card of what was queued.
    pub fn submit(&mut self) -> Result<(), NicError> {
        match self {
            Driver::Whole(nic) => nic.submit(),
            Driver::Cut { send, .. } => send.submit(),
        }
    }

    /// The receive queues, for their threads; none in classic mode, and the second time.
    pub fn take_queues(&mut self) -> Vec<ReceiveQueue> {
        match self {
            Driver::Whole(_) => Vec::new(),
            Driver::Cut { receive, .. } => std::mem::take(receive),
        }
    }

    /// Copies at most `budget` received frames of classic mode out; in queue mode there are
    /// none.
    pub fn receive(&mut self, budget: u32) -> Result<Vec<Vec<u8>>, NicError> {
        match self {
            Driver::Whole(nic) => nic.receive_batch(budget),
            Driver::Cut { .. } => Ok(Vec::new()),
        }
    }
}
