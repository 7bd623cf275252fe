//! Records handlers, DMA, PCI, MAC, interrupts, and the path of each frame over time.
//!
//! ```text
//!   machine ──► Recorder ──► Timeline ──► packets: the path of each frame
//!               bounded list   │
//!                              ├──► trace events: ui.perfetto.dev, chrome://tracing
//!                              └──► page: the event graph of SPINE's Figure 6
//! ```
//!
//! "SPINE: A Safe Programmable and Integrated Network Environment", section 6: time on the x axis,
//! event kinds on the y axis, a box for each run, arrows along one packet. [`Machine::record`]
//! begins a recording, [`Machine::recorded`] ends it. The output is text; this module does no I/O.
//!
//! | module | what |
//! | --- | --- |
//! | [`capture`] | a window of an experiment |
//! | [`event`] | the recorded events |
//! | [`recorder`] | the bounded list of events |
//! | `host` | the locations of the host's rings |
//! | [`number`] | the number in a frame |
//! | [`packets`] | the path of each frame |
//! | [`tracks`] | the tracks that the outputs show |
//! | [`trace_events`] | output for trace viewers |
//! | [`page`] | output as a page |
//! | [`picture`] | output as a picture |
//!
//! [`Machine::record`]: crate::Machine::record
//! [`Machine::recorded`]: crate::Machine::recorded

pub mod capture;
pub mod event;
mod host;
pub mod number;
pub mod packets;
pub mod page;
pub mod picture;
pub mod recorder;
pub mod trace_events;
pub mod tracks;

use crate::clock::Clock;
use event::{Event, Span};
pub use recorder::{LIMIT, Recorder};
use std::collections::BTreeMap;

/// A recording that has ended.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// What happened, in the order of its ends.
    pub events: Vec<Event>,
    /// The cycle from which on nothing is missing.
    pub from: u64,
    /// The cycle of the end.
    pub to: u64,
    /// The part of it that is looked at.
    pub shown: Span,
    /// Events before that were left out for want of room.
    pub left_out: u64,
    /// What turns cycles into time.
    pub clock: Clock,
    /// What the firmware calls its handlers, by CPU and event bit. Without a name a handler
    /// bears that of its event.
    pub handlers: BTreeMap<(usize, u8), String>,
    /// Entries of the host's send ring.
    pub send_entries: u32,
    /// Entries of its receive return ring.
    pub return_entries: u32,
    /// Entries of the return ring of each receive queue; none in classic mode.
    pub queue_entries: Vec<u32>,
}
