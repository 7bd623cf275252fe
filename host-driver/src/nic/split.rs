//! Cutting a driver into control and its queues, and joining them again.

use std::fmt;

use super::control::Control;
use super::error::NicError;
use super::line::Waiter;
use super::queues::{ReceiveQueue, SendQueue};
use super::{Nic, Phase};
use crate::transport::{Port, Transport, Vector};

/// Control of a card and its queues, for a thread each.
pub type Parts<T> = (Control<T>, SendQueue, ReceiveQueue);

/// A driver that could not be split, and why.
pub struct SplitError<T: Transport> {
    /// The driver, as it was.
    pub nic: Nic<T>,
    /// What went wrong.
    pub error: NicError,
}

impl<T: Transport> fmt::Debug for SplitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SplitError").field(&self.error).finish()
    }
}

/// What control and two queues need beside their state.
struct Ways {
    ports: [Box<dyn Port>; 3],
    waiters: [Waiter; 3],
}

impl<T: Transport> Nic<T> {
    /// Cuts an open card's driver into control and its queues, for up to three threads: no
    /// lock is taken to send or to receive. What needs all of them (MTU, closing,
    /// recovering) needs [`Nic::join`] first.
    ///
    /// # Errors
    /// With the driver as it was: [`NicError::WrongState`] if the card is not open,
    /// [`NicError::BadSetting`] if the send ring is on the card, where it is written through
    /// the window that control uses; what the transport says, such as
    /// [`crate::TransportError::NotShared`].
    pub fn split(mut self) -> Result<Parts<T>, Box<SplitError<T>>> {
        let Ways { ports, waiters } = match self.ways() {
            Ok(ways) => ways,
            Err(error) => return Err(Box::new(SplitError { nic: self, error })),
        };
        let Self {
            mut control,
            send,
            receive,
            ..
        } = self;
        let [control_port, send_port, receive_port] = ports;
        let [control_waiter, send_waiter, receive_waiter] = waiters;
        control.wake = Some((control_waiter, control_port));
        Ok((
            control,
            SendQueue::new(send, send_port, send_waiter),
            ReceiveQueue::new(receive, receive_port, receive_waiter),
        ))
    }

    fn ways(&mut self) -> Result<Ways, NicError> {
        self.control.need(Phase::Open)?;
        if self.send.ring.is_on_card() {
            return Err(NicError::BadSetting {
                what: "send ring on the card with",
                value: self.send.ring.entries(),
                allowed: "in host memory for a queue of its own".to_owned(),
            });
        }
        let control = &mut self.control;
        // What the transport holds back goes before what the ports write.
        control.transport.flush()?;
        let mut port = || control.transport.port();
        let ports = [port()?, port()?, port()?];
        let waiters = Waiter::all(Vector::INTERRUPT, control.config.notice, &control.counts)?;
        Ok(Ways { ports, waiters })
    }

    /// Joins what [`Nic::split`] has cut.
    ///
    /// # Errors
    /// With the parts as they were, if they are not those of one card.
    pub fn join(
        mut control: Control<T>,
        send: SendQueue,
        receive: ReceiveQueue,
    ) -> Result<Self, Box<Parts<T>>> {
        let whole = control.wake.as_ref().is_some_and(|(waiter, _)| {
            waiter.is_beside(&send.waiter) && waiter.is_beside(&receive.waiter)
        });
        if !whole {
            return Err(Box::new((control, send, receive)));
        }
        control.wake = None;
        Ok(Self {
            control,
            send: send.path,
            receive: receive.path,
            // An interrupt may have been taken for a queue that has not looked.
            look_first: true,
        })
    }
}
