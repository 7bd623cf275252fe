//! E-UDP: endpoints whose datagrams leave while they are being fetched.
//!
//! [`host_interface::eudp`] is the host's view. The machines that decide are the tables of
//! [`frame_pipeline`], which Spin has verified: SDMA and SEND run on CPU B here, and nothing else
//! moves a frame of an endpoint.
//!
//! ```text
//!           mailbox
//!   host ───────────► CPU B ── SDMA ── SEND ──► MAC
//!     ▲                 │ done
//!     └── completions ── CPU A
//! ```
//!
//! | module | what | CPU |
//! | --- | --- | --- |
//! | [`assembly`] | datagrams in fragments, and what of them is there | A |
//! | [`command`] | open, close | A |
//! | [`completion`] | completions to the host | A |
//! | [`events`] | frames, completed writes, CPU B's calls | A |
//! | [`pulls`], [`pulled`] | descriptors from the process's memory | B |
//! | [`supply`] | those to receive, as CPU A asks for them | A |
//! | [`receiver`] | the events of RECV and RDMA: datagrams that arrive | A |
//! | [`arrival`], [`chunk`] | frames that are written while they arrive | A |
//! | [`datagram`] | what a frame's headers say | A |
//! | [`fragment`], [`fragment_header`], [`context`], [`part`] | datagrams that are put together in a process's memory | A |
//! | [`first`] | first fragments that come before the others | A |
//! | [`predicted`] | fragments that come one behind the other | A |
//! | [`early_part`] | the next one, while its frame arrives | A |
//! | [`vlan`] | frames with a VLAN tag | A |
//! | [`pool`], [`pooled`] | datagrams whose header comes later than other fragments | A |
//! | [`placement`] | what the rows of RDMA do with a fragment | A |
//! | [`expiry`] | datagrams that are given up | A |
//! | [`flight`] | the datagrams that RDMA has | A |
//! | [`delivery`] | what the rows of RECV and RDMA do | A |
//! | [`pair`], [`report`] | completions of long datagrams, two in one transfer | A |
//! | [`fast_path`], [`answers`] | the same for most datagrams | A |
//! | [`recorded`] | the rows of RECV and RDMA, for the explorer | A |
//! | [`handlers`] | CPU B's handlers while endpoints are open | B |
//! | [`sender`] | the events of SDMA and SEND | B |
//! | [`queue`] | the endpoints' descriptors to send | B |
//! | [`machines`] | what their rows do | B |
//! | [`job`] | the descriptor in work | B |
//! | [`rows`] | the rows of the last datagram's address handle and region | B |
//! | [`headers`] | their lengths | A, B |
//! | [`pieces`], [`sums`] | pieces of the host's memory; checksums | B, A |
//! | [`frame`], [`flags`] | the frame in work: headers, parts | B |
//! | [`ahead`] | the sum of datagrams whose UDP header leaves first | B |
//! | [`whole`] | datagrams that are one frame | B |
//! | [`lead`] | how much of a frame is there when it leaves | B |
//! | [`watch`] | whether a part was there in time | B |

pub mod ahead;
mod answers;
pub mod arrival;
pub mod assembly;
mod chunk;
pub mod command;
pub mod completion;
pub mod context;
pub mod datagram;
pub mod delivery;
mod early_part;
pub mod events;
pub mod expiry;
pub mod fast_path;
pub mod first;
pub mod flags;
pub mod flight;
pub mod fragment;
pub mod fragment_header;
pub mod frame;
pub mod handlers;
pub mod headers;
pub mod job;
pub mod lead;
pub mod machines;
mod pair;
pub mod part;
pub mod pieces;
pub mod placement;
mod pool;
mod pooled;
mod predicted;
pub mod pulled;
pub mod pulls;
pub mod queue;
pub mod receiver;
mod recorded;
mod report;
pub mod rows;
pub mod sender;
pub mod sums;
pub mod supply;
mod transfers;
pub mod vlan;
pub mod watch;
pub mod whole;

use crate::io::IoA;
use crate::memory::layout::{EUDP, EUDP_BLOCK};
use completion::Reporter;
use host_interface::eudp::{BlockWord, ENDPOINTS, EndpointWord, MAILBOX, SLOTS, endpoint_word};
use receiver::Receiver;
use sender::Sender;
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox;
use tigon2_chip::memory::MAILBOXES;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// E-UDP's part of CPU A's side: nothing in firmware without endpoints.
// In firmware without endpoints, too: so all else of the side lies where it always did.
#[derive(Debug)]
#[repr(align(16))]
pub struct EudpA([(Reporter, Receiver); EUDP]);

impl EudpA {
    /// No endpoint is open.
    pub const fn new() -> EudpA {
        EudpA([const { (Reporter::new(), Receiver::new()) }; EUDP])
    }

    /// Both parts.
    #[inline(always)]
    fn parts(&mut self) -> Option<(&mut Reporter, &mut Receiver)> {
        let parts = self.0.first_mut();
        parts.map(|(reporter, receiver)| (reporter, receiver))
    }
}

impl Default for EudpA {
    fn default() -> EudpA {
        EudpA::new()
    }
}

/// E-UDP's part of CPU B's side: nothing in firmware without endpoints.
// In firmware without endpoints, too: so all else of the side lies where it always did.
#[derive(Debug)]
#[repr(align(16))]
pub struct EudpB([Sender; EUDP]);

impl EudpB {
    /// No endpoint is open.
    pub const fn new() -> EudpB {
        EudpB([const { Sender::new() }; EUDP])
    }

    #[inline(always)]
    pub(super) fn sender(&mut self) -> Option<&mut Sender> {
        self.0.first_mut()
    }
}

impl Default for EudpB {
    fn default() -> EudpB {
        EudpB::new()
    }
}

/// The bits of all endpoints.
const ALL: u32 = (1 << ENDPOINTS) - 1;

/// NIC address of a word of the block.
const fn word(word: BlockWord) -> u32 {
    EUDP_BLOCK + word as u32
}

/// NIC address of the word of an endpoint's mailbox that rings: its producers, of descriptors to send
/// in bits 31:16, to receive in bits 15:0.
#[inline(always)]
const fn mailbox_word(endpoint: u32) -> u32 {
    MAILBOXES + mailbox::BYTES * (MAILBOX + endpoint) + 4
}

/// Has Receive Complete wait for the write channel: what has been written calls again.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn wait_for_writes<B: Dispatch>(io: &mut IoA<B>) {
    io.bus.clear(EventBit::ReceiveComplete);
    io.await_writes();
}

/// Whether an endpoint has descriptors in its process's memory.
#[inline(always)]
fn has_more<B: Bus>(bus: &mut B, endpoint: u32) -> bool {
    bus.load(EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Descriptors)) != 0
}

/// The most descriptors of an endpoint's queue.
#[inline(always)]
fn room<B: Bus>(bus: &mut B, endpoint: u32) -> u32 {
    let entries = bus.load(EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Descriptors));
    entries.max(SLOTS)
}

/// One more in a word of SRAM.
#[inline(always)]
fn bump<B: Bus>(bus: &mut B, address: u32) {
    let count = bus.load(address).wrapping_add(1);
    bus.store(address, count);
}

/// The lowest endpoint of a mask that has any. By a loop: without an instruction for it compilers
/// would multiply, which the chip cannot.
#[inline(always)]
fn lowest(mut mask: u32) -> u32 {
    let mut endpoint = 0;
    while mask & 1 == 0 && endpoint < ENDPOINTS {
        mask = barrier(mask >> 1);
        endpoint += 1;
    }
    endpoint
}

/// The endpoints of a mask, the lowest first.
fn each(mut mask: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        if mask & ALL == 0 {
            return None;
        }
        let endpoint = lowest(mask);
        mask &= mask - 1;
        Some(endpoint)
    })
}
