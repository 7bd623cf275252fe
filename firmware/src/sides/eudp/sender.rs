//! The events of SDMA and SEND on CPU B.
//!
//! | event | who brings it |
//! | --- | --- |
//! | Posted | [`called`]: the doorbell; [`go_on`]: whatever else may have made room |
//! | Arrived, Failed | [`arrived`], [`failed`]: the read channel |
//! | Deadline | [`due`]: the timer |
//! | Sent | a look at the MAC, before the next frame: nobody waits for it |
//! | Closed | [`called`] |

use super::frame::{TRANSFERS, folded};
use super::machines::{Card, Work};
use super::refill::Pulls;
use super::{ALL, EudpB, bump, each, has_more, lead, lowest, refill, room, word};
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::memory::layout::{EUDP_BLOCK, EUDP_TRACE};
use crate::memory::shared::{EUDP_KNOWN, EUDP_OPEN, EUDP_SENT};
use crate::path::send::SendPath;
use crate::path::send::own::Wait;
use frame_pipeline::trace::Entry;
use frame_pipeline::{Machine, Step, sdma, send};
use host_interface::eudp::{
    BlockWord, DescriptorWord, ENDPOINTS, EndpointWord, MAILBOX, Status, TRACE_BYTES,
    endpoint_word, send_slot,
};
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox;
use tigon2_chip::memory::MAILBOXES;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::assist::Finished;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Microseconds until a frame is tried again that found no room.
const AGAIN: u32 = 10;

/// Frames of the MAC's that are looked after, whether one is cut through or not.
const SEEN: u32 = 16;

/// What CPU B knows of an endpoint's queue, in descriptors modulo 2^16.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Behind the last one.
    producer: u32,
    /// The next one.
    next: u32,
}

/// SDMA, SEND and the queues.
#[derive(Debug)]
pub struct Sender {
    sdma: Machine<sdma::Sdma>,
    send: Machine<send::Send>,
    work: Work,
    queues: [Queue; ENDPOINTS as usize],
    /// The endpoints that are open.
    open: u32,
    /// Those with descriptors.
    ready: u32,
    /// The endpoint that had its turn.
    last: u32,
    /// Descriptors that are done, of all endpoints.
    done: u32,
    /// Transitions.
    steps: u32,
    /// Descriptors from the processes' memory.
    pub(super) pulls: Pulls,
}

/// What became of a descriptor whose turn it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It is in work.
    Begun,
    /// It was refused, or is on its way: another one has its turn.
    Not,
    /// Its slot is not free yet.
    Later,
}

impl Sender {
    /// Nothing is open.
    pub const fn new() -> Sender {
        Sender {
            sdma: Machine::new(),
            send: Machine::new(),
            work: Work::NONE,
            queues: [Queue {
                producer: 0,
                next: 0,
            }; ENDPOINTS as usize],
            open: 0,
            ready: 0,
            last: 0,
            done: 0,
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

/// Doorbell B: an endpoint was opened or closed, or its mailbox rung.
#[inline(always)]
pub fn called<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    if let Some(sender) = eudp.0.first_mut() {
        if sender.work.watch.is_on() {
            // This takes longer than a deadline may wait.
            sender.work.called = true;
        } else {
            sender.called(send, io);
        }
    }
}

/// Something has changed for which a frame may have waited.
#[inline(always)]
pub fn go_on<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    if let Some(sender) = eudp.0.first_mut()
        && sender.ready != 0
    {
        sender.post(send, io);
    }
}

/// DMA Read Complete has just looked at the channel.
#[inline(always)]
pub fn looked<B: Dispatch>(eudp: &mut EudpB, io: &mut IoB<B>) {
    if let Some(sender) = eudp.0.first_mut()
        && sender.work.frame.missing != 0
    {
        sender.work.now = timer::now(&mut io.bus);
    }
}

/// DMA Read Complete has seen to what it looked at: sets the deadline of the next part. If that is
/// over already, the timer's turn would come too late.
#[inline(always)]
pub fn seen<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    if let Some(sender) = eudp.0.first_mut()
        && sender.work.watch.is_on()
    {
        let Work { frame, watch, .. } = &mut sender.work;
        let late = watch.over(frame.here, frame.end_of(frame.here));
        let now = timer::now(&mut io.bus);
        if late.wrapping_sub(now) as i32 > 0 {
            io.arm_at(SlotB::Part, now, late);
        } else {
            sender.late(send, io);
        }
    }
}

/// DMA Read Complete: a part is there.
#[inline(always)]
pub fn arrived<B: Dispatch>(
    eudp: &mut EudpB,
    send: &mut SendPath,
    io: &mut IoB<B>,
    done: &Finished,
) {
    if let Some(sender) = eudp.0.first_mut() {
        sender.arrived(send, io, done);
    }
}

/// DMA read attention: a transfer of a frame, the one at `descriptor`, has failed.
#[inline(never)]
pub fn failed<B: Dispatch>(
    eudp: &mut EudpB,
    send: &mut SendPath,
    io: &mut IoB<B>,
    descriptor: u32,
) {
    if let Some(sender) = eudp.0.first_mut() {
        sender.failed(send, io, descriptor);
    }
}

/// The timer: the wire may have come to a part that is missing, or there may be room again.
#[inline(always)]
pub fn due<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    if let Some(sender) = eudp.0.first_mut() {
        let now = timer::now(&mut io.bus);
        if io.take_due(SlotB::Part, now) && sender.work.watch.is_on() {
            sender.late(send, io);
        }
        if io.take_due(SlotB::Watch, now) {
            sender.post(send, io);
        }
    }
}

/// Whether a frame leaves that has to be watched: handlers that take long wait.
#[inline(always)]
pub fn is_watching(eudp: &EudpB) -> bool {
    let sender = eudp.0.first();
    sender.is_some_and(|sender| sender.work.watch.is_on())
}

impl Sender {
    #[inline(never)]
    fn called<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let open = EUDP_OPEN.get(&mut io.bus);
        if open != self.open {
            self.follow(open, send, io);
        }
        let rung = io.bus.read(Register::MailboxEventB) >> MAILBOX & self.open;
        if rung != 0 {
            io.bus.write(Register::MailboxEventB, rung << MAILBOX);
            for endpoint in each(rung) {
                self.rung(endpoint, io);
            }
        }
        self.pulls.wished(io, self.open & !self.work.closing);
        self.post(send, io);
    }

    /// The wire may have come to a part that is missing.
    #[inline(never)]
    fn late<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        self.hand_over(send::Event::Deadline, send, io);
    }

    /// Takes an endpoint's producer.
    fn rung<B: Dispatch>(&mut self, endpoint: u32, io: &mut IoB<B>) {
        let at = MAILBOXES + mailbox::BYTES * (MAILBOX + endpoint) + 4;
        let producer = io.bus.load(at) >> 16;
        if let Some(queue) = self.queues.get_mut(endpoint as usize) {
            let waiting = producer.wrapping_sub(queue.next) & 0xFFFF;
            // No more than there is room for, whatever the process writes.
            let waiting = waiting.min(room(&mut io.bus, endpoint));
            queue.producer = queue.next.wrapping_add(waiting) & 0xFFFF;
            if waiting != 0 {
                self.ready |= 1 << endpoint;
            }
        }
    }

    /// Opens and closes what CPU A has opened and closed.
    #[inline(never)]
    fn follow<B: Dispatch>(&mut self, open: u32, send: &mut SendPath, io: &mut IoB<B>) {
        let opened = open & !self.open & ALL;
        self.work.frame.bus = lead::bus_of(&mut io.bus);
        for endpoint in each(opened) {
            self.empty(endpoint);
        }
        io.bus.write(Register::MailboxEventB, opened << MAILBOX);
        self.open |= opened;
        self.work.closing = self.open & !open;
        self.ready &= !self.work.closing;
        self.close(send, io);
    }

    #[inline(never)]
    fn sum_stored<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        self.fetch(sdma::Event::SumStored, send, io);
    }

    /// Closes what is to be closed, if none of its frames is in work and none of its descriptors on
    /// its way.
    #[inline(never)]
    fn close<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if self.sdma.defers(sdma::Event::Closed) || self.pulls.works_for(self.work.closing) {
            return;
        }
        for endpoint in each(self.work.closing) {
            self.fetch(sdma::Event::Closed, send, io);
            self.empty(endpoint);
            self.open &= !(1 << endpoint);
            if self.work.job.endpoint == endpoint {
                self.work.job.left = 0;
            }
        }
        self.work.closing = 0;
        EUDP_KNOWN.set(&io.me, &mut io.bus, self.open);
        io.ring_a();
    }

    fn empty(&mut self, endpoint: u32) {
        if let Some(queue) = self.queues.get_mut(endpoint as usize) {
            *queue = Queue {
                producer: 0,
                next: 0,
            };
        }
    }

    /// See [`close`](Self::close).
    pub(super) fn close_if_asked<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if self.work.closing != 0 {
            self.close(send, io);
        }
    }

    /// Descriptors of an endpoint have come from the process's memory.
    pub(super) fn is_supplied_again(&mut self, endpoint: u32) {
        let open = self.open & !self.work.closing;
        let queue = self.queues.get(endpoint as usize);
        if queue.is_some_and(|queue| queue.next != queue.producer) {
            self.ready |= open & 1 << endpoint;
        }
    }

    /// Begins with the frames that wait, as far as there is room.
    pub(super) fn post<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        while self.ready != 0 && !self.sdma.defers(sdma::Event::Posted) {
            if self.work.job.left == 0 {
                match self.take(io) {
                    Taken::Begun => {}
                    Taken::Not => continue,
                    Taken::Later => return self.wait(Wait::Reads, io),
                }
            }
            if !io.read_ring.has_room(TRANSFERS) {
                return self.wait(Wait::Reads, io);
            }
            if let Err(wait) = send.lend(io) {
                return self.wait(wait, io);
            }
            let Work { job, frame, .. } = &mut self.work;
            frame.begin(job, send, io);
            if frame.may_be_cut() || self.work.pending > SEEN {
                self.see_sent(send, io);
            }
            // What is in front of it in the channel would make its parts late.
            if !io.read_ring.is_idle(&mut io.bus) {
                self.work.frame.keep_whole();
            }
            self.fetch(sdma::Event::Posted, send, io);
            if self.work.frame.missing == 0 {
                // All its data was in the descriptor.
                self.fetch(sdma::Event::Arrived, send, io);
                self.end(send, io);
                self.refill(io);
            }
        }
    }

    /// The next frame has to wait.
    #[inline(never)]
    fn wait<B: Dispatch>(&mut self, wait: Wait, io: &mut IoB<B>) {
        match wait {
            Wait::Reads => {
                // The doorbell goes in front of the host's next frames, and what sees the reads
                // done goes in front of the doorbell.
                io.bus.set(EventBit::DmaReadComplete);
                io.bus.ring(Cpu::B);
            }
            Wait::Later => io.arm(SlotB::Watch, AGAIN),
        }
    }

    /// Pulls descriptors of the endpoint whose frame is in work, if few are left.
    #[inline(always)]
    fn refill<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        let endpoint = self.work.job.endpoint;
        if let Some(queue) = self.queues.get(endpoint as usize) {
            let Queue { next, producer } = *queue;
            if refill::filled(&mut io.bus, endpoint) != producer {
                self.pulls.refill(io, endpoint, next, producer);
            }
        }
    }

    /// Takes the next descriptor.
    #[inline(never)]
    fn take<B: Dispatch>(&mut self, io: &mut IoB<B>) -> Taken {
        let behind = self.ready & !((2 << self.last) - 1);
        let from = if behind != 0 { behind } else { self.ready };
        let endpoint = lowest(from);
        self.last = endpoint;
        let Some(queue) = self.queues.get(endpoint as usize) else {
            return Taken::Not;
        };
        let Queue { next, producer } = *queue;
        if !self.pulls.look(&mut io.bus, endpoint, next, producer)
            && has_more(&mut io.bus, endpoint)
        {
            if !self.pulls.pull_to_send(io, endpoint, producer) {
                return Taken::Later;
            }
            self.ready &= !(1 << endpoint);
            return Taken::Not;
        }
        let descriptor = EUDP_BLOCK + send_slot(endpoint, next);
        let job = &mut self.work.job;
        let refused = match job.take(&mut io.bus, endpoint, descriptor) {
            Err(status) => status,
            Ok(()) if !SendPath::has_link(&mut io.bus) => Status::LinkDown,
            Ok(()) => return Taken::Begun,
        };
        self.complete(refused, io);
        Taken::Not
    }

    /// The descriptor in work is done.
    fn complete<B: Dispatch>(&mut self, status: Status, io: &mut IoB<B>) {
        let job = &mut self.work.job;
        job.left = 0;
        let endpoint = job.endpoint;
        let bus = &mut io.bus;
        bus.store(
            job.descriptor + DescriptorWord::Status as u32,
            status as u32,
        );
        if let Some(queue) = self.queues.get_mut(endpoint as usize) {
            queue.next = queue.next.wrapping_add(1) & 0xFFFF;
            if queue.next == queue.producer {
                self.ready &= !(1 << endpoint);
            }
            let sent = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Sent);
            bus.store(sent, queue.next);
        }
        self.done = self.done.wrapping_add(1);
        EUDP_SENT.set(&io.me, bus, self.done);
        io.ring_a();
    }

    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    fn arrived<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>, done: &Finished) {
        if self.work.frame.missing == 0 {
            // Taken back.
            return;
        }
        let Work {
            job,
            frame,
            sum,
            watch,
            ..
        } = &mut self.work;
        let from = frame.here;
        frame.arrived();
        if watch.is_on() {
            watch.over(from, frame.here);
        }
        if job.summed && frame.missing == 0 {
            *sum = u32::from(done.sum(&mut io.bus));
        }
        self.fetch(sdma::Event::Arrived, send, io);
        if matches!(self.sdma.state(), sdma::State::HeldForSum) {
            self.sum_stored(send, io);
        }
        if self.work.ended.is_some() {
            self.end(send, io);
            self.take_turns(send, io);
            // Behind the next frame, so that it does not wait.
            self.refill(io);
        }
    }

    fn failed<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>, descriptor: u32) {
        self.work.failed = descriptor;
        self.fetch(sdma::Event::Failed, send, io);
        let note = ReadNote::of_word(io.read_ring.note(descriptor));
        io.read_ring.set_note(descriptor, ReadNote::NOTHING.word());
        let frame = &mut self.work.frame;
        if note.is_part() && frame.is_given_up() && frame.missing != 0 {
            // What was given up counts as there: the wire is to go on.
            frame.arrived();
            self.fetch(sdma::Event::Arrived, send, io);
        }
        self.end(send, io);
        self.take_turns(send, io);
    }

    /// If SDMA is done with the frame: the path goes back, and the next frame comes.
    #[inline(never)]
    fn end<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        let Some(mut status) = self.work.ended.take() else {
            return;
        };
        send.take_back(io);
        let Work {
            job, frame, sum, ..
        } = &mut self.work;
        if frame.is_given_up() {
            status = Status::Unreadable;
        }
        if job.summed && job.at != 0 {
            job.sum = folded(job.sum + *sum);
        }
        if status != Status::Done || !job.advance() {
            self.complete(status, io);
        }
        if self.work.closing != 0 {
            self.close(send, io);
        }
    }

    /// The next frame comes at once, unless the host's own frames have their turn: when these are
    /// read, or soon.
    #[inline(never)]
    fn take_turns<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if self.ready == 0 {
            return;
        }
        if crate::path::send::bds_now(send) == 0 {
            self.post(send, io);
        } else if !io.is_armed(SlotB::Watch) {
            io.arm(SlotB::Watch, AGAIN);
        }
    }

    /// Sees which frames have left.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    fn see_sent<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if self.work.pending != 0 && send.mac_is_idle(&mut io.bus) {
            while self.work.pending != 0 {
                self.work.pending -= 1;
                self.hand_over(send::Event::Sent, send, io);
            }
        }
    }

    /// An event of SDMA, and what it tells SEND.
    #[inline(always)]
    fn fetch<B: Dispatch>(&mut self, event: sdma::Event, send: &mut SendPath, io: &mut IoB<B>) {
        let work = &mut self.work;
        let mut card = Card { work, send, io };
        let step = self.sdma.step(event, &mut card);
        self.note(0, step, io);
        if self.work.signal.is_some() {
            self.signalled(send, io);
        }
    }

    /// SDMA has told SEND something.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    fn signalled<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) {
        if let Some(signal) = self.work.signal.take() {
            self.hand_over(signal, send, io);
        }
    }

    /// An event of SEND.
    #[inline(always)]
    fn hand_over<B: Dispatch>(&mut self, event: send::Event, send: &mut SendPath, io: &mut IoB<B>) {
        let work = &mut self.work;
        let mut card = Card { work, send, io };
        let step = self.send.step(event, &mut card);
        self.note(1, step, io);
    }

    /// Records a transition for the host.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    fn note<B: Dispatch>(&mut self, machine: usize, step: Step, io: &mut IoB<B>) {
        let bus = &mut io.bus;
        let Step::Taken(row) = step else {
            return bump(bus, word(BlockWord::Faults));
        };
        let at = EUDP_TRACE + (self.steps & (TRACE_BYTES - 1));
        bus.store_byte(at, Entry::new(machine, row).byte());
        self.steps = self.steps.wrapping_add(1);
        bus.store(word(BlockWord::Steps), self.steps);
    }
}
