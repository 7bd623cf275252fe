//! Datagrams whose data is in their descriptor: nothing is fetched.
//!
//! Such a frame is whole as soon as CPU B has stored it. So SDMA and SEND take their rows for a whole
//! frame one behind the other, and a few datagrams are sent in one go: the MAC, CPU A and the trace
//! get all of them together.
//!
//! ```text
//!   SDMA   Posted: Idle to Sdma      Arrived: to Idle
//!   SEND                                              OfferedWhole: the MAC gets it
//! ```

use super::{SEEN, Sender, transitions};
use crate::io::IoB;
use crate::path::send::SendPath;
use crate::path::send::early::StoredFrames;
use crate::sides::eudp::frame::put_sum;
use crate::sides::eudp::headers::{HEADERS, UDP};
use crate::sides::eudp::job::Next;
use crate::sides::eudp::pulls::in_one_piece;
use crate::sides::eudp::queue::set_status;
use crate::sides::eudp::rows::Handle;
use crate::sides::eudp::sums::HalvesSum;
use frame_pipeline::{Definition, Step, World, sdma, send};
use host_interface::eudp::{
    DESCRIPTOR_BYTES, DescriptorWord, INLINE_BYTES, Status, handle_of, pieces_of, port_of,
};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// The most datagrams that are sent in one go: other events wait meanwhile.
const BURST: u32 = 8;
/// Bytes of the longest frame.
const LONGEST: u32 = (HEADERS + INLINE_BYTES).next_multiple_of(8);

/// What the rows ask for and do: a frame without data to fetch is never cut through, and who sends it
/// has done what they would.
struct Whole;

impl<D: Definition> World<D> for Whole {
    #[inline(always)]
    fn holds(&mut self, _: D::Condition) -> bool {
        false
    }

    #[inline(always)]
    fn act(&mut self, _: D::Action) {}
}

impl Sender {
    /// Sends the datagram whose turn it is, and some behind it, as long as their data is in their
    /// descriptors. SDMA has no frame. Returns whether there is more to do.
    #[inline(never)]
    pub(super) fn send_inline<B: Dispatch>(
        &mut self,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> bool {
        if self.work.pending > SEEN {
            self.see_sent(send, io);
        }
        let next = self.queues.again();
        self.queues.look_on(&mut io.bus, &mut self.pulls);
        let handle = &mut self.work.rows.handle;
        let mut frames = send.store_frames(BURST * LONGEST);
        let most = self.queues.in_slots().min(in_one_piece(next.number));
        let most = most.min(BURST).min(frames.most());
        let mut from = next.descriptor;
        let (mut done, mut refused) = (0, None);
        while done != most {
            if let Err(status) = store(&next, from, handle, &mut frames, &mut io.bus) {
                // Behind others it has its turn again: it may be of another kind.
                if done == 0 {
                    refused = Some(status);
                }
                break;
            }
            done += 1;
            from += DESCRIPTOR_BYTES;
        }
        frames.close(&mut io.bus);
        if done != 0 {
            let end = next.number.wrapping_add(done) & 0xFFFF;
            self.work.pending += done;
            self.note_whole(done, io);
            self.queues.take_up_to(end);
            self.queues.tell(io, next.endpoint, end, done);
        } else if let Some(status) = refused {
            self.refuse(next, status, io);
        }
        self.queues.wait_if_empty(&self.pulls);
        self.has_more(send)
    }

    /// The transitions for `count` frames. Those of SDMA are the same for each.
    #[inline(always)]
    fn note_whole<B: Dispatch>(&mut self, count: u32, io: &mut IoB<B>) {
        if !self.sdma.is_in(sdma::State::Idle) {
            return transitions::fault(io);
        }
        let posted = self.sdma.step(sdma::Event::Posted, &mut Whole);
        let arrived = self.sdma.step(sdma::Event::Arrived, &mut Whole);
        let first = self.send.step(send::Event::OfferedWhole, &mut Whole);
        // SEND stays in the state in which it is behind the first one.
        let others = self.send.step(send::Event::OfferedWhole, &mut Whole);
        let (Step::Taken(posted), Step::Taken(arrived), Step::Taken(first), Step::Taken(others)) =
            (posted, arrived, first, others)
        else {
            return transitions::fault(io);
        };
        let mut at = self.steps;
        let mut offered = first;
        for _ in 0..count {
            transitions::put(at, 0, posted, io);
            transitions::put(at.wrapping_add(1), 0, arrived, io);
            transitions::put(at.wrapping_add(2), 1, offered, io);
            at = at.wrapping_add(3);
            offered = others;
        }
        self.steps = at;
    }
}

/// Stores the frame of a datagram of `next`'s endpoint, whose descriptor is at `from`.
///
/// # Errors
/// Why the descriptor is refused, and nothing has happened.
#[inline(always)]
fn store<B: Bus>(
    next: &Next,
    from: u32,
    handle: &mut Handle,
    frames: &mut StoredFrames<'_>,
    bus: &mut B,
) -> Result<(), Status> {
    let to = bus.load(from + DescriptorWord::To as u32);
    let length = bus.load(from + DescriptorWord::Length as u32);
    let (port, bytes) = (port_of(to), length & 0xFFFF);
    // The process may have written it again since it was judged.
    if pieces_of(to) != 0 || bytes > INLINE_BYTES {
        return Err(Status::BadDescriptor);
    }
    handle.take(bus, handle_of(to), next.endpoint)?;
    let start = frames.position();
    handle.put_whole(bus, start, port, UDP + bytes);
    let first = start + HEADERS - 2;
    let sum = if bytes > 2 {
        let two = length >> 16;
        bus.store(first, two);
        let places = [from + DescriptorWord::Data as u32, first + 4];
        two + put_data(bus, places, bytes - 2, next.is_summed())
    } else {
        // What stands behind the data is nobody's to see.
        let two = length >> 16 & !(0xFFFF >> (bytes << 3));
        bus.store(first, two);
        two
    };
    if next.is_summed() {
        put_sum(bus, start, sum + handle.udp_sum(port, UDP + bytes));
    }
    frames.push(bus, HEADERS + bytes, handle.tag());
    set_status(bus, from, Status::Done);
    Ok(())
}

/// Copies so many bytes of data from a descriptor into a frame. Returns their sum, which is not folded,
/// if they are to be `summed`.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.endpoints"))]
#[inline(never)]
fn put_data<B: Bus>(bus: &mut B, [mut from, mut to]: [u32; 2], bytes: u32, summed: bool) -> u32 {
    let mut sum = HalvesSum::default();
    let end = from + (bytes & !7);
    if summed {
        while from != end {
            let [a, b] = move_two(bus, &mut from, &mut to);
            sum.add(a);
            sum.add(b);
        }
    } else {
        while from != end {
            move_two(bus, &mut from, &mut to);
        }
    }
    if bytes & 4 != 0 {
        let word = bus.load(from);
        bus.store(to, word);
        sum.add(word);
        (from, to) = (from + 4, to + 4);
    }
    if bytes & 3 != 0 {
        let word = bus.load(from) & !(u32::MAX >> ((bytes & 3) << 3));
        bus.store(to, word);
        sum.add(word);
    }
    sum.get()
}

/// Copies two words.
#[inline(always)]
fn move_two<B: Bus>(bus: &mut B, from: &mut u32, to: &mut u32) -> [u32; 2] {
    let both = [bus.load(*from), bus.load(*from + 4)];
    bus.store(*to, both[0]);
    bus.store(*to + 4, both[1]);
    *from += 8;
    *to += 8;
    both
}
