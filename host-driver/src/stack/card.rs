//! A stack over the card.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant as StackInstant;

use super::{StackError, Wire};
use crate::nic::{Nic, NicError};
use crate::transport::Transport;

/// Received frames that are fetched at a time.
const BATCH: u32 = 64;
/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;

/// A card as the device of a stack.
pub struct CardWire<'a, T: Transport> {
    nic: &'a mut Nic<T>,
    received: VecDeque<Vec<u8>>,
    scratch: Vec<u8>,
    /// smoltcp's devices cannot fail: the first error waits here for the next flush.
    failure: Option<NicError>,
}

impl<'a, T: Transport> CardWire<'a, T> {
    /// A device over an open card.
    pub fn new(nic: &'a mut Nic<T>) -> Self {
        Self {
            nic,
            received: VecDeque::new(),
            scratch: Vec::new(),
            failure: None,
        }
    }

    /// The card.
    pub fn nic(&mut self) -> &mut Nic<T> {
        self.nic
    }

    fn note(&mut self, result: Result<(), NicError>) {
        if let Err(error) = result
            && self.failure.is_none()
        {
            self.failure = Some(error);
        }
    }

    fn fetch(&mut self) {
        let received = &mut self.received;
        let result = self.nic.receive(BATCH, |frame| {
            received.push_back(frame.to_vec()?);
            Ok(())
        });
        self.note(result.map(|_| ()));
    }
}

/// A frame for the stack.
pub struct CardRx(Vec<u8>);

impl RxToken for CardRx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

/// Room for a frame from the stack.
pub struct CardTx<'t, 'a, T: Transport>(&'t mut CardWire<'a, T>);

impl<T: Transport> TxToken for CardTx<'_, '_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let wire = self.0;
        wire.scratch.clear();
        wire.scratch.resize(len, 0);
        let result = f(&mut wire.scratch);
        // Room was checked when the token was made.
        let queued = wire.nic.queue(&[IoSlice::new(&wire.scratch)]);
        wire.note(queued.map(|_| ()));
        result
    }
}

impl<'a, T: Transport> Device for CardWire<'a, T> {
    type RxToken<'t>
        = CardRx
    where
        Self: 't;
    type TxToken<'t>
        = CardTx<'t, 'a, T>
    where
        Self: 't;

    fn receive(&mut self, _: StackInstant) -> Option<(CardRx, CardTx<'_, 'a, T>)> {
        if self.received.is_empty() {
            self.fetch();
        }
        if self.nic.send_room() == 0 {
            return None;
        }
        let frame = self.received.pop_front()?;
        Some((CardRx(frame), CardTx(self)))
    }

    fn transmit(&mut self, _: StackInstant) -> Option<CardTx<'_, 'a, T>> {
        (self.nic.send_room() > 0).then_some(CardTx(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = usize::from(self.nic.config().mtu) + ETHERNET_HEADER;
        capabilities
    }
}

impl<T: Transport> Wire for CardWire<'_, T> {
    fn flush(&mut self) -> Result<(), StackError> {
        if let Some(error) = self.failure.take() {
            return Err(error.into());
        }
        self.nic.submit()?;
        self.nic.service()?;
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), StackError> {
        if !self.received.is_empty() {
            return Ok(());
        }
        self.nic.wait(timeout)?;
        self.nic.service()?;
        Ok(())
    }
}
