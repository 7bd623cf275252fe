//! The endpoint of the process that drives the card: what handlers send to `Endpoint::DRIVER`.
//!
//! The driver takes each message as it looks at its memory, and keeps the newest ones for clients.
//! The endpoint is open while an extension is loaded, as CPU B listens to the mailboxes of open
//! endpoints.

use std::collections::VecDeque;

use host_interface::spine::DOMAINS;
use host_interface::spine::rings::{DRIVER, SLOTS_MOST};
use spine_linker::endpoint::{Endpoint, Received, RingSizes, doorbell};
use spine_linker::extensions::{Extensions, Texts};
use spine_linker::load::{EndpointConfig, LoadError};

use super::request::{HandlerMessage, HandlerMessages};
use crate::dma::DmaMemory;
use crate::nic::{Control, ExtensionCard, NicError};
use crate::transport::Transport;

/// Its number, counted from 0 on.
const NUMBER: u32 = DRIVER - 1;
/// Its rings: handlers may fill them between two looks.
const SIZES: RingSizes = RingSizes {
    slots: SLOTS_MOST,
    bulk: 0,
};
/// Messages that are kept.
const MOST_KEPT: usize = 256;
/// Most messages in an answer.
const MOST_ANSWERED: usize = 64;

/// The driver's endpoint, and what came there.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    open: Option<Endpoint<DmaMemory>>,
    /// Which start of the firmware it is of.
    start: u64,
    /// The halfword that stands in its doorbell.
    rung: u16,
    /// The extension that each domain has, or had last.
    senders: [Sender; DOMAINS as usize],
    kept: Kept,
}

/// An extension, as far as its messages tell of it.
#[derive(Debug, Default)]
struct Sender {
    name: String,
    texts: Texts,
}

/// The newest messages, numbered from the first one on.
#[derive(Debug, Default)]
struct Kept {
    messages: VecDeque<HandlerMessage>,
    /// The number of the first kept message: how many made room.
    first: u64,
}

impl Inbox {
    /// Opens the endpoint, if it is not open: an extension is about to be loaded. What those
    /// before it have sent is taken first, as it may get the number of one of them.
    pub fn open<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        self.serve(extensions, control)?;
        self.follow(extensions, control)?;
        if self.open.is_some() {
            return Ok(());
        }
        let memory = control.transport().allocate(SIZES.bytes());
        let memory = memory.map_err(|error| LoadError::Card(error.into()))?;
        let config = EndpointConfig {
            address: memory.iova(),
            sizes: SIZES,
            handlers: 0,
            interrupts: true,
        };
        let opened = extensions.open_endpoint(&mut ExtensionCard(control), NUMBER, &config);
        if opened.is_err() {
            let _ = control.transport().unmap(&memory);
        }
        opened?;
        self.open = Some(Endpoint::new(memory, SIZES));
        self.rung = 0;
        Ok(())
    }

    /// A domain has another extension from now on.
    pub fn follow_domain(&mut self, extensions: &Extensions, domain: u32) {
        if let Some(sender) = self.senders.get_mut(domain as usize) {
            *sender = Sender {
                name: extensions.name(domain).unwrap_or_default().to_owned(),
                texts: extensions.texts(domain).cloned().unwrap_or_default(),
            };
        }
    }

    /// The endpoint's number, while it is open.
    pub fn number(&self) -> Option<u32> {
        self.open.is_some().then_some(NUMBER)
    }

    /// Forgets the endpoint of firmware that does not run any more.
    pub fn follow<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        let start = extensions.starts(&mut ExtensionCard(control))?;
        if start != self.start {
            self.start = start;
            if let Some(gone) = self.open.take() {
                let _ = control.transport().unmap(gone.memory());
            }
        }
        Ok(())
    }

    /// Takes what has come. Closes the endpoint when nothing is loaded any more.
    pub fn serve<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        if self.take() {
            self.follow(extensions, control)?;
        }
        let Some(endpoint) = &self.open else {
            return Ok(());
        };
        if extensions.is_empty() {
            return self.close(extensions, control);
        }
        // Its memory is as large as its rings: words of it are there.
        let halfword = doorbell(endpoint.memory()).unwrap_or(self.rung);
        if halfword != self.rung {
            extensions.ring_endpoint(&mut ExtensionCard(control), NUMBER, halfword)?;
            self.rung = halfword;
        }
        Ok(())
    }

    /// Closes the endpoint: the card touches its memory no more. Takes what came before.
    pub fn close<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        if self.open.is_some() {
            self.follow(extensions, control)?;
        }
        if self.open.is_some() {
            extensions.close_endpoint(&mut ExtensionCard(control), NUMBER)?;
            self.take();
        }
        if let Some(closed) = self.open.take() {
            let _ = control.transport().unmap(closed.memory());
        }
        Ok(())
    }

    /// Takes at most as many messages as a ring holds; whether there was one.
    fn take(&mut self) -> bool {
        let Some(endpoint) = &mut self.open else {
            return false;
        };
        let before = endpoint.taken();
        for _ in 0..SIZES.slots {
            // As above.
            let Ok(Some(received)) = endpoint.take() else {
                break;
            };
            let Received {
                from,
                arguments,
                cut_from,
            } = received;
            let sender = self.senders.get(from.domain as usize);
            self.kept.push(HandlerMessage {
                domain: from.domain,
                name: sender.map_or_else(String::new, |sender| sender.name.clone()),
                handler: from.handler,
                line: sender
                    .filter(|_| cut_from.is_none())
                    .and_then(|sender| sender.texts.line(&arguments)),
                arguments,
                cut_from,
            });
        }
        endpoint.taken() != before
    }

    /// Messages from a number on.
    pub fn messages(&self, from: u64) -> HandlerMessages {
        self.kept.from(from)
    }
}

impl Kept {
    fn push(&mut self, message: HandlerMessage) {
        if self.messages.len() == MOST_KEPT {
            self.messages.pop_front();
            self.first += 1;
        }
        self.messages.push_back(message);
    }

    fn from(&self, from: u64) -> HandlerMessages {
        let end = self.first + self.messages.len() as u64;
        let first = from.clamp(self.first, end);
        let wanted = self.messages.range((first - self.first) as usize..);
        HandlerMessages {
            first,
            end,
            messages: wanted.take(MOST_ANSWERED).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_messages_make_room_and_are_counted() {
        let mut kept = Kept::default();
        assert_eq!(kept.from(7), HandlerMessages::default());
        for number in 0..300 {
            kept.push(HandlerMessage {
                arguments: vec![number],
                ..HandlerMessage::default()
            });
        }
        // In parts, as a client asks.
        let (mut from, mut words) = (0, Vec::new());
        loop {
            let answer = kept.from(from);
            assert_eq!(answer.end, 300);
            if answer.messages.is_empty() {
                break;
            }
            assert!(answer.messages.len() <= MOST_ANSWERED);
            from = answer.first + answer.messages.len() as u64;
            words.extend(answer.messages.iter().map(|message| message.arguments[0]));
        }
        assert_eq!(from, 300);
        assert_eq!(words, (44..300).collect::<Vec<_>>(), "44 made room");
    }
}
