//! The words that go round with a turn, and what is told of finished runs.

use crate::record::drops::Drops;
use host_interface::extension::{DROP_COUNT, DROPS, DropReason};
use tigon2_hal::Bus;
use tigon2_hal::assist::Descriptor;
use tigon2_hal::requests::Words;

/// Descriptors of a DMA ring.
pub const ENTRIES: u32 = 64;
/// Of these, those that may be in use.
const USABLE: u32 = ENTRIES - 2;

/// What CPU A tells the workers, each in a word of its own.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Setting {
    /// How many CPUs take part.
    Cpus,
    /// Base K of the descriptor and buffer block.
    Block,
    /// State word of a received frame's transfer.
    WriteData,
    /// State word of return BDs.
    WriteWords,
    /// State word of a fragment of a frame that is sent.
    ReadData,
    /// State word of the last one.
    ReadLast,
    /// NIC address of the send BDs.
    SendBds,
    /// Entries of the send ring minus one.
    SendMask,
    /// Entries of the return ring minus one.
    ReturnMask,
    /// The host's return ring.
    ReturnHigh,
    /// Its low word.
    ReturnLow,
    /// Bytes of a frame that are not handed on.
    Cut,
    /// Shortest length for the standard ring, ...
    Window,
    /// ... and how many lengths are for it.
    WindowBytes,
    /// How many lengths, from a header on, are for the mini ring.
    MiniBytes,
    /// Entries of the standard ring minus one.
    StandardMask,
    /// Entries of the mini ring minus one.
    MiniMask,
}

impl Setting {
    /// Where it is.
    #[inline(always)]
    pub const fn address(self) -> u32 {
        super::SETTINGS + ((self as u32) << 2)
    }

    /// Its value.
    #[inline(always)]
    pub fn get<B: Bus>(self, bus: &mut B) -> u32 {
        bus.load(self.address())
    }
}

/// What whose commit it is tells CPU A or CPU B.
#[derive(Clone, Copy, Debug)]
pub struct Published(u32);

impl Published {
    /// Of received frames: the return producer, the next standard and mini BD.
    pub const WRITE: Published = Published(Words::WRITE.state() + 0x20);
    /// Of sent frames.
    pub const READ: Published = Published(Words::READ.state() + 0x20);

    /// The first index.
    pub const fn first(self) -> u32 {
        self.0
    }
    /// The second one.
    pub const fn second(self) -> u32 {
        self.0 + 4
    }
    /// The third one.
    pub const fn third(self) -> u32 {
        self.0 + 8
    }
    /// Frames so far.
    pub const fn frames(self) -> u32 {
        self.0 + 12
    }
    /// Bytes of these.
    pub const fn amount(self) -> u32 {
        self.0 + 16
    }

    /// Frames that were dropped so far, for all reasons, and for each.
    const fn drops(self) -> u32 {
        self.0 + 20
    }

    const fn drops_for(self, reason: DropReason) -> u32 {
        self.drops() + 4 + ((reason as u32) << 2)
    }

    /// Counts more. For whose commit it is.
    #[inline(always)]
    pub fn count<B: Bus>(self, bus: &mut B, frames: u32, octets: u32) {
        add(bus, self.frames(), frames);
        add(bus, self.amount(), octets);
    }

    /// Counts a frame that is dropped. For who has the turn.
    #[cold]
    #[inline(never)]
    pub fn dropped<B: Bus>(self, bus: &mut B, reason: DropReason) {
        add(bus, self.drops_for(reason), 1);
        add(bus, self.drops(), 1);
    }

    /// Frames and bytes since the last look.
    #[inline(always)]
    pub fn since<B: Bus>(self, bus: &mut B, seen: &mut Seen) -> (u32, u32) {
        let frames = bus.load(self.frames());
        let octets = bus.load(self.amount());
        let more = frames.wrapping_sub(seen.frames);
        let bytes = octets.wrapping_sub(seen.octets);
        (seen.frames, seen.octets) = (frames, octets);
        (more, bytes)
    }

    /// Adds the frames that were dropped since the last look. Returns whether there are any.
    #[inline(always)]
    pub fn drops_since<B: Bus>(self, bus: &mut B, seen: &mut Seen, drops: &mut Drops) -> bool {
        let all = bus.load(self.drops());
        let some = all != seen.dropped;
        if some {
            seen.dropped = all;
            self.add_drops(bus, seen, drops);
        }
        some
    }

    #[cold]
    #[inline(never)]
    fn add_drops<B: Bus>(self, bus: &mut B, seen: &mut Seen, drops: &mut Drops) {
        for (reason, before) in DROPS.iter().zip(&mut seen.drops) {
            let now = bus.load(self.drops_for(*reason));
            drops.add(*reason, now.wrapping_sub(*before));
            *before = now;
        }
    }
}

#[inline(always)]
fn add<B: Bus>(bus: &mut B, address: u32, more: u32) {
    let before = bus.load(address);
    bus.store(address, before.wrapping_add(more));
}

/// What CPU A or CPU B has seen of what is [`Published`].
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    frames: u32,
    octets: u32,
    dropped: u32,
    drops: [u32; DROP_COUNT],
}

impl Seen {
    /// Nothing.
    pub const NOTHING: Seen = Seen {
        frames: 0,
        octets: 0,
        dropped: 0,
        drops: [0; DROP_COUNT],
    };
}

/// A worker's part in a direction.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// The words.
    words: Words,
    /// The channel's descriptor ring.
    pub ring: u32,
    /// This CPU.
    pub number: u32,
    /// Whose turn is next.
    behind: u32,
    /// Whether the turn is here.
    pub mine: bool,
    /// Four indices that go round.
    pub at: [u32; 4],
    /// Descriptors of the ring that are given away, from the start on.
    pub count: u32,
}

impl Lane {
    /// Nothing.
    pub const fn new(words: Words) -> Lane {
        Lane {
            words,
            ring: 0,
            number: 0,
            behind: 0,
            mine: false,
            at: [0; 4],
            count: 0,
        }
    }

    /// Takes part in a circle.
    pub fn join(&mut self, number: u32, cpus: u32, ring: u32) {
        self.number = number;
        self.behind = super::Circle::behind(number, cpus);
        self.ring = ring;
    }

    /// Whether the turn is here; what came with it is loaded.
    #[inline(always)]
    pub fn take<B: Bus>(&mut self, bus: &mut B) -> bool {
        if !self.mine && bus.load(self.words.turn()) == self.number {
            self.mine = true;
            let state = self.words.state();
            self.at = [
                bus.load(state),
                bus.load(state + 4),
                bus.load(state + 8),
                bus.load(state + 12),
            ];
            self.count = bus.load(state + 16);
        }
        self.mine
    }

    /// Whether another CPU could have the turn.
    #[inline(always)]
    pub fn has_others(&self) -> bool {
        self.behind != self.number
    }

    /// Passes the turn on.
    #[inline(always)]
    pub fn pass<B: Bus>(&mut self, bus: &mut B) {
        self.mine = false;
        let [a, b, c, d] = self.at;
        let state = self.words.state();
        bus.store(state, a);
        bus.store(state + 4, b);
        bus.store(state + 8, c);
        bus.store(state + 12, d);
        bus.store(state + 16, self.count);
        bus.store(self.words.turn(), self.behind);
        self.words.wake(bus);
    }

    /// Descriptors that are free, where the channel is at `consumer`.
    #[inline(always)]
    pub fn room(&self, consumer: u32) -> u32 {
        let used = self.count.wrapping_sub(consumer >> 5) & (ENTRIES - 1);
        USABLE.saturating_sub(used)
    }

    /// A descriptor, counted from the start on.
    #[inline(always)]
    pub const fn descriptor(ring: u32, count: u32) -> Descriptor {
        Descriptor::at(ring + ((count & (ENTRIES - 1)) << 5))
    }

    /// Whether CPU A or CPU B asked for something.
    #[inline(always)]
    pub fn is_asked<B: Bus>(&self, bus: &mut B) -> bool {
        bus.load(self.words.taken()) != bus.load(self.words.produced())
    }

    /// Copies what CPU A or CPU B asked for. Returns whether there is more of it than room.
    #[inline(always)]
    pub fn take_requests<B: Bus>(&mut self, bus: &mut B, room: &mut u32) -> bool {
        let words = self.words;
        let mut at = bus.load(words.taken());
        let produced = bus.load(words.produced());
        if at == produced {
            return false;
        }
        while at != produced && *room != 0 {
            Self::descriptor(self.ring, self.count).copy(bus, words.ring() + at);
            bus.store(words.placed(at), self.count);
            self.count = self.count.wrapping_add(1);
            *room -= 1;
            at = (at + 32) & (32 * ENTRIES - 1);
        }
        bus.store(words.taken(), at);
        at != produced
    }

    /// Waits until all in front of descriptor `first` are committed.
    #[inline(always)]
    pub fn await_commit<B: Bus>(&self, bus: &mut B, first: u32) {
        while bus.load(self.words.committed()) != first {}
    }

    /// All in front of descriptor `end` are committed.
    #[inline(always)]
    pub fn committed<B: Bus>(&self, bus: &mut B, end: u32) {
        bus.store(self.words.committed(), end);
    }
}
