//! The events of SDMA and SEND on CPU B.
//!
//! | event | who brings it |
//! | --- | --- |
//! | Posted | [`Sender::go`]: a mailbox, the end of the frame before, whatever has made room |
//! | Arrived, Failed | [`Sender::arrived`], [`Sender::failed`]: the read channel |
//! | Deadline | [`Sender::due`]: the timer |
//! | Sent | a look at the MAC, before the next frame: nobody waits for it |
//! | Closed | [`Sender::follow`] |
//!
//! SDMA has one frame at a time. While it is fetched CPU B *prepares* the next one: judges its
//! descriptor, chooses its place, stores its headers. So between two frames the read channel waits
//! only until CPU B has seen the end of the first; and not at all for the fragments of a datagram,
//! whose data is asked for when they are prepared.
//!
//! ```text
//!   CPU B   | prepare 2   | seen, post 2, hand over 1, complete 1, prepare 3 | ..
//!   channel | frame 1 ... |      | frame 2 ...
//!   channel | fragment 1 ...  | fragment 2 ...       | fragment 3 ...
//! ```
//!
//! Datagrams with their data in the descriptor are sent in bursts while SDMA has no frame
//! (`sender/inline.rs`).

mod early;
mod inline;
mod prepare;
mod transitions;
mod turns;

use super::frame::{LAST, SUMMED, TRANSFERS};
use super::job::shape;
use super::lead::is_bus_slow;
use super::machines::Work;
use super::pulls::Pulls;
use super::queue::Queues;
use super::{ALL, each, word};
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::memory::shared::{EUDP_KNOWN, EUDP_OPEN};
use crate::path::send::SendPath;
use frame_pipeline::{Machine, sdma, send};
use host_interface::eudp::{BlockWord, MAILBOX};
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::assist::{Finished, Walk};
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;
use turns::wait_for_reads;

/// How often the channel is looked at for the next part before other events have their turn: coming
/// back takes longer.
const LOOKS: u32 = 16;

/// What is done in one go, while other events wait: a frame counts as one, and a datagram's last one as
/// two.
const TOGETHER: u8 = 8;

/// Frames of the MAC's that are looked after, whether one is cut through or not.
const SEEN: u32 = 32;

/// A part that is there, and what has finished behind it.
#[derive(Debug)]
struct Batch {
    done: Finished,
    walk: Walk,
}

/// SDMA, SEND and the queues.
#[derive(Debug)]
pub struct Sender {
    sdma: Machine<sdma::Sdma>,
    send: Machine<send::Send>,
    work: Work,
    queues: Queues,
    batch: Batch,
    /// What may be done in one go, as [`TOGETHER`] counts; 0 if there is no part.
    most: u8,
    /// The lowest bits of [`steps`](Self::steps) when the endpoints' turn began.
    turn: u8,
    /// Whether the host has the next turn: what rings meanwhile must not take it away.
    owes: bool,
    /// The endpoints that are open.
    open: u32,
    /// Those that are to be given back.
    closing: u32,
    /// Transitions.
    steps: u32,
    /// Descriptors from the processes' memory.
    pub(super) pulls: Pulls,
}

impl Sender {
    /// Nothing is open.
    pub const fn new() -> Sender {
        Sender {
            sdma: Machine::new(),
            send: Machine::new(),
            work: Work::NONE,
            queues: Queues::EMPTY,
            batch: Batch {
                done: Finished::NONE,
                walk: Walk::NONE,
            },
            most: 0,
            turn: 0,
            owes: false,
            open: 0,
            closing: 0,
            steps: 0,
            pulls: Pulls::new(),
        }
    }
}

impl Default for Sender {
    fn default() -> Sender {
        Sender::new()
    }
}

/// From handlers.
impl Sender {
    /// Mailboxes were rung.
    #[inline(always)]
    pub fn rung<B: Dispatch>(&mut self, pending: u32, send: &mut SendPath, io: &mut IoB<B>) {
        let rung = pending >> MAILBOX & self.open & !self.closing;
        if rung != 0 {
            self.queues.rung(&mut io.bus, rung);
            // What is prepared comes when the frame in SDMA has ended, and all else when that is not
            // watched any more.
            if self.queues.any() && !self.work.is_prepared && !self.work.watch.is_on() {
                self.go(send, io);
            }
        }
    }

    /// The channel was just looked at.
    #[inline(always)]
    pub fn looked<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        if self.work.is_cut {
            self.work.now = timer::now(&mut io.bus);
        }
    }

    /// A part is there: `done`. Of what follows it in `walk`, parts of the next frames are taken, too.
    #[inline(always)]
    pub fn arrived<B: Dispatch>(
        &mut self,
        send: &mut SendPath,
        io: &mut IoB<B>,
        done: Finished,
        walk: &mut Walk,
    ) {
        self.batch = Batch { done, walk: *walk };
        self.most = TOGETHER;
        self.work_on(send, io);
        *walk = self.batch.walk;
    }

    /// What a part that is there brings, and what can be done without it: one function, as the
    /// registers that each saves are a good part of a frame's time. For the same reason it does some
    /// frames in one go, if their data has come meanwhile.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.endpoints"))]
    #[inline(never)]
    fn work_on<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let mut left = u32::from(self.most);
        loop {
            let mut arrived = left != 0;
            if arrived {
                let Work { sum, frames, .. } = &mut self.work;
                let frame = frames.now();
                if frame.missing == 0 {
                    // Taken back.
                    return;
                }
                left -= 1 + u32::from(frame.has(LAST));
                frame.missing -= 1;
                if frame.has(SUMMED) && frame.missing == 0 {
                    *sum = u32::from(self.batch.done.sum(&mut io.bus));
                }
                if self.work.is_cut && self.part_arrived(send, io) {
                    // What is cut through and not whole has a deadline: all else waits.
                    if self.work.frames.now().missing != 0 {
                        return;
                    }
                    arrived = false;
                }
            }
            self.run(arrived, send, io);
            if left < 2 || self.work.is_cut {
                break;
            }
            let Batch { done, walk } = &mut self.batch;
            let (ring, bus) = (&io.read_ring, &mut io.bus);
            let mut looks = LOOKS;
            let next = loop {
                let next = ring.take_also(bus, walk, ReadNote::PART.word());
                looks -= 1;
                if next.is_some() || looks == 0 || self.sdma.is_in(sdma::State::Idle) {
                    break next;
                }
            };
            let Some(next) = next else {
                break;
            };
            *done = next;
        }
        self.report_steps(io);
    }

    /// SDMA sees that a frame that leaves when it is whole has arrived, or a part of it. Returns
    /// whether it offers the frame to SEND, who takes it when the next one is asked for: meanwhile the
    /// channel has nothing else to do.
    #[inline(always)]
    fn arrive<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        if !self.sdma.is_in(sdma::State::Sdma) {
            transitions::fault(io);
            return false;
        }
        let mut offered = self.fetch(sdma::Event::Arrived, send, io);
        if self.sdma.is_in(sdma::State::HeldForSum) {
            offered = self.fetch(sdma::Event::SumStored, send, io);
        }
        offered.is_some()
    }

    /// Something has changed for which a frame may have waited. While one is watched nothing goes
    /// on: the next one comes when all parts of that are there.
    #[inline(always)]
    pub fn go_on<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        // The one that is prepared comes when the frame in SDMA has ended.
        let waits = self.work.is_prepared && !self.sdma.is_in(sdma::State::Idle);
        if self.has_frames() && !waits && !self.work.watch.is_on() {
            self.go(send, io);
        }
    }

    /// The timer.
    #[inline(always)]
    pub fn due<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let now = timer::now(&mut io.bus);
        if io.take_due(SlotB::Part, now) && self.work.watch.is_on() {
            self.deadline(send, io);
        }
        if io.take_due(SlotB::Watch, now) && !self.work.watch.is_on() {
            self.go(send, io);
        }
    }

    /// Whether a frame leaves that has to be watched.
    #[inline(always)]
    pub const fn is_watching(&self) -> bool {
        self.work.watch.is_on()
    }

    /// Whether no frame is in work, and none to be taken: the path may be had, though it is lent.
    pub fn rests(&self) -> bool {
        self.sdma.is_in(sdma::State::Idle) && !self.has_frames()
    }

    /// Whether frames are to come behind the one in SDMA.
    #[inline(always)]
    const fn has_frames(&self) -> bool {
        self.queues.any() || self.work.job.is_left || self.work.is_prepared
    }

    /// Whether no endpoint is open, and none of their frames in work.
    pub const fn is_closed(&self) -> bool {
        self.open == 0 && self.closing == 0
    }

    /// Doorbell B has rung: whether it has to wait, as a frame is watched. It rings again when that
    /// is over.
    #[inline(always)]
    pub const fn puts_off(&mut self) -> bool {
        self.work.called = self.work.watch.is_on();
        self.work.called
    }

    /// Doorbell B.
    #[inline(never)]
    pub fn called<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if !SendPath::has_link(&mut io.bus) {
            self.work.rows.forget(&mut io.bus);
        }
        self.follow(send, io);
        self.pulls.wished(io, self.open & !self.closing);
        self.go_on(send, io);
    }

    /// See [`close`](Self::close).
    pub(super) fn close_if_asked<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if self.closing != 0 {
            self.close(send, io);
        }
    }

    /// Descriptors of an endpoint have come from the process's memory.
    pub(super) fn is_supplied_again<B: Dispatch>(&mut self, endpoint: u32, io: &mut IoB<B>) {
        if self.open & !self.closing & 1 << endpoint != 0 {
            self.queues.is_supplied_again(&mut io.bus, endpoint);
        }
    }

    /// Opens and closes what CPU A has opened and closed.
    #[inline(never)]
    pub fn follow<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let open = EUDP_OPEN.get(&mut io.bus);
        if open == self.open & !self.closing {
            return;
        }
        let opened = open & !self.open & ALL;
        self.work.is_bus_slow = is_bus_slow(&mut io.bus);
        for endpoint in each(opened) {
            let shape = shape(&mut io.bus, endpoint);
            self.queues.empty(&mut io.bus, endpoint, shape);
        }
        io.bus.write(Register::MailboxEventB, opened << MAILBOX);
        self.open |= opened;
        self.closing = self.open & !open;
        self.queues.hold(self.closing);
        self.close(send, io);
    }

    /// The transmitter was stopped under the frame that is watched, if there is one still: what has
    /// failed was not its own.
    pub fn stopped<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if self.work.watch.is_on() {
            self.tell_deadline(send, io);
        }
    }

    /// The transfer of a frame at `descriptor` has failed.
    #[inline(never)]
    pub fn failed<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>, descriptor: u32) {
        let local = io.bus.load(DmaDescriptorAt(descriptor).local());
        let next = self.work.frames.next();
        if self.work.is_prepared && next.is_ahead_at(local) {
            // Not its turn: then it fails again.
            next.leave_ahead();
            let nothing = ReadNote::NOTHING.word();
            return io.read_ring.set_note(descriptor, nothing);
        }
        self.work.failed = descriptor;
        if let Some(signal) = self.fetch(sdma::Event::Failed, send, io) {
            self.rarely(signal, send, io);
        }
        let note = ReadNote::of_word(io.read_ring.note(descriptor));
        io.read_ring.set_note(descriptor, ReadNote::NOTHING.word());
        let frame = self.work.frames.now();
        if note.is_part() && frame.is_given_up() && frame.missing != 0 {
            // What was given up counts as there: the wire is to go on.
            frame.missing -= 1;
            self.part_arrived(send, io);
        }
        self.go(send, io);
    }
}

impl Sender {
    /// Closes what is to be closed, if none of its frames is in work.
    #[inline(never)]
    fn close<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        // What is opened only does not wait for a frame of another one's.
        let busy = self.sdma.defers(sdma::Event::Closed)
            || self.work.is_fetched_ahead()
            || self.pulls.works_for(self.closing);
        if self.closing != 0 && busy {
            return;
        }
        for endpoint in each(self.closing) {
            self.fetch(sdma::Event::Closed, send, io);
            self.queues.empty(&mut io.bus, endpoint, 0);
            self.open &= !(1 << endpoint);
            self.work.forget(endpoint);
        }
        self.work.rows.forget(&mut io.bus);
        self.closing = 0;
        self.report_steps(io);
        EUDP_KNOWN.set(&io.me, &mut io.bus, self.open);
        io.ring_a();
        if self.open == 0 {
            send.take_back(io);
            // Doorbell B gives the pad back.
            io.bus.ring(Cpu::B);
        }
    }

    /// Completes what is done, begins with the frames that wait, as far as there is room, and
    /// prepares another one. The next frame's transfers go before all else.
    #[inline(always)]
    fn go<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        self.most = 0;
        self.work_on(send, io);
    }

    #[inline(always)]
    fn run<B: Dispatch>(&mut self, mut arrived: bool, send: &mut SendPath, io: &mut IoB<B>) {
        let mut finished = false;
        loop {
            let offered = arrived && self.arrive(send, io);
            let ended = self.work.take_ended(offered);
            let idle = offered || self.sdma.is_in(sdma::State::Idle);
            let begins = self.work.is_prepared && idle && io.read_ring.has_room(TRANSFERS);
            if begins {
                self.begin(send, io);
            }
            if offered {
                self.hand_over_behind(send::Event::OfferedWhole, begins, send, io);
            }
            if let Some(status) = ended {
                finished = true;
                let frame = self.work.frames.arrived(begins);
                if frame.has(LAST) {
                    let at = (frame.endpoint, frame.descriptor);
                    self.queues.complete(io, at, frame.number, status);
                }
            }
            arrived = false;
            if self.work.is_prepared {
                if idle && !begins {
                    wait_for_reads(io);
                }
                return;
            }
            let idle = idle && !begins;
            if self.closing != 0 || send.has_waiting() {
                let ahead = finished || !idle;
                if !self.goes_on(idle, ahead, send, io) {
                    return;
                }
            }
            if !self.prepare(idle, send, io) || !idle {
                return;
            }
            finished = true;
        }
    }

    /// Says how many transitions there were.
    #[inline(always)]
    fn report_steps<B: Dispatch>(&self, io: &mut IoB<B>) {
        io.bus.store(word(BlockWord::Steps), self.steps);
    }
}
