//! A smoltcp device on the card.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant as StackInstant;

use super::{StackError, Wire};
use crate::checksum;
use crate::dma::DmaMemory;
use crate::nic::{
    CardState, DropReason, InPlace, MAX_FRAGMENTS, Nic, NicError, Notice, SendOptions,
};
use crate::transport::{Transport, TransportError};

/// Received frames that are fetched at once.
const BATCH: u32 = 64;
/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;

/// A card as the device of a network stack. If the card computes checksums, the stack does not:
/// frames are passed unfinished, and received frames are checked by the card's sums (except
/// fragments, for which the card computes no usable sums).
pub struct CardWire<'a, T: Transport> {
    nic: &'a mut Nic<T>,
    vlan: Option<u16>,
    received: VecDeque<Vec<u8>>,
    scratch: Vec<u8>,
    /// smoltcp's devices cannot fail: the first error is kept for the next flush.
    failure: Option<NicError>,
}

impl<'a, T: Transport> CardWire<'a, T> {
    /// A device over an open card.
    pub fn new(nic: &'a mut Nic<T>) -> Self {
        Self::with_vlan(nic, None)
    }

    /// A device on an open card for the frames of one VLAN; the card must insert and strip tags
    /// ([`crate::Config::vlan`]).
    pub fn with_vlan(nic: &'a mut Nic<T>, vlan: Option<u16>) -> Self {
        Self {
            nic,
            vlan,
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
        let (received, vlan) = (&mut self.received, self.vlan);
        let offload = self.nic.config().receive_checksums;
        let mut damaged = 0;
        let result = self.nic.receive(BATCH, |frame| {
            // The lower 12 bits of a tag are the VLAN's number.
            if frame.vlan().map(|tag| tag & 0xFFF) != vlan {
                return Ok(());
            }
            let bytes = frame.to_vec()?;
            if checksum::check(&bytes, frame.checksums(), offload).is_good() {
                received.push_back(bytes);
            } else {
                damaged += 1;
            }
            Ok(())
        });
        self.nic.count_drops(DropReason::BadChecksum, damaged);
        self.note(result.map(|_| ()));
    }
}

/// Who computes (`send`) and verifies (`receive`) a checksum: the stack does what the card does
/// not.
fn checksum(send: bool, receive: bool) -> Checksum {
    match (send, receive) {
        (false, false) => Checksum::Both,
        (true, false) => Checksum::Rx,
        (false, true) => Checksum::Tx,
        (true, true) => Checksum::None,
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
        // The room was checked when the token was created.
        let options = SendOptions {
            vlan: wire.vlan,
            ..checksum::prepare(&mut wire.scratch, wire.nic.config().send_checksums)
        };
        let queued = wire.nic.queue_as(&[IoSlice::new(&wire.scratch)], options);
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
        let (send, receive) = (
            self.nic.config().send_checksums,
            self.nic.config().receive_checksums,
        );
        let transport = checksum(send.transport, receive.transport);
        capabilities.checksum.tcp = transport;
        capabilities.checksum.udp = transport;
        capabilities.checksum.ipv4 = checksum(send.ip, receive.ip);
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

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // Frames that were fetched, or a driver that polls, cannot be seen by it.
        let interrupts = self.nic.config().notice == Notice::Interrupt;
        let fd = self.nic.interrupt_fd();
        fd.filter(|_| interrupts && self.received.is_empty())
    }

    fn map(&mut self, file: OwnedFd) -> Result<Option<DmaMemory>, StackError> {
        match self.nic.map(file) {
            Ok(memory) => Ok(Some(memory)),
            Err(NicError::Transport(TransportError::NoForeignMemory | TransportError::Io(_))) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), StackError> {
        Ok(self.nic.unmap(memory)?)
    }

    fn room_in_place(&self) -> usize {
        self.nic.send_room() as usize / MAX_FRAGMENTS
    }

    fn send_in_place(&mut self, frame: &mut [u8], header: usize, parts: &[InPlace<'_>]) {
        let offload = self.nic.config().send_checksums;
        let options = SendOptions {
            vlan: self.vlan,
            ..checksum::prepare(frame, offload)
        };
        let header = frame.get(..header).unwrap_or(frame);
        let queued = self.nic.queue_in_place(header, parts, options);
        self.note(queued.map(|_| ()));
    }

    fn queued(&self) -> u64 {
        self.nic.send_queued()
    }

    fn returned(&self) -> u64 {
        self.nic.send_returned()
    }

    fn recover(&mut self, failure: &StackError) -> Result<bool, StackError> {
        match failure {
            StackError::Nic(error) if error.is_recoverable() => {
                self.failure = None;
                self.nic.recover()?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn check(&mut self) -> Result<(), StackError> {
        self.nic.card_state()?;
        Ok(())
    }

    fn card_state(&mut self) -> Result<Option<CardState>, StackError> {
        Ok(Some(self.nic.card_state()?))
    }
}
