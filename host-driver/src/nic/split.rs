//! Splits a driver into control and its queues, and joins them again.

use std::fmt;

use super::control::Control;
use super::error::NicError;
use super::line::Waiter;
use super::queues::{ReceiveQueue, SendQueue};
use super::{Nic, Phase};
use crate::transport::{Port, Transport, TransportError, Vector};

/// Control of a card and its queues, for one thread each.
pub type Parts<T> = (Control<T>, SendQueue, ReceiveQueue);

/// A driver that could not be split, and why.
pub struct SplitError<T: Transport> {
    /// The driver, unchanged.
    pub nic: Nic<T>,
    /// What went wrong.
    pub error: NicError,
}

impl<T: Transport> fmt::Debug for SplitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SplitError").field(&self.error).finish()
    }
}

/// The ports and waiters of control and two queues.
struct Ways {
    ports: [Box<dyn Port>; 3],
    waiters: [Waiter; 3],
}

impl<T: Transport> Nic<T> {
    /// Splits an open card's driver into control and its queues, for up to three threads: sending
    /// and receiving take no lock. Operations on all parts (MTU, closing, recovering) need
    /// [`Nic::join`] first.
    ///
    /// # Errors
    /// With the driver unchanged: [`NicError::WrongState`] if the card is not open,
    /// [`NicError::BadSetting`] if the send ring is on the card, where control's window writes it;
    /// the transport's errors, such as [`crate::TransportError::NotShared`].
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
        self.must_have_host_send_ring()?;
        let control = &mut self.control;
        // Writes that the transport holds must precede those of the ports.
        control.transport.flush()?;
        let mut port = || control.transport.port();
        let ports = [port()?, port()?, port()?];
        let notice = control.config.notice;
        let watches = [const { None }; 3];
        let mut waiters = Waiter::all(Vector::INTERRUPT, notice, &control.counts, watches)?;
        let mut waiter = || waiters.next().ok_or(TransportError::NotShared);
        let waiters = [waiter()?, waiter()?, waiter()?];
        Ok(Ways { ports, waiters })
    }

    /// A send ring on the card needs the window, which control uses.
    pub(super) fn must_have_host_send_ring(&self) -> Result<(), NicError> {
        if self.send.ring.is_on_card() {
            return Err(NicError::BadSetting {
                what: "send ring on the card with",
                value: self.send.ring.entries(),
                allowed: "in host memory for a queue of its own".to_owned(),
            });
        }
        Ok(())
    }

    /// Joins the parts of [`Nic::split`].
    ///
    /// # Errors
    /// With the parts unchanged, if they do not belong to the same card.
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
            // An interrupt may have been taken for a queue that has not checked yet.
            look_first: true,
        })
    }
}
