//! What the rows of SDMA and SEND do on the card.

use super::frame::{AHEAD, Frames, LAST, SUMMED, WANTS_SUM, WHOLE};
use super::job::Job;
use super::rows::Rows;
use super::watch::Watch;
use super::{bump, word};
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::memory::layout::EUDP_UNWANTED;
use crate::path::send::SendPath;
use frame_pipeline::{World, sdma, send};
use host_interface::eudp::{BlockWord, Status};
use tigon2_chip::Cpu;
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// What both machines work on.
#[derive(Debug)]
pub struct Work {
    /// The descriptor from which the next frame comes.
    pub job: Job,
    /// The rows that the last one named.
    pub rows: Rows,
    /// The frame in SDMA, and the next one.
    pub frames: Frames,
    /// Whether the next one is prepared.
    pub is_prepared: bool,
    /// Whether the frame in SDMA is fetched in parts.
    pub is_cut: bool,
    /// Whether the bus takes about as long for a frame as the wire, or longer: then the data of the
    /// next frame is asked for when that is prepared.
    pub is_bus_slow: bool,
    /// The watch over the frame that leaves.
    pub watch: Watch,
    /// Frames that the MAC has and that were not seen to leave.
    pub pending: u32,
    /// The counter when the channel was looked at.
    pub now: u32,
    /// The read channel's sum of the part that has arrived.
    pub sum: u32,
    /// The sum of the same datagram's frames before: of up to 116, so it need not be folded.
    before: u32,
    /// NIC address of the descriptor of a transfer that failed.
    pub failed: u32,
    /// What the frame's end means for its descriptor, if it was not offered as a whole.
    ended: Option<Status>,
    /// The doorbell has rung while a frame was watched.
    pub called: bool,
}

impl Work {
    /// None.
    pub const NONE: Work = Work {
        job: Job::NONE,
        rows: Rows::NONE,
        frames: Frames::NONE,
        is_prepared: false,
        is_cut: false,
        is_bus_slow: false,
        watch: Watch::NONE,
        pending: 0,
        now: 0,
        sum: 0,
        before: 0,
        failed: 0,
        ended: None,
        called: false,
    };

    /// What the end of the frame in SDMA means for its descriptor, if SDMA is done with it: it has just
    /// `offered` the frame as a whole, or has not.
    #[inline(always)]
    pub fn take_ended(&mut self, offered: bool) -> Option<Status> {
        if !offered {
            let status = self.ended.take()?;
            return Some(self.settle(status));
        }
        // Most frames are their descriptor's only one, and were fetched at once, or have no sum.
        if self.frames.now().flags & (WHOLE | SUMMED) == SUMMED {
            self.add_sum();
        }
        Some(Status::Done)
    }

    /// The same of one that was not offered as a whole.
    #[inline(never)]
    fn settle(&mut self, mut status: Status) -> Status {
        let frame = self.frames.now();
        if frame.is_given_up() {
            status = Status::Unreadable;
            frame.failures = 0;
        }
        if frame.has(SUMMED) {
            self.add_sum();
        }
        let frame = self.frames.now();
        if status != Status::Done && !frame.has(LAST) {
            frame.flags |= LAST;
            self.give_up();
        }
        status
    }

    /// The sum of the frame in SDMA is part of its datagram's. That with the UDP header is the last one.
    #[inline(always)]
    fn add_sum(&mut self) {
        self.before = if self.frames.now().has(WANTS_SUM) {
            0
        } else {
            self.before + self.sum
        };
    }

    /// Stores the checksum of the datagram in SDMA.
    #[inline(always)]
    fn store_sum<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        let data = self.before + self.sum;
        self.frames.now().put_sum(data, &mut io.bus);
    }

    /// Whether the frame behind that in SDMA is on its way already.
    pub const fn is_fetched_ahead(&mut self) -> bool {
        self.is_prepared && self.frames.next().has(AHEAD)
    }

    /// Whether the frame in SDMA may leave before it is whole: one that may be cut through, while the
    /// MAC has nothing to send.
    #[inline(always)]
    pub fn may_cut<B: Dispatch>(&mut self, send: &SendPath, io: &mut IoB<B>) -> bool {
        self.frames.now().may_be_cut() && self.pending == 0 && send.mac_is_idle(&mut io.bus)
    }

    /// The MAC gets the frame in SDMA before it is whole, and it is watched.
    #[inline(always)]
    pub fn queue_early<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let now = timer::now(&mut io.bus);
        let Work {
            frames,
            watch,
            pending,
            ..
        } = self;
        let frame = frames.now();
        *pending += 1;
        send.hand_over(io, frame.start, frame.length, frame.tag);
        watch.begin(now, frame.length);
        // It takes some 10 us: a part that came in time would be seen late. The next frame is watched
        // when this one has left.
        io.put_off_housekeeping(watch.ends_by());
        bump(&mut io.bus, word(BlockWord::CutThrough));
    }

    #[inline(always)]
    fn watch_no_more<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        self.watch.end();
        io.disarm(SlotB::Part);
        if self.called {
            self.called = false;
            io.bus.ring(Cpu::B);
        }
    }

    /// Cuts the frame off that leaves.
    #[inline(never)]
    pub fn cut_off<B: Dispatch>(&mut self, stop: bool, send: &mut SendPath, io: &mut IoB<B>) {
        send.reset(&mut io.bus, stop);
        self.watch_no_more(io);
        bump(&mut io.bus, word(BlockWord::Aborted));
    }

    /// SDMA is done with the frame, whose parts are all there.
    #[inline(always)]
    pub const fn end(&mut self) {
        self.ended = Some(Status::Done);
    }

    /// No further frames of the datagram in SDMA are sent.
    #[inline(never)]
    fn give_up(&mut self) {
        // Another one comes only behind this one's last.
        self.job.is_left = false;
        self.is_prepared = false;
        self.before = 0;
    }

    /// An endpoint is gone, and none of its frames is in SDMA.
    pub fn forget(&mut self, endpoint: u32) {
        if self.is_prepared && self.frames.next().endpoint == endpoint {
            self.is_prepared = false;
            self.job.is_left = false;
        }
        if self.job.endpoint == endpoint {
            self.job.is_left = false;
        }
        self.before = 0;
    }
}

/// The card, for a handler's time.
#[derive(Debug)]
pub struct Card<'a, B: Dispatch> {
    /// What the machines work on.
    pub work: &'a mut Work,
    /// The path that is lent.
    pub send: &'a mut SendPath,
    /// CPU B's resources.
    pub io: &'a mut IoB<B>,
    /// For SDMA: whether it is known that the frame leaves when it is whole.
    pub whole: bool,
    /// For SEND: whether SDMA has the next frame already.
    pub begun: bool,
    /// What SDMA tells SEND.
    pub signal: Option<send::Event>,
}

impl<B: Dispatch> Card<'_, B> {
    /// Tries a transfer again. The wire stands meanwhile, so a frame whose memory has gone must
    /// come to an end: nobody is addressed by it any more. So does one with a sum, which would lack what
    /// is fetched again.
    #[inline(never)]
    fn fetch_again(&mut self) {
        let bus = &mut self.io.bus;
        let Work { frames, failed, .. } = self.work;
        let frame = frames.now();
        frame.failures += 1;
        if frame.has(SUMMED) {
            frame.give_up();
        }
        if frame.is_given_up() {
            // No address, no type: a frame that no receiver takes.
            for at in (frame.start..frame.start + 16).step_by(4) {
                bus.store(at, 0);
            }
            return;
        }
        let at = DmaDescriptorAt(*failed);
        let host = bus.load_host_address(at.host());
        let (local, length) = (bus.load(at.local()), bus.load(at.length()) & 0xFFFF);
        let state = self.io.states.data;
        let was_last = ReadNote::of_word(self.io.read_ring.note(*failed)).is_part();
        let transfer = Transfer {
            host,
            local,
            length,
            state,
            note: ReadNote::PART.word(),
        };
        self.io.read_ring.put(&mut self.io.bus, &transfer);
        if !was_last {
            frame.missing += 1;
        }
    }

    /// Takes the frame's transfers back, and that of the one behind it: none of them means anything
    /// any more. The channel stands at the first one, and still has the others to do: if the memory
    /// comes back meanwhile, they must not write over the headers of the frames that follow.
    #[inline(never)]
    fn fail(&mut self) {
        let mut next = self.io.read_ring.oldest();
        while let Some(descriptor) = next {
            let note = ReadNote::of_word(self.io.read_ring.note(descriptor));
            if note.is_of_part() {
                let nothing = ReadNote::NOTHING.word();
                self.io.read_ring.set_note(descriptor, nothing);
                if descriptor != self.work.failed {
                    let at = DmaDescriptorAt(descriptor);
                    self.io.bus.store(at.local(), EUDP_UNWANTED);
                    self.io.bus.store(at.length(), 4);
                }
            }
            next = self.io.read_ring.behind(descriptor);
        }
        let frames = &mut self.work.frames;
        frames.now().missing = 0;
        frames.next().leave_ahead();
        self.work.ended = Some(Status::Unreadable);
    }
}

impl<B: Dispatch> World<sdma::Sdma> for Card<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: sdma::Condition) -> bool {
        let frame = self.work.frames.now();
        match condition {
            sdma::Condition::MayCut => !self.whole && self.work.may_cut(self.send, self.io),
            sdma::Condition::SumWanted => frame.has(WANTS_SUM),
            sdma::Condition::MoreParts => frame.missing != 0,
        }
    }

    #[inline(always)]
    fn act(&mut self, action: sdma::Action) {
        match action {
            // Its queue is emptied by who gives it back.
            sdma::Action::Nothing | sdma::Action::Close => {}
            // A part of a frame that leaves early: who asks does that.
            sdma::Action::OfferEarly | sdma::Action::Pass | sdma::Action::PassLast => {}
            sdma::Action::FetchWhole => {
                if !self.whole {
                    self.work.frames.now().keep_whole();
                }
                self.fetch();
            }
            sdma::Action::FetchParts => self.fetch(),
            sdma::Action::Offer => self.signal = Some(send::Event::OfferedWhole),
            sdma::Action::FetchAgain => {
                self.fetch_again();
                self.signal = Some(send::Event::PartFailed);
            }
            sdma::Action::StoreSum => self.work.store_sum(self.io),
            sdma::Action::Fail => self.fail(),
        }
    }
}

impl<B: Dispatch> Card<'_, B> {
    #[inline(always)]
    fn fetch(&mut self) {
        if !self.whole {
            return self.fetch_slowly();
        }
        let Work { job, frames, .. } = self.work;
        frames.now().fetch(job, self.send, self.io);
    }

    /// The same in SRAM, of a frame that may be cut through.
    #[inline(never)]
    fn fetch_slowly(&mut self) {
        let Work { job, frames, .. } = self.work;
        frames.now().fetch(job, self.send, self.io);
    }
}

impl<B: Dispatch> World<send::Send> for Card<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: send::Condition) -> bool {
        match condition {
            send::Condition::InTime => self.work.watch.is_in_time(self.work.now),
            send::Condition::MacHasMore => self.work.pending != 0,
        }
    }

    #[inline(always)]
    fn act(&mut self, action: send::Action) {
        match action {
            // A first part: who asks does that.
            send::Action::Nothing | send::Action::Free | send::Action::QueueEarly => {}
            send::Action::Queue => self.queue(),
            // Deadlines are set when all parts have been seen to that a look at the channel showed.
            send::Action::Certify => {}
            send::Action::CertifyLast => self.work.watch_no_more(self.io),
            send::Action::Abort => self.work.cut_off(true, self.send, self.io),
            send::Action::Repeat => self.work.cut_off(false, self.send, self.io),
            send::Action::Resume => self.send.resume(&mut self.io.bus),
        }
    }
}

impl<B: Dispatch> Card<'_, B> {
    #[inline(always)]
    fn queue(&mut self) {
        let frame = self.work.frames.arrived(self.begun);
        let (start, length, tag) = (frame.start, frame.length, frame.tag);
        self.work.pending += 1;
        self.send.hand_over(self.io, start, length, tag);
    }
}
