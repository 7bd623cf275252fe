//! Endpoints: descriptors in, completions out.

mod pooled;

pub(crate) use pooled::Pooled;

use crate::address::{AddressHandle, PACKET_HEADERS};
use crate::card::{Card, Memory};
use crate::config::EndpointConfig;
use crate::error::SendError;
use crate::region::{Region, Segment, segments};
use host_interface::eudp::{
    COMPLETION_BYTES, CompletionWord, DATAGRAM_MAX, DESCRIPTOR_BYTES, DescriptorWord, INLINE_BYTES,
    Kind, SLOTS, Status, Verdict, posted, receive_slot, send_slot, to_word,
};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes of its data, from the first piece on.
    pub bytes: u32,
    /// Who sent it.
    pub from: SocketAddrV4,
    /// Whether it had a checksum, which was right.
    pub summed: bool,
}

/// A descriptor is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Its memory may be used again: the data was fetched, unless the status says otherwise.
    Sent {
        /// The process's word.
        cookie: u32,
        /// What became of it.
        status: Status,
    },
    /// A datagram is in its memory, unless the status says otherwise.
    Received {
        /// The process's word.
        cookie: u32,
        /// What became of it.
        status: Status,
        /// The datagram.
        datagram: Received,
    },
}

/// Words of a descriptor that are written: its head, and what of its data is used.
type Words = Vec<u32>;
/// A completion.
type Entry = [u32; COMPLETION_BYTES as usize / 4];

/// Its [`Kind`].
const fn kind_of(words: &Entry) -> u32 {
    words[CompletionWord::KindAndStatus as usize / 4] >> 16
}

/// One direction: what was posted, and what of that the card has.
#[derive(Debug, Default)]
struct Queue {
    /// Descriptors for which neither queue has room.
    waiting: VecDeque<Words>,
    /// Descriptors in the two queues, and those of them that are done, since the endpoint was
    /// opened.
    posted: u32,
    done: u32,
    /// Behind the last one that was left to the card to pull.
    left: u32,
}

impl Queue {
    fn outstanding(&self) -> u32 {
        self.posted.wrapping_sub(self.done)
    }
}

/// A local port of the card's.
#[derive(Debug)]
pub struct Endpoint<M: Memory> {
    block: u32,
    number: u32,
    doorbell: u32,
    config: EndpointConfig,
    completions: M,
    queues: M,
    taken: u32,
    send: Queue,
    receive: Queue,
    rung: bool,
    /// Its regions, by their number.
    regions: Vec<(u32, M)>,
    handles: Vec<u32>,
    /// Memory that is to be taken back from the card at the end.
    mapped: Vec<M>,
    lost: bool,
}

impl<M: Memory> Endpoint<M> {
    pub(crate) fn new(
        block: u32,
        number: u32,
        doorbell: u32,
        config: EndpointConfig,
        (completions, queues): (M, M),
    ) -> Endpoint<M> {
        Endpoint {
            block,
            number,
            doorbell,
            config,
            completions,
            queues,
            taken: 0,
            send: Queue::default(),
            receive: Queue::default(),
            rung: true,
            regions: Vec::new(),
            handles: Vec::new(),
            mapped: Vec::new(),
            lost: false,
        }
    }

    /// Its number on the card.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What it was opened with.
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    pub(crate) fn regions(&self) -> impl Iterator<Item = u32> {
        self.regions.iter().map(|(number, _)| *number)
    }

    pub(crate) fn handles(&self) -> &[u32] {
        &self.handles
    }

    pub(crate) fn add_region(&mut self, number: u32, memory: &M) -> Region {
        self.regions.push((number, memory.clone()));
        Region {
            number,
            bytes: memory.bytes() as u32,
            access: memory.access(),
        }
    }

    /// Memory that the card has until the endpoint is closed.
    pub(crate) fn keep(&mut self, memory: M) {
        self.mapped.push(memory);
    }

    pub(crate) fn mapped(&self) -> &[M] {
        &self.mapped
    }

    pub(crate) fn add_handle(&mut self, number: u32, dont_fragment: bool) -> AddressHandle {
        self.handles.push(number);
        AddressHandle {
            number,
            dont_fragment,
        }
    }

    /// Descriptors to send that are not done.
    pub fn sending(&self) -> usize {
        self.send.outstanding() as usize + self.send.waiting.len()
    }

    /// Descriptors to receive that are not done.
    pub fn receiving(&self) -> usize {
        self.receive.outstanding() as usize + self.receive.waiting.len()
    }

    /// Sends pieces of memory as one datagram. They belong to the card until the completion.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        to: (AddressHandle, u16),
        data: &[Segment],
        cookie: u32,
    ) -> Result<(), SendError<C::Error>> {
        self.queue(card, to, data, cookie)?;
        self.submit(card).map_err(SendError::Card)
    }

    /// Like [`send`](Self::send), but the card is not told before the next [`submit`](Self::submit),
    /// for datagrams one behind the other.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn queue<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        (to, port): (AddressHandle, u16),
        data: &[Segment],
        cookie: u32,
    ) -> Result<(), SendError<C::Error>> {
        let bytes: usize = data.iter().map(|one| one.bytes as usize).sum();
        if bytes > DATAGRAM_MAX as usize {
            return Err(SendError::TooLong(bytes));
        }
        let most = (self.config.mtu - PACKET_HEADERS) as usize;
        if to.dont_fragment && bytes > most {
            return Err(SendError::NeedsFragments { bytes, most });
        }
        let to = to_word(data.len() as u32, to.number, port);
        let mut words = vec![cookie, to, bytes as u32, 0];
        words.extend(segments(data)?);
        self.send.waiting.push_back(words);
        self.fill(card).map_err(SendError::Card)
    }

    /// Tells the card of what was posted.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn submit<C: Card<Memory = M>>(&mut self, card: &mut C) -> Result<(), C::Error> {
        if !self.rung {
            let word = self.send.posted << 16 | self.receive.posted & 0xFFFF;
            card.ring(self.doorbell, word)?;
            self.rung = true;
        }
        Ok(())
    }

    /// Sends a few bytes as a datagram. They may be used otherwise at once.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send_inline<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        (to, port): (AddressHandle, u16),
        data: &[u8],
        cookie: u32,
    ) -> Result<(), SendError<C::Error>> {
        if data.len() > INLINE_BYTES as usize {
            return Err(SendError::TooLongInline(data.len()));
        }
        let word = |bytes: &[u8]| {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_be_bytes(word)
        };
        let (first, others) = data.split_at(data.len().min(2));
        let length = word(first) | data.len() as u32;
        let mut words = vec![cookie, to_word(0, to.number, port), length, 0];
        words.extend(others.chunks(4).map(word));
        self.send.waiting.push_back(words);
        self.push(card).map_err(SendError::Card)
    }

    /// Lends memory for a datagram. It belongs to the card until the completion.
    ///
    /// # Errors
    /// [`SendError`]; nothing was posted.
    pub fn post<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        memory: &[Segment],
        cookie: u32,
    ) -> Result<(), SendError<C::Error>> {
        self.lend(card, memory, cookie)?;
        self.submit(card).map_err(SendError::Card)
    }

    /// Like [`post`](Self::post), but the card is not told before the next
    /// [`submit`](Self::submit): while it has others, a doorbell for some of them at a time is
    /// enough, and costs its CPU A less.
    ///
    /// # Errors
    /// [`SendError`]; nothing was lent.
    pub fn lend<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        memory: &[Segment],
        cookie: u32,
    ) -> Result<(), SendError<C::Error>> {
        let mut words = vec![cookie, to_word(memory.len() as u32, 0, 0), 0, 0];
        words.extend(segments(memory)?);
        if !memory.iter().all(Segment::is_writable) {
            return Err(SendError::ReadOnly);
        }
        self.receive.waiting.push_back(words);
        self.fill(card).map_err(SendError::Card)
    }

    /// The next completion, if there is one.
    ///
    /// # Errors
    /// If the card is gone. [`SendError::Pooled`], and nothing is lost, if it is for
    /// [`Pool::poll`](crate::Pool::poll).
    pub fn poll<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
    ) -> Result<Option<Completion>, SendError<C::Error>> {
        let Some(words) = self.next_entry() else {
            return Ok(None);
        };
        if kind_of(&words) == Kind::Pooled as u32 {
            return Err(SendError::Pooled);
        }
        self.complete(card, &words)
    }

    /// What a completion says.
    fn complete<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        words: &Entry,
    ) -> Result<Option<Completion>, SendError<C::Error>> {
        let word = |word: CompletionWord| words[word as usize / 4];
        let cookie = word(CompletionWord::Cookie);
        let kind = word(CompletionWord::KindAndStatus);
        let status = Status::from_number(kind & 0xFFFF).unwrap_or(Status::BadDescriptor);
        let sent = kind_of(words) == Kind::Sent as u32;
        let queue = if sent {
            &mut self.send
        } else {
            &mut self.receive
        };
        if queue.outstanding() == 0 {
            // The card completes what it was not given.
            self.lost = true;
            return Ok(None);
        }
        self.taken = self.taken.wrapping_add(1);
        queue.done = queue.done.wrapping_add(1);
        if !queue.waiting.is_empty() {
            self.push(card).map_err(SendError::Card)?;
        }
        let port = word(CompletionWord::PortAndVerdict);
        let address = Ipv4Addr::from(word(CompletionWord::Address));
        Ok(Some(if sent {
            Completion::Sent { cookie, status }
        } else {
            let datagram = Received {
                bytes: word(CompletionWord::Length),
                from: SocketAddrV4::new(address, (port >> 16) as u16),
                summed: port & 0xFF == Verdict::Right as u32,
            };
            Completion::Received {
                cookie,
                status,
                datagram,
            }
        }))
    }

    /// Whether the card has completed what it was not given: nothing that it says counts any more.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    fn next_entry(&self) -> Option<Entry> {
        if self.lost {
            return None;
        }
        let entries = 2 * self.config.descriptors;
        let at = (self.taken % entries * COMPLETION_BYTES) as usize;
        let mut number = [0];
        let last = at + CompletionWord::Number as usize;
        self.completions.read_words(last, &mut number).ok()?;
        if number[0] != self.taken.wrapping_add(1) {
            return None;
        }
        let mut words: Entry = Default::default();
        self.completions.read_words(at, &mut words).ok()?;
        Some(words)
    }

    /// Moves what waits into the queues, as far as there is room, and rings once.
    fn push<C: Card<Memory = M>>(&mut self, card: &mut C) -> Result<(), C::Error> {
        self.fill(card)?;
        self.submit(card)
    }

    /// Moves what waits into NIC memory, or, if its slots are in use, into the queue here, from
    /// where the card pulls it.
    fn fill<C: Card<Memory = M>>(&mut self, card: &mut C) -> Result<(), C::Error> {
        let (block, number, entries) = (self.block, self.number, self.config.descriptors);
        let most = self.config.pushed.min(SLOTS);
        let queues = [
            (&mut self.send, send_slot as fn(u32, u32) -> u32, 0),
            (&mut self.receive, receive_slot, entries),
        ];
        for (queue, slot, first) in queues {
            while queue.outstanding() < entries
                && let Some(mut words) = queue.waiting.pop_front()
            {
                words[DescriptorWord::Status as usize / 4] = posted(queue.posted);
                let all_pulled = queue.left.wrapping_sub(queue.done) as i32 <= 0;
                if queue.outstanding() < most && all_pulled {
                    card.write(block + slot(number, queue.posted), &words)?;
                } else {
                    let entry = first + queue.posted % entries;
                    let at = (entry * DESCRIPTOR_BYTES) as usize;
                    if self.queues.write_words(at, &words).is_err() {
                        // It was allocated for as many.
                        self.lost = true;
                    }
                    queue.left = queue.posted.wrapping_add(1);
                }
                queue.posted = queue.posted.wrapping_add(1);
                self.rung = false;
            }
        }
        Ok(())
    }
}
