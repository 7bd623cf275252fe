//! An application's end of its message rings.
//!
//! [`host_interface::spine::rings`] has the layout. All that an application shares with the card
//! is one piece of memory; its doorbell is rung by who drives the card. What stands in the
//! memory may be anything, so it is copied and judged before it is used.

use host_interface::spine::ARGUMENT_WORDS;
use host_interface::spine::rings::{
    BULK_MOST, CUT_MESSAGE, HEAD_BYTES, HeadWord, HeaderWord, MESSAGE_BYTES, SLOTS_LEAST,
    SLOTS_MOST, bulk, from_card,
};
use thiserror::Error;

/// Memory that the card, or another process, changes at any time.
pub trait Memory {
    /// What goes wrong with an access.
    type Error: std::error::Error;

    /// The word at an offset; later reads see all that was written before it.
    ///
    /// # Errors
    /// If there is none.
    fn read_word(&self, offset: usize) -> Result<u32, Self::Error>;

    /// Writes the word at an offset, behind all earlier writes.
    ///
    /// # Errors
    /// If there is none.
    fn write_word(&self, offset: usize, value: u32) -> Result<(), Self::Error>;

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// If it ends before.
    fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// How large an endpoint's rings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Slots of each ring: a power of two, 4 to 64.
    pub slots: u32,
    /// Bytes of bulk data.
    pub bulk: u32,
}

impl RingSizes {
    /// Whether the card takes them.
    pub fn are_possible(self) -> bool {
        let slots =
            self.slots.is_power_of_two() && (SLOTS_LEAST..=SLOTS_MOST).contains(&self.slots);
        slots && self.bulk <= 1 << 24 && self.bulk.is_multiple_of(8)
    }

    /// Bytes of the endpoint's memory.
    pub fn bytes(self) -> usize {
        (bulk(self.slots) + self.bulk) as usize
    }
}

/// A handler of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerOf {
    /// The domain's number.
    pub domain: u32,
    /// The handler's.
    pub handler: u8,
}

/// Why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotSent<E: std::error::Error> {
    /// The card has not fetched enough of those before it.
    #[error("the ring is full")]
    Full,
    /// It has more arguments, or more data, than a message has.
    #[error("a message has at most {ARGUMENT_WORDS} words and {BULK_MOST} bytes of data")]
    TooLong,
    /// The memory.
    #[error("the memory: {0}")]
    Memory(E),
}

/// A message of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Which one has sent it.
    pub from: HandlerOf,
    /// Its arguments.
    pub arguments: Vec<u32>,
    /// If the handler has not sent it, but was cut off with it: the number of who had sent it to the
    /// handler.
    pub cut_from: Option<u32>,
}

/// An endpoint, as its application has it.
#[derive(Debug)]
pub struct Endpoint<M> {
    memory: M,
    sizes: RingSizes,
    produced: u32,
    taken: u32,
}

impl<M: Memory> Endpoint<M> {
    /// On memory of [`RingSizes::bytes`] bytes, all 0. Nothing was sent yet.
    pub const fn new(memory: M, sizes: RingSizes) -> Endpoint<M> {
        Endpoint {
            memory,
            sizes,
            produced: 0,
            taken: 0,
        }
    }

    /// The memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Messages of handlers that were taken; wraps.
    pub const fn taken(&self) -> u32 {
        self.taken
    }

    /// How many messages the ring has room for.
    ///
    /// # Errors
    /// The memory's.
    pub fn room(&self) -> Result<u32, M::Error> {
        let fetched = self.memory.read_word(HeadWord::Fetched as usize)?;
        let waiting = self.produced.wrapping_sub(fetched);
        Ok(self.sizes.slots.saturating_sub(waiting))
    }

    /// Puts a message for a handler into the ring; it is fetched when the doorbell is rung.
    ///
    /// # Errors
    /// [`NotSent`].
    pub fn put(&mut self, to: HandlerOf, arguments: &[u32]) -> Result<(), NotSent<M::Error>> {
        self.put_shaped(to, arguments, 0, 0)
    }

    /// The same with data, which lie in the bulk part of the memory from `offset` on, a multiple
    /// of 8, and must stay there until the handler has run.
    ///
    /// # Errors
    /// [`NotSent`].
    pub fn put_bulk(
        &mut self,
        to: HandlerOf,
        arguments: &[u32],
        offset: u32,
        data: &[u8],
    ) -> Result<(), NotSent<M::Error>> {
        let fits = offset <= self.sizes.bulk && data.len() <= (self.sizes.bulk - offset) as usize;
        if !fits || data.len() > BULK_MOST as usize || !offset.is_multiple_of(8) {
            return Err(NotSent::TooLong);
        }
        let at = bulk(self.sizes.slots) + offset;
        let written = self.memory.write_bytes(at as usize, data);
        written.map_err(NotSent::Memory)?;
        self.put_shaped(to, arguments, offset, data.len() as u32)
    }

    fn put_shaped(
        &mut self,
        to: HandlerOf,
        arguments: &[u32],
        offset: u32,
        bytes: u32,
    ) -> Result<(), NotSent<M::Error>> {
        if arguments.len() > ARGUMENT_WORDS as usize {
            return Err(NotSent::TooLong);
        }
        if self.room().map_err(NotSent::Memory)? == 0 {
            return Err(NotSent::Full);
        }
        let slot = self.slot(HEAD_BYTES, self.produced);
        let serial = self.produced.wrapping_add(1);
        let shape = (arguments.len() as u32) << 16 | to.domain << 8 | u32::from(to.handler);
        let header = [
            (HeaderWord::Shape, shape),
            (HeaderWord::BulkOffset, offset),
            (HeaderWord::BulkBytes, bytes),
            (HeaderWord::Serial, serial),
        ];
        let places = (0..).step_by(4).zip(arguments.iter().copied());
        let header = header.map(|(word, value)| (word as usize, value));
        for (place, value) in places.chain(header) {
            let written = self.memory.write_word(slot + place, value);
            written.map_err(NotSent::Memory)?;
        }
        self.produced = serial;
        let told = self.memory.write_word(HeadWord::Produced as usize, serial);
        told.map_err(NotSent::Memory)
    }

    /// The next message of a handler, if it is there.
    ///
    /// # Errors
    /// The memory's.
    pub fn take(&mut self) -> Result<Option<Received>, M::Error> {
        let slot = self.slot(from_card(self.sizes.slots), self.taken);
        let of = |word: HeaderWord| self.memory.read_word(slot + word as usize);
        let serial = self.taken.wrapping_add(1);
        if of(HeaderWord::Serial)? != serial {
            return Ok(None);
        }
        let shape = of(HeaderWord::Shape)?;
        let count = (shape >> 16).min(ARGUMENT_WORDS) as usize;
        let words = (0..count).map(|word| self.memory.read_word(slot + 4 * word));
        let arguments = words.collect::<Result<_, _>>()?;
        let offset = of(HeaderWord::BulkOffset)?;
        let is_cut = offset & CUT_MESSAGE != 0;
        self.taken = serial;
        self.memory.write_word(HeadWord::Taken as usize, serial)?;
        Ok(Some(Received {
            from: HandlerOf {
                domain: shape >> 8 & 0xFF,
                handler: (shape & 0xFF) as u8,
            },
            arguments,
            cut_from: is_cut.then_some(offset & !CUT_MESSAGE),
        }))
    }

    fn slot(&self, ring: u32, number: u32) -> usize {
        (ring + (number & (self.sizes.slots - 1)) * MESSAGE_BYTES) as usize
    }
}

/// The halfword of a doorbell, from what stands in an endpoint's head.
///
/// # Errors
/// The memory's.
pub fn doorbell<M: Memory>(memory: &M) -> Result<u16, M::Error> {
    let produced = memory.read_word(HeadWord::Produced as usize)?;
    let taken = memory.read_word(HeadWord::Taken as usize)?;
    Ok(((taken & 0xFF) << 8 | produced & 0xFF) as u16)
}
