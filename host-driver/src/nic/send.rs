//! The send ring.
//!
//! The ring of send BDs is in control memory or on the card, and each BD has its own slot in send
//! memory: BD n points into slot n, so a slot is free exactly when its BD is. A frame takes one BD
//! for each fragment, with `END` on the last. A BD may also point into memory that the caller has
//! registered ([`InPlace`]); the caller does not change it until the BD is back, and the slot stays
//! unused.
//!
//! ```text
//!   reclaimed        consumer (the card's)       producer
//!   |... free ...|...... with the card ............|... free ...|
//! ```

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use host_interface::bd::{BdFlags, SendBd};
use host_interface::ring;

use super::error::NicError;
use super::plan::SendPlan;
use super::region::{Slots, Table};
use super::sizes::MIN_FRAME;
use crate::dma::{DmaError, DmaMemory};

/// Most fragments of a frame, as many as kernel drivers use.
pub const MAX_FRAGMENTS: usize = 18;

/// Offloads for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendOptions {
    /// Insert this VLAN tag.
    pub vlan: Option<u16>,
    /// Compute the TCP or UDP checksum. If the ring leaves the pseudo-header to the host
    /// ([`super::ChecksumOffload::no_pseudo_header`]), the frame's checksum field must hold its sum
    /// ([`crate::checksum::prepare`] fills it in).
    pub transport_checksum: bool,
    /// Compute the IPv4 header checksum.
    pub ip_checksum: bool,
    /// Report the frame to the host at once, without coalescing.
    pub coalesce_now: bool,
}

impl SendOptions {
    fn flags(self) -> BdFlags {
        BdFlags::new()
            .with_vlan_tag(self.vlan.is_some())
            .with_transport_checksum(self.transport_checksum)
            .with_ip_checksum(self.ip_checksum)
    }
}

/// A part of a frame that the card reads where it is.
#[derive(Debug, Clone, Copy)]
pub struct InPlace<'a> {
    /// Memory that the card knows ([`crate::Transport::map`]).
    pub memory: &'a DmaMemory,
    /// Its first byte.
    pub offset: usize,
    /// Bytes, at least one.
    pub bytes: usize,
}

/// The memory of a send queue.
pub(super) struct SendMemory {
    pub consumer: Table<2>,
    /// None if the ring is on the card.
    pub bds: Option<Table<4>>,
    pub slots: Slots,
}

/// The ring of a send queue, and its memory.
pub(super) struct SendRing {
    memory: SendMemory,
    entries: u32,
    /// The index of the next BD.
    producer: u32,
    /// The last producer reported to the card.
    rung: u32,
    /// The card has reported BDs before this index as sent.
    consumer: u32,
    /// BDs that have come back.
    returned: u64,
    /// Longest frame.
    largest: usize,
    /// BDs from `rung` on that are not yet in a ring on the card.
    waiting: Vec<u32>,
    /// When the card last made progress, or got work while it had none.
    progress: Instant,
}

impl SendRing {
    /// An empty ring for frames up to `largest` bytes.
    pub fn new(plan: &SendPlan, memory: SendMemory, largest: usize) -> Self {
        Self {
            entries: plan.entries,
            producer: 0,
            rung: 0,
            consumer: 0,
            returned: 0,
            largest: largest.min(plan.slot),
            waiting: Vec::new(),
            progress: Instant::now(),
            memory,
        }
    }

    /// The card restarts: its ring is empty.
    pub fn restart(&mut self) -> Result<(), DmaError> {
        self.returned = self.queued();
        (self.producer, self.rung, self.consumer) = (0, 0, 0);
        self.waiting.clear();
        self.start_clock();
        if let Some(bds) = &self.memory.bds {
            bds.clear()?;
        }
        self.memory.consumer.clear()
    }

    /// Sets the longest frame.
    pub fn set_largest(&mut self, largest: usize) {
        self.largest = largest.min(self.memory.slots.slot_bytes());
    }

    /// Whether the ring is on the card.
    pub fn is_on_card(&self) -> bool {
        self.memory.bds.is_none()
    }

    /// Address of the ring: in host memory, or on the card.
    pub fn address(&self) -> Result<u64, DmaError> {
        match &self.memory.bds {
            Some(bds) => bds.address(),
            None => Ok(self.card_address().into()),
        }
    }

    /// Writes the address of its slot into each BD, for a device that writes the rest. Memory and
    /// offset of the BDs and of the slots; `None` if the ring is on the card.
    pub fn lend(&self) -> Result<Option<[(&DmaMemory, usize); 2]>, DmaError> {
        let Some(bds) = &self.memory.bds else {
            return Ok(None);
        };
        let slots = &self.memory.slots;
        for index in 0..self.entries {
            let offset = slots.offset(index as usize);
            let address = slots.memory().address(offset, slots.slot_bytes())?;
            bds.write(index, &SendBd::new(address, 0, BdFlags::new(), 0).words())?;
        }
        Ok(Some([bds.place(), (slots.memory(), slots.offset(0))]))
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        self.memory.slots.slot_bytes()
    }

    /// The card's address of the consumer index.
    pub fn consumer_address(&self) -> Result<u64, DmaError> {
        self.memory.consumer.address()
    }

    /// The ring's entries.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    fn card_address(&self) -> u32 {
        // Every size of `SendRingSize` has an address.
        ring::nic_send_ring(self.entries).unwrap_or(0x3800)
    }

    /// The consumer index in host memory, as the card has last written it.
    pub fn reported(&self) -> Result<u32, DmaError> {
        self.memory.consumer.first_word(0)
    }

    /// Whether the card has written another consumer index to host memory.
    pub fn has_news(&self) -> Result<bool, DmaError> {
        Ok(self.reported()? != self.consumer)
    }

    /// How long the card has made no progress while it had work.
    pub fn waiting_for(&self) -> Duration {
        if self.outstanding() == 0 {
            return Duration::ZERO;
        }
        self.progress.elapsed()
    }

    /// Restarts the clock: the card could not make progress until now.
    pub fn excuse(&mut self) {
        self.progress = Instant::now();
    }

    /// The words to write to a ring on the card before its doorbell: at most two runs, each with
    /// its NIC address.
    pub fn take_waiting(&mut self) -> Vec<(u32, Vec<u32>)> {
        let ring = self.card_address();
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let mut first = std::mem::take(&mut self.waiting);
        let to_end = (self.entries - self.rung) as usize * 4;
        let rest = if first.len() > to_end {
            first.split_off(to_end)
        } else {
            Vec::new()
        };
        let runs = [(ring + 16 * self.rung, first), (ring, rest)];
        runs.into_iter()
            .filter(|(_, words)| !words.is_empty())
            .collect()
    }

    /// BDs that the card has.
    pub fn outstanding(&self) -> u32 {
        ring::used(self.producer, self.consumer, self.entries)
    }

    /// BDs that can be queued now.
    pub fn free(&self) -> u32 {
        ring::free(self.producer, self.consumer, self.entries)
    }

    /// The producer index for the doorbell, if the card does not know it yet.
    pub fn ring_due(&mut self) -> Option<u32> {
        (self.rung != self.producer).then(|| {
            self.rung = self.producer;
            self.producer
        })
    }

    /// Takes a consumer index from the card: it must lie between the last one and the producer that
    /// the card knows.
    pub fn reclaim(&mut self, reported: u32) -> Result<u32, NicError> {
        let outstanding = ring::used(self.rung, self.consumer, self.entries);
        let advanced = ring::used(reported, self.consumer, self.entries);
        if reported >= self.entries || advanced > outstanding {
            return Err(NicError::BadIndex {
                what: "send consumer index",
                value: reported,
                allowed: format!("from {} to {}", self.consumer, self.rung),
            });
        }
        if advanced > 0 {
            self.consumer = reported;
            self.returned += u64::from(advanced);
            self.progress = Instant::now();
        }
        Ok(advanced)
    }

    fn check(&self, bytes: usize, fragments: usize) -> Result<(), NicError> {
        let bad = |limit| NicError::BadFrame {
            bytes,
            fragments,
            limit,
        };
        if bytes < MIN_FRAME {
            return Err(bad("a frame has at least 14 bytes"));
        }
        if bytes > self.largest {
            return Err(bad("longer than the MTU allows"));
        }
        if fragments > MAX_FRAGMENTS {
            return Err(bad("at most 18 fragments"));
        }
        Ok(())
    }

    /// Queues a frame, with a BD for each fragment that is not empty. False if the ring has no
    /// room.
    pub fn queue(
        &mut self,
        fragments: &[IoSlice<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        let bytes = fragments.iter().map(|fragment| fragment.len()).sum();
        let count = fragments
            .iter()
            .filter(|fragment| !fragment.is_empty())
            .count();
        self.check(bytes, count)?;
        if (self.free() as usize) < count {
            return Ok(false);
        }
        self.start_clock();
        let mut left = count;
        for fragment in fragments.iter().filter(|fragment| !fragment.is_empty()) {
            left -= 1;
            let slot = self.slot();
            self.memory().write_bytes(slot, fragment)?;
            self.push(fragment.len(), left == 0, options)?;
        }
        Ok(true)
    }

    /// Queues a frame whose header is copied and whose rest the card reads where it is. False if
    /// the ring has no room.
    pub fn queue_in_place(
        &mut self,
        header: &[u8],
        rest: &[InPlace<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        let bytes: usize = rest.iter().map(|part| part.bytes).sum();
        self.check(header.len() + bytes, 1 + rest.len())?;
        if (self.free() as usize) < 1 + rest.len() {
            return Ok(false);
        }
        // Before the first BD: a range that cannot be leaves no part of a frame in the ring.
        let places: Vec<_> = rest
            .iter()
            .map(|part| Ok((part.memory.address(part.offset, part.bytes)?, part.bytes)))
            .collect::<Result<_, DmaError>>()?;
        self.start_clock();
        self.memory().write_bytes(self.slot(), header)?;
        self.push(header.len(), places.is_empty(), options)?;
        let mut left = places.len();
        for (address, bytes) in places {
            left -= 1;
            self.push_at(address, bytes, left == 0, options)?;
        }
        Ok(true)
    }

    /// BDs queued since the ring is there, and those of them that are not back, as a mark: what
    /// was queued until now is back when [`SendRing::returned`] has reached it.
    pub fn queued(&self) -> u64 {
        self.returned + u64::from(self.outstanding())
    }

    /// BDs that have come back since the ring is there. A card that restarts has forgotten all.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Queues a frame that `fill` writes straight into the next slot. None if the ring has no room;
    /// `fill` is not called then. Some(0) if `fill` had no frame.
    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<(usize, SendOptions)>,
    ) -> Result<Option<usize>, NicError> {
        if self.free() == 0 {
            return Ok(None);
        }
        let (bytes, options) = fill(self.memory(), self.slot(), self.memory.slots.slot_bytes())?;
        if bytes > 0 {
            self.check(bytes, 1)?;
            self.start_clock();
            self.push(bytes, true, options)?;
        }
        Ok(Some(bytes))
    }

    fn slot(&self) -> usize {
        self.memory.slots.offset(self.producer as usize)
    }

    /// The memory of frames to send.
    pub fn memory(&self) -> &DmaMemory {
        self.memory.slots.memory()
    }

    /// Restarts the clock if the card is idle.
    fn start_clock(&mut self) {
        if self.outstanding() == 0 {
            self.progress = Instant::now();
        }
    }

    /// Queues what stands in the next slot.
    fn push(&mut self, bytes: usize, end: bool, options: SendOptions) -> Result<(), NicError> {
        let address = self.memory().address(self.slot(), bytes)?;
        self.push_at(address, bytes, end, options)
    }

    fn push_at(
        &mut self,
        address: u64,
        bytes: usize,
        end: bool,
        options: SendOptions,
    ) -> Result<(), NicError> {
        // Near the end of the ring the driver requests a report of every frame.
        let close = self.free() < self.entries / 8;
        let flags = options
            .flags()
            .with_end(end)
            .with_coalesce_now(end && (close || options.coalesce_now));
        let vlan = options.vlan.unwrap_or(0);
        // Checked against the longest frame before.
        let bd = SendBd::new(address, bytes as u16, flags, vlan);
        match &self.memory.bds {
            Some(bds) => bds.write(self.producer, &bd.words())?,
            None => self.waiting.extend(bd.words()),
        }
        self.producer = ring::advance(self.producer, 1, self.entries);
        Ok(())
    }
}
